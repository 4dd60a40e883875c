//! One run of ranks: starts the processes, lets them begin together, and collects their answers.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use bench_report::{EpochRecord, Measured, Status};
use bench_run::{
    Failure, Meeting, ProcessSpec, RankEvent, RankProcess, RanksEnd, Session, digest,
    digest_of_program, gather_ranks, grouped,
};
use grid_point::{
    Data, Point, PointAnswer, PointRank, PointWork, as_asked, point_process, versions,
};

use super::Measuring;
use super::outcome::Outcome;

/// How a run of ranks ended.
pub(super) enum Ended {
    /// All ranks are done and delivered each cell once; their records.
    Done(Vec<EpochRecord>),
    /// A rank failed.
    Failed {
        /// Why, in one line.
        message: String,
        /// The record of the failure, unless the ranks could not even begin.
        record: Option<Box<EpochRecord>>,
    },
    Interrupted,
}

/// Returns the process of a rank. Fails if its task cannot be serialized.
pub(super) fn rank_process(
    session: &Session,
    data: &Data,
    point: &Point,
    rank: PointRank,
) -> anyhow::Result<ProcessSpec<'static>> {
    let point = Point { rank: Some(rank), ..point.clone() };
    point_process(session, data, PointWork::Measure(Box::new(point)))
}

/// Returns a digest of the settings that all ranks of a launcher must share.
pub(super) fn settings_digest(
    session: &Session,
    data: &Data,
    point: &Point,
) -> anyhow::Result<String> {
    let Data { uri, measurement, layer, cells, n_genes, obs_filter, var_filter, reader, .. } = data;
    let program = digest_of_program(session.program())?;
    let of_data = (uri.to_string(), measurement, layer, cells, n_genes);
    digest(&(program, of_data, obs_filter, var_filter, reader, point))
}

/// Rows that each rank has taken so far, for the progress.
#[derive(Default)]
struct Progress(BTreeMap<u64, (u64, u64)>);

impl Progress {
    fn format(&self, n: u64) -> String {
        let sum = |of: fn(&(u64, u64)) -> u64| self.0.values().map(of).sum::<u64>();
        let (n_rows, of_rows) = (sum(|of| of.0), sum(|of| of.1));
        let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
        format!("{n} ranks: {share:.0} %, {} rows", grouped(n_rows))
    }
}

impl Measuring<'_> {
    /// Runs `world_size` ranks, of which this process starts all, or rank 0 under a launcher.
    pub(super) fn run_together(&mut self, world_size: u64) -> anyhow::Result<Ended> {
        let (sender, events) = channel();
        let meeting = if self.world.is_some() {
            let settings = settings_digest(&self.session, &self.data, &self.point)?;
            let (folder, hostname) = (&self.rows.folder.path, &self.rows.host.hostname);
            let of_run = (world_size, settings);
            Some(Meeting::open(folder, hostname, of_run, sender.clone())?)
        } else {
            None
        };
        let n_here = if meeting.is_some() { 1 } else { world_size };
        let mut processes = Vec::new();
        for rank in 0..n_here {
            let of = PointRank { rank, world_size };
            let process = rank_process(&self.session, &self.data, &self.point, of)?;
            let sender = sender.clone();
            let host = Box::new(self.rows.host.clone());
            let came: RankEvent<PointAnswer> = RankEvent::Came(host);
            // The receiver is below, so this cannot fail.
            let _sent = sender.send((rank, came));
            let send = move |event| sender.send((rank, event)).is_ok();
            processes.push(RankProcess::spawn(process, send)?);
        }
        drop(sender);
        let (session, mut outcome) = (&self.session, Outcome::default());
        let mut progress = Progress::default();
        session.display.now(format!("{world_size} ranks: opening"));
        let mut n_ready = 0;
        let mut start = || {
            processes.iter().for_each(RankProcess::start);
            meeting.iter().for_each(Meeting::start);
        };
        let ended = gather_ranks(
            world_size,
            &events,
            self.args.start_within(),
            session.interrupted(),
            &mut start,
            &mut |rank, event| {
                match event {
                    RankEvent::Came(host) => drop(outcome.hosts.insert(rank, *host)),
                    RankEvent::Ready => {
                        n_ready += 1;
                        session.display.now(format!("{n_ready} of {world_size} ranks are ready"));
                    }
                    RankEvent::Progress { n_rows, of_rows } => {
                        progress.0.insert(rank, (n_rows, of_rows));
                        session.display.now(progress.format(world_size));
                    }
                    RankEvent::Warning { message } => {
                        session.display.line(&format!("warning: rank {rank}: {message}"));
                    }
                    RankEvent::Answer(answer) => outcome.add(rank, answer),
                    RankEvent::Done | RankEvent::Failed { .. } | RankEvent::Alive => {}
                }
                Ok(())
            },
        );
        // Ends what still runs.
        drop(processes);
        let ended =
            ended.and_then(|ended| self.judge(ended, outcome, (world_size, n_ready == world_size)));
        if let Some(meeting) = meeting {
            meeting.end(match &ended {
                Ok(Ended::Done(_)) => None,
                Ok(Ended::Failed { message, .. }) => Some(message.clone()),
                Ok(Ended::Interrupted) => Some("rank 0 was interrupted".to_owned()),
                Err(error) => Some(format!("rank 0: {error:#}")),
            });
        }
        ended
    }

    fn judge(
        &mut self,
        ended: RanksEnd,
        outcome: Outcome,
        (world_size, has_begun): (u64, bool),
    ) -> anyhow::Result<Ended> {
        if let Some(opened) = &outcome.opened {
            self.opened = Some(opened.clone());
        }
        match ended {
            RanksEnd::Interrupted => Ok(Ended::Interrupted),
            RanksEnd::Done => {
                // Of a launcher's ranks each has chosen the names by itself.
                self.data = self.data.clone().with_names()?;
                let of_run = (world_size, self.point.n_epochs);
                outcome.checked(of_run, &self.data).map(Ended::Done)
            }
            RanksEnd::Failed { rank, failure } => {
                let message = failure.message.clone();
                // Data that cannot be opened, or settings that do not fit, measured nothing.
                let is_row = has_begun || failure.status != Status::Error;
                let of = PointRank { rank, world_size };
                let record = is_row.then(|| Box::new(self.failed_record(of, &failure, &outcome)));
                Ok(Ended::Failed { message, record })
            }
        }
    }

    fn failed_record(&self, of: PointRank, failure: &Failure, outcome: &Outcome) -> EpochRecord {
        let point = Point { rank: Some(of), ..self.point.clone() };
        let mut point = as_asked(&point, &self.data, self.session.cache);
        let opened = self.opened.clone().unwrap_or_default();
        if !opened.reader.is_empty() {
            // The reader that `auto` chose.
            point.reader.clone_from(&opened.reader);
        }
        EpochRecord {
            point,
            data: self.data.info(&opened),
            host: outcome.hosts.get(&of.rank).cloned().unwrap_or_default(),
            measured: Measured { rank: Some(of.rank), ..failure.measured() },
            versions: versions(),
            ..EpochRecord::default()
        }
    }
}
