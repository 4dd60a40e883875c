//! The command `peers`: our loader beside the ways in which Python users feed sequences.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_report::{EPOCHS_FILE, EpochRecord, OWN_LOADER, write_text};
use bench_run::{
    Job, Measuring, ReaderAnswer, SampleUnits, Script, Side, UsageError, check_reader, key_value,
    print_line, reader_table,
};
use clap::Args;

use crate::bench::{
    FeedFlags, Form, Point, StoreData, TRANSFORM, at_least_one, format_epoch, job, process, secrets,
};
use crate::peers::{ReaderTask, ours, parts, recorded};

/// Flags of `peers`.
#[derive(Debug, Args)]
pub(crate) struct PeersArgs {
    /// The store, as `import` writes it
    store: PathBuf,
    /// Readers to compare with, of those that the script has [default: dataloader,numpy; for tokens
    /// also tokenizers]
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
        let all = ["dataloader", "numpy", "tokenizers"];
        let n = if self.form == Form::Tokens { all.len() } else { 2 };
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
    let n_runs = args.feed.repetitions * (args.readers().len() as u64 + 1);
    let mut measuring = Measuring::begin(
        &args.feed.output,
        (n_runs, "runs"),
        &data.uri(),
        format_epoch,
        arguments,
    )?;
    measuring.warm(std::slice::from_ref(&data.folder));
    let script = Script { python: args.python.clone(), path: args.script.clone() };
    let comparison = Comparison { args, data, point, script, task };
    let (readers, refused) = comparison.check(&measuring)?;
    comparison.measure(&mut measuring, &readers)?;
    measuring.session.display.finish();
    comparison.report(&measuring, &readers, &refused)?;
    Ok(measuring.verdict_unless(!refused.is_empty()))
}

/// A comparison with its settings.
struct Comparison<'a> {
    args: &'a PeersArgs,
    data: StoreData,
    point: Point,
    script: Script,
    task: ReaderTask,
}

impl Comparison<'_> {
    /// Compares the words of each reader with ours; returns the readers that deliver the same, and
    /// what is wrong with the others.
    fn check(&self, measuring: &Measuring) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        measuring.session.display.now("checksums of our loader");
        let task = self.task.checked(self.args.check);
        let rows = task.epochs.first().map(Vec::as_slice).unwrap_or_default();
        let expected = ours(&self.data, &self.point, rows)?;
        let (mut same, mut refused) = (Vec::new(), Vec::new());
        for reader in self.args.readers() {
            if measuring.session.is_stopped() {
                break;
            }
            let process = self.process(&reader, measuring, task.clone())?;
            let name = format!("checksums of {reader}");
            let parts = parts(self.point.form);
            let wrong = check_reader(&measuring.session, (&name, process), &expected, &parts)?;
            match wrong {
                None => same.push(reader),
                Some(why) => {
                    let why = format!("{reader} is not measured: {why}");
                    measuring.session.display.line(&why);
                    refused.push(why);
                }
            }
        }
        Ok((same, refused))
    }

    fn process(
        &self,
        reader: &str,
        measuring: &Measuring,
        task: ReaderTask,
    ) -> anyhow::Result<bench_run::ProcessSpec<'static>> {
        let cache = measuring.session.cache;
        self.script.process(reader, cache, task, secrets(&self.data.folder))
    }

    /// Measures all, round by round, so that changes over time affect all alike.
    fn measure(&self, measuring: &mut Measuring, readers: &[String]) -> anyhow::Result<()> {
        let mut n_done = 0;
        for repeat in 0..self.args.feed.repetitions {
            let mut ended = self.measure_ours(measuring, repeat)?;
            for reader in readers {
                n_done += 1;
                measuring.session.display.position(n_done);
                if ended.is_break() {
                    return Ok(());
                }
                ended = self.measure_reader(measuring, reader, repeat)?;
            }
            if ended.is_break() {
                return Ok(());
            }
            n_done += 1;
            measuring.session.display.position(n_done);
        }
        Ok(())
    }

    fn measure_ours(
        &self,
        measuring: &mut Measuring,
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let name = ("ours".to_owned(), measuring.session.cache);
        let job = job((0, &self.point), (&self.data, name.0), name.1, repeat);
        let process = process(measuring, &self.data, &self.point)?;
        measuring.run(&job, process, |record: Box<EpochRecord>| Some(*record))
    }

    fn measure_reader(
        &self,
        measuring: &mut Measuring,
        reader: &str,
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let task = match self.args.most(reader) {
            Some(n) => self.task.at_most(n),
            None => self.task.clone(),
        };
        let process = self.process(reader, measuring, task)?;
        let job = Job {
            name: reader.to_owned(),
            point: None,
            recorded: recorded(reader, &self.point, measuring.session.cache),
            data: self.data.info(),
            n_records: self.task.epochs.len(),
            repeat,
        };
        measuring.run(&job, process, |answer| match answer {
            ReaderAnswer::Read(epoch) => Some(epoch.record(job.recorded.clone())),
            ReaderAnswer::Checksum { .. } => None,
        })
    }

    /// Prints the table, and writes it beside the rows.
    fn report(
        &self,
        measuring: &Measuring,
        readers: &[String],
        refused: &[String],
    ) -> anyhow::Result<()> {
        let side = |name: &str, loader: &str| {
            let records = measuring.records.iter().map(|of| &of.record);
            let of_loader = records.filter(|record| record.point.loader.as_deref() == Some(loader));
            let timed: Vec<&EpochRecord> =
                of_loader.filter(|record| self.args.feed.is_timed(record)).collect();
            Side::new(name, timed)
        };
        let mut sides = vec![side("ours", OWN_LOADER)];
        sides.extend(readers.iter().map(|reader| side(reader, reader)));
        let units = SampleUnits {
            samples: "documents",
            rate_digits: 0,
            cpu: "CPU ms a document",
            cpu_factor: 1e3,
        };
        let table = reader_table(&sides, &units);
        let refused: Vec<String> = refused.iter().map(|why| format!("\n- {why}")).collect();
        let refused = refused.concat();
        print_line!("{table}{refused}");
        let text = self.page(measuring, &table, &refused);
        let readme = write_text(measuring.folder(), "README.md", &text)?;
        print_line!("{}\n{}", measuring.folder().join(EPOCHS_FILE).display(), readme.display());
        Ok(())
    }

    fn page(&self, measuring: &Measuring, table: &str, refused: &str) -> String {
        let records = || measuring.records.iter().map(|of| &of.record);
        let mut versions: Vec<&str> = records()
            .filter_map(|record| record.versions.peer.as_deref())
            .flat_map(|versions| versions.split(", "))
            .collect();
        versions.sort_unstable();
        versions.dedup();
        let first = records().next();
        let command = first.map(|record| record.run.command.as_str()).unwrap_or_default();
        let transform = first.and_then(|record| record.point.settings.get(TRANSFORM));
        let cuts = self.args.at_most.iter().map(|(reader, n)| format!(" {reader} {n}"));
        let cuts: Vec<String> = cuts.collect();
        format!(
            "# Our loader beside Python's ways to feed sequences\n\n```sh\n{command}\n```\n\nEach \
             fed {} epochs of sequences of one store of {} in the same order as {} ({}), in \
             batches of {}, into nothing, with {} workers (ours are threads). Epochs of slow \
             readers were cut off after a number of sequences:{}. The first {} epochs are not \
             timed. Medians over rounds, with the range; peak memory is that of all processes of \
             a run together. The page cache was {}. Every reader in the table delivered the \
             checksums of our loader for {} sequences ({}; noise is random). `dataloader` is the \
             way of Dragon's example, written anew from its description, with a method in place \
             of the lambda that no worker can be sent, and sequences of different lengths put \
             together end to end: without these changes no epoch of it runs. Versions: {}.\n\n\
             {table}{refused}\n",
            self.task.epochs.len(),
            self.data.summary.n_sequences,
            self.point.form.name(),
            transform.unwrap_or_default(),
            self.args.batch,
            self.args.workers,
            cuts.join(","),
            self.args.feed.warmup,
            measuring.session.cache,
            self.args.check.min(self.task.epochs.first().map_or(0, Vec::len)),
            parts(self.point.form).join(" and "),
            versions.join(", "),
        )
    }
}
