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
use crate::page_cache::{PageCache, warm};
use crate::process::{Ended, ProcessSpec};
use crate::results_folder::{ResultsFlags, data_name};
use crate::run_info::run_info;
use crate::session::{Rows, Session};

/// Flags of every command that measures: where results go, and whether progress is shown.
#[derive(Debug, Args)]
pub struct OutputFlags {
    /// Folder for the results [default: a new one below results/]
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
    format: fn(&EpochRecord) -> String,
    /// All records so far.
    pub records: Vec<MeasuredEpoch>,
}

impl Measuring {
    /// Makes the results folder. `of` is the number of measurements and their name, for the
    /// progress; `uri` is the place of the data; `format` formats the record of an epoch that ended
    /// well.
    ///
    /// # Errors
    /// The folder cannot be made or used, or the program does not know its own path.
    pub fn begin(
        flags: &OutputFlags,
        of: (u64, &str),
        uri: &str,
        format: fn(&EpochRecord) -> String,
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
        let session = Session::begin(Display::new(of.0, of.1, flags.quiet))?;
        let host = HostInfo::gather();
        let folder =
            flags.results_flags.folder(flags.results.as_deref(), &host, &data_name(uri))?;
        let revision = flags.results_flags.revision.as_deref();
        let run = run_info(revision, &BTreeMap::new(), &host, arguments)?;
        Ok(Self { session, rows: Rows::new(folder, run, host), format, records: Vec::new() })
    }

    /// Reads all files of `folders` into the page cache; records have its state.
    pub fn warm(&mut self, folders: &[PathBuf]) {
        let state = warm(Some(folders));
        if let PageCache::Unknown(why) = &state {
            self.session.display.line(&format!("the page cache is not warm: {why}"));
        }
        self.session.cache = state.name();
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
        record_of: impl Fn(Answer) -> Option<EpochRecord>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut found = Vec::new();
        let (display, format) = (&self.session.display, self.format);
        let ended = self.session.run(&job.name, process, &mut |answer: Answer| {
            if let Some(record) = record_of(answer) {
                display.line(&line(&job.name, &record, format));
                found.push(record);
            }
            Ok(())
        })?;
        let mut tree = None;
        let missing = match ended {
            Ended::Interrupted => return Ok(ControlFlow::Break(())),
            Ended::Failed(failure) => failure.measured(),
            Ended::Done { tree: of_all } => {
                tree = of_all;
                Measured::failed(Status::Error, "it reported no result")
            }
        };
        if found.len() < job.n_records {
            let point = job.recorded.clone();
            let record = EpochRecord { point, measured: missing, ..EpochRecord::default() };
            self.session.display.line(&line(&job.name, &record, format));
            found.push(record);
        }
        for mut record in found {
            record.data = job.data.clone();
            record.measured.repeat = Some(job.repeat);
            if let Some(tree) = tree.filter(|tree| record.measured.max_mem < Some(tree.bytes)) {
                record.measured.max_mem = Some(tree.bytes);
                record.measured.max_mem_processes = Some(tree.n_processes);
            }
            self.rows.keep(&mut record)?;
            self.records.push(MeasuredEpoch { point: job.point, record });
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The folder of the results.
    pub fn folder(&self) -> &Path {
        &self.rows.folder.path
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
