//! A command that measures: runs processes one after another and keeps their records.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench_report::{DataInfo, EpochRecord, GridPoint, HostInfo, Measured, Status};
use clap::Args;
use serde::de::DeserializeOwned;

use crate::display::Display;
use crate::interrupt::EXIT_CODE;
use crate::order::Order;
use crate::process::{Ended, ProcessSpec};
use crate::results_folder::{ResultsFlags, data_name};
use crate::run_info::run_info;
use crate::session::{Rows, Session};
use crate::workload::{POINT, Workload};

/// Flags of every command that measures: where results go, and whether progress is shown.
#[derive(Debug, Args)]
pub struct OutputFlags {
    /// Folder for the results; rows are added if it has some [default: a new one below results/]
    #[arg(short = 'd', long, value_name = "FOLDER")]
    pub results: Option<PathBuf>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Further flags of the results.
    #[command(flatten)]
    pub results_flags: ResultsFlags,
}

/// A process to measure.
#[derive(Debug, Clone)]
pub struct Job {
    /// Name in the progress.
    pub name: String,
    /// The command's point that is measured; `None` for what is no point, such as other readers.
    pub point: Option<usize>,
    /// The settings, for the record of a failure.
    pub recorded: GridPoint,
    /// The data, for all records.
    pub data: DataInfo,
    /// Records that the process should make.
    pub n_records: usize,
    /// Number of the round.
    pub repeat: u64,
}

/// A record, and the point of its [`Job`].
#[derive(Debug)]
pub struct MeasuredEpoch {
    /// The point of the job.
    pub point: Option<usize>,
    /// The record.
    pub record: EpochRecord,
}

/// A running measurement.
#[derive(Debug)]
pub struct Measuring {
    /// Runs the processes.
    pub session: Session,
    rows: Rows,
    n_done: u64,
    /// All records so far.
    pub records: Vec<MeasuredEpoch>,
}

impl Measuring {
    /// Makes the results folder. `of` is the number of processes, 0 if it is not known, and their
    /// name, for the progress; `uri` is the place of the data. `host` is gathered before the server
    /// of a link takes cores.
    ///
    /// # Errors
    /// The folder cannot be made or used, or the program does not know its own path.
    pub fn begin(
        flags: &OutputFlags,
        of: (u64, &str),
        uri: &str,
        host: HostInfo,
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
        let display = match of {
            (0, unit) => Display::counting(unit, flags.quiet),
            (n, unit) => Display::new(n, unit, flags.quiet),
        };
        let session = Session::begin(display)?;
        Self::in_session(session, flags, &data_name(uri), host, arguments)
    }

    /// Makes the results folder of a session that has begun. `name` is that of a new folder.
    ///
    /// # Errors
    /// The folder cannot be made or used.
    pub fn in_session(
        session: Session,
        flags: &OutputFlags,
        name: &str,
        host: HostInfo,
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
        let folder = flags.results_flags.folder(flags.results.as_deref(), &host, name)?;
        let revision = flags.results_flags.revision.as_deref();
        let run = run_info(revision, &BTreeMap::new(), &host, arguments)?;
        let rows = Rows::new(folder, run, host);
        Ok(Self { session, rows, n_done: 0, records: Vec::new() })
    }

    /// Measures points in rounds, so that changes over time affect all alike: each point once in a
    /// round, in a process of its own. `of_round` makes a round's point of a point and its data.
    /// Ends after Ctrl-C.
    ///
    /// # Errors
    /// A process cannot be started, or a row cannot be written.
    pub fn measure_rounds<'a, W: Workload + 'a, P>(
        &mut self,
        points: &'a [P],
        n_rounds: u64,
        of_round: impl Fn(&'a P, u64) -> (&'a W, W::Point),
    ) -> anyhow::Result<()> {
        for round in 0..n_rounds {
            for (idx, point) in points.iter().enumerate() {
                let (workload, point) = of_round(point, round);
                if self.measure(workload, &point, (Some(idx), round))?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Measures a point in a process of its own, given its number and that of the round. Breaks
    /// after Ctrl-C.
    ///
    /// # Errors
    /// The process cannot be started, or a row cannot be written.
    pub fn measure<W: Workload>(
        &mut self,
        workload: &W,
        point: &W::Point,
        (number, repeat): (Option<usize>, u64),
    ) -> anyhow::Result<ControlFlow<()>> {
        let name = workload.point_name(point);
        self.measure_as(workload, point, &name, (number, repeat))
    }

    /// Does the same under another name in the progress.
    ///
    /// # Errors
    /// The process cannot be started, or a row cannot be written.
    pub fn measure_as<W: Workload>(
        &mut self,
        workload: &W,
        point: &W::Point,
        name: &str,
        (number, repeat): (Option<usize>, u64),
    ) -> anyhow::Result<ControlFlow<()>> {
        if self.session.is_stopped() {
            return Ok(ControlFlow::Break(()));
        }
        let cache = workload.page_cache(&self.session);
        let job = Job {
            name: name.to_owned(),
            point: number,
            recorded: workload.recorded(point, cache),
            data: workload.info(),
            n_records: workload.n_records(point),
            repeat,
        };
        let order = Order { cache: cache.to_owned(), task: workload.task(point) };
        let process = ProcessSpec::new(self.session.command(POINT), &order, workload.secrets())?
            .over(workload.link().cloned());
        self.run(&job, process, W::format, |answer| workload.record(point, answer))
    }

    /// Runs a process and keeps the records of its answers when it has ended, with the memory of
    /// all its processes; a failure is a record, too. Breaks after Ctrl-C.
    ///
    /// # Errors
    /// The process cannot be started, or a row cannot be written.
    pub fn run<Answer: DeserializeOwned>(
        &mut self,
        job: &Job,
        process: ProcessSpec<'_>,
        format: fn(&EpochRecord) -> String,
        record_of: impl Fn(Answer) -> Option<EpochRecord>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut found = Vec::new();
        let display = &self.session.display;
        let shown = |mut record: EpochRecord| {
            record.data = job.data.clone();
            record.measured.repeat = Some(job.repeat);
            display.line(&line(&job.name, &record, format));
            record
        };
        let ended = self.session.run(&job.name, process, &mut |answer: Answer| {
            found.extend(record_of(answer).map(shown));
            Ok(())
        })?;
        let mut tree = None;
        let missing = match ended {
            Ended::Interrupted => None,
            Ended::Failed(failure) => Some(failure.measured()),
            Ended::Done { tree: of_all } => {
                tree = of_all;
                Some(Measured::failed(Status::Error, "it reported no result"))
            }
        };
        let is_interrupted = missing.is_none();
        if let Some(measured) = missing.filter(|_| found.len() < job.n_records) {
            let point = job.recorded.clone();
            found.push(shown(EpochRecord { point, measured, ..EpochRecord::default() }));
        }
        for mut record in found {
            if let Some(tree) = tree.filter(|tree| record.measured.max_mem < Some(tree.bytes)) {
                record.measured.max_mem = Some(tree.bytes);
                record.measured.max_mem_processes = Some(tree.n_processes);
            }
            self.rows.keep(&mut record)?;
            self.records.push(MeasuredEpoch { point: job.point, record });
        }
        if is_interrupted {
            return Ok(ControlFlow::Break(()));
        }
        self.n_done += 1;
        self.session.display.position(self.n_done);
        Ok(ControlFlow::Continue(()))
    }

    /// Marks all further rows: an entry of their run's metadata.
    pub fn mark(&mut self, name: &str, text: &str) {
        self.rows.run.metadata.insert(name.to_owned(), text.to_owned());
    }

    /// The number of rows written so far.
    pub fn n_rows(&self) -> usize {
        self.rows.n_rows
    }

    /// The machine of the rows.
    pub fn host(&self) -> &HostInfo {
        &self.rows.host
    }

    /// The folder of the results.
    pub fn folder(&self) -> &Path {
        &self.rows.folder.path
    }

    /// The first record; its default if nothing was measured.
    pub fn first(&self) -> EpochRecord {
        self.records.first().map(|of| of.record.clone()).unwrap_or_default()
    }

    /// The exit code: failure if a process or something else failed.
    pub fn verdict_unless(&self, failed: bool) -> ExitCode {
        if self.session.is_stopped() {
            return ExitCode::from(EXIT_CODE);
        }
        let is_ok = |of: &MeasuredEpoch| of.record.measured.status == Status::Ok;
        if !failed && !self.records.is_empty() && self.records.iter().all(is_ok) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// A record as a line.
fn line(name: &str, record: &EpochRecord, format: fn(&EpochRecord) -> String) -> String {
    let measured = &record.measured;
    if measured.status != Status::Ok {
        let message = measured.message.as_deref().unwrap_or_default();
        return format!("{name}: {}: {message}", measured.status.name());
    }
    let epoch = measured.epoch.map_or_else(String::new, |epoch| format!(" epoch {epoch}"));
    format!("{name}{epoch}: {}", format(record))
}
