//! The command `peers`: our loader beside the ways in which Python users feed cubes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_report::{EpochRecord, GridPoint};
use bench_run::{
    Checksums, Cold, Comparison, PageCache, ReaderPage, Readers, SampleUnits, Script, Session,
    Side, UsageError, delivered_rows, reader_table,
};
use clap::Args;
use images::Form;
use serde::Serialize;

use crate::bench::{Augment, CubeWork, Cubes, DataFlags, Memory, Mode, Point, Settings, Strategy};
use crate::checksums::{KEYS, ours};

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
        default_value = "somafeed-python,dataloader,ring,ring-together,htc-ring,spdl"
    )]
    readers: Vec<String>,
    /// Python with the packages of benches/peers/cubes.txt
    #[arg(long, value_name = "PATH")]
    python: PathBuf,
    /// The script that runs the readers
    #[arg(long, value_name = "PATH", default_value = "benches/peers/cubes.py")]
    script: PathBuf,
    /// Form of the files that all read: dat, raw32, raw16
    #[arg(long, value_name = "FORM", default_value = "raw16")]
    form: Form,
    /// Rounds over our loader and the readers, each run in a new process
    #[arg(long, alias = "repeat", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    repetitions: u64,
    /// Epochs of a run
    #[arg(short = 'E', long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// First epochs of a run that are not timed: workers start in the first
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: u64,
    /// Batches after which an epoch is cut off; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    max_batches: u64,
    /// Cubes of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Threads of our loader, and workers of the readers
    #[arg(short = 'w', long, value_name = "N", default_value_t = 2, value_parser = workers)]
    workers: usize,
    /// What the threads of our loader decode: single (a batch each), collaborative (one batch
    /// together, like somafeed-python's)
    #[arg(long, value_name = "MODE", default_value = "single", hide_possible_values = true)]
    mode: Mode,
    /// Threads of blosc in each worker of the readers [default: python-blosc's, all cores up to 8]
    #[arg(long, value_name = "N")]
    codec_threads: Option<usize>,
    /// Augment on the CPU; of the readers, only somafeed-python, dataloader and htc-dataloader can
    #[arg(long)]
    augment: bool,
    /// Shuffle the cubes
    #[arg(long)]
    shuffled: bool,
}

fn workers(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| 0 < *n).ok_or_else(|| "expected 1 or more".to_owned())
}

impl PeersArgs {
    /// Our loader in the way of a strategy, into nothing.
    fn point(&self, name: &str, strategy: Strategy) -> Point {
        let settings = Settings {
            form: self.form,
            augment: if self.augment { Augment::Cpu } else { Augment::None },
            workers: self.workers,
            mode: self.mode,
            // Each epoch is cold by itself, as the readers' epochs are.
            gapless: false,
            ..strategy.settings()
        };
        Point {
            batch: self.batch,
            shuffled: self.shuffled,
            seed: self.data.seed,
            epochs: self.epochs,
            max_batches: (0 < self.max_batches).then_some(self.max_batches),
            // The readers advise the kernel, too.
            cold: self.data.cold().map(|_| Cold::Advise),
            ..Point::new(strategy, name.to_owned(), settings)
        }
    }
}

/// The order of a reader.
#[derive(Debug, Clone, Serialize)]
struct ReaderTask {
    /// The folder of the data set.
    data: PathBuf,
    /// The form of the cubes.
    format: String,
    /// The samples of each epoch, in their order.
    epochs: Vec<Vec<u64>>,
    /// Samples of a batch.
    batch: u64,
    /// Processes or, for some readers, threads.
    workers: usize,
    /// Threads of blosc in each of them; `None` leaves that to python-blosc.
    codec_threads: Option<usize>,
    /// Whether cubes are augmented on the CPU.
    augment: bool,
    /// Whether the order is drawn, and its seed, for a reader that draws it itself.
    shuffled: bool,
    seed: u64,
    /// Whether to report checksums instead of times.
    check: bool,
}

/// Checks the readers, measures them beside ours and prints a table.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if args.epochs <= args.warmup {
        let text = format!("{} epochs leave none to time after {}", args.epochs, args.warmup);
        return Err(UsageError::new(text).into());
    }
    let cubes = Cubes::open(&args.data)?;
    let point = args.point("ours", Strategy::EventRing);
    let mut collated = args.point("ours, collated", Strategy::EventRing);
    collated.settings.memory = Memory::Collated;
    let task = ReaderTask {
        data: cubes.data.folder.clone(),
        format: args.form.name().to_owned(),
        epochs: delivered_rows(
            &point.pipeline_spec(),
            cubes.n_items,
            point.epochs,
            point.max_batches,
        )?,
        batch: args.batch,
        workers: args.workers,
        codec_threads: args.codec_threads,
        augment: args.augment,
        shuffled: args.shuffled,
        seed: args.data.seed,
        check: false,
    };
    let own = |point: Point| (point.label.clone(), CubeWork::Load(Box::new(point)));
    let comparison = Comparison {
        workload: &cubes,
        readers: &CubeReaders { args, cubes: &cubes, point: point.clone(), task },
        names: args.readers.clone(),
        script: Script { python: args.python.clone(), path: args.script.clone() },
        ours: vec![own(point), own(collated)],
        floors: Vec::new(),
        repetitions: args.repetitions,
    };
    let total = (comparison.n_runs(), "runs");
    let mut measuring = cubes.begin(&args.data, &[args.form], total, arguments)?;
    comparison.run(&mut measuring)
}

/// What readers of a data set are asked for.
struct CubeReaders<'a> {
    args: &'a PeersArgs,
    cubes: &'a Cubes,
    point: Point,
    task: ReaderTask,
}

/// Settings that other readers do not have.
const OURS: [&str; 8] = [
    "strategy",
    "batch_memory",
    "slot_release",
    "sharing",
    "slots",
    "n_threads",
    "prefetch_batches",
    "prefetch_blocks",
];

impl Readers<Cubes> for CubeReaders<'_> {
    type Task = ReaderTask;

    /// Without augmentation, whose draws differ.
    fn expected(&self) -> anyhow::Result<Checksums> {
        let mut point = self.point.clone();
        point.settings.augment = Augment::None;
        let samples = self.task.epochs.first().cloned().unwrap_or_default();
        let mut expected = ours(&self.cubes.data, &point, samples.len())?;
        expected.retain(|sample, _| samples.contains(sample));
        Ok(expected)
    }

    fn parts(&self) -> Vec<&str> {
        KEYS.into()
    }

    fn check_task(&self) -> ReaderTask {
        let epochs = self.task.epochs.iter().take(1).cloned().collect();
        ReaderTask { epochs, check: true, augment: false, ..self.task.clone() }
    }

    fn task(&self, _reader: &str) -> ReaderTask {
        self.task.clone()
    }

    fn n_epochs(&self) -> usize {
        self.task.epochs.len()
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        Some(self.cubes.data.folders(self.args.form))
    }

    /// Readers remove files from the page cache before each epoch if that is to be cold.
    fn page_cache(&self, session: &Session) -> [&'static str; 2] {
        match self.args.data.cold() {
            Some(_) => ["cold", PageCache::Advised.name()],
            None => ["warm", session.cache],
        }
    }

    fn recorded(&self, reader: &str, cache: &str) -> GridPoint {
        let mut row = self.point.recorded(cache);
        row.settings.remove(&OURS);
        row.settings.set("read_threads", self.point.settings.workers);
        GridPoint {
            loader: Some(reader.to_owned()),
            chunk_method: reader.to_owned(),
            reader: reader.to_owned(),
            ..row
        }
    }

    fn is_timed(&self, record: &EpochRecord) -> bool {
        record.measured.epoch.is_none_or(|epoch| self.args.warmup <= epoch)
    }

    fn table(&self, sides: &[Side<'_>]) -> String {
        let units =
            SampleUnits { samples: "cubes", rate_digits: 2, cpu: "CPU s a cube", cpu_factor: 1.0 };
        reader_table(sides, &units)
    }

    fn page(&self, cache: &str) -> ReaderPage {
        let PeersArgs { form, batch, workers, codec_threads, warmup, .. } = self.args;
        let codec_threads =
            codec_threads.map_or_else(|| "python-blosc's number of".to_owned(), |n| n.to_string());
        let sentences = format!(
            "Each fed {} epochs of the same {} cubes in the same order from files of {form}, in \
             batches of {batch}, into nothing, with {workers} workers (ours are threads); the \
             readers decompressed with {codec_threads} threads in each. The first {warmup} epochs \
             are not timed. Medians over rounds, with the range; peak memory is that of all \
             processes of a run together. The page cache was {cache}. Every reader in the table \
             delivered the checksums of our loader for all samples of an epoch, without \
             augmentation.",
            self.task.epochs.len(),
            self.task.epochs.first().map_or(0, Vec::len),
        );
        ReaderPage { title: "Our loader beside Python's ways to feed cubes", sentences }
    }
}
