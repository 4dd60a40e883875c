//! The command `peers`: our loader beside the readers that such stores are read with today.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EPOCHS_FILE, EpochRecord, HostInfo, write_text};
use bench_run::{Ended, Script, UsageError, print_line};
use clap::Args;
use storage::local_path;

use crate::bench::{DataFlags, FieldData, Job, Measuring, Point, Strategy};
use crate::peers::{
    Checksums, ReaderAnswer, ReaderTask, Side, batches, difference, ours, recorded, table,
};

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
        default_value = "xarray-dask,xarray-dask-per-sample,xarray-tensorstore,tensorstore,zarr-zarrs,zarr-python"
    )]
    readers: Vec<String>,
    /// Python with the packages of benches/peers/fields.txt
    #[arg(long, value_name = "PATH")]
    python: PathBuf,
    /// The script that runs the readers
    #[arg(long, value_name = "PATH", default_value = "benches/peers/fields.py")]
    script: PathBuf,
    /// Rounds over our loader, the readers and the plain read, each run in a new process
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
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
            strategy: Strategy::Stacked,
            batch: self.batch,
            threads: self.threads.unwrap_or_else(cores).max(1),
            workers: 0,
            queue: 0,
            consumer_millis: 0.0,
            fill_secs: 0.0,
            max_batches: Some(self.batches),
            // An epoch has a batch at least.
            epochs: self.batches,
            together: true,
            validation: 0,
            seed: self.data.seed,
        }
    }
}

/// Our loader or a reader; they are measured in turn.
enum Runner {
    Own { name: String, point: Point },
    Reader(String),
}

impl Runner {
    fn name(&self) -> &str {
        match self {
            Self::Own { name, .. } | Self::Reader(name) => name,
        }
    }

    /// Whether it made the record.
    fn made(&self, record: &EpochRecord) -> bool {
        let recorded = &record.point;
        match self {
            Self::Own { point, .. } => *recorded == point.recorded(&recorded.cache),
            Self::Reader(name) => recorded.loader.as_ref() == Some(name),
        }
    }
}

/// Checks the readers, measures them beside ours and prints a table.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let data = args.data.near_data();
    let store = local_path(&data.uri)
        .ok_or_else(|| UsageError::new("the readers take a store on a local disk"))?;
    let point = args.point();
    let n_runs = args.repetitions * (args.readers.len() as u64 + 3);
    let mut measuring = Measuring::begin(
        &args.data,
        (data.clone(), HostInfo::gather()),
        &point,
        (n_runs, "runs"),
        arguments,
    )?;
    let task = ReaderTask {
        store: store.canonicalize().with_context(|| format!("cannot open {}", store.display()))?,
        arrays: data.arrays.clone(),
        batches: batches(&data, &point, args.batches.max(args.check_batches))?,
        threads: point.threads,
        check: false,
    };
    let script = Script { python: args.python.clone(), path: args.script.clone() };
    let comparison = Comparison { args, data, point, script, task };
    let (readers, refused) = comparison.check(&mut measuring)?;
    let runners = comparison.runners(readers);
    comparison.measure(&mut measuring, &runners)?;
    measuring.session.display.finish();
    comparison.report(&measuring, &runners, &refused)?;
    Ok(measuring.verdict_unless(!refused.is_empty()))
}

/// A comparison with its settings.
struct Comparison<'a> {
    args: &'a PeersArgs,
    data: FieldData,
    point: Point,
    script: Script,
    task: ReaderTask,
}

impl Comparison<'_> {
    /// Compares the values of each reader with ours; returns the readers that deliver the same, and
    /// what is wrong with the others.
    fn check(&self, measuring: &mut Measuring) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        measuring.session.display.now("checksums of our loader");
        let expected = ours(&self.data, &self.point, self.args.check_batches)?;
        let (mut same, mut refused) = (Vec::new(), Vec::new());
        for reader in &self.args.readers {
            if measuring.session.is_stopped() {
                break;
            }
            match self.wrong(measuring, reader, &expected)? {
                None => same.push(reader.clone()),
                Some(why) => {
                    let why = format!("{reader} is not measured: {why}");
                    measuring.session.display.line(&why);
                    refused.push(why);
                }
            }
        }
        Ok((same, refused))
    }

    /// What is wrong with the values of a reader.
    fn wrong(
        &self,
        measuring: &Measuring,
        reader: &str,
        expected: &Checksums,
    ) -> anyhow::Result<Option<String>> {
        let n_batches = self.args.check_batches as usize;
        let batches = self.task.batches.iter().take(n_batches).cloned().collect();
        let task = ReaderTask { batches, check: true, ..self.task.clone() };
        let process =
            self.script.process(reader, measuring.session.cache, task, self.data.secrets())?;
        let mut found = Checksums::new();
        let name = format!("checksums of {reader}");
        let ended = measuring.session.run(&name, process, &mut |answer: ReaderAnswer| {
            let ReaderAnswer::Checksum { sample, crc32 } = answer else { return Ok(()) };
            // Wrong values of a sample that is read twice stay.
            if !found.contains_key(&sample) || expected.get(&sample) != Some(&crc32) {
                found.insert(sample, crc32);
            }
            Ok(())
        })?;
        Ok(match ended {
            Ended::Failed(failure) => Some(failure.message),
            Ended::Interrupted => Some("interrupted".to_owned()),
            Ended::Done { .. } => difference(expected, &found, &self.task.arrays),
        })
    }

    /// Ours first, the plain read last.
    fn runners(&self, readers: Vec<String>) -> Vec<Runner> {
        let own = |name: &str, point: Point| Runner::Own { name: name.to_owned(), point };
        let ahead = Point { workers: 1, queue: 1, ..self.point.clone() };
        let floor = Point { strategy: Strategy::PlainRead, ..self.point.clone() };
        let mut runners =
            vec![own("ours", self.point.clone()), own("ours, 1 worker, queue 1", ahead)];
        runners.extend(readers.into_iter().map(Runner::Reader));
        runners.push(own(Strategy::PlainRead.name(), floor));
        runners
    }

    /// Measures all, round by round, so that changes over time affect all alike.
    fn measure(&self, measuring: &mut Measuring, runners: &[Runner]) -> anyhow::Result<()> {
        let mut n_done = 0;
        for repeat in 0..self.args.repetitions {
            measuring.session.warm_again(self.data.folders().as_deref());
            for runner in runners {
                let ended = match runner {
                    Runner::Own { point, .. } => measuring.measure(point, repeat)?,
                    Runner::Reader(reader) => self.measure_reader(measuring, reader, repeat)?,
                };
                if ended.is_break() {
                    return Ok(());
                }
                n_done += 1;
                measuring.session.display.position(n_done);
            }
        }
        Ok(())
    }

    fn measure_reader(
        &self,
        measuring: &mut Measuring,
        reader: &str,
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let cache = measuring.page_cache();
        let n_batches = self.args.batches as usize;
        let batches = self.task.batches.iter().take(n_batches).cloned().collect();
        let task = ReaderTask { batches, ..self.task.clone() };
        let process = self.script.process(reader, cache, task, self.data.secrets())?;
        let recorded = recorded(reader, &self.point, cache);
        let job = Job { name: reader.to_owned(), recorded, n_records: 1, repeat };
        measuring.run(&job, process, |answer| match answer {
            ReaderAnswer::Read(run) => Some(run.record(job.recorded.clone())),
            ReaderAnswer::Checksum { .. } => None,
        })
    }

    /// Prints the table, and writes it beside the rows.
    fn report(
        &self,
        measuring: &Measuring,
        runners: &[Runner],
        refused: &[String],
    ) -> anyhow::Result<()> {
        let side = |runner: &Runner| Side {
            name: runner.name().to_owned(),
            records: measuring.records.iter().filter(|record| runner.made(record)).collect(),
        };
        let sides: Vec<Side<'_>> = runners.iter().map(side).collect();
        let table = table(&sides, measuring.sample_bytes());
        let refused: Vec<String> = refused.iter().map(|why| format!("\n- {why}")).collect();
        let refused = refused.concat();
        print_line!("{table}{refused}");
        let text = self.page(&measuring.records, &table, &refused);
        let readme = write_text(measuring.folder(), "README.md", &text)?;
        print_line!("{}\n{}", measuring.folder().join(EPOCHS_FILE).display(), readme.display());
        Ok(())
    }

    fn page(&self, records: &[EpochRecord], table: &str, refused: &str) -> String {
        let first = records.first();
        let mut versions: Vec<&str> = records
            .iter()
            .filter_map(|record| record.versions.peer.as_deref())
            .flat_map(|versions| versions.split(", "))
            .collect();
        versions.sort_unstable();
        versions.dedup();
        format!(
            "# Our loader beside other readers of fields\n\n```sh\n{}\n```\n\nEach read {} batches \
             of {} random samples of {}, the same samples, on {} threads. MB are 10^6 bytes of \
             samples as delivered (of the plain read, of files); medians over runs, with the range. \
             Seconds of a batch and the ratios leave out the first batch, too. CPU seconds are those \
             of a run. The page cache was {}. Every reader in the table delivered the checksums of \
             our loader for {} samples. Versions: {}.\n\n{table}{refused}\n",
            first.map(|record| record.run.command.as_str()).unwrap_or_default(),
            self.args.batches,
            self.args.batch,
            self.data.arrays.join(" and "),
            self.point.threads,
            first.map(|record| record.point.cache.as_str()).unwrap_or_default(),
            self.args.batch * self.args.check_batches,
            versions.join(", "),
        )
    }
}
