//! `peers`: our loader and others side by side on the same data: first whether they deliver the same, then how fast and how small,
//! in turn, each run in a process of its own.
//!
//! A peer is a script of `benches/peers` in a Python environment that `cargo xtask peers` makes. It says itself what it can do: the
//! settings that it is measured at, and whether it reads a format of its own, of which it then gets a copy. Whatever happens to one, the
//! rest goes on and what was measured is kept; a comparison that could not be made is said, and makes the exit code a failure. A peer that
//! was not asked for by its name and cannot be had here is skipped, and that is said.

mod args;
mod compare;
mod copies;
mod peer;
mod prepare;
mod report;
mod session;
mod side;
mod tally;
mod work;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow, bail};
use bench_report::HostInfo;
use loader::BlockForm;

pub(crate) use args::PeersArgs;
pub(crate) use peer::{PeerConversion, PeerEpoch, PeerFacts};
pub(crate) use prepare::relayout;
pub(crate) use tally::{Delivered, Tally};

use crate::config::{self, UsageError};
use crate::display::{Display, grouped};
use crate::job::{Data, Point, PointTransform};
use crate::secrets::without_credentials;
use crate::{interrupt, page_cache, results_folder, sweep_command};
use peer::Peer;
use prepare::Preparing;
use session::{Session, WorkJob};
use side::Side;
use work::Work;

/// Compares and prints the tables.
pub(crate) fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if let Some(label) = args.consumer.label() {
        let told = format!(
            "--consumer linear:{label}: peers' batches have no model that takes them; take none or fixed:MILLIS"
        );
        return Err(UsageError::new(told).into());
    }
    let interrupted = interrupt::watch();
    let program =
        std::env::current_exe().context("cannot find the program itself to start it again")?;
    let scripts = scripts(args)?;
    let jobs = jobs(args, &program, interrupted)?;
    if args.check {
        println!("{}", scripts.keys().cloned().collect::<Vec<_>>().join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let had = peers(args, &scripts)?;
    if had.peers.is_empty() {
        let why = had.missing.iter().chain(&had.skipped).cloned().collect::<Vec<_>>();
        bail!("there is nothing to compare with: {}", why.join("; "));
    }
    let host = HostInfo::gather();
    let data = format!("peers-{}", results_folder::data_name(&args.uri.to_string()));
    let folder = args.of_results.folder(args.results.as_deref(), &host, &data)?;
    let cache = page_cache::warm(&jobs[0].data).name();
    let display = Display::counting("copies", args.quiet);
    let opened = &jobs[0].opened;
    display.line(&format!(
        "{}: {} cells, reader of X: {}, page cache {cache}; results: {}",
        args.uri,
        grouped(opened.n_cells),
        opened.reader,
        folder.path.display()
    ));
    let metadata = config::pairs("-M/--metadata", &args.metadata)?;
    let mut session = Session {
        run: sweep_command::run_info(
            args.of_results.revision.as_deref(),
            &metadata,
            &host,
            arguments,
        )?,
        program,
        host,
        cache,
        folder,
        repetitions: args.repetitions,
        runs: Vec::new(),
        missing: had.missing,
        skipped: had.skipped,
        settings: Vec::new(),
        copies: Vec::new(),
        display,
        done: 0,
        interrupted,
    };
    let sides = sides(args, &mut session, &jobs[0].data, &had.peers);
    let compared = compare_all(&mut session, &jobs, &sides, args.quiet);
    session.display.finish();
    let closed = session.close();
    compared?;
    closed
}

/// All sides but ours on the experiment as it is; the copies that they read are made.
fn sides(args: &PeersArgs, session: &mut Session<'_>, data: &Data, peers: &[Peer]) -> Vec<Side> {
    // The copies hold all genes.
    let data = Data { n_genes: None, ..data.clone() };
    let preparing = Preparing {
        program: &session.program,
        root: &args.copies,
        data: &data,
        display: &session.display,
        interrupted: session.interrupted,
    };
    let (mut sides, mut copies, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for peer in peers {
        match preparing.peer(peer) {
            Ok((of_peer, copy)) => {
                sides.extend(of_peer);
                copies.extend(copy);
            }
            Err(why) => missing.push(format!("{}: {why:#}", peer.name)),
        }
        if session.interrupted.load(Ordering::Relaxed) {
            return Vec::new();
        }
    }
    if !copies.is_empty() && !args.no_relaid {
        match preparing.relaid() {
            Ok((side, copy)) => {
                sides.insert(0, side);
                copies.push(copy);
            }
            Err(why) => missing.push(format!("{}: {why:#}", side::RELAID)),
        }
    }
    session.copies = copies;
    session.settings = sides.iter().filter_map(Side::settings).collect();
    for why in missing {
        session.miss(&why);
    }
    sides
}

/// Each work on the sides that can do it.
fn compare_all(
    session: &mut Session<'_>,
    jobs: &[WorkJob],
    sides: &[Side],
    quiet: bool,
) -> anyhow::Result<()> {
    let works: Vec<Work> = jobs.iter().map(|job| job.work).collect();
    let mut plan: Vec<Vec<&Side>> = Vec::new();
    for (idx, work) in works.iter().enumerate() {
        let mut fit = Vec::new();
        for side in sides {
            match side.unfit(work, &works[..idx]) {
                None => fit.push(side),
                Some(why) => session.skipped.push(format!("{work}: {}: {why}", side.label())),
            }
        }
        plan.push(fit);
    }
    let runs = plan.iter().map(|fit| (fit.len() as u64 + 1) * (session.repetitions + 2));
    session.display.finish();
    session.display = Display::new(runs.sum(), "runs", quiet);
    jobs.iter().zip(plan).try_for_each(|(job, fit)| session.compare(job, &fit))
}

/// The peers' scripts by name: those that were asked for, else all that have a list of packages.
fn scripts(args: &PeersArgs) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let asked = args.peers.iter().map(|name| name.trim().to_owned());
    let names = if args.peers.is_empty() { all_peers(&args.scripts)? } else { asked.collect() };
    let mut scripts = BTreeMap::new();
    for name in names {
        let script = args.scripts.join(format!("{name}.peer.py"));
        if name.is_empty() || name.contains('/') || !script.is_file() {
            let message = format!(
                "--peer {name:?}: there is no script {}; a peer is a script and its requirements",
                script.display()
            );
            return Err(UsageError::new(message).into());
        }
        scripts.insert(name, script);
    }
    Ok(scripts)
}

fn all_peers(folder: &Path) -> anyhow::Result<Vec<String>> {
    let cannot = || format!("cannot list the peers in {}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_stem().and_then(OsStr::to_str);
        if let Some(name) = name.filter(|_| path.extension().is_some_and(|kind| kind == "txt")) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The peers that can be run, and why the others cannot.
#[derive(Default)]
struct Had {
    peers: Vec<Peer>,
    /// Asked for by name.
    missing: Vec<String>,
    /// Not asked for.
    skipped: Vec<String>,
}

fn peers(args: &PeersArgs, scripts: &BTreeMap<String, PathBuf>) -> anyhow::Result<Had> {
    let environments = config::pairs("--environment", &args.environment)?;
    let unavailable = config::pairs("--unavailable", &args.unavailable)?;
    let variables = config::pairs("--peer-variable", &args.peer_variable)?;
    let mut had = Had::default();
    for (name, script) in scripts {
        match (environments.get(name), unavailable.get(name)) {
            (Some(python), _) => had.peers.push(Peer {
                name: name.clone(),
                python: PathBuf::from(python),
                script: script.clone(),
                variables: variables.clone(),
            }),
            (None, Some(why)) => {
                let list = if args.peers.is_empty() { &mut had.skipped } else { &mut had.missing };
                let why = without_credentials(why);
                list.push(format!("{name}: its environment could not be made: {why}"));
            }
            (None, None) => {
                return Err(UsageError::new(format!(
                    "{name} has no environment: start it by `cargo xtask peers`, which makes it"
                ))
                .into());
            }
        }
    }
    Ok(had)
}

fn jobs(
    args: &PeersArgs,
    program: &Path,
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
            // The peers do not see to it either.
            entropy_of: Some(Vec::new()),
            ..Data::default()
        };
        let point = point(args, work);
        let opened =
            sweep_command::check(program, &data, std::slice::from_ref(&point), interrupted)
                .with_context(|| format!("--work {work}"))?;
        jobs.push(WorkJob { work: *work, data, point, opened });
    }
    Ok(jobs)
}

fn point(args: &PeersArgs, work: &Work) -> Point {
    Point {
        chunk_rows: work.block.chunk_rows,
        chunks_per_block: work.block.chunks_per_block,
        batch_rows: args.batch_size,
        method: BlockForm::Csr.name().to_owned(),
        form: work.form.name().to_owned(),
        transform: PointTransform::default(),
        shuffled: true,
        seed: args.seed,
        drop_last: false,
        prefetch_blocks: args.prefetch_blocks,
        prefetch_batches: args.prefetch_batches,
        n_epochs: args.epochs,
        max_batches: None,
        consumer: args.consumer.clone(),
        memory_limit: args.memory.map(|size| size.as_u64()),
        keep_decoded: None,
        process_limit: None,
        cold: None,
    }
}
