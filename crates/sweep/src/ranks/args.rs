//! Command line of `ranks`, and its meaning.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use bench_run::{Cold, LinkFlags, ResultsFlags, UsageError, key_value, parse_blocks};
use bytesize::ByteSize;
use clap::Args;
use grid_point::{
    Consumer, Data, DataFlags, FormFlag, Point, ReaderFlag, SelectionFlags, share_with_libtiledb,
};
use loader::{BatchForm, BlockForm, LoaderSpec, PipelineSpec, ReaderChoice, World};

/// Most ranks on one machine.
const MOST_RANKS: u64 = 1024;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RanksArgs {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Ranks to start on this machine; with --least-au, the most that are tried [default: this
    /// process is one of the ranks that srun, mpirun or torchrun started, or the only one]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_RANKS))]
    pub(crate) ranks: Option<u64>,
    /// Search the largest number of ranks on this machine of which each still has this accelerator
    /// utilisation, e.g. 90%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) least_au: Option<f64>,
    /// What takes the batches of each rank: fixed:MILLIS, or short MILLISms, which computes nothing
    /// for that time, like an accelerator's host; linear or linear:COLUMN, which trains a linear
    /// classifier; none, which drops them and has no utilisation
    #[arg(long, value_name = "CONSUMER")]
    pub(crate) consumer: Consumer,
    /// Blocks of each rank: NxSIZE is N chunks of SIZE rows
    #[arg(short = 'b', long = "block-spec", value_name = "SPEC", default_value = "1024x64")]
    pub(crate) block_spec: String,
    /// Rows per batch of each rank
    #[arg(short = 'B', long = "batch", alias = "batch-size", value_name = "ROWS", default_value_t = PipelineSpec::default().batch_rows, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: u64,
    /// Batches of each rank after which an epoch is cut off; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_batches: u64,
    /// Epochs, in succession in each rank's process
    #[arg(short = 'E', long = "epochs", alias = "num-epochs", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_epochs: u64,
    /// How rows become batches: np.array, scipy.csr or csr
    #[arg(short = 'm', long, value_name = "METHOD", default_value_t = LoaderSpec::default().block_form)]
    pub(crate) chunk_method: BlockForm,
    /// Form of a batch's X
    #[arg(long, value_enum, default_value_t = FormFlag::Dense)]
    pub(crate) batch_form: FormFlag,
    /// Reader of X
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(crate) reader: ReaderFlag,
    /// Seed of the shuffle
    #[arg(long, default_value_t = PipelineSpec::default().seed)]
    pub(crate) seed: u64,
    /// Blocks read ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = PipelineSpec::default().prefetch_blocks)]
    pub(crate) prefetch_blocks: usize,
    /// Batches made ahead of the one in use
    #[arg(long, value_name = "N", default_value_t = PipelineSpec::default().prefetch_batches)]
    pub(crate) prefetch_batches: usize,
    /// Memory that each rank may use, e.g. 4GiB [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Cache for decoded X in each rank, e.g. 1GiB [default: the rest of --memory; no cache without
    /// --memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) keep_decoded: Option<ByteSize>,
    /// Drop the data from the page cache before the ranks open it [default of HOW: auto; without
    /// the flag the data is read into the cache, unless a launcher started the ranks]
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) cold: Option<Cold>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Seconds within which all ranks must be there and have opened the data
    #[arg(long, value_name = "SECS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) start_within: u64,
    /// Note to record in each row of the results; may be repeated
    #[arg(short = 'M', long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Results folder, appended to if it has rows; under a launcher all ranks need the same one, on
    /// a file system that they share [default: results/DATE-HOST-DATA-ranks]
    #[arg(short = 'd', long, value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
    /// Print a JSON object per number of ranks instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) results_flags: ResultsFlags,
}

const EXAMPLES: &str = "\
All ranks begin at the same time and share the cells. A rank that fails, dies or does not come ends the run.

Examples:
  cargo xtask ranks --uri ~/census/experiment -n 8 --consumer 20ms
  cargo xtask ranks --uri ~/census/experiment --least-au 90% --consumer 20ms --link 30ms,90MB/s,1GB/s
  srun -N 2 --ntasks-per-node 4 cargo xtask ranks --uri /shared/experiment --consumer 20ms --results /shared/results";

/// Which ranks run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ranks {
    /// This number, all started by this process.
    Here(u64),
    /// The largest number with the utilisation, at most `most`.
    Search { most: u64, least: f64 },
    /// Those that a launcher started; this process is one of them.
    Launched(World),
}

impl RanksArgs {
    /// Chooses the ranks, given those that the environment names. Fails if the command line
    /// contradicts it, or lacks what ranks of a launcher need.
    pub(crate) fn which(&self, world: World) -> anyhow::Result<Ranks> {
        if world.size == 1 {
            return Ok(match self.least_au {
                Some(least) => Ranks::Search { most: self.ranks.unwrap_or(MOST_RANKS), least },
                None => Ranks::Here(self.ranks.unwrap_or(1)),
            });
        }
        let n = world.size;
        let problem = if self.ranks.is_some() || self.least_au.is_some() {
            "each would start ranks of its own: leave out -n and --least-au, or start the command once"
        } else if self.link.link.is_some() {
            "--link serves the ranks that one process starts: start the command once, with -n"
        } else if self.results.is_none() {
            "they need a folder to meet, on a file system that they share: name it with --results"
        } else if self.data.address().is_none() {
            "the example experiment is for ranks that one process starts: name the data with --uri"
        } else {
            return Ok(Ranks::Launched(world));
        };
        Err(UsageError::new(format!("a launcher started {n} ranks, and {problem}")).into())
    }

    /// Returns the data and the settings of each rank. Fails if they contradict each other.
    pub(crate) fn resolve(&self) -> anyhow::Result<(Data, Point)> {
        self.resolve_plain().map_err(|error| UsageError::from_error(&error).into())
    }

    fn resolve_plain(&self) -> anyhow::Result<(Data, Point)> {
        if self.least_au.is_some() && self.consumer == Consumer::None {
            bail!("--least-au needs a --consumer that computes");
        }
        let [blocks] = parse_blocks(&self.block_spec)?[..] else {
            bail!("-b/--block-spec {:?} is several: ranks have one", self.block_spec);
        };
        let form = BatchForm::from(self.batch_form);
        if form.dense_type().is_none() && self.chunk_method == BlockForm::Dense {
            bail!("-m/--chunk-method {} gives no {form} batches", self.chunk_method);
        }
        let mut data = self.selection.apply(self.data.data()?)?;
        if self.cold.is_some() && !data.uri.is_empty() && data.uri.local_path().is_none() {
            bail!("--cold is for local files: what is read from a store is in no page cache");
        }
        if self.cold.is_some() && self.num_epochs > 1 {
            bail!("--cold empties the page cache once, before the first epoch: take -E 1");
        }
        if let Some(memory) = self.memory {
            share_with_libtiledb(&mut data.config, memory.as_u64());
        }
        let reader = ReaderChoice::from(self.reader).name().to_owned();
        let data = Data { reader, entropy_of: Some(Vec::new()), ..data };
        let pipeline = PipelineSpec {
            batch_rows: self.batch_size,
            seed: self.seed,
            prefetch_blocks: self.prefetch_blocks,
            prefetch_batches: self.prefetch_batches,
            keep_bytes: self.keep_decoded.map(|size| size.as_u64()),
            ..PipelineSpec::default()
        };
        let point = Point {
            spec: LoaderSpec {
                pipeline,
                block_form: self.chunk_method,
                batch_form: form,
                ..LoaderSpec::default()
            },
            n_epochs: self.num_epochs,
            max_batches: (self.max_batches != 0).then_some(self.max_batches),
            consumer: self.consumer.clone(),
            memory_limit: self.memory.map(|size| size.as_u64()),
            ..Point::default()
        };
        Ok((data, point.with_blocks(blocks)))
    }

    /// Time within which all ranks must be ready.
    pub(crate) fn start_within(&self) -> Duration {
        Duration::from_secs(self.start_within)
    }
}

/// Parses a share as `90%` or `90`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let share = number.filter(|percent| (0.0..=100.0).contains(percent) && 0.0 < *percent);
    share.map(|percent| percent / 100.0).ok_or_else(|| format!("{text:?} is not a share like 90%"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn ranks(arguments: &[&str]) -> RanksArgs {
        let all = ["sweep", "ranks"].iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Ranks(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    const ALONE: World = World { rank: 0, size: 1 };
    const LAUNCHED: World = World { rank: 2, size: 4 };

    #[test]
    fn ranks_are_started_searched_or_a_launchers() {
        let which = |arguments: &[&str], world| {
            let all = [&["--consumer", "20ms"][..], arguments].concat();
            ranks(&all).which(world)
        };
        assert_eq!(which(&["-n", "8"], ALONE).unwrap(), Ranks::Here(8));
        assert_eq!(which(&[], ALONE).unwrap(), Ranks::Here(1));
        let search = which(&["--least-au", "90%"], ALONE).unwrap();
        assert_eq!(search, Ranks::Search { most: MOST_RANKS, least: 0.9 });
        let search = which(&["--least-au", "75", "-n", "6"], ALONE).unwrap();
        assert_eq!(search, Ranks::Search { most: 6, least: 0.75 });
        let complete = ["--uri", "x", "--results", "r"];
        assert_eq!(which(&complete, LAUNCHED).unwrap(), Ranks::Launched(LAUNCHED));
        for (arguments, expect) in [
            (&["--uri", "x", "--results", "r", "-n", "2"][..], "leave out -n"),
            (&["--uri", "x", "--results", "r", "--least-au", "90"], "leave out -n"),
            (&["--uri", "x", "--results", "r", "--link", "30ms"], "--link serves"),
            (&["--uri", "x"], "--results"),
            (&["--results", "r"], "--uri"),
        ] {
            let error = which(arguments, LAUNCHED).unwrap_err();
            assert!(error.is::<UsageError>() && error.to_string().contains(expect), "{error}");
        }
    }

    #[test]
    fn settings_are_those_of_each_rank() {
        let args = ranks(&["-b", "16x8", "-B", "32", "--consumer", "2.5ms", "--memory", "1GiB"]);
        let (data, point) = args.resolve().unwrap();
        let PipelineSpec { chunk_rows, chunks_per_block, batch_rows, .. } = point.spec.pipeline;
        assert_eq!((chunk_rows, chunks_per_block, batch_rows), (8, 16, 32));
        assert_eq!(point.consumer, Consumer::Fixed { millis: 2.5 });
        assert_eq!((point.memory_limit, point.rank()), (Some(1 << 30), None));
        let (_, usual) = ranks(&["--consumer", "none"]).resolve().unwrap();
        assert_eq!(usual.spec, LoaderSpec::default());
        // Counting labels would take a part of the consumer's time.
        assert_eq!(data.entropy_of, Some(Vec::new()));
        for (arguments, expect) in [
            (&["--consumer", "none", "--least-au", "90%"][..], "needs a --consumer"),
            (&["--consumer", "1ms", "-b", "64 / [1,4]"], "is several"),
            (&["--consumer", "1ms", "-m", "np.array", "--batch-form", "csr"], "gives no csr"),
            (&["--consumer", "1ms", "--cold", "s3://b/x"], "--cold is for local files"),
        ] {
            let error = ranks(arguments).resolve().unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }

    #[test]
    fn shares_are_in_percent() {
        assert_eq!(
            (percent("90%"), percent("100"), percent(" 0.5 %")),
            (Ok(0.9), Ok(1.0), Ok(0.005))
        );
        for text in ["", "%", "0", "101%", "-1", "nan"] {
            percent(text).unwrap_err();
        }
    }
}
