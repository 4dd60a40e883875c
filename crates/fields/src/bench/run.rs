//! The command's side of a measurement: runs points in processes of their own and keeps the rows.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{DataInfo, EpochRecord, GridPoint, HostInfo, Measured, Status};
use bench_run::{
    Address, Cold, Display, Ended, INTERRUPTED_EXIT_CODE, LinkServers, Order, PageCache,
    ProcessSpec, ResultsFlags, Rows, Session, cool, data_name, grouped, run_info, shown_uri, warm,
};
use clap::Args;
use serde::de::DeserializeOwned;

use super::SUBCOMMAND;
use super::far::{FarAccess, FarFlags};
use super::point::{Point, Strategy};
use super::task::{FieldAnswer, FieldData, FieldTask};

/// Flags of every command that measures fields: the data, and where results go.
#[derive(Debug, Args)]
pub(crate) struct DataFlags {
    /// The store: a folder with Zarr arrays, as `generate` writes it
    pub(crate) uri: Address,
    /// Arrays of a sample, separated by commas
    #[arg(long, value_name = "ARRAYS", value_delimiter = ',', default_value = "inputs,targets")]
    pub(crate) arrays: Vec<String>,
    /// Drop the data from the page cache before each process; else it is read into it first
    #[arg(long)]
    pub(crate) cold: bool,
    /// Seed of the order
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder for the results [default: a new one below results/]
    #[arg(short = 'd', long, value_name = "FOLDER")]
    pub(crate) results: Option<PathBuf>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) results_flags: ResultsFlags,
}

impl DataFlags {
    /// The data, read over the link or through the cache of `far`.
    pub(crate) fn data(&self, far: FarAccess) -> FieldData {
        FieldData { uri: self.uri.full().to_owned(), arrays: self.arrays.clone(), far }
    }

    /// The data, read where it is.
    pub(crate) fn near_data(&self) -> FieldData {
        self.data(FarAccess::default())
    }
}

/// Flags of the commands that measure our loader alone.
#[derive(Debug, Args)]
pub(crate) struct BenchFlags {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    #[command(flatten)]
    far: FarFlags,
    /// Batches after which an epoch is cut off; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub(crate) max_batches: u64,
    /// Times to measure each point, in rounds over all points, each in a new process
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u64,
}

impl BenchFlags {
    /// Begins the measurement of `points`.
    pub(crate) fn begin(
        &self,
        points: &[Point],
        arguments: &[OsString],
    ) -> anyhow::Result<Measuring> {
        let first = points.first().context("there is no point to measure")?;
        let n_runs = points.len() as u64 * self.repeat;
        let host = HostInfo::gather();
        let (link, far) = self.far.begin(self.data.uri.full(), &host)?;
        let data = (self.data.data(far), host);
        let mut measuring =
            Measuring::begin(&self.data, data, first, (n_runs, "points"), arguments)?;
        measuring.link = link;
        Ok(measuring)
    }
}

/// A process to measure.
pub(crate) struct Job {
    /// Name in the progress.
    pub(crate) name: String,
    /// The settings, for the record of a failure.
    pub(crate) recorded: GridPoint,
    /// Records that it should make.
    pub(crate) n_records: usize,
    /// Number of the round.
    pub(crate) repeat: u64,
}

/// A running measurement.
pub(crate) struct Measuring {
    pub(crate) session: Session,
    rows: Rows,
    data: FieldData,
    info: DataInfo,
    /// Bytes of a sample in a batch.
    sample_bytes: u64,
    is_cold: bool,
    /// The server that the data is read from; it ends with the measurement.
    link: Option<LinkServers>,
    pub(crate) records: Vec<EpochRecord>,
}

impl Measuring {
    /// Opens the data, warms the page cache unless it is to be cold, and makes the results folder.
    /// `of` is the number of measurements and their name, for the progress. The host is gathered
    /// before the server of a link takes cores.
    pub(crate) fn begin(
        flags: &DataFlags,
        (data, host): (FieldData, HostInfo),
        first: &Point,
        of: (u64, &str),
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
        let mut session = Session::begin(Display::new(of.0, of.1, flags.quiet))?;
        let (samples, validation) = data.parts(&data.storage()?, first)?;
        let n_validation = validation.map_or(0, |samples| samples.n_samples());
        let n_samples = samples.n_samples() + n_validation;
        let sample_bytes = samples.sample_bytes();
        let info = DataInfo {
            uri: shown_uri(&flags.uri.to_string()),
            total_rows: n_samples,
            n_cols: sample_bytes / size_of::<f32>() as u64,
            ..DataInfo::default()
        };
        session.cache = if flags.cold { "cold" } else { warmed(&session, &data) };
        let name = data_name(&flags.uri.to_string());
        let folder = flags.results_flags.folder(flags.results.as_deref(), &host, &name)?;
        session.display.line(&format!(
            "{name}: {} samples of {:.1} MB, {} {}; results: {}",
            grouped(n_samples),
            sample_bytes as f64 / 1e6,
            of.0,
            of.1,
            folder.path.display()
        ));
        let revision = flags.results_flags.revision.as_deref();
        let run = run_info(revision, &BTreeMap::new(), &host, arguments)?;
        let rows = Rows::new(folder, run, host);
        let records = Vec::new();
        let (is_cold, link) = (flags.cold, None);
        Ok(Self { session, rows, data, info, sample_bytes, is_cold, link, records })
    }

    /// Measures all points, round by round, so that changes over time affect all points alike.
    pub(crate) fn measure_all(&mut self, points: &[Point], n_repeats: u64) -> anyhow::Result<()> {
        let mut n_done = 0;
        for repeat in 0..n_repeats {
            for point in points {
                if self.measure(point, repeat)?.is_break() {
                    return Ok(());
                }
                n_done += 1;
                self.session.display.position(n_done);
            }
        }
        self.session.display.finish();
        Ok(())
    }

    /// Measures a point in a process of its own. Breaks after Ctrl-C.
    pub(crate) fn measure(
        &mut self,
        point: &Point,
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let cache = self.page_cache();
        let task = FieldTask { data: self.data.clone(), point: point.clone() };
        let order = Order { cache: cache.to_owned(), task };
        let command = self.session.command(SUBCOMMAND);
        let process = ProcessSpec::new(command, &order, self.data.secrets())?
            .over(self.data.far.link().cloned());
        let job = Job {
            name: point.to_string(),
            recorded: self.data.recorded(point, cache),
            n_records: point.n_records(),
            repeat,
        };
        self.run(&job, process, |record: FieldAnswer| Some(*record))
    }

    /// Runs a process and keeps the records of its answers; a failure is a record, too. Breaks
    /// after Ctrl-C.
    pub(crate) fn run<Answer: DeserializeOwned>(
        &mut self,
        job: &Job,
        process: ProcessSpec<'_>,
        record_of: impl Fn(Answer) -> Option<EpochRecord>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let (rows, info, records) = (&mut self.rows, &self.info, &mut self.records);
        let (session, sample_bytes) = (&self.session, self.sample_bytes);
        let mut n_kept = 0;
        let mut keep = |mut record: EpochRecord| {
            record.data = info.clone();
            record.measured.repeat = Some(job.repeat);
            rows.keep(&mut record)?;
            session.display.line(&line(&job.name, &record, sample_bytes));
            records.push(record);
            anyhow::Ok(())
        };
        let ended = session.run(&job.name, process, &mut |answer: Answer| {
            let Some(record) = record_of(answer) else { return Ok(()) };
            n_kept += 1;
            keep(record)
        })?;
        let missing = match ended {
            Ended::Interrupted => return Ok(ControlFlow::Break(())),
            Ended::Failed(failure) => failure.measured(),
            Ended::Done { .. } => Measured::failed(Status::Error, "it reported no result"),
        };
        if n_kept < job.n_records {
            let point = job.recorded.clone();
            keep(EpochRecord { point, measured: missing, ..EpochRecord::default() })?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Brings the page cache into its state before a process; returns the state's name.
    pub(crate) fn page_cache(&self) -> &'static str {
        if !self.is_cold {
            return self.session.cache;
        }
        let state = cool(self.data.folders().as_deref(), Cold::Auto);
        if let PageCache::Unknown(why) = &state {
            self.session.display.line(&format!("the page cache is not cold: {why}"));
        }
        state.name()
    }

    /// The folder of the results.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.rows.folder.path
    }

    /// Bytes of a sample in a batch.
    pub(crate) fn sample_bytes(&self) -> u64 {
        self.sample_bytes
    }

    /// The exit code: failure if a point failed.
    pub(crate) fn verdict(&self) -> ExitCode {
        self.verdict_unless(false)
    }

    /// The exit code: failure if a point or something else failed.
    pub(crate) fn verdict_unless(&self, failed: bool) -> ExitCode {
        if self.session.is_stopped() {
            return ExitCode::from(INTERRUPTED_EXIT_CODE);
        }
        let is_ok = |record: &EpochRecord| record.measured.status == Status::Ok;
        if !failed && !self.records.is_empty() && self.records.iter().all(is_ok) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Reads the data into the page cache; returns the state's name.
fn warmed(session: &Session, data: &FieldData) -> &'static str {
    let state = warm(data.folders().as_deref());
    if let PageCache::Unknown(why) = &state {
        session.display.line(&format!("the page cache is not warm: {why}"));
    }
    state.name()
}

/// A record as a line.
fn line(name: &str, record: &EpochRecord, sample_bytes: u64) -> String {
    let measured = &record.measured;
    let Some(rate) = megabytes_per_second(record, sample_bytes) else {
        let message = measured.message.as_deref().unwrap_or_default();
        return format!("{name}: {}: {message}", measured.status.name());
    };
    let per_batch = measured.elapsed.unwrap_or_default() / measured.n_batches.unwrap_or(1) as f64;
    let peak = measured
        .max_mem
        .map_or_else(String::new, |bytes| format!(", {:.2} GB peak", bytes as f64 / 1e9));
    format!("{name}: {} MB/s, {per_batch:.3} s a batch{peak}", grouped(rate.round() as u64))
}

/// Megabytes (10^6 bytes) of samples delivered per second, the first batch included; for a plain
/// read, of files read.
pub(crate) fn megabytes_per_second(record: &EpochRecord, sample_bytes: u64) -> Option<f64> {
    let Measured { n_rows, elapsed, bytes_read, .. } = &record.measured;
    let n_bytes = if record.point.chunk_method == Strategy::PlainRead.name() {
        (*bytes_read)?
    } else {
        (*n_rows)? * sample_bytes
    };
    elapsed.filter(|secs| *secs > 0.0).map(|secs| n_bytes as f64 / secs / 1e6)
}
