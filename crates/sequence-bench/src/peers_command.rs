//! The command `peers`: our loader beside the ways in which Python users feed sequences.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_report::{EpochRecord, GridPoint, HostInfo};
use bench_run::{
    Checksums, Comparison, Measuring, ReaderPage, Readers, SampleUnits, Script, Session, Side,
    UsageError, key_value, reader_table,
};
use clap::Args;

use crate::bench::{FeedFlags, Form, Point, StoreData, TRANSFORM, at_least_one};
use crate::peers::{ReaderTask, ours, parts};

/// Flags of `peers`.
#[derive(Debug, Args)]
pub(crate) struct PeersArgs {
    /// The store, as `import` writes it
    store: PathBuf,
    /// Readers to compare with, of those that the script has [default:
    /// somafeed-python,dataloader,numpy; for tokens also tokenizers]
    #[arg(long, value_name = "READERS", value_delimiter = ',')]
    readers: Vec<String>,
    /// Python with the packages of benches/peers/sequences.txt
    #[arg(long, value_name = "PATH")]
    python: PathBuf,
    /// The script that runs the readers
    #[arg(long, value_name = "PATH", default_value = "benches/peers/sequences.py")]
    script: PathBuf,
    /// What batches have of each sequence: tokens (its words), windows (each word with its context
    /// and noise)
    #[arg(long, value_name = "FORM", default_value = "windows", hide_possible_values = true)]
    form: Form,
    /// Sequences of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Threads of our loader, and workers of the readers
    #[arg(short = 'w', long, value_name = "N", default_value_t = 2, value_parser = at_least_one)]
    workers: usize,
    /// Sequences after which an epoch of a slow reader is cut off
    #[arg(long, value_name = "READER=N", value_delimiter = ',', default_value = "dataloader=1024", value_parser = cut)]
    at_most: Vec<(String, usize)>,
    /// Sequences whose words are compared first
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    check: usize,
    #[command(flatten)]
    feed: FeedFlags,
}

fn cut(text: &str) -> Result<(String, usize), String> {
    let (reader, n) = key_value(text)?;
    Ok((reader, at_least_one(&n)?))
}

impl PeersArgs {
    fn readers(&self) -> Vec<String> {
        if !self.readers.is_empty() {
            return self.readers.clone();
        }
        let all = ["somafeed-python", "dataloader", "numpy", "tokenizers"];
        let n = if self.form == Form::Tokens { all.len() } else { 3 };
        all[..n].iter().map(ToString::to_string).collect()
    }

    /// Fails if the readers cannot do what is asked for.
    fn check(&self) -> anyhow::Result<()> {
        self.feed.check()?;
        if self.form == Form::Letters {
            return Err(UsageError::new("readers feed words: take --form tokens or windows").into());
        }
        if !self.feed.words.words().are_plain() {
            let problem = "readers end at unknown words, and know no case folding: take --unknown \
                           fail, and leave out --fold-case";
            return Err(UsageError::new(problem).into());
        }
        Ok(())
    }

    /// The most sequences of an epoch of a reader.
    fn most(&self, reader: &str) -> Option<usize> {
        self.at_most.iter().find(|(of, _)| of == reader).map(|(_, n)| *n)
    }
}

/// Checks the readers, measures them beside ours and prints a table.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    args.check()?;
    let data = StoreData::open(&args.store)?;
    let point = args.feed.point(args.form, args.workers, args.batch);
    let task = ReaderTask::new(&data, &point)?;
    let comparison = Comparison {
        workload: &data,
        readers: &SequenceReaders { args, data: &data, point: point.clone(), task },
        names: args.readers(),
        script: Script { python: args.python.clone(), path: args.script.clone() },
        ours: vec![("ours".to_owned(), point)],
        floors: Vec::new(),
        repetitions: args.feed.repetitions,
    };
    let (of, uri) = ((comparison.n_runs(), "runs"), data.uri());
    let mut measuring =
        Measuring::begin(&args.feed.output, of, &uri, HostInfo::gather(), arguments)?;
    measuring.session.warm(Some(std::slice::from_ref(&data.folder)));
    comparison.run(&mut measuring)
}

/// What readers of a store are asked for.
struct SequenceReaders<'a> {
    args: &'a PeersArgs,
    data: &'a StoreData,
    point: Point,
    task: ReaderTask,
}

impl Readers<StoreData> for SequenceReaders<'_> {
    type Task = ReaderTask;

    fn expected(&self) -> anyhow::Result<Checksums> {
        let task = self.check_task();
        let rows = task.epochs.first().map(Vec::as_slice).unwrap_or_default();
        ours(self.data, &self.point, rows)
    }

    fn parts(&self) -> Vec<&str> {
        parts(self.point.form).into()
    }

    fn check_task(&self) -> ReaderTask {
        self.task.checked(self.args.check)
    }

    fn task(&self, reader: &str) -> ReaderTask {
        self.args.most(reader).map_or_else(|| self.task.clone(), |n| self.task.at_most(n))
    }

    fn n_epochs(&self) -> usize {
        self.task.epochs.len()
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        Some(vec![self.data.folder.clone()])
    }

    fn page_cache(&self, session: &Session) -> [&'static str; 2] {
        [session.cache; 2]
    }

    fn recorded(&self, reader: &str, cache: &str) -> GridPoint {
        let mut row = self.point.recorded(cache);
        row.settings.remove(&["prefetch_batches", "prefetch_blocks"]);
        GridPoint { loader: Some(reader.to_owned()), reader: reader.to_owned(), ..row }
    }

    fn is_timed(&self, record: &EpochRecord) -> bool {
        self.args.feed.is_timed(record)
    }

    fn table(&self, sides: &[Side<'_>]) -> String {
        let units = SampleUnits {
            samples: "documents",
            rate_digits: 0,
            cpu: "CPU ms a document",
            cpu_factor: 1e3,
        };
        reader_table(sides, &units)
    }

    fn page(&self, cache: &str) -> ReaderPage {
        let PeersArgs { at_most, batch, workers, check, feed, .. } = self.args;
        let transform = self.point.recorded(cache).settings;
        let cuts: Vec<String> =
            at_most.iter().map(|(reader, n)| format!(" {reader} {n}")).collect();
        let sentences = format!(
            "Each fed {} epochs of sequences of one store of {} in the same order as {} ({}), in \
             batches of {batch}, into nothing, with {workers} workers (ours are threads). Epochs \
             of slow readers were cut off after a number of sequences:{}. The first {} epochs are \
             not timed. Medians over rounds, with the range; peak memory is that of all processes \
             of a run together. The page cache was {cache}. Every reader in the table delivered \
             the checksums of our loader for {} sequences ({}; noise is random). `dataloader` is \
             the way of Dragon's example, written anew from its description, with a method in \
             place of the lambda that no worker can be sent, and sequences of different lengths \
             put together end to end: without these changes no epoch of it runs.",
            self.task.epochs.len(),
            self.data.summary.n_sequences,
            self.point.form.name(),
            transform.get(TRANSFORM).unwrap_or_default(),
            cuts.join(","),
            feed.warmup,
            check.min(&self.task.epochs.first().map_or(0, Vec::len)),
            parts(self.point.form).join(" and "),
        );
        ReaderPage { title: "Our loader beside Python's ways to feed sequences", sentences }
    }
}
