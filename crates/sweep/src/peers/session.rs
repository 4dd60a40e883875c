//! A comparison that runs: for each work the check that all deliver the same, then rounds in which each loader has a run in a
//! process of its own. What was measured is written after each run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use bench_report::{
    EpochRecord, HostInfo, Measured, OWN_LOADER, RunInfo, Status, Versions, append,
};

use super::copies::DataCopy;
use super::peer::{PeerEpoch, PeerTask};
use super::report::{self, Found, Run};
use super::side::{PeerSide, Side};
use super::tally::{self, Delivered};
use super::work::Work;
use crate::display::{Display, grouped};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::process::{self, Ended, Failure};
use crate::results_folder::Folder;
use crate::{interrupt, page_cache, point_settings, sweep_command};

/// One work on the data that it takes.
pub(crate) struct WorkJob {
    pub(crate) work: Work,
    pub(crate) data: Data,
    pub(crate) point: Point,
    pub(crate) opened: Opened,
}

/// A comparison that has begun.
pub(crate) struct Session<'a> {
    pub(crate) program: PathBuf,
    pub(crate) run: RunInfo,
    pub(crate) host: HostInfo,
    pub(crate) cache: &'static str,
    pub(crate) folder: Folder,
    pub(crate) repetitions: u64,
    pub(crate) runs: Vec<Run>,
    /// Comparisons that could not be made, and why.
    pub(crate) missing: Vec<String>,
    /// What was left out because it cannot be had or done, and why.
    pub(crate) skipped: Vec<String>,
    /// What each peer is set to.
    pub(crate) settings: Vec<String>,
    /// The copies of the data that loaders read.
    pub(crate) copies: Vec<DataCopy>,
    pub(crate) display: Display,
    pub(crate) done: u64,
    pub(crate) interrupted: &'a AtomicBool,
}

/// How a run of a loader ended.
enum Outcome {
    Measured(Vec<EpochRecord>),
    Delivered(Delivered),
    Failed(Failure),
    Interrupted,
}

impl Session<'_> {
    /// One work: the gate for each side, then rounds in which each that passed has its run. Stops early when interrupted.
    pub(crate) fn compare(&mut self, job: &WorkJob, others: &[&Side]) -> anyhow::Result<()> {
        let planned = self.done + (others.len() as u64 + 1) * (self.repetitions + 2);
        let mut others = self.equal(job, others);
        // Round 0 is for the caches of the machine; it is not counted.
        for round in 0..=self.repetitions {
            let mut lost = Vec::new();
            for side in std::iter::once(&Side::Own).chain(others.iter().copied()) {
                if others.is_empty() || self.stopped() {
                    self.skip_to(planned);
                    return Ok(());
                }
                match self.run_one(job, side, PeerTask::Measure) {
                    Outcome::Measured(records) if round > 0 => {
                        self.keep(job, side, round, records)?;
                    }
                    Outcome::Failed(failure) => {
                        let record = failed(job, side, &failure, self.cache);
                        self.keep(job, side, round, vec![record])?;
                        let name = side.label();
                        self.miss(&format!("{}: {name} failed: {}", job.work, failure.message));
                        if matches!(side, Side::Own) {
                            self.skip_to(planned);
                            return Ok(());
                        }
                        lost.push(name);
                    }
                    Outcome::Measured(_) | Outcome::Delivered(_) => {}
                    Outcome::Interrupted => return Ok(()),
                }
            }
            others.retain(|side| !lost.contains(&side.label()));
        }
        self.skip_to(planned);
        Ok(())
    }

    /// Runs that will not be count as done.
    fn skip_to(&mut self, planned: u64) {
        self.done = planned;
        self.display.position(planned);
    }

    /// The sides that deliver what our loader delivers from the experiment.
    fn equal<'s>(&mut self, job: &WorkJob, others: &[&'s Side]) -> Vec<&'s Side> {
        if others.is_empty() {
            return Vec::new();
        }
        let ours = match self.run_one(job, &Side::Own, PeerTask::Tally) {
            Outcome::Delivered(ours) => ours,
            Outcome::Failed(failure) => {
                self.miss(&format!("{}: {OWN_LOADER} failed: {}", job.work, failure.message));
                return Vec::new();
            }
            Outcome::Measured(_) | Outcome::Interrupted => return Vec::new(),
        };
        let mut equal = Vec::new();
        for side in others {
            let name = side.label();
            let verdict = match self.run_one(job, side, PeerTask::Tally) {
                Outcome::Delivered(theirs) => {
                    tally::same(&ours, &theirs, job.opened.n_cells, &name).map_err(|why| {
                        format!("not compared, for what is delivered differs: {why}")
                    })
                }
                Outcome::Failed(failure) => Err(format!("failed: {}", failure.message)),
                Outcome::Measured(_) | Outcome::Interrupted => return Vec::new(),
            };
            match verdict {
                Ok(()) => {
                    self.display.line(&format!(
                        "{}: {name} delivers the same: {} cells, values that add up to {}",
                        job.work,
                        grouped(ours.n_cells),
                        ours.sum
                    ));
                    equal.push(*side);
                }
                Err(why) => self.miss(&format!("{}: {name}: {why}", job.work)),
            }
        }
        equal
    }

    /// One run of our loader, or of a peer.
    fn run_one(&mut self, job: &WorkJob, side: &Side, task: PeerTask) -> Outcome {
        let name = side.label();
        let what = if task == PeerTask::Tally { "checked" } else { "measured" };
        self.display.now(format!("{}: {name} is {what}", job.work));
        let (mut records, mut delivered) = (Vec::new(), None);
        let display = &self.display;
        if task == PeerTask::Measure {
            let files = side.files(&job.data);
            self.cache = page_cache::warm_again(self.cache, &files, |why| display.line(why));
        }
        let mut on_event = |event| {
            match event {
                Event::Epoch(record) => records.push(*record),
                Event::PeerEpoch(epoch) => {
                    if let Side::Peer(side) = side {
                        records.push(peer_record(job, side, &epoch, self.cache));
                    }
                }
                Event::Delivered(tally) => delivered = Some(tally),
                Event::Progress { n_rows, of_rows } => {
                    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                    display.now(format!("{}: {name} is {what}: {share:.0} %", job.work));
                }
                Event::Warning { message } => {
                    display.line(&format!("warning: {}: {message}", job.work));
                }
                _ => {}
            }
            Ok(())
        };
        let ended = self.start(job, side, task, &mut on_event);
        self.done += 1;
        self.display.position(self.done);
        outcome(ended, records, delivered, job)
    }

    /// Starts the process of a run and follows it to its end.
    fn start(
        &self,
        job: &WorkJob,
        side: &Side,
        task: PeerTask,
        on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ended> {
        if let Side::Peer(PeerSide { peer, variant, copy, .. }) = side {
            let asked = (&job.data, &job.point);
            let command = peer.command(task, asked, &variant.name, copy.as_deref());
            let data = Some(&job.data);
            return process::run_script(command, data, self.interrupted, on_event);
        }
        let task = match task {
            PeerTask::Tally => Task::Tally(job.point.clone()),
            _ => Task::Measure(job.point.clone()),
        };
        let own = Job { data: side.data(&job.data), cache: self.cache.to_owned(), task };
        process::run(process::point_command(&self.program), &own, self.interrupted, on_event)
    }

    /// Completes the records of a run, writes them, and says them.
    fn keep(
        &mut self,
        job: &WorkJob,
        side: &Side,
        round: u64,
        mut records: Vec<EpochRecord>,
    ) -> anyhow::Result<()> {
        for record in &mut records {
            record.run = self.run.clone();
            record.host = self.host.clone();
            record.data = sweep_command::data_info(&side.data(&job.data), &job.opened);
            record.data.layout = side.layout();
            record.measured.repeat = Some(round);
        }
        append(&self.folder.path, &records).with_context(|| {
            format!("the comparison ends; {} runs measured before are kept", self.runs.len())
        })?;
        self.folder.to_remove = false;
        for record in records {
            let name = side.label();
            let told = match (record.measured.samples_per_sec, record.measured.max_mem) {
                (Some(rate), Some(bytes)) => format!(
                    "{} cells/s, {:.2} GB peak",
                    grouped(rate.round() as u64),
                    bytes as f64 / 1e9
                ),
                _ => record.measured.status.name().to_owned(),
            };
            self.display.line(&format!("{}: {name} {round}: {told}", job.work));
            self.runs.push(Run { work: job.work.to_string(), loader: name, record });
        }
        Ok(())
    }

    pub(crate) fn miss(&mut self, what: &str) {
        // Quiet or not, this is what the exit code is about.
        eprintln!("error: {what}");
        self.missing.push(what.to_owned());
    }

    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The tables of what was measured, however far it came.
    pub(crate) fn close(&self) -> anyhow::Result<ExitCode> {
        if self.runs.is_empty() {
            eprintln!("nothing was measured");
        } else {
            println!("{}\n", report::tables(&self.runs));
            let found = Found {
                runs: &self.runs,
                copies: &self.copies,
                settings: &self.settings,
                skipped: &self.skipped,
                missing: &self.missing,
            };
            println!("{}", report::write(&self.folder.path, &found)?.display());
        }
        if self.stopped() {
            eprintln!("interrupted: {} runs are kept", self.runs.len());
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
        }
        for line in &self.skipped {
            eprintln!("skipped: {line}");
        }
        if self.missing.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        for line in &self.missing {
            eprintln!("missing: {line}");
        }
        Ok(ExitCode::FAILURE)
    }
}

/// A peer's epoch as a record; its settings are those that it ran with.
fn peer_record(job: &WorkJob, side: &PeerSide, epoch: &PeerEpoch, cache: &str) -> EpochRecord {
    let PeerSide { peer, variant, .. } = side;
    let mut point = peer.settings(&variant.name, &job.point, cache);
    point.chunk_size = epoch.chunk_rows;
    point.chunks_per_block = epoch.chunks_per_block;
    point.block_size = epoch.chunk_rows.saturating_mul(epoch.chunks_per_block);
    let measured = epoch
        .measured(job.opened.n_cells)
        .unwrap_or_else(|error| Measured::failed(Status::Error, format!("{}: {error}", peer.name)));
    let versions = Versions { peer: Some(epoch.told_versions(&peer.name)), ..Versions::default() };
    EpochRecord { point, measured, versions, ..EpochRecord::default() }
}

/// What a process's end and what it said come to.
fn outcome(
    ended: anyhow::Result<Ended>,
    mut records: Vec<EpochRecord>,
    delivered: Option<Delivered>,
    job: &WorkJob,
) -> Outcome {
    let fails = |message: String| {
        let status = Status::Error;
        Outcome::Failed(Failure { status, message, peak_bytes: None })
    };
    let tree = match ended {
        Ok(Ended::Done { tree }) => tree,
        Ok(Ended::Failed(failure)) => return Outcome::Failed(failure),
        Ok(Ended::Interrupted) => return Outcome::Interrupted,
        Err(error) => return fails(format!("{error:#}")),
    };
    if let Some(delivered) = delivered {
        return Outcome::Delivered(delivered);
    }
    if (records.len() as u64) < job.point.n_epochs {
        return fails("it ended without a result".to_owned());
    }
    for record in &mut records {
        if let Some(message) = &record.measured.message {
            return fails(message.clone());
        }
        if record.measured.n_rows != Some(job.opened.n_cells) {
            return fails(format!("it delivered {:?} cells", record.measured.n_rows));
        }
        if let Some(tree) = tree.filter(|tree| record.measured.max_mem < Some(tree.bytes)) {
            record.measured.max_mem = Some(tree.bytes);
            record.measured.max_mem_processes = Some(tree.n_processes);
        }
    }
    Outcome::Measured(records)
}

/// The record of a run that did not come to its end.
fn failed(job: &WorkJob, side: &Side, failure: &Failure, cache: &str) -> EpochRecord {
    let mut measured = Measured::failed(failure.status, failure.message.clone());
    measured.max_mem = failure.peak_bytes;
    EpochRecord {
        point: match side {
            Side::Peer(side) => side.peer.settings(&side.variant.name, &job.point, cache),
            Side::Own | Side::Relaid { .. } => {
                point_settings::as_asked(&job.point, &side.data(&job.data), cache)
            }
        },
        measured,
        ..EpochRecord::default()
    }
}
