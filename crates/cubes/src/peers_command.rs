//! The command `peers`: our loader beside the ways in which Python users feed cubes.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EPOCHS_FILE, EpochRecord, write_text};
use bench_run::{
    Checksums, Cold, PageCache, ProcessSpec, ReaderAnswer, SampleUnits, Script, Side, UsageError,
    check_reader, print_line, reader_table,
};
use clap::Args;
use images::Form;

use crate::bench::{
    Augment, Consumer, CubeData, CubeMeasuring, DataFlags, Memory, Point, Settings, Strategy,
};
use crate::peers::{KEYS, ReaderTask, epochs, ours, recorded};

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
        default_value = "dataloader,ring,ring-together,htc-ring,spdl"
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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Threads of blosc in each worker of the readers [default: python-blosc's, all cores up to 8]
    #[arg(long, value_name = "N")]
    codec_threads: Option<usize>,
    /// Augment on the CPU, which only the readers dataloader and htc-dataloader can
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
            // Each epoch is cold by itself, as the readers' epochs are.
            gapless: false,
            ..strategy.settings()
        };
        Point {
            strategy,
            label: name.to_owned(),
            settings,
            batch: self.batch,
            shuffled: self.shuffled,
            seed: self.data.seed,
            epochs: self.epochs,
            max_batches: (0 < self.max_batches).then_some(self.max_batches),
            // The readers advise the kernel, too.
            cold: self.data.cold().map(|_| Cold::Advise),
            io_limit: None,
            consumer: Consumer::None,
        }
    }

    /// Our loader with its ring, and with collated batches.
    fn own_points(&self) -> Vec<Point> {
        let ring = self.point("ours", Strategy::EventRing);
        let mut collated = self.point("ours, collated", Strategy::EventRing);
        collated.settings.memory = Memory::Collated;
        vec![ring, collated]
    }
}

/// What is measured in turn.
enum Runner {
    Own(usize),
    Reader(String),
}

/// Checks the readers, measures them beside ours and prints a table.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if args.epochs <= args.warmup {
        let text = format!("{} epochs leave none to time after {}", args.epochs, args.warmup);
        return Err(UsageError::new(text).into());
    }
    let data = args.data.data();
    let own = args.own_points();
    let n_runs = args.repetitions * (args.readers.len() + own.len()) as u64;
    let forms: Vec<Form> = own.iter().map(|point| point.settings.form).collect();
    let mut measuring = CubeMeasuring::begin(&args.data, &forms, (n_runs, "runs"), arguments)?;
    let point = own.first().context("our loader has no settings")?.clone();
    let task = ReaderTask {
        data: data.folder.clone(),
        format: args.form.name().to_owned(),
        epochs: epochs(&data, &point)?,
        batch: args.batch,
        workers: args.workers,
        codec_threads: args.codec_threads,
        augment: args.augment,
        seed: args.data.seed,
        check: false,
    };
    let script = Script { python: args.python.clone(), path: args.script.clone() };
    let comparison = Comparison { args, data, own, script, task };
    let (readers, refused) = comparison.check(&mut measuring, &point)?;
    let n_own = comparison.own.len();
    let own = (0..n_own).map(Runner::Own);
    let runners: Vec<Runner> = own.chain(readers.into_iter().map(Runner::Reader)).collect();
    comparison.measure(&mut measuring, &runners)?;
    measuring.runs.session.display.finish();
    comparison.report(&measuring, &runners, &refused)?;
    Ok(measuring.runs.verdict_unless(!refused.is_empty()))
}

/// A comparison with its settings.
struct Comparison<'a> {
    args: &'a PeersArgs,
    data: CubeData,
    own: Vec<Point>,
    script: Script,
    task: ReaderTask,
}

impl Comparison<'_> {
    /// Compares the values of each reader with ours, without augmentation, whose draws differ;
    /// returns the readers that deliver the same, and what is wrong with the others.
    fn check(
        &self,
        measuring: &mut CubeMeasuring,
        point: &Point,
    ) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        measuring.runs.session.display.now("checksums of our loader");
        let mut point = point.clone();
        point.settings.augment = Augment::None;
        let samples = self.task.epochs.first().cloned().unwrap_or_default();
        let expected = ours(&self.data, &point, samples.len())?;
        let expected: Checksums =
            expected.into_iter().filter(|(sample, _)| samples.contains(sample)).collect();
        let (mut same, mut refused) = (Vec::new(), Vec::new());
        for reader in &self.args.readers {
            if measuring.runs.session.is_stopped() {
                break;
            }
            match self.wrong(measuring, reader, &expected)? {
                None => same.push(reader.clone()),
                Some(why) => {
                    let why = format!("{reader} is not measured: {why}");
                    measuring.runs.session.display.line(&why);
                    refused.push(why);
                }
            }
        }
        Ok((same, refused))
    }

    /// What is wrong with the values of a reader.
    fn wrong(
        &self,
        measuring: &CubeMeasuring,
        reader: &str,
        expected: &Checksums,
    ) -> anyhow::Result<Option<String>> {
        let epochs = self.task.epochs.iter().take(1).cloned().collect();
        let task = ReaderTask { epochs, check: true, augment: false, ..self.task.clone() };
        let process = self.process(reader, false, task)?;
        let name = format!("checksums of {reader}");
        check_reader(&measuring.runs.session, (&name, process), expected, &KEYS)
    }

    /// The process of a reader. It removes files from the page cache before each epoch if that is
    /// to be cold.
    fn process(
        &self,
        reader: &str,
        is_cold: bool,
        task: ReaderTask,
    ) -> anyhow::Result<ProcessSpec<'static>> {
        let cache = if is_cold { "cold" } else { "warm" };
        self.script.process(reader, cache, task, self.data.secrets())
    }

    /// Measures all, round by round, so that changes over time affect all alike.
    fn measure(&self, measuring: &mut CubeMeasuring, runners: &[Runner]) -> anyhow::Result<()> {
        let mut n_done = 0;
        for repeat in 0..self.args.repetitions {
            if self.args.data.cold().is_none() {
                let folders = self.data.folders(self.args.form);
                measuring.runs.session.warm_again(Some(&folders));
            }
            for runner in runners {
                let ended = match runner {
                    Runner::Own(idx) => measuring.measure((*idx, &self.own[*idx]), repeat)?,
                    Runner::Reader(reader) => self.measure_reader(measuring, reader, repeat)?,
                };
                if ended.is_break() {
                    return Ok(());
                }
                n_done += 1;
                measuring.runs.session.display.position(n_done);
            }
        }
        Ok(())
    }

    fn measure_reader(
        &self,
        measuring: &mut CubeMeasuring,
        reader: &str,
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let is_cold = self.args.data.cold().is_some();
        let process = self.process(reader, is_cold, self.task.clone())?;
        let cache = if is_cold { PageCache::Advised.name() } else { measuring.runs.session.cache };
        let recorded = recorded(reader, &self.own[0], cache);
        let job = measuring.job(reader, recorded, (self.task.epochs.len(), repeat));
        measuring.runs.run(&job, process, |answer| match answer {
            ReaderAnswer::Read(epoch) => Some(epoch.record(job.recorded.clone())),
            ReaderAnswer::Checksum { .. } => None,
        })
    }

    /// Prints the table, and writes it beside the rows.
    fn report(
        &self,
        measuring: &CubeMeasuring,
        runners: &[Runner],
        refused: &[String],
    ) -> anyhow::Result<()> {
        let sides: Vec<Side<'_>> =
            runners.iter().map(|runner| self.side(measuring, runner)).collect();
        let units =
            SampleUnits { samples: "cubes", rate_digits: 2, cpu: "CPU s a cube", cpu_factor: 1.0 };
        let table = reader_table(&sides, &units);
        let refused: Vec<String> = refused.iter().map(|why| format!("\n- {why}")).collect();
        let refused = refused.concat();
        print_line!("{table}{refused}");
        let text = self.page(measuring, &table, &refused);
        let readme = write_text(measuring.runs.folder(), "README.md", &text)?;
        print_line!(
            "{}\n{}",
            measuring.runs.folder().join(EPOCHS_FILE).display(),
            readme.display()
        );
        Ok(())
    }

    /// The timed epochs of what was measured, and those that failed.
    fn side<'m>(&self, measuring: &'m CubeMeasuring, runner: &Runner) -> Side<'m> {
        let is_timed = |record: &EpochRecord| {
            record.measured.epoch.is_none_or(|epoch| self.args.warmup <= epoch)
        };
        let records = measuring.runs.records.iter().filter(|of| match runner {
            Runner::Own(idx) => of.point == Some(*idx),
            Runner::Reader(name) => of.record.point.loader.as_ref() == Some(name),
        });
        let name = match runner {
            Runner::Own(idx) => self.own[*idx].label.clone(),
            Runner::Reader(name) => name.clone(),
        };
        let records = records.map(|of| &of.record).filter(|record| is_timed(record));
        Side::new(name, records.collect::<Vec<_>>())
    }

    fn page(&self, measuring: &CubeMeasuring, table: &str, refused: &str) -> String {
        let records = || measuring.runs.records.iter().map(|of| &of.record);
        let mut versions: Vec<&str> = records()
            .filter_map(|record| record.versions.peer.as_deref())
            .flat_map(|versions| versions.split(", "))
            .collect();
        versions.sort_unstable();
        versions.dedup();
        let command = records().next().map(|record| record.run.command.as_str());
        let cache = records().next().map(|record| record.point.cache.as_str());
        let codec_threads = self
            .args
            .codec_threads
            .map_or_else(|| "python-blosc's number of".to_owned(), |n| n.to_string());
        format!(
            "# Our loader beside Python's ways to feed cubes\n\n```sh\n{}\n```\n\nEach fed {} \
             epochs of the same {} cubes in the same order from files of {}, in batches of {}, \
             into nothing, with {} workers (ours are threads); the readers decompressed with {} \
             threads in each. The first {} epochs are not timed. Medians over rounds, with the \
             range; peak memory is that of all processes of a run together. The page cache was {}. \
             Every reader in the table delivered the checksums of our loader for all samples of an \
             epoch, without augmentation. Versions: {}.\n\n{table}{refused}\n",
            command.unwrap_or_default(),
            self.task.epochs.len(),
            self.task.epochs.first().map_or(0, Vec::len),
            self.args.form,
            self.args.batch,
            self.args.workers,
            codec_threads,
            self.args.warmup,
            cache.unwrap_or_default(),
            versions.join(", "),
        )
    }
}
