//! `read-chunks`: reads all rows of X, chunk by chunk, in tiledbsoma's four ways (table, blockwise
//! table, COO, CSR) and as CSR by our two readers. Each run has a process of its own.
//!
//! A script of `benches/read-chunks` runs tiledbsoma's ways, in a Python environment that the
//! command `cargo xtask read-chunks` makes. The command fails unless every run read the same
//! values: speeds of runs that read different values cannot be compared.

mod args;
mod order;
mod reads;
mod report;
mod rounds;
mod way;

use std::path::PathBuf;
use std::process::ExitCode;

use bench_report::HostInfo;
use bench_run::{
    Display, INTERRUPTED_EXIT_CODE, Session, UsageError, grouped, print_line, print_message, warm,
};
use grid_point::Data;
use soma_io::{Experiment, Matrix, OpenOptions};

pub use args::ReadChunksArgs;
pub use reads::{SUBCOMMAND, serve};

use reads::Chunks;
use rounds::Rounds;
use way::Way;

/// Runs the reads and prints the table. Fails if the command line cannot be executed, a run fails,
/// or runs read different values.
pub fn run(args: &ReadChunksArgs) -> anyhow::Result<ExitCode> {
    let (ways, shuffle) = (args.ways(), args.shuffle());
    if args.soma_chunk_size == 0 {
        return Err(UsageError::new("-c/--soma-chunk-size must be 1 or more").into());
    }
    if args.check {
        if ways.iter().any(|way| way.is_pythons()) {
            print_line!("python");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let python = python(args, &ways)?;
    let data = data(args)?;
    let (x, joinids) = open(&data)?;
    let n_genes = Some(args.n_vars).filter(|n| *n != 0).unwrap_or(u64::MAX).min(x.shape().1);
    let order = order::write(&joinids, args.soma_chunk_size, shuffle, args.seed)?;
    let host = HostInfo::gather();
    let n_runs = ways.len() as u64 * args.repetitions;
    let mut session = Session::begin(Display::new(n_runs, "runs", args.quiet))?;
    session.cache = warm(data.folders().as_deref()).name();
    session.display.line(&format!(
        "{}/{} of {}: {} cells x the first {} of {} genes in chunks of {} cells, {}; page cache {}; {}",
        data.measurement,
        data.layer,
        data.uri,
        grouped(joinids.len() as u64),
        grouped(n_genes),
        grouped(x.shape().1),
        grouped(args.soma_chunk_size),
        shuffle.in_words(),
        session.cache,
        host.host,
    ));
    let (joinids_path, chunk_rows) = (order.path().to_owned(), args.soma_chunk_size);
    let rounds = Rounds {
        session,
        python,
        chunks: Chunks { joinids: joinids_path, chunk_rows, n_genes },
        n_cells: joinids.len() as u64,
        data,
    };
    let runs = rounds.run(&ways, args.repetitions);
    rounds.session.display.finish();
    let runs = runs?;
    let described = report::Described {
        uri: rounds.data.uri.to_string(),
        shuffle: shuffle.name(),
        seed: args.seed,
        chunk_rows: args.soma_chunk_size,
        n_genes,
        n_cells: rounds.n_cells,
        cache: rounds.session.cache,
    };
    if args.json {
        report::print_json(&described, &runs)?;
    } else if !runs.is_empty() {
        print_line!("{}", report::table(&described, &ways, &runs));
    }
    if rounds.session.is_stopped() {
        print_message!("interrupted: {} whole rounds are shown", runs.len() / ways.len().max(1));
        return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns interpreter and script, if a way needs them. Fails if one is missing.
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
    let mut data = args.data.data().map_err(|error| UsageError::from_error(&error))?;
    let sizes = [
        ("soma.init_buffer_bytes", args.soma_buffer_size),
        ("py.init_buffer_bytes", args.py_buffer_size),
    ];
    for (key, size) in sizes {
        if let Some(size) = size {
            data.config.insert(key.to_owned(), size.as_u64().to_string());
        }
    }
    data.or_example(args.quiet)?.with_names()
}

/// Returns X and the joinids of obs.
fn open(data: &Data) -> anyhow::Result<(Matrix, Vec<i64>)> {
    let options = OpenOptions { config: data.config.clone(), ..OpenOptions::default() };
    let experiment = Experiment::open(data.uri.full(), &options)?;
    let x = experiment.measurement(&data.measurement)?.x(&data.layer)?;
    let joinids = order::joinids(&experiment.obs()?, x.shape().0)?;
    Ok((x, joinids))
}
