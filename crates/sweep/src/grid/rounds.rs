//! Rounds over the grid. Each point runs in its own process, and its rows are kept if it fails.

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{
    DataInfo, EPOCHS_FILE, EpochRecord, ReportFiles, Settings, Status, summarize, write_report,
};
use bench_run::{
    Display, Ended, Failure, INTERRUPTED_EXIT_CODE, MemoryLimit, Rows, Session, format_row,
    print_line, print_message,
};
use grid_point::{Point, PointAnswer, PointWork, as_asked, point_process, versions};

use super::config::Config;
use super::earlier_rows::EarlierRows;
use super::summary;

/// A running sweep.
pub(crate) struct Sweep {
    pub(crate) session: Session,
    pub(crate) kept: KeptRows,
    pub(crate) config: Config,
    /// Name of the reader that the data was opened with.
    pub(crate) reader: String,
    /// Points, each with the digest of everything that its measurement depends on.
    pub(crate) points: Vec<(Point, String)>,
    pub(crate) limit: Option<MemoryLimit>,
    pub(crate) json: bool,
}

/// Rows of a sweep.
pub(crate) struct KeptRows {
    pub(crate) rows: Rows,
    pub(crate) data: DataInfo,
    /// Number of rounds over the grid.
    pub(crate) n_repeats: u64,
    /// Whether points that the folder already has are skipped.
    pub(crate) resume: bool,
    pub(crate) records: Vec<EpochRecord>,
}

impl KeptRows {
    /// Completes a record, writes it, and prints it.
    fn keep(
        &mut self,
        mut record: EpochRecord,
        run: &PointRun<'_>,
        limit: Option<&MemoryLimit>,
        display: &Display,
    ) -> anyhow::Result<()> {
        record.data = self.data.clone();
        record.measured.repeat = Some(run.repeat);
        record.measured.conditions = Some(run.conditions.to_owned());
        record.point.settings.set_all(
            Settings::default()
                .with_bytes("point_memory_limit", limit.map(MemoryLimit::bytes))
                .with_some("point_memory_limit_by", limit.map(MemoryLimit::by)),
        );
        let line = format_row(&record, self.n_repeats);
        let is_new = if self.resume && record.measured.status == Status::Ok {
            self.rows.keep_unless_there(&mut record)?
        } else {
            self.rows.keep(&mut record)?;
            true
        };
        if is_new {
            display.line(&line);
            self.records.push(record);
        } else {
            display.line(&format!("{line}; not added, it is there already"));
        }
        Ok(())
    }
}

/// One repeat of one point.
struct PointRun<'a> {
    point: &'a Point,
    conditions: &'a str,
    repeat: u64,
}

impl Sweep {
    /// If the sweep is resumed, reads the folder's rows and prints how many points are measured.
    pub(crate) fn read_earlier_rows(&mut self) -> anyhow::Result<()> {
        if !self.kept.resume {
            return Ok(());
        }
        let earlier = self.earlier_rows()?;
        let runs = (0..self.config.repeat).flat_map(|repeat| {
            self.points.iter().map(move |(point, digest)| (point, digest, repeat))
        });
        let n_measured = runs
            .filter(|(point, digest, repeat)| earlier.has(digest, *repeat, point.n_epochs))
            .count();
        let n_all = self.points.len() as u64 * self.config.repeat;
        self.session.display.line(&format!(
            "resume: {n_measured} of {n_all} points are measured ({} rows under the same conditions, {} of others)",
            earlier.rows().len(),
            earlier.n_others()
        ));
        self.kept.records = earlier.rows().to_vec();
        self.kept.rows.folder.to_remove = false;
        Ok(())
    }

    fn earlier_rows(&self) -> anyhow::Result<EarlierRows> {
        let conditions: Vec<String> =
            self.points.iter().map(|(_, digest)| digest.clone()).collect();
        EarlierRows::read(&self.kept.rows.folder.path, &conditions)
    }

    /// Measures the grid round by round, so that changes over time affect all points alike.
    pub(crate) fn measure_all(&mut self) -> anyhow::Result<()> {
        let points = self.points.clone();
        let mut n_done = 0;
        for repeat in 0..self.config.repeat {
            for (point, conditions) in &points {
                // Another sweep may have measured the point meanwhile.
                let is_there = self.kept.resume
                    && self.earlier_rows()?.has(conditions, repeat, point.n_epochs);
                if !is_there {
                    let run = PointRun { point, conditions, repeat };
                    if self.measure(&run)?.is_break() {
                        return Ok(());
                    }
                }
                n_done += 1;
                self.session.display.position(n_done);
            }
        }
        Ok(())
    }

    /// Measures one repeat of a point. Breaks after Ctrl-C.
    fn measure(&mut self, run: &PointRun<'_>) -> anyhow::Result<ControlFlow<()>> {
        let mut n_epochs = 0;
        match self.run(run, &mut n_epochs)? {
            // A process that dies after its last epoch has measured the point.
            Ended::Failed(failure) if n_epochs < run.point.n_epochs => {
                self.keep_failure(run, &failure)?;
            }
            Ended::Done { .. } | Ended::Failed(_) => {}
            Ended::Interrupted => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run(&mut self, run: &PointRun<'_>, n_epochs: &mut u64) -> anyhow::Result<Ended> {
        self.session.warm_again(self.config.data.folders().as_deref());
        let work = PointWork::Measure(Box::new(run.point.clone()));
        let mut process = point_process(&self.session, &self.config.data, work)?;
        process.limit = self.limit.as_ref();
        let (kept, limit, session) = (&mut self.kept, self.limit.as_ref(), &self.session);
        session.run(&run.point.to_string(), process, &mut |answer| match answer {
            // Cells are counted for ranks alone.
            PointAnswer::Opened(_)
            | PointAnswer::Expected { .. }
            | PointAnswer::Delivered { .. } => Ok(()),
            PointAnswer::Epoch(record) => {
                *n_epochs += 1;
                kept.keep(*record, run, limit, &session.display)
            }
        })
    }

    fn keep_failure(&mut self, run: &PointRun<'_>, failure: &Failure) -> anyhow::Result<()> {
        let mut point = as_asked(run.point, &self.config.data, self.session.cache);
        // Names the reader that `auto` chose, so that a later success counts as the same point.
        point.reader.clone_from(&self.reader);
        let (measured, versions) = (failure.measured(), versions());
        let record = EpochRecord { point, measured, versions, ..EpochRecord::default() };
        self.kept.keep(record, run, self.limit.as_ref(), &self.session.display)
    }

    /// Prints the table and writes picture and page, even if the sweep ended early.
    pub(crate) fn close(&mut self) -> anyhow::Result<ExitCode> {
        let interrupted = self.session.is_stopped();
        if self.kept.resume {
            // Includes rows that another sweep has added meanwhile.
            self.kept.records = self.earlier_rows()?.rows().to_vec();
        }
        if self.kept.records.is_empty() {
            print_message!("nothing was measured");
            return Ok(if interrupted {
                ExitCode::from(INTERRUPTED_EXIT_CODE)
            } else {
                ExitCode::FAILURE
            });
        }
        self.show()?;
        let options = summary::report_options(&self.config.points);
        let files = write_report(&self.kept.rows.folder.path, &options).with_context(|| {
            format!("{} rows are kept, the report of them is not whole", self.kept.records.len())
        })?;
        self.print_paths(&files);
        if interrupted {
            print_message!(
                "interrupted: {} rows are kept, the picture and the page show them",
                self.kept.records.len()
            );
            return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
        }
        Ok(self.verdict())
    }

    fn show(&self) -> anyhow::Result<()> {
        if !self.json {
            print_line!("{}", summary::table(&self.kept.records));
            print_line!("\n{}", summary::stages(&self.kept.records));
            let over_link = summary::over_link(&self.kept.records);
            if !over_link.is_empty() {
                print_line!("{over_link}");
            }
            let advice = summary::advice(&self.kept.records);
            if !advice.is_empty() {
                print_line!("\n{advice}");
            }
            return Ok(());
        }
        for point in summarize(&self.kept.records) {
            let line = serde_json::to_string(&point).context("cannot write down a point")?;
            print_line!("{line}");
        }
        Ok(())
    }

    /// Prints the paths of all files: to stdout after tables, to stderr after JSON objects.
    fn print_paths(&self, files: &ReportFiles) {
        let epochs = self.kept.rows.folder.path.join(EPOCHS_FILE);
        for path in [&epochs, &files.picture, &files.page, &files.readme] {
            self.session.print_path(path, self.json);
        }
    }

    /// Returns the exit code. Running out of memory is a result; any other failure is a failure.
    fn verdict(&self) -> ExitCode {
        let all = self.kept.records.iter();
        let ok = all.clone().filter(|record| record.measured.status == Status::Ok).count();
        // Failures from before a resumed sweep were tried again.
        let own = all.filter(|record| record.run.run_id == self.kept.rows.run.run_id);
        let broken = own
            .filter(|record| matches!(record.measured.status, Status::Crashed | Status::Error))
            .count();
        if broken != 0 {
            let n_all = self.points.len() as u64 * self.config.repeat;
            print_message!("error: {broken} of {n_all} points failed; the table says why");
        }
        if ok == 0 || broken != 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
