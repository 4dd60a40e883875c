//! A comparison that runs: for each work the check that all deliver the same, then rounds in which each loader has a run in a
//! process of its own. What was measured is written after each run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use bench_report::{
    EpochRecord, HostInfo, Measured, OWN_LOADER, RunInfo, Status, Versions, append,
};

use super::peer::{Peer, PeerTask};
use super::report::{self, Run};
use super::tally::{self, Delivered};
use super::work::Work;
use crate::display::{Display, grouped};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::process::{self, Ended, Failure};
use crate::{interrupt, point_settings, sweep_command};

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
    pub(crate) folder: PathBuf,
    pub(crate) repetitions: u64,
    pub(crate) runs: Vec<Run>,
    /// Comparisons that could not be made, and why.
    pub(crate) missing: Vec<String>,
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
    /// One work: the gate for each peer, then rounds in which each loader that passed has its run. Stops early when interrupted.
    pub(crate) fn compare(&mut self, job: &WorkJob, peers: &[Peer]) -> anyhow::Result<()> {
        let mut peers = self.equal(job, peers);
        // Round 0 is for the caches of the machine; it is not counted.
        for round in 0..=self.repetitions {
            let mut lost = Vec::new();
            for side in std::iter::once(None).chain(peers.iter().map(Some)) {
                if peers.is_empty() || self.stopped() {
                    return Ok(());
                }
                match self.run_one(job, side, PeerTask::Measure) {
                    Outcome::Measured(records) if round > 0 => {
                        self.keep(job, round, records)?;
                    }
                    Outcome::Failed(failure) => {
                        self.keep(job, round, vec![failed(job, side, &failure, self.cache)])?;
                        let name = side.map_or(OWN_LOADER, |peer| &peer.name);
                        self.miss(&format!("{}: {name} failed: {}", job.work, failure.message));
                        match side {
                            Some(peer) => lost.push(peer.name.clone()),
                            None => return Ok(()),
                        }
                    }
                    Outcome::Measured(_) | Outcome::Delivered(_) => {}
                    Outcome::Interrupted => return Ok(()),
                }
            }
            peers.retain(|peer| !lost.contains(&peer.name));
        }
        Ok(())
    }

    /// The peers that deliver what we deliver.
    fn equal(&mut self, job: &WorkJob, peers: &[Peer]) -> Vec<Peer> {
        let ours = match self.run_one(job, None, PeerTask::Tally) {
            Outcome::Delivered(ours) => ours,
            Outcome::Failed(failure) => {
                self.miss(&format!("{}: {OWN_LOADER} failed: {}", job.work, failure.message));
                return Vec::new();
            }
            Outcome::Measured(_) | Outcome::Interrupted => return Vec::new(),
        };
        let mut equal = Vec::new();
        for peer in peers {
            let verdict = match self.run_one(job, Some(peer), PeerTask::Tally) {
                Outcome::Delivered(theirs) => {
                    tally::same(&ours, &theirs, job.opened.n_cells, &peer.name).map_err(|why| {
                        format!("not compared, for what is delivered differs: {why}")
                    })
                }
                Outcome::Failed(failure) => Err(format!("failed: {}", failure.message)),
                Outcome::Measured(_) | Outcome::Interrupted => return Vec::new(),
            };
            match verdict {
                Ok(()) => {
                    self.display.line(&format!(
                        "{}: {} delivers the same: {} cells, values that add up to {}",
                        job.work,
                        peer.name,
                        grouped(ours.n_cells),
                        ours.sum
                    ));
                    equal.push(peer.clone());
                }
                Err(why) => self.miss(&format!("{}: {}: {why}", job.work, peer.name)),
            }
        }
        equal
    }

    /// One run of our loader, or of a peer.
    fn run_one(&mut self, job: &WorkJob, side: Option<&Peer>, task: PeerTask) -> Outcome {
        let name = side.map_or(OWN_LOADER, |peer| &peer.name).to_owned();
        let what = if task == PeerTask::Tally { "checked" } else { "measured" };
        self.display.now(format!("{}: {name} is {what}", job.work));
        let (mut records, mut delivered) = (Vec::new(), None);
        let display = &self.display;
        let mut on_event = |event| {
            match event {
                Event::Epoch(record) => records.push(*record),
                Event::PeerEpoch(epoch) => {
                    let measured = epoch.measured(job.opened.n_cells);
                    records.push(EpochRecord {
                        measured: measured.unwrap_or_else(|error| {
                            Measured::failed(Status::Error, format!("{name}: {error}"))
                        }),
                        versions: Versions {
                            peer: Some(epoch.told_versions(&name)),
                            ..Versions::default()
                        },
                        ..EpochRecord::default()
                    });
                }
                Event::Delivered(tally) => delivered = Some(tally),
                Event::Progress { n_rows, of_rows } => {
                    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                    display.now(format!("{}: {name} is {what}: {share:.0} %", job.work));
                }
                Event::Warning { message } => {
                    display.line(&format!("warning: {}: {message}", job.work));
                }
                Event::Opened(_)
                | Event::Read { .. }
                | Event::ChunksRead(_)
                | Event::Surveyed(_)
                | Event::Failed { .. }
                | Event::Done => {}
            }
            Ok(())
        };
        let ended = self.start(job, side, task, &mut on_event);
        self.done += 1;
        self.display.position(self.done);
        outcome(ended, records, delivered, job, side, self.cache)
    }

    /// Starts the process of a run and follows it to its end.
    fn start(
        &self,
        job: &WorkJob,
        side: Option<&Peer>,
        task: PeerTask,
        on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ended> {
        if let Some(peer) = side {
            let command = peer.command(task, &job.data, &job.point);
            return process::run_told(command, self.interrupted, on_event);
        }
        let task = match task {
            PeerTask::Measure => Task::Measure(job.point.clone()),
            PeerTask::Tally => Task::Tally(job.point.clone()),
        };
        let own = Job { data: job.data.clone(), cache: self.cache.to_owned(), task };
        process::run(process::point_command(&self.program), &own, self.interrupted, on_event)
    }

    /// Completes the records of a run, writes them, and says them.
    fn keep(
        &mut self,
        job: &WorkJob,
        round: u64,
        mut records: Vec<EpochRecord>,
    ) -> anyhow::Result<()> {
        for record in &mut records {
            record.run = self.run.clone();
            record.host = self.host.clone();
            record.data = sweep_command::data_info(&job.data, &job.opened);
            record.measured.repeat = Some(round);
        }
        append(&self.folder, &records).with_context(|| {
            format!("the comparison ends; {} runs measured before are kept", self.runs.len())
        })?;
        for record in records {
            let name = record.point.loader.as_deref().unwrap_or(OWN_LOADER);
            let told = match (record.measured.samples_per_sec, record.measured.max_mem) {
                (Some(rate), Some(bytes)) => format!(
                    "{} cells/s, {:.2} GB peak",
                    grouped(rate.round() as u64),
                    bytes as f64 / 1e9
                ),
                _ => record.measured.status.name().to_owned(),
            };
            self.display.line(&format!("{}: {name} {round}: {told}", job.work));
            self.runs.push((job.work.to_string(), record));
        }
        Ok(())
    }

    fn miss(&mut self, what: &str) {
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
            println!("{}", report::write(&self.folder, &self.runs, &self.missing)?.display());
        }
        if self.stopped() {
            eprintln!("interrupted: {} runs are kept", self.runs.len());
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
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

/// What a process's end and what it said come to.
fn outcome(
    ended: anyhow::Result<Ended>,
    mut records: Vec<EpochRecord>,
    delivered: Option<Delivered>,
    job: &WorkJob,
    side: Option<&Peer>,
    cache: &str,
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
        if let Some(peer) = side {
            record.point = peer.settings(&job.point, cache);
        }
        if let Some(tree) = tree.filter(|tree| record.measured.max_mem < Some(tree.bytes)) {
            record.measured.max_mem = Some(tree.bytes);
            record.measured.max_mem_processes = Some(tree.n_processes);
        }
    }
    Outcome::Measured(records)
}

/// The record of a run that did not come to its end.
fn failed(job: &WorkJob, side: Option<&Peer>, failure: &Failure, cache: &str) -> EpochRecord {
    let mut measured = Measured::failed(failure.status, failure.message.clone());
    measured.max_mem = failure.peak_bytes;
    EpochRecord {
        point: match side {
            Some(peer) => peer.settings(&job.point, cache),
            None => point_settings::as_asked(&job.point, &job.data, cache),
        },
        measured,
        ..EpochRecord::default()
    }
}
