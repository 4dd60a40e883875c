//! The loop over the grid. Everything that can be wrong is looked at before the first point; after that, what was measured is kept,
//! whatever happens.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, bail};
use bench_report::{
    DataInfo, EpochRecord, HostInfo, Measured, RunInfo, Status, append, check_folder, write_report,
};
use jiff::Timestamp;

use crate::args::SweepArgs;
use crate::config::{self, Config};
use crate::display::{Display, grouped};
use crate::io_limit::{self, Decided, Holder};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::page_cache::{self, PageCache};
use crate::process::{self, Ended, Failure};
use crate::{example, interrupt, point, results_folder, summary};

/// Runs a sweep and prints its table.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut config = Config::resolve(args)?;
    let interrupted = interrupt::watch();
    let host = HostInfo::gather();
    let mut folder = Folder::make(args, &config, &host)?;
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
    let cache = match &config.data.io_limit {
        Some(limit) if limit.by != Holder::Bucket => {
            PageCache::Unknown("it is left as it is, for what it has is free of the limit".into())
        }
        _ => page_cache::warm(&config.data.uri, &config.data.measurement, &config.data.layer),
    };
    let display = Display::new(config.points.len() as u64, "points", args.quiet);
    announce(&display, &config, &opened, &cache, &folder.path);
    if let Some(held) = &held {
        display.line(&format!("reading is held to {}, {}", held.limit, held.why));
    }
    let mut sweep = Sweep {
        program,
        run: run_info(args.revision.as_deref(), &config.metadata, &host, arguments)?,
        host,
        data: data_info(&config.data, &opened),
        config,
        cache: cache.name(),
        folder: &mut folder,
        records: Vec::new(),
        display,
        interrupted,
    };
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

/// The folder of the results. One that has a name of our own and no row yet is removed again.
struct Folder {
    path: PathBuf,
    to_remove: bool,
}

impl Folder {
    fn make(args: &SweepArgs, config: &Config, host: &HostInfo) -> anyhow::Result<Self> {
        let (path, to_remove) = if let Some(path) = &args.results {
            (path.clone(), false)
        } else {
            let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
            let uri = Some(config.data.uri.as_str()).filter(|uri| !uri.is_empty());
            let data = uri.map_or_else(|| "example".to_owned(), results_folder::data_name);
            (results_folder::make(&args.results_root, &date, &host.hostname, &data)?, true)
        };
        let folder = Self { path, to_remove };
        check_folder(&folder.path).context("nothing was measured")?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.to_remove {
            // An empty folder that stays does no harm.
            let _removed = std::fs::remove_dir_all(&self.path);
        }
    }
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
        uri: shown_uri(&data.uri, std::env::var("HOME").ok().as_deref()),
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
        metadata: metadata.clone(),
    })
}

fn announce(display: &Display, config: &Config, opened: &Opened, cache: &PageCache, folder: &Path) {
    let (cells, genes) = (grouped(opened.n_cells), grouped(opened.n_genes));
    display.line(&format!(
        "{}: {cells} cells x {genes} genes, {} points",
        config.data.uri,
        config.points.len()
    ));
    display.line(&match &opened.why_not_native {
        None => format!("reader of X: {}", opened.reader),
        Some(why) => format!("reader of X: {}, because {why}", opened.reader),
    });
    display.line(&match cache {
        PageCache::Warm { bytes } => {
            format!("page cache: warm, {:.1} MB were read through once", *bytes as f64 / 1e6)
        }
        PageCache::Unknown(why) => format!("page cache: unknown, {why}"),
    });
    display.line(&format!("results: {}", folder.display()));
}

/// A sweep that has begun.
struct Sweep<'a> {
    program: PathBuf,
    config: Config,
    run: RunInfo,
    host: HostInfo,
    data: DataInfo,
    cache: &'static str,
    folder: &'a mut Folder,
    records: Vec<EpochRecord>,
    display: Display,
    interrupted: &'a AtomicBool,
}

impl Sweep<'_> {
    fn measure_all(&mut self) -> anyhow::Result<()> {
        let points = self.config.points.clone();
        for (idx, point) in points.iter().enumerate() {
            self.display.now(point.to_string());
            let before = self.records.len();
            match self.measure(point)? {
                Ended::Done { .. } => {}
                Ended::Failed(failure) => {
                    // One that dies on its way out, after its last epoch, has measured all the same.
                    let measured = (self.records.len() - before) as u64;
                    if measured < point.n_epochs {
                        self.keep_failure(point, &failure)?;
                    }
                }
                Ended::Interrupted => break,
            }
            self.display.position(idx as u64 + 1);
        }
        Ok(())
    }

    fn measure(&mut self, point: &Point) -> anyhow::Result<Ended> {
        let job = Job {
            data: self.config.data.clone(),
            cache: self.cache.to_owned(),
            task: Task::Measure(point.clone()),
        };
        let (command, interrupted) = (process::point_command(&self.program), self.interrupted);
        let mut started = Instant::now();
        process::run(command, &job, interrupted, &mut |event| {
            match event {
                Event::Opened(_) => started = Instant::now(),
                Event::Progress { n_rows, of_rows } => {
                    let rate = n_rows as f64 / started.elapsed().as_secs_f64();
                    let share = 100.0 * n_rows as f64 / of_rows.max(1) as f64;
                    self.display
                        .now(format!("{point}: {share:.0} %, {} samples/s", grouped(rate as u64)));
                }
                Event::Epoch(record) => {
                    started = Instant::now();
                    self.keep(*record)?;
                }
                Event::Warning { message } => {
                    self.display.line(&format!("warning: {point}: {message}"));
                }
                Event::PeerEpoch(_)
                | Event::Delivered(_)
                | Event::Read { .. }
                | Event::ChunksRead(_)
                | Event::Failed { .. }
                | Event::Done => {}
            }
            Ok(())
        })
    }

    /// Completes a record, writes it, and says it. What cannot be written ends the sweep: measuring on would lose the rest too.
    fn keep(&mut self, mut record: EpochRecord) -> anyhow::Result<()> {
        record.run = self.run.clone();
        record.host = self.host.clone();
        record.data = self.data.clone();
        append(&self.folder.path, std::slice::from_ref(&record)).with_context(|| {
            format!("the sweep ends; {} rows measured before are kept", self.records.len())
        })?;
        self.folder.to_remove = false;
        self.display.line(&summary::told(&record));
        self.records.push(record);
        Ok(())
    }

    fn keep_failure(&mut self, point: &Point, failure: &Failure) -> anyhow::Result<()> {
        let mut measured = Measured::failed(failure.status, failure.message.clone());
        measured.max_mem = failure.peak_bytes;
        let point = point::as_asked(point, &self.config.data, self.cache);
        self.keep(EpochRecord {
            point,
            measured,
            versions: point::versions(),
            ..EpochRecord::default()
        })
    }

    /// The table, the picture and the page of what was measured, however far it came.
    fn close(&self) -> anyhow::Result<ExitCode> {
        let interrupted = self.interrupted.load(Ordering::Relaxed);
        if self.records.is_empty() {
            eprintln!("nothing was measured");
            return Ok(if interrupted {
                ExitCode::from(interrupt::EXIT_CODE)
            } else {
                ExitCode::FAILURE
            });
        }
        println!("{}", summary::table(&self.records));
        let files = write_report(&self.folder.path, &summary::report_options(&self.config.points))?;
        for path in [
            &self.folder.path.join(bench_report::EPOCHS_FILE),
            &files.picture,
            &files.page,
            &files.readme,
        ] {
            println!("{}", path.display());
        }
        if interrupted {
            eprintln!(
                "interrupted: {} rows are kept, the picture and the page show them",
                self.records.len()
            );
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
        }
        Ok(self.verdict())
    }

    /// That memory runs out is a finding; anything else that fails is a failure.
    fn verdict(&self) -> ExitCode {
        let count = |wanted: &dyn Fn(Status) -> bool| {
            self.records.iter().filter(|record| wanted(record.measured.status)).count()
        };
        let ok = count(&|status| status == Status::Ok);
        let broken = count(&|status| matches!(status, Status::Crashed | Status::Error));
        if broken != 0 {
            eprintln!(
                "error: {broken} of {} points failed; the table says why",
                self.config.points.len()
            );
        }
        if ok == 0 || broken != 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

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
