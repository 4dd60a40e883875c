//! The command line as typed. What it means together is decided in `config`.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::consumer::Consumer;
use crate::growth::GrowthArgs;
use crate::io_limit::{LimitBy, Rate};
use crate::original_flags::OriginalFlags;
use crate::page_cache::Cold;
use crate::peers::PeersArgs;
use crate::read_chunks::ReadChunksArgs;
use crate::relayout_command::RelayoutArgs;
use crate::report_command::ReportArgs;
use crate::results_folder::OfResults;
use crate::secrets::Address;
use crate::slice::SliceArgs;
use crate::tune::TuneArgs;

/// Measures the loader; writes and imports experiments.
#[derive(Debug, Parser)]
#[command(name = "sweep", bin_name = "cargo xtask", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure the loader over a grid of settings, each point in a process of its own
    Sweep(Box<SweepArgs>),
    /// Write a Census-shaped experiment
    Generate(GenerateArgs),
    /// Turn a 10x Genomics folder into an experiment
    Import(ImportArgs),
    /// Take some cells and genes of an experiment to a new one
    Slice(Box<SliceArgs>),
    /// Write an experiment's X anew, in the order in which training reads it
    Relayout(Box<RelayoutArgs>),
    /// Compare the native reader of X with libtiledb: the same rows in turn
    BenchReaders(BenchReadersArgs),
    /// Compare the loader with others, side by side on the same data
    Peers(Box<PeersArgs>),
    /// Read all rows in tiledbsoma's four ways and by our readers, and see that they read the same
    ReadChunks(Box<ReadChunksArgs>),
    /// Generate and sweep experiments of several sizes, and set time per cell and memory against size
    Growth(GrowthArgs),
    /// Draw results anew, or several side by side: a page, pictures and tables
    Report(ReportArgs),
    /// Propose settings for an amount of memory and a randomness of the batches, from a short probe, and check them
    Tune(Box<TuneArgs>),
    /// Measure one point; the job comes on stdin, what happens goes to stdout
    #[command(hide = true)]
    Point,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = BLOCK_SPECS)]
pub(crate) struct SweepArgs {
    /// Blocks to measure, may be given several times; see below
    #[arg(short = 'b', long = "block-specs", value_name = "SPEC")]
    pub(crate) block_specs: Vec<String>,
    /// Rows of a batch
    #[arg(short = 'B', long, value_name = "ROWS", default_value_t = 1024)]
    pub(crate) batch_size: u64,
    /// Batches after which an epoch is cut off; 0 is all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub(crate) max_batches: u64,
    /// Epochs of each point, one after the other in its process
    #[arg(short = 'E', long, value_name = "N", default_value_t = 1)]
    pub(crate) num_epochs: u64,
    /// Measure the grid N times, one round after the other, each point in a new process; the table has medians and ranges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repeat: u64,
    /// Put the data out of the page cache before each epoch [default of HOW: auto; without the flag it is read into it once]
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) cold: Option<Cold>,
    /// How rows become batches: np.array, scipy.csr, native, or their first letters; separated by commas [default: all]
    #[arg(short = 'm', long = "chunk-method", value_name = "METHODS", value_delimiter = ',')]
    pub(crate) chunk_methods: Vec<String>,
    /// Take the first N genes; 0 is all
    #[arg(short = 'v', long, value_name = "N", default_value_t = 0)]
    pub(crate) n_vars: u64,
    /// Take cells from this joinid on
    #[arg(short = 's', long, value_name = "JOINID")]
    pub(crate) start: Option<u64>,
    /// Take cells below this joinid
    #[arg(short = 'e', long, value_name = "JOINID")]
    pub(crate) end: Option<u64>,
    /// Something to note with each row of the results, may be given several times
    #[arg(short = 'M', long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) metadata: Vec<(String, String)>,
    /// The experiment, as --uri
    #[arg(value_name = "URI", conflicts_with = "uri")]
    pub(crate) place: Option<Address>,
    /// The experiment: a folder or a URI such as s3://... [default: an example, written to the cache when needed]
    #[arg(long)]
    pub(crate) uri: Option<Address>,
    /// Measurement of the experiment
    #[arg(long, default_value = "RNA")]
    pub(crate) measurement: String,
    /// Layer of the measurement's X
    #[arg(long, default_value = "raw")]
    pub(crate) layer: String,
    /// What reads X
    #[arg(long, value_enum, default_value_t = Reader::Auto)]
    pub(crate) reader: Reader,
    /// Take the cells that match, as `tissue == "lung" and nnz > 500` (tiledbsoma's grammar)
    #[arg(long, value_name = "FILTER")]
    pub(crate) obs_filter: Option<String>,
    /// Take the genes that match, as `feature_name in ["CD4", "CD8A"]`
    #[arg(long, value_name = "FILTER")]
    pub(crate) var_filter: Option<String>,
    /// obs columns that come with each batch, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) obs_columns: Vec<String>,
    /// obs columns whose entropy within batches is measured, separated by commas; none for none [default: cell_type, where obs has it]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) entropy_of: Vec<String>,
    /// Seed of the shuffled order
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Order of the rows
    #[arg(long, value_enum, default_value_t = Order::Shuffled)]
    pub(crate) order: Order,
    /// What a batch's X is
    #[arg(long, value_enum, default_value_t = Form::Dense)]
    pub(crate) batch_form: Form,
    /// Scale each cell's values to this sum, as 10000
    #[arg(long, value_name = "SUM")]
    pub(crate) target_sum: Option<f64>,
    /// obs column with the sums to scale by, as raw_sum [default: the sum over the genes taken]
    #[arg(long, value_name = "COLUMN", requires = "target_sum")]
    pub(crate) totals: Option<String>,
    /// Take the logarithm of one more than each value
    #[arg(long)]
    pub(crate) log1p: bool,
    /// Bring values into this range, as 0,10
    #[arg(long, value_name = "LEAST,MOST", value_parser = bounds)]
    pub(crate) clip: Option<(f32, f32)>,
    /// Leave out the last batch of an epoch where it is short
    #[arg(long)]
    pub(crate) drop_last: bool,
    /// Blocks read ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) prefetch_blocks: usize,
    /// Batches made ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) prefetch_batches: usize,
    /// Memory that a point may take, as 4GiB: as much is read ahead as fits [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Values of X kept decoded for later blocks and epochs, as 1GiB [default: what --memory leaves, none without it]
    #[arg(long, value_name = "SIZE")]
    pub(crate) keep_decoded: Option<ByteSize>,
    /// Memory above which a point's process is ended, as 8GiB: then the row says so, and the sweep goes on [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) point_memory_limit: Option<ByteSize>,
    /// What takes the batches: none, which drops them at once; fixed:MILLIS, which sleeps so long over each; linear or linear:COLUMN,
    /// which trains a linear classifier of cell_type or another obs column
    #[arg(long, value_name = "CONSUMER", default_value = "none")]
    pub(crate) consumer: Consumer,
    /// Hold bytes from storage to a rate, as 1000MB/s (millions; 1000MiB/s is what docker calls 1000mb) [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub(crate) io_limit: Option<Rate>,
    /// What holds it; each row says which it was
    #[arg(long, value_enum, default_value_t = LimitBy::Auto, requires = "io_limit")]
    pub(crate) io_limit_by: LimitBy,
    /// A setting of TileDB, may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Folder for the results; rows are added where it has some [default: results/<date>-<host>-<data>]
    #[arg(short = 'd', long, visible_alias = "db-path", value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
    /// Go on with the sweep whose rows are in the folder of --results: what was measured under the same conditions is left out
    #[arg(long, requires = "results")]
    pub(crate) resume: bool,
    /// Print a JSON object for each grid point in place of the tables: medians, ranges and deviations over its epochs
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short = 'q', long, overrides_with = "quiet")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) original: OriginalFlags,
    #[command(flatten)]
    pub(crate) of_results: OfResults,
}

const BLOCK_SPECS: &str = "\
Block specifications:
  SIZE           a block is one chunk of SIZE rows
  NxSIZE         N chunks of SIZE rows
  BLOCK / N      BLOCK rows in N chunks; N must divide BLOCK
  BLOCK / [A,B]  the same for N = A, 2A, 4A ... up to B; where A is above B, the most chunks first

Examples:
  cargo xtask sweep --uri ~/census/experiment -b '65536 / [64,1024]' -m native --repeat 5
  cargo xtask sweep --uri ~/census/experiment -b 64x2048 --cold --consumer linear --results results/training
  cargo xtask sweep --uri ~/census/experiment -b '65536 / [64,1024]' --results results/mine --resume";

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Where the experiment is written; must not be there yet
    pub(crate) uri: Address,
    /// Number of cells
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) cells: u64,
    /// Number of genes
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) genes: u64,
    /// What the data is made from
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write X in fragments of so many cells [default: one fragment]
    #[arg(long, value_name = "CELLS")]
    pub(crate) fragment_rows: Option<u64>,
    /// Consolidate the fragments of X into one, which then holds the time of each value, as the Census's does
    #[arg(long)]
    pub(crate) consolidate: bool,
    /// A setting of TileDB, may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Folder with matrix.mtx, barcodes.tsv and features.tsv, each plain or .gz
    pub(crate) folder: PathBuf,
    /// Where the experiment is written; must not be there yet
    pub(crate) uri: Address,
    /// A setting of TileDB, may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchReadersArgs {
    /// The experiment: a folder or a URI such as s3://... [default: an example, written to the cache when needed]
    #[arg(long)]
    pub(crate) uri: Option<Address>,
    /// Measurement of the experiment
    #[arg(long, default_value = "RNA")]
    pub(crate) measurement: String,
    /// Layer of the measurement's X
    #[arg(long, default_value = "raw")]
    pub(crate) layer: String,
    /// Kinds of reads, separated by commas: NxSIZE, N random chunks of SIZE rows a read; whole, every row in order
    /// [default: 16x64,256x64,1024x64,1024x1,whole]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) reads: Vec<String>,
    /// Repetitions of each, after a first one and a pass over the array that are not counted
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) repetitions: u64,
    /// Seed of the random rows
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// A setting of TileDB, may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// What reads X.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reader {
    /// The native reader where it knows the array, otherwise libtiledb
    Auto,
    /// The native reader, which decodes only what is wanted
    Native,
    /// libtiledb
    Libtiledb,
}

/// Order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    Shuffled,
    InOrder,
}

/// What a batch's X is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Dense,
    F16,
    Csr,
    Coo,
}

fn bounds(text: &str) -> Result<(f32, f32), String> {
    let (least, most) = text.split_once(',').ok_or("expected two numbers and a comma")?;
    let number = |text: &str| text.trim().parse().map_err(|_| format!("{text:?} is no number"));
    Ok((number(least)?, number(most)?))
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected key=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn sweep(arguments: &[&str]) -> SweepArgs {
        let all = ["sweep", "sweep"].iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Sweep(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_as_documented() {
        let args = sweep(&[]);
        assert_eq!(
            (args.batch_size, args.max_batches, args.num_epochs, args.n_vars),
            (1024, 0, 1, 0)
        );
        assert_eq!((args.measurement.as_str(), args.layer.as_str()), ("RNA", "raw"));
        assert_eq!((args.order, args.batch_form), (Order::Shuffled, Form::Dense));
        assert!(
            args.block_specs.is_empty()
                && args.chunk_methods.is_empty()
                && args.uri.is_none()
                && args.results.is_none()
        );
        assert!(!args.quiet && !args.drop_last);
    }

    #[test]
    fn each_letter_of_the_original_does_what_it_did() {
        let args = sweep(&[
            "-b",
            "1024",
            "-b",
            "64 / [1,4]",
            "-B",
            "7",
            "-n",
            "5",
            "-E",
            "3",
            "-m",
            "np,s",
            "-v",
            "100",
            "-s",
            "10",
            "-e",
            "20",
            "-M",
            "disk=nvme",
            "-M",
            "note=a=b",
            "-qq",
            "-d",
            "folder",
            "place",
        ]);
        assert_eq!((args.results, args.place), (Some("folder".into()), Some("place".into())));
        assert_eq!(args.block_specs, ["1024", "64 / [1,4]"]);
        assert_eq!(
            (args.batch_size, args.max_batches, args.num_epochs, args.n_vars),
            (7, 5, 3, 100)
        );
        assert_eq!(args.chunk_methods, ["np", "s"]);
        assert_eq!((args.start, args.end), (Some(10), Some(20)));
        assert_eq!(args.metadata, [("disk".into(), "nvme".into()), ("note".into(), "a=b".into())]);
        assert!(args.quiet);
    }

    #[test]
    fn the_long_flags_that_have_no_letter() {
        let args = sweep(&[
            "--uri",
            "s3://x/y",
            "--measurement",
            "ATAC",
            "--layer",
            "normalized",
            "--obs-columns",
            "cell_type,assay",
            "--entropy-of",
            "tissue,donor_id",
            "--seed",
            "9",
            "--order",
            "in-order",
            "--batch-form",
            "csr",
            "--drop-last",
            "--prefetch-blocks",
            "0",
            "--prefetch-batches",
            "4",
            "--config",
            "vfs.s3.region=us-west-2",
            "--consumer",
            "fixed:2.5",
            "--cold",
            "--repeat",
            "3",
            "--point-memory-limit",
            "2GiB",
            "--resume",
            "--json",
            "--results",
            "out",
        ]);
        assert_eq!(args.uri, Some("s3://x/y".into()));
        assert_eq!((args.measurement.as_str(), args.layer.as_str()), ("ATAC", "normalized"));
        assert_eq!(args.obs_columns, ["cell_type", "assay"]);
        assert_eq!(args.entropy_of, ["tissue", "donor_id"]);
        assert_eq!(
            (args.seed, args.prefetch_blocks, args.prefetch_batches, args.drop_last),
            (9, 0, 4, true)
        );
        assert_eq!((args.order, args.batch_form), (Order::InOrder, Form::Csr));
        assert_eq!(args.config, [("vfs.s3.region".into(), "us-west-2".into())]);
        assert_eq!(args.consumer, Consumer::Fixed { millis: 2.5 });
        assert_eq!(args.results, Some("out".into()));
        assert_eq!(
            (args.cold, args.repeat, args.resume, args.json),
            (Some(Cold::Auto), 3, true, true)
        );
        assert_eq!(args.point_memory_limit, Some(ByteSize::gib(2)));
        assert_eq!(sweep(&["--cold=advise"]).cold, Some(Cold::Advise));
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["sweep", "sweep", "-M", "novalue"][..],
            &["sweep", "sweep", "-M", "=v"],
            &["sweep", "sweep", "-B", "-1"],
            &["sweep", "sweep", "--order", "random"],
            &["sweep", "sweep", "--consumer", "fixed:-1"],
            &["sweep", "sweep", "positional", "another"],
            &["sweep", "sweep", "place", "--uri", "another"],
            &["sweep", "sweep", "--repeat", "0"],
            &["sweep", "sweep", "--cold=frozen"],
            &["sweep", "sweep", "--resume"],
            &["sweep", "sweep", "-V", "2025-11-08", "--uri", "x"],
            &["sweep", "generate"],
            &["sweep", "import", "folder"],
            &["sweep", "unknown"],
            &["sweep"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
