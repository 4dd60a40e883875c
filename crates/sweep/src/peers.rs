//! `peers`: our loader and others side by side on the same data: first whether they deliver the same, then how fast and how small,
//! in turn, each run in a process of its own.
//!
//! A peer is a script of `benches/peers` in a Python environment that `cargo xtask peers` makes. Whatever happens to one, the rest
//! goes on and what was measured is kept; a comparison that could not be made is said, and makes the exit code a failure.

mod args;
mod compare;
mod peer;
mod report;
mod tally;
mod work;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow, bail};
use bench_report::{
    EpochRecord, HostInfo, Measured, OWN_LOADER, RunInfo, Versions, append, check_folder,
};
use loader::Method;

pub(crate) use args::PeersArgs;
pub(crate) use peer::PeerEpoch;
pub(crate) use tally::{Delivered, Tally};

use crate::config::{self, UsageError};
use crate::display::{Display, grouped};
use crate::job::{Data, Event, Job, Opened, Point, PointTransform, Task};
use crate::process::{self, Ended, Failure};
use crate::{interrupt, page_cache, point, results_folder, sweep_command};
use peer::{Peer, PeerTask};
use report::Run;
use work::Work;

/// Compares and prints the tables.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::watch();
    let program =
        std::env::current_exe().context("cannot find the program itself to start it again")?;
    let scripts = scripts(args)?;
    let jobs = jobs(args, &program, interrupted)?;
    if args.check {
        println!("{}", scripts.keys().cloned().collect::<Vec<_>>().join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let (peers, missing) = peers(args, &scripts)?;
    if peers.is_empty() {
        bail!("there is nothing to compare with: {}", missing.join("; "));
    }
    let host = HostInfo::gather();
    let folder = folder(args, &host)?;
    let cache = page_cache::warm(&args.uri, &args.measurement, &args.layer).name();
    let runs_a_work = (peers.len() as u64 + 1) * (args.repetitions + 2);
    let display = Display::new(jobs.len() as u64 * runs_a_work, "runs", args.quiet);
    let opened = &jobs[0].opened;
    display.line(&format!(
        "{}: {} cells, reader of X: {}, page cache {cache}; results: {}",
        args.uri,
        grouped(opened.n_cells),
        opened.reader,
        folder.display()
    ));
    let metadata = noted(args)?;
    let mut session = Session {
        program,
        run: sweep_command::run_info(args.revision.as_deref(), &metadata, &host, arguments)?,
        host,
        cache,
        folder,
        repetitions: args.repetitions,
        runs: Vec::new(),
        missing,
        display,
        done: 0,
        interrupted,
    };
    let compared = jobs.iter().try_for_each(|job| session.compare(job, &peers));
    session.display.finish();
    let closed = session.close();
    compared?;
    closed
}

/// One work on the data that it takes.
struct WorkJob {
    work: Work,
    data: Data,
    point: Point,
    opened: Opened,
}

/// The peers' scripts by name.
fn scripts(args: &PeersArgs) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut scripts = BTreeMap::new();
    for name in args.peers.iter().map(|name| name.trim()) {
        let script = args.scripts.join(format!("{name}.py"));
        if name.is_empty() || name.contains('/') || !script.is_file() {
            let message = format!(
                "--peers {name:?}: there is no script {}; a peer is a script and its requirements",
                script.display()
            );
            return Err(UsageError::new(message).into());
        }
        scripts.insert(name.to_owned(), script);
    }
    Ok(scripts)
}

/// The peers that can be run, and why the others cannot.
fn peers(
    args: &PeersArgs,
    scripts: &BTreeMap<String, PathBuf>,
) -> anyhow::Result<(Vec<Peer>, Vec<String>)> {
    let environments = config::pairs("--environment", &args.environment)?;
    let variables = config::pairs("--peer-variable", &args.peer_variable)?;
    let (mut peers, mut missing) = (Vec::new(), Vec::new());
    for (name, script) in scripts {
        match environments.get(name) {
            Some(python) => peers.push(Peer {
                name: name.clone(),
                python: PathBuf::from(python),
                script: script.clone(),
                variables: variables.clone(),
            }),
            None if args.unavailable.contains(name) => {
                missing.push(format!("{name}: its environment could not be made"));
            }
            None => {
                return Err(UsageError::new(format!(
                    "{name} has no environment: start it by `cargo xtask peers`, which makes it"
                ))
                .into());
            }
        }
    }
    Ok((peers, missing))
}

fn jobs(
    args: &PeersArgs,
    program: &std::path::Path,
    interrupted: &AtomicBool,
) -> anyhow::Result<Vec<WorkJob>> {
    let usage = |error: anyhow::Error| anyhow!(UsageError::new(format!("{error:#}")));
    let config = config::pairs("--config", &args.config).map_err(usage)?;
    let mut jobs: Vec<WorkJob> = Vec::new();
    for work in &args.works {
        if jobs.iter().any(|job| job.work == *work) {
            continue;
        }
        let data = Data {
            uri: args.uri.clone(),
            config: config.clone(),
            measurement: args.measurement.clone(),
            layer: args.layer.clone(),
            reader: config::reader(args.reader).name().to_owned(),
            n_genes: work.n_genes,
            obs_columns: args.obs_columns.clone(),
            ..Data::default()
        };
        let point = point(args, work);
        let opened =
            sweep_command::check(program, &data, std::slice::from_ref(&point), interrupted)?;
        jobs.push(WorkJob { work: *work, data, point, opened });
    }
    Ok(jobs)
}

fn point(args: &PeersArgs, work: &Work) -> Point {
    Point {
        chunk_rows: work.block.chunk_rows,
        chunks_per_block: work.block.chunks_per_block,
        batch_rows: args.batch_size,
        method: Method::Native.name().to_owned(),
        form: work.form.name().to_owned(),
        transform: PointTransform::default(),
        shuffled: true,
        seed: args.seed,
        drop_last: false,
        prefetch_blocks: args.prefetch_blocks,
        prefetch_batches: args.prefetch_batches,
        n_epochs: args.epochs,
        max_batches: None,
        consumer: args.consumer,
    }
}

fn folder(args: &PeersArgs, host: &HostInfo) -> anyhow::Result<PathBuf> {
    let folder = if let Some(folder) = &args.results {
        folder.clone()
    } else {
        let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
        let data = format!("peers-{}", results_folder::data_name(&args.uri));
        results_folder::make(&args.results_root, &date, &host.hostname, &data)?
    };
    check_folder(&folder).context("nothing was measured")?;
    Ok(folder)
}

/// What the user wants noted, and what the peers were given beyond the settings.
fn noted(args: &PeersArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let mut metadata = config::pairs("-M/--metadata", &args.metadata)?;
    if !args.peer_variable.is_empty() {
        let told = args.peer_variable.iter().map(|(key, value)| format!("{key}={value}"));
        metadata.insert("peers' variables".to_owned(), told.collect::<Vec<_>>().join(" "));
    }
    Ok(metadata)
}

/// A comparison that has begun.
struct Session<'a> {
    program: PathBuf,
    run: RunInfo,
    host: HostInfo,
    cache: &'static str,
    folder: PathBuf,
    repetitions: u64,
    runs: Vec<Run>,
    /// Comparisons that could not be made, and why.
    missing: Vec<String>,
    display: Display,
    done: u64,
    interrupted: &'a AtomicBool,
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
    fn compare(&mut self, job: &WorkJob, peers: &[Peer]) -> anyhow::Result<()> {
        let mut peers = self.equal(job, peers)?;
        // Round 0 is for the caches of the machine; it is not counted.
        for round in 0..=self.repetitions {
            let mut lost = Vec::new();
            for side in std::iter::once(None).chain(peers.iter().map(Some)) {
                if peers.is_empty() || self.stopped() {
                    return Ok(());
                }
                match self.run_one(job, side, PeerTask::Measure)? {
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
    fn equal(&mut self, job: &WorkJob, peers: &[Peer]) -> anyhow::Result<Vec<Peer>> {
        let ours = match self.run_one(job, None, PeerTask::Tally)? {
            Outcome::Delivered(ours) => ours,
            Outcome::Failed(failure) => {
                self.miss(&format!("{}: {OWN_LOADER} failed: {}", job.work, failure.message));
                return Ok(Vec::new());
            }
            Outcome::Measured(_) | Outcome::Interrupted => return Ok(Vec::new()),
        };
        let mut equal = Vec::new();
        for peer in peers {
            let verdict = match self.run_one(job, Some(peer), PeerTask::Tally)? {
                Outcome::Delivered(theirs) => {
                    tally::same(&ours, &theirs, job.opened.n_cells, &peer.name).map_err(|why| {
                        format!("not compared, for what is delivered differs: {why}")
                    })
                }
                Outcome::Failed(failure) => Err(format!("failed: {}", failure.message)),
                Outcome::Measured(_) | Outcome::Interrupted => return Ok(Vec::new()),
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
        Ok(equal)
    }

    /// One run of our loader, or of a peer.
    fn run_one(
        &mut self,
        job: &WorkJob,
        side: Option<&Peer>,
        task: PeerTask,
    ) -> anyhow::Result<Outcome> {
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
                            Measured::failed(
                                bench_report::Status::Error,
                                format!("{name}: {error}"),
                            )
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
                Event::Opened(_) | Event::Read { .. } | Event::Failed { .. } | Event::Done => {}
            }
            Ok(())
        };
        let ended = match side {
            None => {
                let task = match task {
                    PeerTask::Measure => Task::Measure(job.point.clone()),
                    PeerTask::Tally => Task::Tally(job.point.clone()),
                };
                let own = Job { data: job.data.clone(), cache: self.cache.to_owned(), task };
                let command = process::point_command(&self.program);
                process::run(command, &own, self.interrupted, &mut on_event)
            }
            Some(peer) => {
                let command = peer.command(task, &job.data, &job.point);
                process::run_told(command, self.interrupted, &mut on_event)
            }
        };
        self.done += 1;
        self.display.position(self.done);
        Ok(outcome(ended, records, delivered, job, side, self.cache))
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
    fn close(&self) -> anyhow::Result<ExitCode> {
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
        let status = bench_report::Status::Error;
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
            None => point::as_asked(&job.point, &job.data, cache),
        },
        measured,
        ..EpochRecord::default()
    }
}
