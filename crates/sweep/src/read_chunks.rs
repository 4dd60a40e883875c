//! `read-chunks`: all rows of X, chunk by chunk, in tiledbsoma's four ways (table, blockwise table, COO, CSR) and as CSR by our two
//! readers, each run in a process of its own; and whether all of them read the same.
//!
//! tiledbsoma's ways are run by a script of `benches/read-chunks` in the Python environment that `cargo xtask read-chunks` makes.
//! Nothing is reported unless every run has read the same elements: a way that is faster for having read something else is not faster.

mod args;
mod elements;
mod order;
mod reads;
mod report;
mod session;
mod way;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::HostInfo;
use soma_io::{Experiment, OpenOptions, SparseNdArray};

pub(crate) use args::ReadChunksArgs;
pub(crate) use reads::{ChunksJob, read};
pub(crate) use session::ChunksRead;
pub(crate) use way::Way;

use crate::config::{self, UsageError};
use crate::display::{Display, grouped};
use crate::job::Data;
use crate::{example, interrupt, page_cache};
use session::Session;

/// Reads and prints the table.
pub(crate) fn run(args: &ReadChunksArgs) -> anyhow::Result<ExitCode> {
    let (ways, shuffle) = (args.ways(), args.shuffle());
    if args.soma_chunk_size == 0 {
        return Err(UsageError::new("-c/--soma-chunk-size must be 1 or more").into());
    }
    if args.check {
        if ways.iter().any(|way| way.is_pythons()) {
            println!("python");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let python = python(args, &ways)?;
    let interrupted = interrupt::watch();
    let data = data(args)?;
    let (x, joinids) = open(&data)?;
    let n_genes = Some(args.n_vars).filter(|n| *n != 0).unwrap_or(u64::MAX).min(x.shape().1);
    let order = order::write(&joinids, args.soma_chunk_size, shuffle, args.rng_seed)?;
    let host = HostInfo::gather();
    let cache = page_cache::warm(&data).name();
    let display = Display::new(ways.len() as u64 * args.repetitions, "runs", args.quiet);
    display.line(&format!(
        "{}/{} of {}: {} cells x the first {} of {} genes in chunks of {} cells, {}; page cache {cache}; {}",
        data.measurement,
        data.layer,
        data.uri,
        grouped(joinids.len() as u64),
        grouped(n_genes),
        grouped(x.shape().1),
        grouped(args.soma_chunk_size),
        shuffle.told(),
        host.host,
    ));
    let session = Session {
        program: std::env::current_exe()
            .context("cannot find the program itself to start it again")?,
        python,
        job: ChunksJob {
            joinids: order.path().to_owned(),
            chunk_rows: args.soma_chunk_size,
            n_genes,
        },
        n_cells: joinids.len() as u64,
        data,
        display,
        interrupted,
    };
    let runs = session.rounds(&ways, args.repetitions);
    session.display.finish();
    let runs = runs?;
    let described = report::Described {
        uri: session.data.uri.to_string(),
        shuffle: shuffle.name(),
        seed: args.rng_seed,
        chunk_rows: args.soma_chunk_size,
        n_genes,
        n_cells: session.n_cells,
        cache,
    };
    if args.json {
        report::print_json(&described, &runs)?;
    } else if !runs.is_empty() {
        println!("{}", report::table(&described, &ways, &runs));
    }
    if session.stopped() {
        eprintln!("interrupted: {} whole rounds are told", runs.len() / ways.len().max(1));
        return Ok(ExitCode::from(interrupt::EXIT_CODE));
    }
    Ok(ExitCode::SUCCESS)
}

/// Interpreter and script, where a way needs them.
fn python(args: &ReadChunksArgs, ways: &[Way]) -> anyhow::Result<Option<(PathBuf, PathBuf)>> {
    let Some(way) = ways.iter().find(|way| way.is_pythons()) else { return Ok(None) };
    let Some(python) = &args.python else {
        return Err(UsageError::new(format!(
            "--ways {way} needs Python tiledbsoma: start it by `cargo xtask read-chunks`, which makes its environment"
        ))
        .into());
    };
    if !args.script.is_file() {
        return Err(UsageError::new(format!("there is no script {}", args.script.display())).into());
    }
    Ok(Some((python.clone(), args.script.clone())))
}

fn data(args: &ReadChunksArgs) -> anyhow::Result<Data> {
    let mut config = config::pairs("--config", &args.config)
        .map_err(|error| UsageError::new(format!("{error:#}")))?;
    let sizes = [
        ("soma.init_buffer_bytes", args.soma_buffer_size),
        ("py.init_buffer_bytes", args.py_buffer_size),
    ];
    for (key, size) in sizes {
        if let Some(size) = size {
            config.insert(key.to_owned(), size.as_u64().to_string());
        }
    }
    let uri = match &args.uri {
        Some(uri) => uri.clone(),
        None => example::ensure(args.quiet)?
            .to_str()
            .context("the path of the cache is not UTF-8")?
            .into(),
    };
    Ok(Data {
        uri,
        config,
        measurement: args.measurement.clone(),
        layer: args.layer.clone(),
        ..Data::default()
    })
}

/// X, and the joinids of obs.
fn open(data: &Data) -> anyhow::Result<(SparseNdArray, Vec<i64>)> {
    let options = OpenOptions { config: data.config.clone(), ..OpenOptions::default() };
    let experiment = Experiment::open(data.uri.full(), &options)?;
    let x = experiment.measurement(&data.measurement)?.x(&data.layer)?;
    let joinids = order::joinids(&experiment.obs()?, x.shape().0)?;
    Ok((x, joinids))
}
