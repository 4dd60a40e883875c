//! What comes before the loop over the grid: everything that can be wrong is looked at here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use bench_report::{DataInfo, HostInfo, RunInfo};
use bytesize::ByteSize;
use jiff::Timestamp;

use crate::args::SweepArgs;
use crate::conditions::Conditions;
use crate::config::{self, Config};
use crate::display::{Display, grouped};
use crate::io_limit::{self, Decided, Holder};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::memory_limit::MemoryLimit;
use crate::page_cache::{self, PageCache};
use crate::process::{self, Ended};
use crate::sweep_loop::Sweep;
use crate::{example, interrupt, point_settings, results_folder, secrets};

/// Runs a sweep and prints its table.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut config = Config::resolve(args)?;
    let interrupted = interrupt::watch();
    let host = HostInfo::gather();
    let data = if config.data.uri.is_empty() {
        "example".to_owned()
    } else {
        results_folder::data_name(&config.data.uri.to_string())
    };
    let mut folder = args.of_results.folder(args.results.as_deref(), &host, &data)?;
    if config.data.uri.is_empty() {
        let example = example::ensure(args.quiet)?;
        config.data.uri = example.to_str().context("the path of the cache is not UTF-8")?.into();
    }
    let held = hold(args, &mut config)?;
    let program =
        std::env::current_exe().context("cannot find the program itself to start it again")?;
    let opened = check(&program, &config.data, &config.points, interrupted)?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(ExitCode::from(interrupt::EXIT_CODE));
    }
    let grouped = held.as_ref().and_then(Decided::group_version);
    let limit = args.point_memory_limit.map(|size| MemoryLimit::new(size.as_u64(), grouped));
    let points = conditioned(&config, &opened, &host, &program, limit.as_ref())?;
    let n_measurements = points.len() as u64 * config.repeat;
    let display = Display::new(n_measurements, "points", args.quiet);
    let cache = announce(&display, &config, &opened, &folder.path);
    if let Some(held) = &held {
        display.line(&format!("reading is held to {}, {}", held.limit, held.why));
    }
    if let Some(limit) = &limit {
        let size = ByteSize(limit.bytes());
        display.line(&format!("memory of a point: {size} at most, by {}", limit.by()));
    }
    let mut sweep = Sweep {
        program,
        run: run_info(args.of_results.revision.as_deref(), &config.metadata, &host, arguments)?,
        host,
        data: data_info(&config.data, &opened),
        reader: opened.reader,
        points,
        config,
        limit,
        cache,
        folder: &mut folder,
        resume: args.resume,
        json: args.json,
        records: Vec::new(),
        display,
        interrupted,
    };
    sweep.go_on()?;
    let looped = sweep.measure_all();
    sweep.display.finish();
    let closed = sweep.close();
    looped?;
    closed
}

/// What `--io-limit` comes to, in force as long as it is kept; the processes are told of it.
fn hold(args: &SweepArgs, config: &mut Config) -> anyhow::Result<Option<Decided>> {
    let Some(rate) = args.io_limit else { return Ok(None) };
    let reader = config::reader(args.reader);
    let held = io_limit::decide(rate, args.io_limit_by, reader, &config.data.uri)?;
    config.data.io_limit = Some(held.limit.clone());
    Ok(Some(held))
}

/// The points, each with the digest of all that its measurement depends on.
fn conditioned(
    config: &Config,
    opened: &Opened,
    host: &HostInfo,
    program: &Path,
    limit: Option<&MemoryLimit>,
) -> anyhow::Result<Vec<(Point, String)>> {
    let versions = point_settings::versions();
    let conditions = Conditions::new(program, &config.data, opened, host, &versions)?;
    let by = limit.map(MemoryLimit::by);
    let points = config.points.iter();
    points.map(|point| Ok((point.clone(), conditions.of(point, by)?))).collect()
}

/// Opens the data once, in a process of its own, and sees whether every point can be loaded.
pub(crate) fn check(
    program: &Path,
    data: &Data,
    points: &[Point],
    interrupted: &AtomicBool,
) -> anyhow::Result<Opened> {
    let job = Job { data: data.clone(), cache: String::new(), task: Task::Check(points.to_vec()) };
    let mut found = None;
    let ended = process::run(process::point_command(program), &job, interrupted, &mut |event| {
        if let Event::Opened(opened) = event {
            found = Some(opened);
        }
        Ok(())
    })?;
    match (ended, found) {
        (Ended::Failed(failure), _) => bail!(failure.message),
        (Ended::Done { .. }, None) => bail!("{} could not be opened", data.uri),
        (_, found) => Ok(found.unwrap_or_default()),
    }
}

pub(crate) fn data_info(data: &Data, opened: &Opened) -> DataInfo {
    DataInfo {
        uri: shown_uri(&data.uri.to_string(), std::env::var("HOME").ok().as_deref()),
        layout: None,
        measurement: Some(data.measurement.clone()),
        layer: Some(data.layer.clone()),
        obs_filter: data.obs_filter.clone(),
        var_filter: data.var_filter.clone(),
        total_rows: opened.n_cells,
        n_cols: opened.n_genes,
        total_nnz: Some(opened.total_nnz),
    }
}

/// Results are shown around; where the user's home lies is of no use to others.
fn shown_uri(uri: &str, home: Option<&str>) -> String {
    let below = home
        .filter(|home| 1 < home.len())
        .and_then(|home| uri.strip_prefix(home.trim_end_matches('/')));
    match below.filter(|below| below.starts_with('/')) {
        Some(below) => format!("~{below}"),
        None => uri.to_owned(),
    }
}

pub(crate) fn run_info(
    revision: Option<&str>,
    metadata: &BTreeMap<String, String>,
    host: &HostInfo,
    arguments: &[OsString],
) -> anyhow::Result<RunInfo> {
    let start = Timestamp::now();
    let (sha, git_dirty) = config::revision(revision);
    Ok(RunInfo {
        run_id: format!(
            "{}-{}-{}",
            start.strftime("%Y%m%dT%H%M%SZ"),
            host.hostname,
            std::process::id()
        ),
        run_start_dt: start,
        command: config::command_line(
            arguments.iter().map(|argument| argument.to_string_lossy().into_owned()),
        )?,
        sha,
        git_dirty,
        metadata: secrets::noted(metadata),
    })
}

/// Says what will be measured, having warmed the page cache where it is to be warm; its state as it is noted.
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
    let (name, told) = if is_cold {
        // Each point sees to it itself, and says what came of it.
        (COLD_ASKED, "cold, the data is put out of it before each epoch".to_owned())
    } else {
        let cache = match &config.data.io_limit {
            Some(limit) if limit.by != Holder::Bucket => PageCache::Unknown(
                "it is left as it is, for what it has is free of the limit".to_owned(),
            ),
            _ => page_cache::warm(&config.data),
        };
        let told = match &cache {
            PageCache::Warm { bytes } => {
                format!("warm, {:.1} MB are read through before each run", *bytes as f64 / 1e6)
            }
            PageCache::Unknown(why) => format!("unknown, {why}"),
            PageCache::Dropped | PageCache::Advised => cache.name().to_owned(),
        };
        (cache.name(), told)
    };
    display.line(&format!("page cache: {told}"));
    display.line(&format!("results: {}", folder.display()));
    name
}

/// The page cache of a point that was to be cold and did not come so far.
const COLD_ASKED: &str = "cold";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_not_shown() {
        assert_eq!(shown_uri("/home/ada/.cache/x", Some("/home/ada")), "~/.cache/x");
        assert_eq!(shown_uri("/home/adam/x", Some("/home/ada")), "/home/adam/x");
        assert_eq!(shown_uri("s3://b/x", Some("/home/ada")), "s3://b/x");
        assert_eq!(shown_uri("/x", Some("/")), "/x");
        assert_eq!(shown_uri("/x", None), "/x");
    }
}
