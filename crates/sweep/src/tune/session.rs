//! Measuring: a point in a process of its own, as in a sweep, and its row in the folder of the results.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow, bail};
use bench_report::{DataInfo, EpochRecord, HostInfo, Measured, RunInfo, append};

use super::args::TuneArgs;
use super::survey::{SurveyJob, Surveyed};
use crate::conditions::Conditions;
use crate::display::{Display, grouped};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::process::{self, Ended, Failure};
use crate::results_folder::{self, Folder};
use crate::sweep_command;
use crate::{page_cache, point_settings, summary};

/// What the measurements of a run share.
pub(super) struct Session<'a> {
    program: PathBuf,
    pub(super) data: Data,
    pub(super) opened: Opened,
    host: HostInfo,
    run: RunInfo,
    cache: &'static str,
    pub(super) folder: Folder,
    display: Display,
    interrupted: &'a AtomicBool,
    /// Rows that are kept.
    pub(super) n_rows: usize,
}

/// The user wanted to stop.
#[derive(Debug)]
pub(super) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl<'a> Session<'a> {
    /// Looks at the data, and makes the folder for what will be measured.
    pub(super) fn begin(
        args: &TuneArgs,
        arguments: &[OsString],
        data: Data,
        interrupted: &'a AtomicBool,
    ) -> anyhow::Result<(Self, Surveyed)> {
        let program =
            std::env::current_exe().context("cannot find the program itself to start it again")?;
        let host = HostInfo::gather();
        let run = sweep_command::run_info(
            args.of_results.revision.as_deref(),
            &BTreeMap::new(),
            &host,
            arguments,
        )?;
        let display = Display::counting("runs", args.quiet);
        display.now("opening");
        let mut session = Self {
            program,
            data,
            opened: Opened::default(),
            host,
            run,
            cache: "",
            folder: Folder::default(),
            display,
            interrupted,
            n_rows: 0,
        };
        let surveyed = session.survey(args)?;
        let data = if args.uri.is_some() {
            format!("tune-{}", results_folder::data_name(&session.data.uri.to_string()))
        } else {
            "tune-example".to_owned()
        };
        session.folder = args.of_results.folder(args.results.as_deref(), &session.host, &data)?;
        session.cache = page_cache::warm(&session.data).name();
        session.announce();
        Ok((session, surveyed))
    }

    fn survey(&mut self, args: &TuneArgs) -> anyhow::Result<Surveyed> {
        let survey = SurveyJob {
            batch_rows: args.batch_size,
            memory_bytes: args.memory.as_u64(),
            seed: args.seed,
        };
        let mut found = None;
        let (mut opened, data) = (Opened::default(), self.data.clone());
        self.follow(data, Task::Survey(survey), &mut |event| {
            match event {
                Event::Opened(told) => opened = told,
                Event::Surveyed(surveyed) => found = Some(*surveyed),
                _ => {}
            }
            Ok(())
        })?
        .map_err(|failure| {
            let is_label = failure.message.contains(&format!("has no column {:?}", args.label));
            let hint =
                if is_label { ": --label names another, --entropy none does without" } else { "" };
            anyhow!("{}{hint}", failure.message)
        })?;
        self.opened = opened;
        found.with_context(|| format!("{} could not be looked at", self.data.uri))
    }

    fn announce(&self) {
        let Opened { n_cells, n_genes, reader, why_not_native, .. } = &self.opened;
        let (cells, genes) = (grouped(*n_cells), grouped(*n_genes));
        self.display.line(&format!("{}: {cells} cells x {genes} genes", self.data.uri));
        if let Some(why) = why_not_native {
            self.display.line(&format!("reader of X: {reader}, because {why}"));
        }
        self.display.line(&format!("page cache: {}", self.cache));
        self.display.line(&format!("results: {}", self.folder.path.display()));
    }

    /// Runs a task in a process; what it said when it failed.
    fn follow(
        &self,
        data: Data,
        task: Task,
        on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<Result<(), Failure>> {
        let job = Job { data, cache: self.cache.to_owned(), task };
        let command = process::point_command(&self.program);
        match process::run(command, &job, self.interrupted, on_event)? {
            Ended::Done { .. } => Ok(Ok(())),
            Ended::Failed(failure) => Ok(Err(failure)),
            Ended::Interrupted => Err(Interrupted.into()),
        }
    }

    /// Measures an epoch of a point with a reader, and keeps its row, which says that it was for `what`. A point that fails is a row, too,
    /// and an error.
    pub(super) fn measure(
        &mut self,
        point: &Point,
        reader: &str,
        what: &str,
    ) -> anyhow::Result<EpochRecord> {
        let data = Data { reader: reader.to_owned(), ..self.data.clone() };
        let name = format!("{what} {point}, {} blocks ahead", point.prefetch_blocks);
        self.display.now(name.clone());
        self.cache = page_cache::warm_again(self.cache, &data, |why| self.display.line(why));
        let (mut measured, display) = (None, &self.display);
        let ended = self.follow(data.clone(), Task::Measure(point.clone()), &mut |event| {
            match event {
                Event::Epoch(record) => measured = Some(*record),
                Event::Progress { n_rows, of_rows } => {
                    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                    display.now(format!("{name}: {share:.0} %"));
                }
                Event::Warning { message } => display.line(&format!("warning: {name}: {message}")),
                _ => {}
            }
            Ok(())
        })?;
        let failure = match (ended, measured) {
            (_, Some(record)) => return self.keep(record, point, &data, what),
            (Err(failure), None) => failure,
            (Ok(()), None) => bail!("{name} ended without a result"),
        };
        let mut measured = Measured::failed(failure.status, failure.message.clone());
        measured.max_mem = failure.peak_bytes;
        let settings = point_settings::as_asked(point, &data, self.cache);
        let versions = point_settings::versions();
        let record = EpochRecord { point: settings, measured, versions, ..EpochRecord::default() };
        self.keep(record, point, &data, what)?;
        bail!("{name}: {}: {}", failure.status.name(), failure.message)
    }

    /// Completes a record, writes it, and says it.
    fn keep(
        &mut self,
        mut record: EpochRecord,
        point: &Point,
        data: &Data,
        what: &str,
    ) -> anyhow::Result<EpochRecord> {
        let versions = &record.versions;
        let conditions = Conditions::new(&self.program, data, &self.opened, &self.host, versions)?;
        record.measured.conditions = Some(conditions.of(point, None)?);
        record.measured.repeat = Some(0);
        record.run = self.run.clone();
        record.run.metadata.insert("tune".to_owned(), what.to_owned());
        record.host = self.host.clone();
        record.data = self.data_info();
        append(&self.folder.path, std::slice::from_ref(&record)).with_context(|| {
            format!("{} rows are kept, that of {what} {point} is not", self.n_rows)
        })?;
        self.folder.to_remove = false;
        self.n_rows += 1;
        self.display.position(self.n_rows as u64);
        let ahead = record.point.prefetch_blocks;
        self.display.line(&format!("{what}: {}, {ahead} ahead", summary::told(&record, 1)));
        Ok(record)
    }

    fn data_info(&self) -> DataInfo {
        sweep_command::data_info(&self.data, &self.opened)
    }

    /// A line that stays.
    pub(super) fn say(&self, text: &str) {
        self.display.line(text);
    }

    pub(super) fn finish(&self) {
        self.display.finish();
    }
}
