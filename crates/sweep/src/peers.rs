//! `peers`: our loader and others side by side on the same data: first whether they deliver the same, then how fast and how small,
//! in turn, each run in a process of its own.
//!
//! A peer is a script of `benches/peers` in a Python environment that `cargo xtask peers` makes. Whatever happens to one, the rest
//! goes on and what was measured is kept; a comparison that could not be made is said, and makes the exit code a failure.

mod args;
mod compare;
mod peer;
mod report;
mod session;
mod tally;
mod work;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow, bail};
use bench_report::{HostInfo, check_folder};
use loader::Method;

pub(crate) use args::PeersArgs;
pub(crate) use peer::PeerEpoch;
pub(crate) use tally::{Delivered, Tally};

use crate::config::{self, UsageError};
use crate::display::{Display, grouped};
use crate::job::{Data, Point, PointTransform};
use crate::{interrupt, page_cache, results_folder, sweep_command};
use peer::Peer;
use session::{Session, WorkJob};
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
    let metadata = config::pairs("-M/--metadata", &args.metadata)?;
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
        consumer: args.consumer.clone(),
        memory_limit: args.memory.map(|size| size.as_u64()),
        keep_decoded: None,
        process_limit: None,
        cold: None,
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
