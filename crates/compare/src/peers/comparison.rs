//! Runs a comparison: checks for each work that all sides deliver the same values, then measures in
//! rounds. Each side has one run per round, in a process of its own. Rows are written after each
//! run.

use std::process::ExitCode;

use bench_report::{EpochRecord, OWN_LOADER, Status, Versions};
use bench_run::{
    Ended, Failure, INTERRUPTED_EXIT_CODE, Rows, Session, grouped, print_line, print_message,
};
use grid_point::{Data, Opened, Point, PointAnswer, PointWork, as_asked, point_process};

use super::copies::DataCopy;
use super::delivered::{self, Delivered};
use super::own::{OwnWork, own_process};
use super::peer::{PeerAnswer, PeerEpoch, PeerTask, enter_link};
use super::report::{self, ComparisonInput, Run};
use super::side::{PeerSide, Side};
use super::work::Work;
use crate::script::script_process;

/// A work with its data and settings.
pub(crate) struct WorkJob {
    pub(crate) work: Work,
    pub(crate) data: Data,
    pub(crate) point: Point,
    pub(crate) opened: Opened,
}

/// A comparison in progress.
pub(crate) struct Comparison {
    pub(crate) session: Session,
    pub(crate) rows: Rows,
    pub(crate) repetitions: u64,
    pub(crate) runs: Vec<Run>,
    /// Comparisons that could not be made, with reasons.
    pub(crate) missing: Vec<String>,
    /// Unavailable peers and unsupported works, with reasons.
    pub(crate) skipped: Vec<String>,
    /// Settings of each peer.
    pub(crate) settings: Vec<String>,
    /// Copies of the data that loaders read.
    pub(crate) copies: Vec<DataCopy>,
    pub(crate) done: u64,
}

/// How a run of a loader ended.
enum Outcome {
    Measured(Vec<EpochRecord>),
    Delivered(Delivered),
    Failed(Failure),
    Interrupted,
}

impl Comparison {
    /// Compares one work: checks each side for equality, then measures in rounds the sides that
    /// passed. Stops early after Ctrl-C. Fails if rows cannot be written.
    pub(crate) fn compare(&mut self, job: &WorkJob, others: &[&Side]) -> anyhow::Result<()> {
        let planned = self.done + (others.len() as u64 + 1) * (self.repetitions + 2);
        let mut others = self.equal(job, others);
        // Round 0 warms the machine's caches and is not counted.
        for round in 0..=self.repetitions {
            let mut lost = Vec::new();
            for side in std::iter::once(&Side::Own).chain(others.iter().copied()) {
                if others.is_empty() || self.session.is_stopped() {
                    self.skip_to(planned);
                    return Ok(());
                }
                match self.run_one(job, side, PeerTask::Measure) {
                    Outcome::Measured(records) if round > 0 => {
                        self.keep(job, side, round, records)?;
                    }
                    Outcome::Failed(failure) => {
                        let record = failed(job, side, &failure, self.session.cache);
                        self.keep(job, side, round, vec![record])?;
                        let name = side.label();
                        self.record_missing(&format!(
                            "{}: {name} failed: {}",
                            job.work, failure.message
                        ));
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

    /// Counts canceled runs as done.
    fn skip_to(&mut self, planned: u64) {
        self.done = planned;
        self.session.display.position(planned);
    }

    /// Returns the sides that deliver the same values as our loader from the experiment.
    fn equal<'s>(&mut self, job: &WorkJob, others: &[&'s Side]) -> Vec<&'s Side> {
        if others.is_empty() {
            return Vec::new();
        }
        let ours = match self.run_one(job, &Side::Own, PeerTask::Tally) {
            Outcome::Delivered(ours) => ours,
            Outcome::Failed(failure) => {
                self.record_missing(&format!(
                    "{}: {OWN_LOADER} failed: {}",
                    job.work, failure.message
                ));
                return Vec::new();
            }
            Outcome::Measured(_) | Outcome::Interrupted => return Vec::new(),
        };
        let mut equal = Vec::new();
        for side in others {
            let name = side.label();
            let verdict = match self.run_one(job, side, PeerTask::Tally) {
                Outcome::Delivered(theirs) => {
                    delivered::same(&ours, &theirs, job.opened.n_cells, &name).map_err(|why| {
                        format!("not compared, for what is delivered differs: {why}")
                    })
                }
                Outcome::Failed(failure) => Err(format!("failed: {}", failure.message)),
                Outcome::Measured(_) | Outcome::Interrupted => return Vec::new(),
            };
            match verdict {
                Ok(()) => {
                    self.session.display.line(&format!(
                        "{}: {name} delivers the same: {} cells, values that add up to {}",
                        job.work,
                        grouped(ours.n_cells),
                        ours.tally.sum()
                    ));
                    equal.push(*side);
                }
                Err(why) => self.record_missing(&format!("{}: {name}: {why}", job.work)),
            }
        }
        equal
    }

    /// Runs our loader or a peer once.
    fn run_one(&mut self, job: &WorkJob, side: &Side, task: PeerTask) -> Outcome {
        if task == PeerTask::Measure {
            self.session.warm_again(side.files(&job.data).folders().as_deref());
        }
        let outcome = match side {
            Side::Peer(peer) => self.run_peer(job, peer, task),
            _ if task == PeerTask::Tally => self.count_own(job, side),
            Side::Own | Side::Relaid { .. } | Side::AnnData { .. } => self.measure_own(job, side),
        };
        self.done += 1;
        self.session.display.position(self.done);
        outcome.unwrap_or_else(|error| error_outcome(format!("{error:#}")))
    }

    fn run_peer(&self, job: &WorkJob, side: &PeerSide, task: PeerTask) -> anyhow::Result<Outcome> {
        let PeerSide { peer, variant, copy, .. } = side;
        let command = peer.command(task, (&job.data, &job.point), &variant.name, copy.as_deref());
        let process = script_process(command, &side.data(&job.data))?;
        let what = if task == PeerTask::Tally { "checked" } else { "measured" };
        let name = format!("{}: {} is {what}", job.work, peer.label(&variant.name));
        let (mut records, mut delivered) = (Vec::new(), None);
        let ended = self.session.run(&name, process, &mut |answer| {
            match answer {
                PeerAnswer::Epoch(epoch) => {
                    records.push(peer_record(job, side, &epoch, self.session.cache));
                }
                PeerAnswer::Delivered(answer) => delivered = Some(answer),
                PeerAnswer::Facts(_) | PeerAnswer::Conversion(_) => {}
            }
            Ok(())
        })?;
        Ok(outcome(ended, records, delivered, job))
    }

    fn count_own(&self, job: &WorkJob, side: &Side) -> anyhow::Result<Outcome> {
        let point = Box::new(job.point.clone());
        let work = OwnWork::Tally { point, joinid_column: side.joinid_column() };
        let process = own_process(&self.session, &side.data(&job.data), work)?;
        let name = format!("{}: {} is checked", job.work, side.label());
        let mut delivered = None;
        let ended = self.session.run(&name, process, &mut |answer| {
            if let PeerAnswer::Delivered(answer) = answer {
                delivered = Some(answer);
            }
            Ok(())
        })?;
        Ok(outcome(ended, Vec::new(), delivered, job))
    }

    fn measure_own(&self, job: &WorkJob, side: &Side) -> anyhow::Result<Outcome> {
        let work = PointWork::Measure(Box::new(job.point.clone()));
        let process = point_process(&self.session, &side.data(&job.data), work)?;
        let name = format!("{}: {} is measured", job.work, side.label());
        let mut records = Vec::new();
        let ended = self.session.run(&name, process, &mut |answer| {
            if let PointAnswer::Epoch(record) = answer {
                records.push(*record);
            }
            Ok(())
        })?;
        Ok(outcome(ended, records, None, job))
    }

    /// Completes the records of a run, writes them, and prints them.
    fn keep(
        &mut self,
        job: &WorkJob,
        side: &Side,
        round: u64,
        records: Vec<EpochRecord>,
    ) -> anyhow::Result<()> {
        for mut record in records {
            record.data = side.data(&job.data).info(&job.opened);
            record.data.layout = side.layout();
            record.measured.repeat = Some(round);
            self.rows.keep(&mut record)?;
            let name = side.label();
            let figures = match (record.measured.samples_per_sec, record.measured.max_mem) {
                (Some(rate), Some(bytes)) => format!(
                    "{} cells/s, {:.2} GB peak",
                    grouped(rate.round() as u64),
                    bytes as f64 / 1e9
                ),
                _ => record.measured.status.name().to_owned(),
            };
            self.session.display.line(&format!("{}: {name} {round}: {figures}", job.work));
            let files = side.shared_files();
            self.runs.push(Run { work: job.work.to_string(), loader: name, files, record });
        }
        Ok(())
    }

    /// Prints and records the reason why a comparison could not be made.
    pub(crate) fn record_missing(&mut self, what: &str) {
        // Printed even if quiet, because it makes the exit code a failure.
        print_message!("error: {what}");
        self.missing.push(what.to_owned());
    }

    /// Prints the tables and writes the README, also after an interruption. Returns the exit code.
    pub(crate) fn close(&self) -> anyhow::Result<ExitCode> {
        if self.runs.is_empty() {
            print_message!("nothing was measured");
        } else {
            print_line!("{}\n", report::tables(&self.runs));
            let input = ComparisonInput {
                runs: &self.runs,
                copies: &self.copies,
                settings: &self.settings,
                skipped: &self.skipped,
                missing: &self.missing,
            };
            print_line!("{}", report::write(&self.rows.folder.path, &input)?.display());
        }
        if self.session.is_stopped() {
            print_message!("interrupted: {} runs are kept", self.runs.len());
            return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
        }
        for line in &self.skipped {
            print_message!("skipped: {line}");
        }
        if self.missing.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        for line in &self.missing {
            print_message!("missing: {line}");
        }
        Ok(ExitCode::FAILURE)
    }
}

/// Converts a peer's epoch to a record, with the settings that ran.
fn peer_record(job: &WorkJob, side: &PeerSide, epoch: &PeerEpoch, cache: &str) -> EpochRecord {
    let PeerSide { peer, variant, .. } = side;
    let mut point = peer.settings(&variant.name, (&job.data, &job.point), cache);
    point.chunk_size = epoch.chunk_rows;
    point.chunks_per_block = epoch.chunks_per_block;
    point.block_size = epoch.chunk_rows.saturating_mul(epoch.chunks_per_block);
    let mut measured = epoch.measured(job.opened.n_cells);
    if let Some(message) = &mut measured.message {
        *message = format!("{}: {message}", peer.name);
    }
    let peer = Some(epoch.times.format_versions(&peer.name));
    let versions = Versions { peer, ..Versions::default() };
    let mut record = EpochRecord { point, measured, versions, ..EpochRecord::default() };
    if let Some(link) = side.link(&job.data) {
        enter_link(link, epoch, &job.data, &mut record);
    }
    record
}

fn error_outcome(message: String) -> Outcome {
    Outcome::Failed(Failure { status: Status::Error, message, peak_bytes: None })
}

/// Interprets the end of a process and its answers.
fn outcome(
    ended: Ended,
    mut records: Vec<EpochRecord>,
    delivered: Option<Delivered>,
    job: &WorkJob,
) -> Outcome {
    let tree = match ended {
        Ended::Done { tree } => tree,
        Ended::Failed(failure) => return Outcome::Failed(failure),
        Ended::Interrupted => return Outcome::Interrupted,
    };
    if let Some(delivered) = delivered {
        return Outcome::Delivered(delivered);
    }
    if (records.len() as u64) < job.point.n_epochs {
        return error_outcome("it ended without a result".to_owned());
    }
    for record in &mut records {
        if let Some(message) = &record.measured.message {
            return error_outcome(message.clone());
        }
        if record.measured.n_rows != Some(job.opened.n_cells) {
            return error_outcome(format!("it delivered {:?} cells", record.measured.n_rows));
        }
        if let Some(tree) = tree.filter(|tree| record.measured.max_mem < Some(tree.bytes)) {
            record.measured.max_mem = Some(tree.bytes);
            record.measured.max_mem_processes = Some(tree.n_processes);
        }
    }
    Outcome::Measured(records)
}

/// Returns the record of a run that failed.
fn failed(job: &WorkJob, side: &Side, failure: &Failure, cache: &str) -> EpochRecord {
    EpochRecord {
        point: match side {
            Side::Peer(side) => {
                let mut point =
                    side.peer.settings(&side.variant.name, (&job.data, &job.point), cache);
                if let Some(link) = side.link(&job.data) {
                    link.enter(&mut point);
                }
                point
            }
            Side::Own | Side::Relaid { .. } | Side::AnnData { .. } => {
                as_asked(&job.point, &side.data(&job.data), cache)
            }
        },
        measured: failure.measured(),
        ..EpochRecord::default()
    }
}
