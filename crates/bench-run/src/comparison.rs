//! Our loader beside other readers of the same data: a reader that delivers the same values is
//! measured in turn with ours, and all are reported in a table.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_report::{EPOCHS_FILE, EpochRecord, GridPoint, write_text};
use serde::Serialize;

use crate::checksums::{Checksums, difference};
use crate::measuring::{Job, Measuring};
use crate::process::{Ended, ProcessSpec};
use crate::reader_script::{ReaderAnswer, Script};
use crate::reader_table::Side;
use crate::session::Session;
use crate::workload::Workload;

/// What other readers of a workload are asked for, and how they are reported.
pub trait Readers<W: Workload> {
    /// The order of a reader's process.
    type Task: Serialize;

    /// The checksums of the samples whose values are compared, as our loader delivers them.
    ///
    /// # Errors
    /// Our loader cannot read them.
    fn expected(&self) -> anyhow::Result<Checksums>;

    /// The names of a sample's checksums.
    fn parts(&self) -> Vec<&str>;

    /// The order to report the checksums of these samples.
    fn check_task(&self) -> Self::Task;

    /// The order that is timed.
    fn task(&self, reader: &str) -> Self::Task;

    /// The number of epochs that a timed process reports.
    fn n_epochs(&self) -> usize;

    /// The folders of the data that is read, if it is on this machine.
    fn folders(&self) -> Option<Vec<PathBuf>>;

    /// Prepares the page cache for a reader; returns its state, as the script and as records name
    /// it.
    fn page_cache(&self, session: &Session) -> [&'static str; 2];

    /// The settings of a reader for a record.
    fn recorded(&self, reader: &str, cache: &str) -> GridPoint;

    /// Whether a record is of a timed epoch; failures are.
    fn is_timed(&self, record: &EpochRecord) -> bool;

    /// The table of all sides, ours first.
    fn table(&self, sides: &[Side<'_>]) -> String;

    /// The page's title, and what was compared.
    fn page(&self, cache: &str) -> ReaderPage;
}

/// The words of a comparison's page.
#[derive(Debug)]
pub struct ReaderPage {
    /// The title.
    pub title: &'static str,
    /// What was compared, as sentences.
    pub sentences: String,
}

/// What is measured in turn: a side of ours or a bound by its number, or a reader.
#[derive(Clone, Copy)]
enum Run<'a> {
    Own(usize),
    Reader(&'a str),
}

/// A comparison with its settings.
#[derive(Debug)]
pub struct Comparison<'a, W: Workload, R> {
    /// The data.
    pub workload: &'a W,
    /// What readers are asked for.
    pub readers: &'a R,
    /// Names of the readers.
    pub names: Vec<String>,
    /// Runs the readers.
    pub script: Script,
    /// Our loader, with the name of each side; the first is ours in the table.
    pub ours: Vec<(String, W::Point)>,
    /// Bounds, which come last.
    pub floors: Vec<(String, W::Point)>,
    /// Rounds over all.
    pub repetitions: u64,
}

impl<W: Workload, R: Readers<W>> Comparison<'_, W, R> {
    /// The number of processes that are measured if no reader is refused.
    pub fn n_runs(&self) -> u64 {
        self.repetitions * (self.ours.len() + self.names.len() + self.floors.len()) as u64
    }

    /// Checks the readers, measures them beside ours, prints the table and writes the page. Returns
    /// a failure code if a reader was refused.
    ///
    /// # Errors
    /// A process cannot be started, or a file cannot be written.
    pub fn run(mut self, measuring: &mut Measuring) -> anyhow::Result<ExitCode> {
        let refused = self.refuse(measuring)?;
        self.measure(measuring)?;
        measuring.session.display.finish();
        let lines: Vec<String> = refused.iter().map(|why| format!("\n- {why}")).collect();
        self.report(measuring, &lines.concat())?;
        Ok(measuring.verdict_unless(!refused.is_empty()))
    }

    /// Keeps the readers that deliver the same values as our loader; says what is wrong with the
    /// others.
    fn refuse(&mut self, measuring: &Measuring) -> anyhow::Result<Vec<String>> {
        let session = &measuring.session;
        session.display.now("checksums of our loader");
        let expected = self.readers.expected()?;
        let (mut same, mut refused) = (Vec::new(), Vec::new());
        for reader in std::mem::take(&mut self.names) {
            if session.is_stopped() {
                break;
            }
            match self.wrong(session, &reader, &expected)? {
                None => same.push(reader),
                Some(why) => {
                    let why = format!("{reader} is not measured: {why}");
                    session.display.line(&why);
                    refused.push(why);
                }
            }
        }
        self.names = same;
        Ok(refused)
    }

    /// What is wrong with the values of a reader; `None` if they are those of our loader.
    fn wrong(
        &self,
        session: &Session,
        reader: &str,
        expected: &Checksums,
    ) -> anyhow::Result<Option<String>> {
        let process = self.process(reader, "warm", self.readers.check_task())?;
        let mut found = Checksums::new();
        let name = format!("checksums of {reader}");
        let ended = session.run(&name, process, &mut |answer: ReaderAnswer| {
            if let ReaderAnswer::Checksum { sample, crc32 } = answer
                // If a sample is read twice, wrong values stay.
                && (!found.contains_key(&sample) || expected.get(&sample) != Some(&crc32))
            {
                found.insert(sample, crc32);
            }
            Ok(())
        })?;
        Ok(match ended {
            Ended::Failed(failure) => Some(failure.message),
            Ended::Interrupted => Some("interrupted".to_owned()),
            Ended::Done { .. } => difference(expected, &found, &self.readers.parts()),
        })
    }

    fn process(
        &self,
        reader: &str,
        cache: &str,
        task: R::Task,
    ) -> anyhow::Result<ProcessSpec<'static>> {
        self.script.process(reader, cache, task, self.workload.secrets())
    }

    /// Ours first, the bounds last.
    fn runs(&self) -> Vec<Run<'_>> {
        let n_ours = self.ours.len();
        let readers = self.names.iter().map(|name| Run::Reader(name));
        let floors = n_ours..n_ours + self.floors.len();
        (0..n_ours).map(Run::Own).chain(readers).chain(floors.map(Run::Own)).collect()
    }

    fn own(&self, idx: usize) -> &(String, W::Point) {
        self.ours.get(idx).unwrap_or_else(|| &self.floors[idx - self.ours.len()])
    }

    /// Measures all, round by round, so that changes over time affect all alike. Ends after Ctrl-C.
    fn measure(&self, measuring: &mut Measuring) -> anyhow::Result<()> {
        for repeat in 0..self.repetitions {
            measuring.session.warm_again(self.readers.folders().as_deref());
            for run in self.runs() {
                let ended = match run {
                    Run::Own(idx) => {
                        measuring.measure(self.workload, &self.own(idx).1, (Some(idx), repeat))?
                    }
                    Run::Reader(name) => self.measure_reader(measuring, name, repeat)?,
                };
                if ended.is_break() {
                    return Ok(());
                }
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
        let [cache, recorded_cache] = self.readers.page_cache(&measuring.session);
        let process = self.process(reader, cache, self.readers.task(reader))?;
        let job = Job {
            name: reader.to_owned(),
            point: None,
            recorded: self.readers.recorded(reader, recorded_cache),
            data: self.workload.info(),
            n_records: self.readers.n_epochs(),
            repeat,
        };
        measuring.run(&job, process, W::format, |answer| match answer {
            ReaderAnswer::Read(epoch) => Some(epoch.record(job.recorded.clone())),
            ReaderAnswer::Checksum { .. } => None,
        })
    }

    /// Prints the table, and writes it beside the rows.
    fn report(&self, measuring: &Measuring, refused: &str) -> anyhow::Result<()> {
        let side = |run: Run<'_>| {
            let records = measuring.records.iter().filter(|of| match run {
                Run::Own(idx) => of.point == Some(idx),
                Run::Reader(name) => of.record.point.loader.as_deref() == Some(name),
            });
            let name = match run {
                Run::Own(idx) => &self.own(idx).0,
                Run::Reader(name) => name,
            };
            let records = records.map(|of| &of.record);
            Side::new(name, records.filter(|record| self.readers.is_timed(record)))
        };
        let sides: Vec<Side<'_>> = self.runs().into_iter().map(side).collect();
        let table = format!("{}{refused}", self.readers.table(&sides));
        crate::print_line!("{table}");
        let text = self.page(measuring, &table);
        let readme = write_text(measuring.folder(), "README.md", &text)?;
        let rows = measuring.folder().join(EPOCHS_FILE);
        crate::print_line!("{}\n{}", rows.display(), readme.display());
        Ok(())
    }

    fn page(&self, measuring: &Measuring, table: &str) -> String {
        let mut versions: Vec<&str> = measuring
            .records
            .iter()
            .filter_map(|of| of.record.versions.peer.as_deref())
            .flat_map(|versions| versions.split(", "))
            .collect();
        versions.sort_unstable();
        versions.dedup();
        let first = measuring.first();
        let ReaderPage { title, sentences } = self.readers.page(&first.point.cache);
        format!(
            "# {title}\n\n```sh\n{}\n```\n\n{sentences} Versions: {}.\n\n{table}\n",
            first.run.command,
            versions.join(", "),
        )
    }
}
