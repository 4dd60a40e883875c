//! The command's side of a measurement: runs tasks in processes of their own and keeps the rows.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{DataInfo, EpochRecord, GridPoint, HostInfo, Measured, Status};
use bench_run::{
    Cold, Display, Ended, INTERRUPTED_EXIT_CODE, Order, PageCache, ProcessSpec, ResultsFlags, Rows,
    Session, data_name, grouped, run_info, shown_uri, warm,
};
use clap::Args;
use images::Form;
use serde::de::DeserializeOwned;

use super::SUBCOMMAND;
use super::floors::Floor;
use super::point::Point;
use super::task::{CubeAnswer, CubeData, CubeTask, CubeWork};

/// Flags of every command that measures cubes: the data, and where results go.
#[derive(Debug, Args)]
pub(crate) struct DataFlags {
    /// The data set: a folder as `generate` writes it
    pub(crate) data: PathBuf,
    /// Leave the data in the page cache, and read it into it first
    #[arg(long, conflicts_with = "cold")]
    warm: bool,
    /// How the page cache is made cold before each epoch
    #[arg(long, value_name = "HOW", default_value = "auto")]
    cold: Cold,
    /// Seed of the order and of augmentation; each repetition has the next one
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder for the results [default: a new one below results/]
    #[arg(short = 'd', long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
    #[command(flatten)]
    results_flags: ResultsFlags,
}

impl DataFlags {
    /// The data.
    pub(crate) fn data(&self) -> CubeData {
        CubeData { folder: std::path::absolute(&self.data).unwrap_or_else(|_| self.data.clone()) }
    }

    /// How the page cache is made cold, if it is.
    pub(crate) fn cold(&self) -> Option<Cold> {
        (!self.warm).then_some(self.cold)
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

/// A record, and which of the command's points it belongs to; floors and readers have none.
#[derive(Debug)]
pub(crate) struct MeasuredEpoch {
    pub(crate) point: Option<usize>,
    pub(crate) record: EpochRecord,
}

/// A running measurement.
pub(crate) struct Measuring {
    pub(crate) session: Session,
    rows: Rows,
    data: CubeData,
    info: DataInfo,
    pub(crate) records: Vec<MeasuredEpoch>,
}

impl Measuring {
    /// Opens the data and makes the results folder. Reads the files of `forms` into the page cache
    /// unless reads are to be cold. `of` says how many of what are measured, for the progress.
    pub(crate) fn begin(
        flags: &DataFlags,
        forms: &[Form],
        of: (u64, &str),
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
        let mut session = Session::begin(Display::new(of.0, of.1, flags.quiet))?;
        let data = flags.data();
        let set = data
            .open(None, false)
            .with_context(|| format!("cannot open {}", data.path().display()))?;
        let uri = data.path().to_string_lossy().into_owned();
        let info = DataInfo {
            uri: shown_uri(&uri),
            total_rows: set.n_images() as u64,
            n_cols: set.shape().iter().product::<usize>() as u64,
            ..DataInfo::default()
        };
        session.cache = "unknown";
        if flags.cold().is_none() {
            let mut folders: Vec<PathBuf> =
                forms.iter().flat_map(|form| data.folders(*form)).collect();
            folders.sort();
            folders.dedup();
            let state = warm(Some(&folders));
            if let PageCache::Unknown(why) = &state {
                session.display.line(&format!("the page cache is not warm: {why}"));
            }
            session.cache = state.name();
        }
        let host = HostInfo::gather();
        let name = data_name(&uri);
        let folder = flags.results_flags.folder(flags.results.as_deref(), &host, &name)?;
        session.display.line(&format!(
            "{name}: {} cubes of {:?}, {} {}; results: {}",
            grouped(info.total_rows),
            set.shape(),
            of.0,
            of.1,
            folder.path.display()
        ));
        let revision = flags.results_flags.revision.as_deref();
        let run = run_info(revision, &BTreeMap::new(), &host, arguments)?;
        Ok(Self { session, rows: Rows::new(folder, run, host), data, info, records: Vec::new() })
    }

    /// Measures a point in a process of its own. Breaks after Ctrl-C.
    pub(crate) fn measure(
        &mut self,
        (idx, point): (usize, &Point),
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let job = Job {
            name: point.to_string(),
            recorded: point.recorded(self.session.cache),
            n_records: point.epochs as usize,
            repeat,
        };
        self.run_own(CubeWork::Load(Box::new(point.clone())), Some(idx), &job)
    }

    /// Measures a floor in a process of its own. Breaks after Ctrl-C.
    pub(crate) fn measure_floor(&mut self, floor: Floor) -> anyhow::Result<ControlFlow<()>> {
        let job = Job {
            name: floor.name(),
            recorded: floor.recorded(self.session.cache),
            n_records: 1,
            repeat: 0,
        };
        self.run_own(CubeWork::Floor(floor), None, &job)
    }

    fn run_own(
        &mut self,
        work: CubeWork,
        point: Option<usize>,
        job: &Job,
    ) -> anyhow::Result<ControlFlow<()>> {
        let task = CubeTask { data: self.data.clone(), work };
        let order = Order { cache: self.session.cache.to_owned(), task };
        let command = self.session.command(SUBCOMMAND);
        let process = ProcessSpec::new(command, &order, self.data.secrets())?;
        self.run(job, (point, process), |record: CubeAnswer| Some(*record))
    }

    /// Runs a process and keeps the records of its answers when it has ended, with the memory of
    /// all its processes; a failure is a record, too. Breaks after Ctrl-C.
    pub(crate) fn run<Answer: DeserializeOwned>(
        &mut self,
        job: &Job,
        (point, process): (Option<usize>, ProcessSpec<'_>),
        record_of: impl Fn(Answer) -> Option<EpochRecord>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut found = Vec::new();
        let display = &self.session.display;
        let ended = self.session.run(&job.name, process, &mut |answer: Answer| {
            if let Some(record) = record_of(answer) {
                display.line(&line(&job.name, &record));
                found.push(record);
            }
            Ok(())
        })?;
        let mut tree = None;
        let missing = match ended {
            Ended::Interrupted => return Ok(ControlFlow::Break(())),
            Ended::Failed(failure) => failure.measured(),
            Ended::Done { tree: of_all } => {
                tree = of_all;
                Measured::failed(Status::Error, "it reported no result")
            }
        };
        if found.len() < job.n_records {
            let point = job.recorded.clone();
            let record = EpochRecord { point, measured: missing, ..EpochRecord::default() };
            self.session.display.line(&line(&job.name, &record));
            found.push(record);
        }
        for mut record in found {
            record.data = self.info.clone();
            record.measured.repeat = Some(job.repeat);
            if let Some(tree) = tree.filter(|tree| record.measured.max_mem < Some(tree.bytes)) {
                record.measured.max_mem = Some(tree.bytes);
                record.measured.max_mem_processes = Some(tree.n_processes);
            }
            self.rows.keep(&mut record)?;
            self.records.push(MeasuredEpoch { point, record });
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The folder of the results.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.rows.folder.path
    }

    /// Number of cubes of the data set.
    pub(crate) fn n_cubes(&self) -> u64 {
        self.info.total_rows
    }

    /// The exit code: failure if a point or something else failed.
    pub(crate) fn verdict_unless(&self, failed: bool) -> ExitCode {
        if self.session.is_stopped() {
            return ExitCode::from(INTERRUPTED_EXIT_CODE);
        }
        let is_ok = |of: &MeasuredEpoch| of.record.measured.status == Status::Ok;
        if !failed && !self.records.is_empty() && self.records.iter().all(is_ok) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// A record as a line.
fn line(name: &str, record: &EpochRecord) -> String {
    let measured = &record.measured;
    let (Status::Ok, Some(rate)) = (measured.status, measured.samples_per_sec) else {
        let message = measured.message.as_deref().unwrap_or_default();
        return format!("{name}: {}: {message}", measured.status.name());
    };
    let epoch = measured.epoch.map_or_else(String::new, |epoch| format!(" epoch {epoch}"));
    let busy = measured
        .device_busy_share
        .map_or_else(String::new, |share| format!(", device busy {:.1} %", 100.0 * share));
    let peak = measured
        .max_mem
        .map_or_else(String::new, |bytes| format!(", {:.2} GB peak", bytes as f64 / 1e9));
    let secs = measured.elapsed.unwrap_or_default();
    format!("{name}{epoch}: {secs:.2} s, {rate:.2} cubes/s{busy}{peak}")
}
