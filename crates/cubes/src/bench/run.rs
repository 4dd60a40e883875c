//! The command's side of a measurement: runs tasks in processes of their own and keeps the rows.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context as _;
use bench_report::{DataInfo, EpochRecord, GridPoint};
use bench_run::{
    Cold, Job, Measuring, Order, OutputFlags, ProcessSpec, data_name, grouped, shown_uri,
};
use clap::Args;
use images::Form;

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
    #[command(flatten)]
    output: OutputFlags,
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

/// A running measurement of cubes.
pub(crate) struct CubeMeasuring {
    pub(crate) runs: Measuring,
    data: CubeData,
    info: DataInfo,
}

impl CubeMeasuring {
    /// Opens the data and makes the results folder. Reads the files of `forms` into the page cache
    /// unless reads are to be cold. `of` says how many of what are measured, for the progress.
    pub(crate) fn begin(
        flags: &DataFlags,
        forms: &[Form],
        of: (u64, &str),
        arguments: &[OsString],
    ) -> anyhow::Result<Self> {
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
        let mut runs = Measuring::begin(&flags.output, of, &uri, format_epoch, arguments)?;
        runs.session.cache = "unknown";
        if flags.cold().is_none() {
            let mut folders: Vec<PathBuf> =
                forms.iter().flat_map(|form| data.folders(*form)).collect();
            folders.sort();
            folders.dedup();
            runs.warm(&folders);
        }
        runs.session.display.line(&format!(
            "{}: {} cubes of {:?}, {} {}; results: {}",
            data_name(&uri),
            grouped(info.total_rows),
            set.shape(),
            of.0,
            of.1,
            runs.folder().display()
        ));
        Ok(Self { runs, data, info })
    }

    /// Measures a point in a process of its own. Breaks after Ctrl-C.
    pub(crate) fn measure(
        &mut self,
        (idx, point): (usize, &Point),
        repeat: u64,
    ) -> anyhow::Result<ControlFlow<()>> {
        let recorded = point.recorded(self.runs.session.cache);
        let job = self.job(&point.to_string(), recorded, (point.epochs as usize, repeat));
        let job = Job { point: Some(idx), ..job };
        self.run_own(CubeWork::Load(Box::new(point.clone())), &job)
    }

    /// Measures a floor in a process of its own. Breaks after Ctrl-C.
    pub(crate) fn measure_floor(&mut self, floor: Floor) -> anyhow::Result<ControlFlow<()>> {
        let job = self.job(&floor.name(), floor.recorded(self.runs.session.cache), (1, 0));
        self.run_own(CubeWork::Floor(floor), &job)
    }

    /// A process that is no point of the command, with the number of its records and of its round.
    pub(crate) fn job(
        &self,
        name: &str,
        recorded: GridPoint,
        (n_records, repeat): (usize, u64),
    ) -> Job {
        let (name, data) = (name.to_owned(), self.info.clone());
        Job { name, point: None, recorded, data, n_records, repeat }
    }

    fn run_own(&mut self, work: CubeWork, job: &Job) -> anyhow::Result<ControlFlow<()>> {
        let task = CubeTask { data: self.data.clone(), work };
        let order = Order { cache: self.runs.session.cache.to_owned(), task };
        let command = self.runs.session.command(SUBCOMMAND);
        let process = ProcessSpec::new(command, &order, self.data.secrets())?;
        self.runs.run(job, process, |record: CubeAnswer| Some(*record))
    }

    /// Number of cubes of the data set.
    pub(crate) fn n_cubes(&self) -> u64 {
        self.info.total_rows
    }
}

/// Formats the record of an epoch that ended well.
fn format_epoch(record: &EpochRecord) -> String {
    let measured = &record.measured;
    let rate = measured.samples_per_sec.unwrap_or_default();
    let busy = measured
        .device_busy_share
        .map_or_else(String::new, |share| format!(", device busy {:.1} %", 100.0 * share));
    let peak = measured
        .max_mem
        .map_or_else(String::new, |bytes| format!(", {:.2} GB peak", bytes as f64 / 1e9));
    let secs = measured.elapsed.unwrap_or_default();
    format!("{secs:.2} s, {rate:.2} cubes/s{busy}{peak}")
}
