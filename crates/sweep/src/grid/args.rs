//! Command line of `sweep` as typed; `config` resolves it.

use std::path::PathBuf;

use bench_run::{Cold, LimitBy, LinkFlags, Rate, ResultsFlags, ShardFlag, key_value};
use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use grid_point::{Consumer, DataFlags, FormFlag, ReaderFlag, SelectionFlags};
use loader::{LoaderSpec, PipelineSpec, Remainder, Totals, Transform};

use super::original_flags::OriginalFlags;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = BLOCK_SPECS)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Blocks to measure; may be repeated; see below
    #[arg(short = 'b', long = "block-specs", value_name = "SPEC")]
    pub(crate) block_specs: Vec<String>,
    /// Rows per batch
    #[arg(
        short = 'B',
        long = "batch",
        alias = "batch-size",
        value_name = "ROWS",
        default_value_t = PipelineSpec::default().batch_rows
    )]
    pub(crate) batch_size: u64,
    /// Batches after which an epoch is cut off; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub(crate) max_batches: u64,
    /// Epochs of each point, in succession in its process
    #[arg(
        short = 'E',
        long = "epochs",
        alias = "num-epochs",
        value_name = "N",
        default_value_t = 1
    )]
    pub(crate) num_epochs: u64,
    /// Measure the grid N times, round by round, each point in a new process; the table shows
    /// medians and ranges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repeat: u64,
    /// Drop the data from the page cache before each epoch [default of HOW: auto; without the flag
    /// the data is read into the cache once]
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) cold: Option<Cold>,
    /// How rows become batches: np.array, scipy.csr, csr, or their first letters; separated by
    /// commas [default: all]
    #[arg(short = 'm', long = "chunk-method", value_name = "METHODS", value_delimiter = ',')]
    pub(crate) chunk_methods: Vec<String>,
    /// Note to record in each row of the results; may be repeated
    #[arg(short = 'M', long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Reader of X
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(crate) reader: ReaderFlag,
    /// obs columns to load with each batch, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) obs_columns: Vec<String>,
    /// obs columns whose entropy within batches is measured, separated by commas, or none [default:
    /// cell_type and the first of donor_id, donor, sample_id, sample, batch, dataset_id that obs
    /// has]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) entropy_of: Vec<String>,
    /// Seed of the shuffle
    #[arg(long, default_value_t = PipelineSpec::default().seed)]
    pub(crate) seed: u64,
    /// Order of the rows
    #[arg(long, value_enum, default_value_t = Order::Shuffled)]
    pub(crate) order: Order,
    /// Form of a batch's X
    #[arg(long, value_enum, default_value_t = FormFlag::Dense)]
    pub(crate) batch_form: FormFlag,
    /// Scale each cell's values to this sum, e.g. 10000
    #[arg(long, value_name = "SUM")]
    pub(crate) target_sum: Option<f64>,
    /// obs column with the sums to scale by, e.g. raw_sum [default: the sum over the selected
    /// genes]
    #[arg(long, value_name = "COLUMN", requires = "target_sum")]
    pub(crate) totals: Option<String>,
    /// Replace each value x by ln(1 + x)
    #[arg(long)]
    pub(crate) log1p: bool,
    /// Clip values to this range, e.g. 0,10
    #[arg(long, value_name = "LEAST,MOST", value_parser = bounds)]
    pub(crate) clip: Option<(f32, f32)>,
    /// Drop the last batch of an epoch if it is short
    #[arg(long)]
    pub(crate) drop_last: bool,
    /// Blocks at the start of an epoch that grow, each twice the one before, so that the first
    /// batch is there sooner: with 4, the first has a sixteenth of the chunks
    #[arg(long, value_name = "N", default_value_t = PipelineSpec::default().ramp_blocks)]
    pub(crate) ramp_blocks: u32,
    /// Blocks read ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = PipelineSpec::default().prefetch_blocks)]
    pub(crate) prefetch_blocks: usize,
    /// Blocks read at the same time, each by a thread; several help if storage answers slowly
    #[arg(long, value_name = "N", default_value_t = PipelineSpec::default().read_threads)]
    pub(crate) read_threads: usize,
    /// Batches made ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = PipelineSpec::default().prefetch_batches)]
    pub(crate) prefetch_batches: usize,
    /// Threads that write a large dense batch together [default: half of the processors, 2 to 8]
    #[arg(long, value_name = "N")]
    pub(crate) batch_threads: Option<usize>,
    /// Memory that a point may use, e.g. 4GiB; limits how much is read ahead [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Cache for decoded X across blocks and epochs, e.g. 1GiB [default: the rest of --memory; no
    /// cache without --memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) keep_decoded: Option<ByteSize>,
    /// Memory above which a point's process is killed, e.g. 8GiB; its row records that and the
    /// sweep continues [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) point_memory_limit: Option<ByteSize>,
    /// Consumer of the batches: none, which drops them at once; fixed:MILLIS, which sleeps for
    /// each; linear or linear:COLUMN, which trains a linear classifier of cell_type or another obs
    /// column
    #[arg(long, value_name = "CONSUMER", default_value = "none")]
    pub(crate) consumer: Consumer,
    /// Limit the bytes read from storage per second, e.g. 1000MB/s (millions; docker's 1000mb is
    /// 1000MiB/s) [default: no limit]
    #[arg(long, value_name = "RATE", conflicts_with = "link")]
    pub(crate) io_limit: Option<Rate>,
    /// How the limit is enforced; recorded in each row
    #[arg(long, value_enum, default_value_t = LimitBy::Auto, requires = "io_limit")]
    pub(crate) io_limit_by: LimitBy,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Results folder, appended to if it has rows [default: results/DATE-HOST-DATA]
    #[arg(short = 'd', long, visible_alias = "db-path", value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
    /// Resume the sweep in the folder of --results: skip points measured under the same conditions
    #[arg(long, requires = "results")]
    pub(crate) resume: bool,
    /// The part of the grid that this process measures, counted from 0, e.g. 2/8; auto/8 takes the
    /// part from Slurm, HyperQueue, Kubernetes or mpirun; --results gets a folder for each part
    /// [default: the part of a Slurm job array or of mpirun's ranks, else everything]
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<ShardFlag>,
    /// Print a JSON object per grid point instead of the tables: medians, ranges and deviations
    /// over its epochs
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short = 'q', long, overrides_with = "quiet")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) original: OriginalFlags,
    #[command(flatten)]
    pub(crate) results_flags: ResultsFlags,
}

impl SweepArgs {
    /// Returns the loader's settings of all points, but for their blocks.
    pub(crate) fn loader_spec(&self) -> LoaderSpec {
        let pipeline = PipelineSpec {
            batch_rows: self.batch_size,
            order: match self.order {
                Order::Shuffled => loader::Order::Shuffled,
                Order::InOrder => loader::Order::InOrder,
            },
            ramp_blocks: self.ramp_blocks,
            seed: self.seed,
            remainder: if self.drop_last { Remainder::Drop } else { Remainder::Short },
            prefetch_blocks: self.prefetch_blocks,
            read_threads: self.read_threads,
            prefetch_batches: self.prefetch_batches,
            keep_bytes: self.keep_decoded.map(|size| size.as_u64()),
            ..PipelineSpec::default()
        };
        LoaderSpec {
            pipeline,
            batch_form: self.batch_form.into(),
            transform: Transform {
                target_sum: self.target_sum,
                log1p: self.log1p,
                clip: self.clip,
            },
            batch_threads: self.batch_threads,
            totals: if self.totals.is_some() { Totals::Obs } else { Totals::Genes },
            ..LoaderSpec::default()
        }
    }
}

const BLOCK_SPECS: &str = "\
Block specifications:
  SIZE           a block is one chunk of SIZE rows
  NxSIZE         N chunks of SIZE rows
  BLOCK / N      BLOCK rows in N chunks; N must divide BLOCK
  BLOCK / [A,B]  the same for N = A, 2A, 4A ... up to B; where A is above B, the most chunks first

Examples:
  cargo xtask sweep --uri ~/census/experiment -b '65536 / [64,1024]' -m csr --repeat 5
  cargo xtask sweep --uri ~/census/experiment -b 64x2048 --cold --consumer linear --results results/training
  cargo xtask sweep --uri ~/census/experiment -b '65536 / [64,1024]' --results results/mine --resume
  cargo xtask sweep --uri /shared/experiment -b '65536 / [1,1024]' --results /shared/results --shard 0/8";

/// Order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    Shuffled,
    InOrder,
}

fn bounds(text: &str) -> Result<(f32, f32), String> {
    let (least, most) = text.split_once(',').ok_or("expected two numbers and a comma")?;
    let number = |text: &str| text.trim().parse().map_err(|_| format!("{text:?} is no number"));
    Ok((number(least)?, number(most)?))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use grid_point::Data;

    use super::*;
    use crate::cli::{Cli, Command};

    fn data(args: &SweepArgs) -> Data {
        args.selection.apply(args.data.data().unwrap()).unwrap()
    }

    fn sweep(arguments: &[&str]) -> SweepArgs {
        let all = ["sweep", "sweep"].iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Sweep(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn defaults_are_as_documented() {
        let args = sweep(&[]);
        assert_eq!((args.batch_size, args.max_batches, args.num_epochs), (1024, 0, 1));
        assert_eq!(args.loader_spec(), LoaderSpec::default());
        let data = data(&args);
        assert_eq!((data.measurement.as_str(), data.layer.as_str()), ("", ""));
        assert_eq!((data.n_genes, data.uri.is_empty()), (None, true));
        assert_eq!((args.order, args.batch_form), (Order::Shuffled, FormFlag::Dense));
        assert!(
            args.block_specs.is_empty() && args.chunk_methods.is_empty() && args.results.is_none()
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
        let data = data(&args);
        assert_eq!((data.uri.full(), data.n_genes, data.cells), ("place", Some(100), Some(10..20)));
        assert_eq!(args.results, Some("folder".into()));
        assert_eq!(args.block_specs, ["1024", "64 / [1,4]"]);
        assert_eq!((args.batch_size, args.max_batches, args.num_epochs), (7, 5, 3));
        assert_eq!(args.chunk_methods, ["np", "s"]);
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
            "--ramp-blocks",
            "3",
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
        let data = data(&args);
        assert_eq!(data.uri.full(), "s3://x/y");
        assert_eq!((data.measurement.as_str(), data.layer.as_str()), ("ATAC", "normalized"));
        assert_eq!(args.obs_columns, ["cell_type", "assay"]);
        assert_eq!(args.entropy_of, ["tissue", "donor_id"]);
        assert_eq!(
            (args.seed, args.prefetch_blocks, args.prefetch_batches, args.drop_last),
            (9, 0, 4, true)
        );
        assert_eq!((args.order, args.batch_form), (Order::InOrder, FormFlag::Csr));
        assert_eq!(data.config, [("vfs.s3.region".into(), "us-west-2".into())].into());
        assert_eq!(args.consumer, Consumer::Fixed { millis: 2.5 });
        assert_eq!(args.results, Some("out".into()));
        assert_eq!(
            (args.cold, args.repeat, args.resume, args.json),
            (Some(Cold::Auto), 3, true, true)
        );
        assert_eq!(args.point_memory_limit, Some(ByteSize::gib(2)));
        assert_eq!((args.ramp_blocks, sweep(&[]).ramp_blocks), (3, 0));
        assert_eq!(sweep(&["--cold=advise"]).cold, Some(Cold::Advise));
    }
}
