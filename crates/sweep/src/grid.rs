//! The command `sweep`: measures a grid of loader settings, each point in its own process.
//!
//! Rows are written after every epoch.
//!
//! All settings are checked before the first measurement; `rounds` loops over the grid. `args`
//! (with `original_flags`) is the command line, `config` its meaning, `earlier_rows` finds points
//! that need not be measured again, and `summary` formats the tables.

mod args;
mod config;
mod cost;
mod earlier_rows;
mod original_flags;
mod rounds;
mod summary;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use bench_report::HostInfo;
use bench_run::{
    Display, Holder, INTERRUPTED_EXIT_CODE, MemoryLimit, PageCache, Rows, Session, Shard,
    UsageError, grouped, print_message, run_info, warm,
};
use bytesize::ByteSize;
use grid_point::{Conditions, IoLimitInForce, Opened, Point, check, decide_io_limit, versions};

pub(crate) use args::SweepArgs;
pub(crate) use config::Config;
pub(crate) use summary::marked;

use cost::relative_cost;
use rounds::{KeptRows, Sweep};

/// Runs a sweep and prints its table.
///
/// Fails if a setting is invalid or a row cannot be written. A failing point leaves a row and a
/// failing exit code; running out of memory is only recorded.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut config = Config::resolve(args)?;
    let host = HostInfo::gather();
    let mut servers = args.link.servers(&host)?;
    let shard = take_part(args, &mut config)?;
    if config.points.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let name = config.data.name();
    let named = args.results.as_deref();
    let folder = args.results_flags.folder_of_shard(named, &host, &name, shard)?;
    config.data = config.data.or_example(args.quiet)?;
    let io_limit = limit_io(args, &mut config)?;
    if let Some(servers) = &mut servers {
        config.data = config.data.over(servers)?;
    }
    config.data = config.data.with_names()?;
    let n_measurements = config.points.len() as u64 * config.repeat;
    let mut session = Session::begin(Display::new(n_measurements, "points", args.quiet))?;
    let opened = check(&session, &config.data, &config.points)?;
    if session.is_stopped() {
        return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
    }
    let group = io_limit.as_ref().and_then(IoLimitInForce::group_version);
    let limit = args.point_memory_limit.map(|size| MemoryLimit::new(size.as_u64(), group));
    let points = with_digests(&config, &opened, &host, session.program(), limit.as_ref())?;
    session.cache = announce(&session.display, &config, &opened, &folder.path);
    if let Some(servers) = &servers {
        session.display.line(&format!("the data is read {}", servers.describe()));
    }
    if let Some(io_limit) = &io_limit {
        let (limit, why) = (&io_limit.limit, &io_limit.why);
        session.display.line(&format!("reading is held to {limit}, {why}"));
    }
    if let Some(limit) = &limit {
        let size = ByteSize(limit.bytes());
        session.display.line(&format!("memory of a point: {size} at most, by {}", limit.by()));
    }
    let revision = args.results_flags.revision.as_deref();
    let run = run_info(revision, &config.metadata, &host, arguments)?;
    let mut sweep = Sweep {
        session,
        kept: KeptRows {
            rows: Rows::new(folder, run, host),
            data: config.data.info(&opened),
            n_repeats: config.repeat,
            resume: args.resume,
            records: Vec::new(),
        },
        reader: opened.reader,
        points,
        config,
        limit,
        json: args.json,
    };
    sweep.read_earlier_rows()?;
    let looped = sweep.measure_all();
    sweep.session.display.finish();
    let closed = sweep.close();
    looped?;
    closed
}

/// Removes the points of other parts from the configuration, if there are parts, and prints the
/// number that is left.
fn take_part(args: &SweepArgs, config: &mut Config) -> anyhow::Result<Option<Shard>> {
    let shard =
        Shard::of_process(args.shard).map_err(|error| UsageError::from_error(&error.into()))?;
    if let Some(shard) = shard {
        let n_all = config.points.len();
        let points = std::mem::take(&mut config.points);
        config.points = shard.deal(points, relative_cost);
        if !args.quiet {
            print_message!("part {shard} of the grid: {} of {n_all} points", config.points.len());
        }
    }
    Ok(shard)
}

/// Enforces `--io-limit` until the result is dropped, and records it in the data.
fn limit_io(args: &SweepArgs, config: &mut Config) -> anyhow::Result<Option<IoLimitInForce>> {
    let Some(rate) = args.io_limit else { return Ok(None) };
    let in_force = decide_io_limit(rate, args.io_limit_by, args.reader.into(), &config.data.uri)?;
    config.data.io_limit = Some(in_force.limit.clone());
    Ok(Some(in_force))
}

/// Returns the points, each with the digest of everything that its measurement depends on.
fn with_digests(
    config: &Config,
    opened: &Opened,
    host: &HostInfo,
    program: &Path,
    limit: Option<&MemoryLimit>,
) -> anyhow::Result<Vec<(Point, String)>> {
    let conditions = Conditions::new(program, &config.data, opened, host, &versions())?;
    let by = limit.map(MemoryLimit::by);
    let points = config.points.iter();
    points.map(|point| Ok((point.clone(), conditions.digest(point, by)?))).collect()
}

/// Warms the page cache unless points want it cold, prints the plan, and returns the cache state.
fn announce(display: &Display, config: &Config, opened: &Opened, folder: &Path) -> &'static str {
    let (cells, genes) = (grouped(opened.n_cells), grouped(opened.n_genes));
    let rounds = if config.repeat == 1 { String::new() } else { format!(" x {}", config.repeat) };
    let points = match config.points.len() {
        1 => "1 point".to_owned(),
        n => format!("{n} points"),
    };
    display.line(&format!("{}: {cells} cells x {genes} genes, {points}{rounds}", config.data.uri));
    display.line(&match &opened.why_not_native {
        None => format!("reader of X: {}", opened.reader),
        Some(why) => format!("reader of X: {}, because {why}", opened.reader),
    });
    let is_cold = config.points.iter().any(|point| point.cold.is_some());
    let (name, text) = if is_cold {
        // Each point makes its own cache cold and records the result.
        (COLD_ASKED, "cold, the data is put out of it before each epoch".to_owned())
    } else {
        let cache = match &config.data.io_limit {
            Some(limit) if limit.by != Holder::Bucket => PageCache::Unknown(
                "it is left as it is, for cached pages would bypass the limit".to_owned(),
            ),
            _ => warm(config.data.folders().as_deref()),
        };
        let text = match &cache {
            PageCache::Warm { bytes } => {
                format!("warm, {:.1} MB are read through before each run", *bytes as f64 / 1e6)
            }
            PageCache::Unknown(why) => format!("unknown, {why}"),
            PageCache::Dropped | PageCache::Advised => cache.name().to_owned(),
        };
        (cache.name(), text)
    };
    display.line(&format!("page cache: {text}"));
    display.line(&format!("results: {}", folder.display()));
    name
}

/// Cache state in the row of a point that was to be cold but failed earlier.
const COLD_ASKED: &str = "cold";
