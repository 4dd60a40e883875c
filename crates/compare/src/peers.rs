//! `peers`: compares our loader with others on the same data. All must first deliver the same
//! values; then they run in turn, each run in a process of its own.
//!
//! A peer is a script of `benches/peers` in a Python environment that `cargo xtask peers` makes.
//! The script reports the settings to measure at, and whether the loader reads a format of its own;
//! then the data is copied to that format. If a peer fails, the others go on and rows are kept; the
//! failed comparison is printed and makes the exit code a failure. An unavailable peer is skipped
//! unless it was requested by name; the skip is printed, too.

mod args;
mod comparison;
mod copies;
mod delivered;
mod link_table;
mod own;
mod peer;
mod prepare;
mod ratio;
mod report;
mod side;
mod work;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bench_report::HostInfo;
use bench_run::{
    BlockSpec, Display, LinkServers, Rows, Session, UsageError, grouped, pairs, print_line,
    run_info, warm, without_credentials,
};
use grid_point::{Data, Point};
use loader::{BatchForm, LoaderSpec, PipelineSpec, ReaderChoice};

pub use args::PeersArgs;
pub use own::{SUBCOMMAND, serve};

use comparison::{Comparison, WorkJob};
use peer::Peer;
use prepare::Preparing;
use side::Side;
use work::Work;

/// Compares the loaders and prints the tables. Fails if the command line cannot be executed or rows
/// cannot be written; returns a failure code if a comparison could not be made.
pub fn run(args: &PeersArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if let Some(label) = args.consumer.label() {
        return Err(UsageError::new(format!(
            "--consumer linear:{label}: peers' batches have no model that takes them; take none or fixed:MILLIS"
        ))
        .into());
    }
    let Some(uri) = args.data.address() else {
        return Err(UsageError::new("--uri is needed: peers have no example of their own").into());
    };
    let host = HostInfo::gather();
    let mut servers = args.link.servers(&host)?;
    let mut session = Session::begin(Display::counting("copies", args.output.quiet))?;
    let scripts = scripts(args)?;
    let jobs = jobs(args, &session, servers.as_mut())?;
    if args.check {
        print_line!("{}", scripts.keys().cloned().collect::<Vec<_>>().join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let available = peers(args, &scripts)?;
    if available.peers.is_empty() {
        let why = available.missing.iter().chain(&available.skipped).cloned().collect::<Vec<_>>();
        bail!("there is nothing to compare with: {}", why.join("; "));
    }
    let metadata = pairs("-M/--metadata", &args.metadata)?;
    let revision = args.output.results_flags.revision.as_deref();
    let run = run_info(revision, &metadata, &host, arguments)?;
    let name = format!("peers-{}", jobs[0].data.name());
    let folder = args.output.results_flags.folder(args.output.results.as_deref(), &host, &name)?;
    session.cache = warm(jobs[0].data.folders().as_deref()).name();
    let opened = &jobs[0].opened;
    session.display.line(&format!(
        "{uri}: {} cells, reader of X: {}, page cache {}; results: {}",
        grouped(opened.n_cells),
        opened.reader,
        session.cache,
        folder.path.display()
    ));
    if let Some(servers) = &servers {
        session.display.line(&format!("the data is read {}", servers.describe()));
    }
    let mut comparison = Comparison {
        session,
        rows: Rows::new(folder, run, host),
        repetitions: args.repetitions,
        runs: Vec::new(),
        missing: available.missing,
        skipped: available.skipped,
        settings: Vec::new(),
        copies: Vec::new(),
        done: 0,
    };
    let data = &jobs[0].data;
    let sides = sides(args, &mut comparison, data, &available.peers, servers.as_mut());
    let compared = compare_all(&mut comparison, &jobs, &sides, args.output.quiet);
    comparison.session.display.finish();
    let closed = comparison.close();
    compared?;
    closed
}

/// Returns all sides except our loader on the original experiment, and makes their copies. A side
/// that cannot be prepared is recorded as missing.
fn sides(
    args: &PeersArgs,
    comparison: &mut Comparison,
    data: &Data,
    peers: &[Peer],
    mut servers: Option<&mut LinkServers>,
) -> Vec<Side> {
    // The copies contain all genes, and are not made over the link.
    let data = Data { n_genes: None, link: None, ..data.clone() };
    let preparing = Preparing {
        session: &comparison.session,
        root: &args.copies,
        data: &data,
        over_link: servers.is_some(),
    };
    let (mut sides, mut copies, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for peer in peers {
        match preparing.peer(peer) {
            Ok(prepared) => {
                sides.extend(prepared.sides);
                copies.extend(prepared.copy);
                comparison.skipped.extend(prepared.skipped);
            }
            Err(why) => missing.push(format!("{}: {why:#}", peer.name)),
        }
        if comparison.session.is_stopped() {
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
    if let Some(servers) = &mut servers {
        sides.retain_mut(|side| match side.read_over(servers, &data) {
            Ok(()) => true,
            Err(why) => {
                missing.push(format!("{}: {why:#}", side.label()));
                false
            }
        });
    }
    comparison.copies = copies;
    comparison.settings = sides.iter().filter_map(Side::settings).collect();
    for why in missing {
        comparison.record_missing(&why);
    }
    sides
}

/// Compares the sides that support a work, for each work.
fn compare_all(
    comparison: &mut Comparison,
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
                Some(why) => comparison.skipped.push(format!("{work}: {}: {why}", side.label())),
            }
        }
        plan.push(fit);
    }
    let runs = plan.iter().map(|fit| (fit.len() as u64 + 1) * (comparison.repetitions + 2));
    comparison.session.display.finish();
    comparison.session.display = Display::new(runs.sum(), "runs", quiet);
    jobs.iter().zip(plan).try_for_each(|(job, fit)| comparison.compare(job, &fit))
}

/// Returns the peers' scripts by name: the requested ones, or by default all with a list of
/// packages. Fails if a requested one does not exist.
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
        let name = entry.with_context(cannot)?.file_name();
        // Requirements alone are those of the programs for other kinds of samples.
        if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".peer.py")) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Peers that can run, and the reasons why others cannot.
#[derive(Default)]
struct AvailablePeers {
    peers: Vec<Peer>,
    /// Reasons for peers that were requested by name.
    missing: Vec<String>,
    /// Reasons for peers that were not requested by name.
    skipped: Vec<String>,
}

fn peers(args: &PeersArgs, scripts: &BTreeMap<String, PathBuf>) -> anyhow::Result<AvailablePeers> {
    let environments = pairs("--environment", &args.environment)?;
    let unavailable = pairs("--unavailable", &args.unavailable)?;
    let variables = pairs("--peer-variable", &args.peer_variable)?;
    let mut available = AvailablePeers::default();
    for (name, script) in scripts {
        match (environments.get(name), unavailable.get(name)) {
            (Some(python), _) => available.peers.push(Peer {
                name: name.clone(),
                python: PathBuf::from(python),
                script: script.clone(),
                variables: variables.clone(),
            }),
            (None, Some(why)) => {
                let list = if args.peers.is_empty() {
                    &mut available.skipped
                } else {
                    &mut available.missing
                };
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
    Ok(available)
}

/// Returns the works without duplicates, and opens the data of each. Fails if a work cannot be
/// loaded.
fn jobs(
    args: &PeersArgs,
    session: &Session,
    servers: Option<&mut LinkServers>,
) -> anyhow::Result<Vec<WorkJob>> {
    let mut all = args.data.data().map_err(|error| UsageError::from_error(&error))?;
    if let Some(servers) = servers {
        all = all.over(servers)?;
    }
    all = all.with_names()?;
    let mut jobs: Vec<WorkJob> = Vec::new();
    for work in &args.works {
        if jobs.iter().any(|job| job.work == *work) {
            continue;
        }
        let data = Data {
            reader: ReaderChoice::from(args.reader).name().to_owned(),
            n_genes: work.n_genes,
            obs_columns: args.obs_columns.clone(),
            // The peers do not measure entropy either.
            entropy_of: Some(Vec::new()),
            ..all.clone()
        };
        let point = point(args, work.block, work.form.into());
        let opened = grid_point::check(session, &data, std::slice::from_ref(&point))
            .with_context(|| format!("--work {work}"))?;
        jobs.push(WorkJob { work: *work, data, point, opened });
    }
    Ok(jobs)
}

fn point(args: &PeersArgs, block: BlockSpec, form: BatchForm) -> Point {
    let pipeline = PipelineSpec {
        batch_rows: args.batch_size,
        seed: args.seed,
        prefetch_blocks: args.prefetch_blocks,
        prefetch_batches: args.prefetch_batches,
        ..PipelineSpec::default()
    };
    let spec = LoaderSpec { pipeline, batch_form: form, ..LoaderSpec::default() };
    let point = Point {
        spec,
        n_epochs: args.epochs,
        consumer: args.consumer.clone(),
        memory_limit: args.memory.map(|size| size.as_u64()),
        ..Point::default()
    };
    point.with_blocks(block)
}
