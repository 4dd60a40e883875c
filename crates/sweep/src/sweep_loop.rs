//! The loop over the grid: each point in a process of its own, round after round. What was measured is kept, whatever happens.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use bench_report::{
    DataInfo, EPOCHS_FILE, EpochRecord, HostInfo, Measured, ReportFiles, RunInfo, Status, append,
    append_unless_there, summarize, write_report,
};

use crate::config::Config;
use crate::display::{Display, grouped};
use crate::found::Found;
use crate::job::{Event, Job, Point, Task};
use crate::memory_limit::MemoryLimit;
use crate::page_cache;
use crate::process::{self, Ended, Failure};
use crate::results_folder::Folder;
use crate::{interrupt, point_settings, summary};

/// A sweep that has begun.
pub(crate) struct Sweep<'a> {
    pub(crate) program: PathBuf,
    pub(crate) config: Config,
    pub(crate) run: RunInfo,
    pub(crate) host: HostInfo,
    pub(crate) data: DataInfo,
    /// Name of the reader that the data was opened with.
    pub(crate) reader: String,
    /// Each with the digest of what its measurement depends on.
    pub(crate) points: Vec<(Point, String)>,
    pub(crate) limit: Option<MemoryLimit>,
    /// State of the page cache, of points that do not see to it themselves.
    pub(crate) cache: &'static str,
    pub(crate) folder: &'a mut Folder,
    /// Whether what the folder has already is left out.
    pub(crate) resume: bool,
    pub(crate) json: bool,
    pub(crate) records: Vec<EpochRecord>,
    pub(crate) display: Display,
    pub(crate) interrupted: &'a AtomicBool,
}

/// One repeat of one point.
struct Turn<'a> {
    point: &'a Point,
    conditions: &'a str,
    repeat: u64,
}

impl Sweep<'_> {
    /// Says what of the sweep is there already, where it goes on with one.
    pub(crate) fn go_on(&mut self) -> anyhow::Result<()> {
        if !self.resume {
            return Ok(());
        }
        let found = self.look()?;
        let turns = (0..self.config.repeat).flat_map(|repeat| {
            self.points.iter().map(move |(point, digest)| (point, digest, repeat))
        });
        let n_found = turns
            .filter(|(point, digest, repeat)| found.has(digest, *repeat, point.n_epochs))
            .count();
        let n_all = self.points.len() as u64 * self.config.repeat;
        self.display.line(&format!(
            "resume: {n_found} of {n_all} points are measured ({} rows under the same conditions, {} of others)",
            found.rows().len(),
            found.n_others()
        ));
        self.records = found.rows().to_vec();
        self.folder.to_remove = false;
        Ok(())
    }

    fn look(&self) -> anyhow::Result<Found> {
        let conditions: Vec<String> =
            self.points.iter().map(|(_, digest)| digest.clone()).collect();
        Found::look(&self.folder.path, &conditions)
    }

    /// Round after round over the grid, so that what changes with time falls on all points alike.
    pub(crate) fn measure_all(&mut self) -> anyhow::Result<()> {
        let points = self.points.clone();
        let mut n_done = 0;
        for repeat in 0..self.config.repeat {
            for (point, conditions) in &points {
                // Another sweep may have measured it since the last look.
                let is_there = self.resume && self.look()?.has(conditions, repeat, point.n_epochs);
                if !is_there {
                    let turn = Turn { point, conditions, repeat };
                    if self.take(&turn)?.is_break() {
                        return Ok(());
                    }
                }
                n_done += 1;
                self.display.position(n_done);
            }
        }
        Ok(())
    }

    /// Measures one repeat of a point; a break where the user wanted to stop.
    fn take(&mut self, turn: &Turn<'_>) -> anyhow::Result<std::ops::ControlFlow<()>> {
        self.display.now(turn.point.to_string());
        let mut n_epochs = 0;
        let ended = self.measure(turn, &mut n_epochs)?;
        match ended {
            // One that dies on its way out, after its last epoch, has measured all the same.
            Ended::Failed(failure) if n_epochs < turn.point.n_epochs => {
                self.keep_failure(turn, &failure)?;
            }
            Ended::Done { .. } | Ended::Failed(_) => {}
            Ended::Interrupted => return Ok(std::ops::ControlFlow::Break(())),
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    fn measure(&mut self, turn: &Turn<'_>, n_epochs: &mut u64) -> anyhow::Result<Ended> {
        let data = &self.config.data;
        self.cache = page_cache::warm_again(self.cache, data, |why| self.display.line(why));
        let point = turn.point;
        let job = Job {
            data: self.config.data.clone(),
            cache: self.cache.to_owned(),
            task: Task::Measure(point.clone()),
        };
        let (command, interrupted) = (process::point_command(&self.program), self.interrupted);
        let limit = self.limit.take();
        let mut started = Instant::now();
        let ended =
            process::run_limited(command, &job, limit.as_ref(), interrupted, &mut |event| {
                match event {
                    Event::Opened(_) => started = Instant::now(),
                    Event::Progress { n_rows, of_rows } => {
                        let rate = n_rows as f64 / started.elapsed().as_secs_f64();
                        let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                        self.display.now(format!(
                            "{point}: {share:.0} %, {} samples/s",
                            grouped(rate as u64)
                        ));
                    }
                    Event::Epoch(record) => {
                        started = Instant::now();
                        *n_epochs += 1;
                        self.keep(*record, turn, limit.as_ref())?;
                    }
                    Event::Warning { message } => {
                        self.display.line(&format!("warning: {point}: {message}"));
                    }
                    Event::PeerEpoch(_)
                    | Event::PeerFacts(_)
                    | Event::PeerConversion(_)
                    | Event::Delivered(_)
                    | Event::Read { .. }
                    | Event::ChunksRead(_)
                    | Event::Surveyed(_)
                    | Event::Failed { .. }
                    | Event::Done => {}
                }
                Ok(())
            });
        self.limit = limit;
        ended
    }

    /// Completes a record, writes it, and says it. What cannot be written ends the sweep: measuring on would lose the rest too.
    fn keep(
        &mut self,
        mut record: EpochRecord,
        turn: &Turn<'_>,
        limit: Option<&MemoryLimit>,
    ) -> anyhow::Result<()> {
        record.run = self.run.clone();
        record.host = self.host.clone();
        record.data = self.data.clone();
        record.measured.repeat = Some(turn.repeat);
        record.measured.conditions = Some(turn.conditions.to_owned());
        record.point.point_memory_limit = limit.map(MemoryLimit::bytes);
        record.point.point_memory_limit_by = limit.map(|limit| limit.by().to_owned());
        let told = summary::told(&record, self.config.repeat);
        let kept = if self.resume && record.measured.status == Status::Ok {
            append_unless_there(&self.folder.path, &record)
        } else {
            append(&self.folder.path, std::slice::from_ref(&record)).map(|()| true)
        };
        let n_before = self.records.len();
        let is_new = kept.with_context(|| {
            format!("the sweep ends; {n_before} rows are kept, this one is not: {told}")
        })?;
        self.folder.to_remove = false;
        if is_new {
            self.display.line(&told);
            self.records.push(record);
        } else {
            self.display.line(&format!("{told}; not added, it is there already"));
        }
        Ok(())
    }

    fn keep_failure(&mut self, turn: &Turn<'_>, failure: &Failure) -> anyhow::Result<()> {
        let mut measured = Measured::failed(failure.status, failure.message.clone());
        measured.max_mem = failure.peak_bytes;
        let mut point = point_settings::as_asked(turn.point, &self.config.data, self.cache);
        // Not the choice that was left open: a repeat that ends well is of the same point.
        point.reader.clone_from(&self.reader);
        let versions = point_settings::versions();
        let record = EpochRecord { point, measured, versions, ..EpochRecord::default() };
        let limit = self.limit.take();
        let kept = self.keep(record, turn, limit.as_ref());
        self.limit = limit;
        kept
    }

    /// The table, the picture and the page of what was measured, however far it came.
    pub(crate) fn close(&mut self) -> anyhow::Result<ExitCode> {
        let interrupted = self.interrupted.load(Ordering::Relaxed);
        if self.resume {
            // With what another sweep has added meanwhile.
            self.records = self.look()?.rows().to_vec();
        }
        if self.records.is_empty() {
            eprintln!("nothing was measured");
            return Ok(if interrupted {
                ExitCode::from(interrupt::EXIT_CODE)
            } else {
                ExitCode::FAILURE
            });
        }
        self.show()?;
        let options = summary::report_options(&self.config.points);
        let files = write_report(&self.folder.path, &options).with_context(|| {
            format!("{} rows are kept, the report of them is not whole", self.records.len())
        })?;
        self.name(&files);
        if interrupted {
            eprintln!(
                "interrupted: {} rows are kept, the picture and the page show them",
                self.records.len()
            );
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
        }
        Ok(self.verdict())
    }

    fn show(&self) -> anyhow::Result<()> {
        if !self.json {
            println!("{}", summary::table(&self.records));
            println!("\n{}", summary::stages(&self.records));
            return Ok(());
        }
        for point in summarize(&self.records) {
            let line = serde_json::to_string(&point).context("cannot write down a point")?;
            println!("{line}");
        }
        Ok(())
    }

    /// Where everything is: beside the tables, but not among objects that a program reads.
    fn name(&self, files: &ReportFiles) {
        let epochs = self.folder.path.join(EPOCHS_FILE);
        for path in [&epochs, &files.picture, &files.page, &files.readme] {
            if self.json {
                self.display.line(&path.display().to_string());
            } else {
                println!("{}", path.display());
            }
        }
    }

    /// That memory runs out is a finding; anything else that fails is a failure.
    fn verdict(&self) -> ExitCode {
        let all = self.records.iter();
        let ok = all.clone().filter(|record| record.measured.status == Status::Ok).count();
        // What failed in a sweep before this one went on has been tried again.
        let own = all.filter(|record| record.run.run_id == self.run.run_id);
        let broken = own
            .filter(|record| matches!(record.measured.status, Status::Crashed | Status::Error))
            .count();
        if broken != 0 {
            let n_all = self.points.len() as u64 * self.config.repeat;
            eprintln!("error: {broken} of {n_all} points failed; the table says why");
        }
        if ok == 0 || broken != 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
