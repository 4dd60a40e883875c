//! Measures points, each in its own process as in a sweep, and writes their rows.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::{anyhow, bail};
use bench_report::{EpochRecord, HostInfo};
use bench_run::{
    Display, Ended, Failure, Interrupted, LinkServers, Rows, Session, format_row, grouped,
    run_info, warm,
};
use grid_point::{
    Conditions, Data, Opened, Point, PointAnswer, PointWork, as_asked, point_process, versions,
};
use loader::ReaderChoice;

use crate::args::TuneArgs;
use crate::survey::{self, SurveyTask, Surveyed};

/// Measures points one by one.
pub(crate) struct Runs {
    pub(crate) session: Session,
    pub(crate) data: Data,
    pub(crate) opened: Opened,
    pub(crate) rows: Rows,
    /// The servers of a link, which end with the runs.
    _servers: Option<LinkServers>,
}

impl Runs {
    /// Surveys the data and creates the results folder. Fails if the survey fails or is
    /// interrupted.
    pub(crate) fn begin(
        args: &TuneArgs,
        arguments: &[OsString],
        data: Data,
    ) -> anyhow::Result<(Self, Surveyed)> {
        let host = HostInfo::gather();
        let mut servers = args.link.servers(&host)?;
        let name = format!("tune-{}", data.name());
        let mut data = data.or_example(args.output.quiet)?;
        if let Some(servers) = &mut servers {
            data = data.over(servers)?;
        }
        data = data.with_names()?;
        let revision = args.output.results_flags.revision.as_deref();
        let run = run_info(revision, &BTreeMap::new(), &host, arguments)?;
        let mut session = Session::begin(Display::counting("runs", args.output.quiet))?;
        let (opened, surveyed) = survey(&session, args, &data)?;
        let folder =
            args.output.results_flags.folder(args.output.results.as_deref(), &host, &name)?;
        session.cache = warm(data.folders().as_deref()).name();
        if let Some(servers) = &servers {
            session.display.line(&format!("the data is read {}", servers.describe()));
        }
        let rows = Rows::new(folder, run, host);
        let runs = Self { session, data, opened, rows, _servers: servers };
        runs.announce();
        Ok((runs, surveyed))
    }

    fn announce(&self) {
        let Opened { n_cells, n_genes, reader, why_not_native, .. } = &self.opened;
        let (cells, genes) = (grouped(*n_cells), grouped(*n_genes));
        self.say(&format!("{}: {cells} cells x {genes} genes", self.data.uri));
        if let Some(why) = why_not_native {
            self.say(&format!("reader of X: {reader}, because {why}"));
        }
        self.say(&format!("page cache: {}", self.session.cache));
        self.say(&format!("results: {}", self.rows.folder.path.display()));
    }

    /// Measures an epoch of a point with a reader and keeps its row, marked with `purpose`.
    ///
    /// Fails if the point fails, which also leaves a row, or after Ctrl-C.
    pub(crate) fn measure(
        &mut self,
        point: &Point,
        reader: ReaderChoice,
        purpose: &str,
    ) -> anyhow::Result<EpochRecord> {
        let data = Data { reader: reader.name().to_owned(), ..self.data.clone() };
        let name =
            format!("{purpose} {point}, {} blocks ahead", point.spec.pipeline.prefetch_blocks);
        self.session.warm_again(data.folders().as_deref());
        let process =
            point_process(&self.session, &data, PointWork::Measure(Box::new(point.clone())))?;
        let mut measured = None;
        let ended = self.session.run(&name, process, &mut |answer| {
            if let PointAnswer::Epoch(record) = answer {
                measured = Some(*record);
            }
            Ok(())
        })?;
        let failure = match (ended, measured) {
            (Ended::Interrupted, _) => return Err(Interrupted.into()),
            (_, Some(record)) => return self.keep(record, point, &data, purpose),
            (Ended::Failed(failure), None) => failure,
            (Ended::Done { .. }, None) => bail!("{name} ended without a result"),
        };
        let record = self.failed(&failure, point, &data);
        self.keep(record, point, &data, purpose)?;
        bail!("{name}: {}: {}", failure.status.name(), failure.message)
    }

    fn failed(&self, failure: &Failure, point: &Point, data: &Data) -> EpochRecord {
        EpochRecord {
            point: as_asked(point, data, self.session.cache),
            measured: failure.measured(),
            versions: versions(),
            ..EpochRecord::default()
        }
    }

    /// Completes a record, writes it, and prints it.
    fn keep(
        &mut self,
        mut record: EpochRecord,
        point: &Point,
        data: &Data,
        purpose: &str,
    ) -> anyhow::Result<EpochRecord> {
        let (program, host) = (self.session.program(), &self.rows.host);
        let conditions = Conditions::new(program, data, &self.opened, host, &record.versions)?;
        record.measured.conditions = Some(conditions.digest(point, None)?);
        record.measured.repeat = Some(0);
        record.run.metadata.insert("tune".to_owned(), purpose.to_owned());
        record.data = self.data.info(&self.opened);
        self.rows.keep(&mut record)?;
        self.session.display.position(self.rows.n_rows as u64);
        let ahead = record.point.settings.number("prefetch_blocks").unwrap_or(0);
        self.say(&format!("{purpose}: {}, {ahead} ahead", format_row(&record, 1)));
        Ok(record)
    }

    /// Prints a line above the progress bar.
    pub(crate) fn say(&self, text: &str) {
        self.session.display.line(text);
    }

    /// Removes the progress bar.
    pub(crate) fn finish(&self) {
        self.session.display.finish();
    }
}

fn survey(session: &Session, args: &TuneArgs, data: &Data) -> anyhow::Result<(Opened, Surveyed)> {
    let task = SurveyTask {
        data: data.clone(),
        batch_rows: args.batch_size,
        memory_bytes: args.memory.as_u64(),
        seed: args.seed,
    };
    let surveyed = survey::run(session, task).map_err(|error| {
        let message = error.to_string();
        let is_label = message.contains(&format!("has no column {:?}", args.label));
        let hint =
            if is_label { ": --label names another, --entropy none does without" } else { "" };
        anyhow!("{message}{hint}")
    })?;
    surveyed.ok_or_else(|| Interrupted.into())
}
