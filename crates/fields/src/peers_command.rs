//! The command `peers`: our loader beside the readers that such stores are read with today.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EpochRecord, GridPoint, HostInfo};
use bench_run::{
    Checksums, Comparison, ReaderPage, Readers, Script, Session, Side, UsageError, Workload as _,
};
use clap::Args;
use serde::Serialize;
use storage::local_path;

use crate::bench::{DataFlags, FarAccess, Fields, Point, Strategy};
use crate::peers::{batches, n_epochs, ours, table};

/// Flags of `peers`.
#[derive(Debug, Args)]
pub(crate) struct PeersArgs {
    #[command(flatten)]
    data: DataFlags,
    /// Readers to compare with, of those that the script has
    #[arg(
        long,
        value_name = "READERS",
        value_delimiter = ',',
        default_value = "somafeed-python,xarray-dask,xarray-dask-per-sample,xarray-tensorstore,tensorstore,zarr-zarrs,zarr-python"
    )]
    readers: Vec<String>,
    /// Python with the packages of benches/peers/fields.txt
    #[arg(long, value_name = "PATH")]
    python: PathBuf,
    /// The script that runs the readers
    #[arg(long, value_name = "PATH", default_value = "benches/peers/fields.py")]
    script: PathBuf,
    /// Rounds over our loader, the readers and the plain read, each run in a new process
    #[arg(long, alias = "repeat", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    repetitions: u64,
    /// Batches of a run, of random samples; several epochs if one has fewer
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    batches: u64,
    /// Batches whose values are compared first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    check_batches: u64,
    /// Samples of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Threads of one read [default: all cores]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
}

impl PeersArgs {
    /// Our loader, which reads a batch when it is asked for.
    fn point(&self) -> Point {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Point {
            batch: self.batch,
            threads: self.threads.unwrap_or_else(cores).max(1),
            max_batches: Some(self.batches),
            together: true,
            seed: self.data.seed,
            ..Point::default()
        }
    }
}

/// The order of a reader.
#[derive(Debug, Clone, Serialize)]
struct ReaderTask {
    /// Path of the store.
    store: PathBuf,
    /// The arrays of a sample.
    arrays: Vec<String>,
    /// The samples of each batch.
    batches: Vec<Vec<u64>>,
    /// Threads of one read.
    threads: usize,
    /// Seed of the order, for a reader that draws it itself.
    seed: u64,
    /// Whether to report checksums instead of times.
    check: bool,
}

/// Checks the readers, measures them beside ours and prints a table.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let store = local_path(args.data.uri.full())
        .ok_or_else(|| UsageError::new("the readers take a store on a local disk"))?;
    let point = args.point();
    let fields = args.data.open(FarAccess::default(), &point)?;
    let n_batches = args.batches.max(args.check_batches);
    // No more epochs than it takes: the next one would be read ahead.
    let point = Point { epochs: n_epochs(&fields.data, &point, n_batches)?, ..point };
    let task = ReaderTask {
        store: store.canonicalize().with_context(|| format!("cannot open {}", store.display()))?,
        arrays: fields.data.arrays.clone(),
        batches: batches(&fields.data, &point, n_batches)?,
        threads: point.threads,
        seed: point.seed,
        check: false,
    };
    let own = |name: &str, point: Point| (name.to_owned(), point);
    let ahead = Point { workers: 1, queue: 1, ..point };
    let floor = Point { strategy: Strategy::PlainRead, ..point };
    let comparison = Comparison {
        workload: &fields,
        readers: &FieldReaders { args, fields: &fields, point: point.clone(), task },
        names: args.readers.clone(),
        script: Script { python: args.python.clone(), path: args.script.clone() },
        ours: vec![own("ours", point), own("ours, 1 worker, queue 1", ahead)],
        floors: vec![own(Strategy::PlainRead.name(), floor)],
        repetitions: args.repetitions,
    };
    let total = (comparison.n_runs(), "runs");
    let mut measuring = args.data.begin(&fields, total, HostInfo::gather(), arguments)?;
    comparison.run(&mut measuring)
}

/// What readers of a store are asked for.
struct FieldReaders<'a> {
    args: &'a PeersArgs,
    fields: &'a Fields,
    point: Point,
    task: ReaderTask,
}

impl FieldReaders<'_> {
    /// The order for the first batches.
    fn first(&self, n_batches: u64, check: bool) -> ReaderTask {
        let mut task = ReaderTask { check, ..self.task.clone() };
        task.batches.truncate(n_batches as usize);
        task
    }
}

impl Readers<Fields> for FieldReaders<'_> {
    type Task = ReaderTask;

    fn expected(&self) -> anyhow::Result<Checksums> {
        ours(&self.fields.data, &self.point, self.args.check_batches)
    }

    fn parts(&self) -> Vec<&str> {
        self.task.arrays.iter().map(String::as_str).collect()
    }

    fn check_task(&self) -> ReaderTask {
        self.first(self.args.check_batches, true)
    }

    fn task(&self, _reader: &str) -> ReaderTask {
        self.first(self.args.batches, false)
    }

    fn n_epochs(&self) -> usize {
        1
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        self.fields.data.folders()
    }

    fn page_cache(&self, session: &Session) -> [&'static str; 2] {
        [self.fields.page_cache(session); 2]
    }

    fn recorded(&self, reader: &str, cache: &str) -> GridPoint {
        GridPoint {
            loader: Some(reader.to_owned()),
            chunk_method: reader.to_owned(),
            reader: reader.to_owned(),
            ..self.point.recorded(cache)
        }
    }

    fn is_timed(&self, _record: &EpochRecord) -> bool {
        true
    }

    fn table(&self, sides: &[Side<'_>]) -> String {
        table(sides)
    }

    fn page(&self, cache: &str) -> ReaderPage {
        let sentences = format!(
            "Each read {} batches of {} random samples of {}, the same samples, on {} threads. MB \
             are 10^6 bytes of samples as delivered (of the plain read, of files); medians over \
             runs, with the range. Seconds of a batch and the ratios leave out the first batch, \
             too. CPU seconds are those of a run. The page cache was {cache}. Every reader in the \
             table delivered the checksums of our loader for {} samples.",
            self.args.batches,
            self.args.batch,
            self.task.arrays.join(" and "),
            self.point.threads,
            self.args.batch * self.args.check_batches,
        );
        ReaderPage { title: "Our loader beside other readers of fields", sentences }
    }
}
