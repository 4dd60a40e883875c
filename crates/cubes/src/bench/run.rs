//! The flags of commands that measure, the beginning of a measurement, and cubes as a workload.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use bench_report::{DataInfo, EpochRecord, GridPoint, HostInfo};
use bench_run::{Cold, Measuring, OutputFlags, Secrets, Workload, data_name, grouped, shown_uri};
use clap::Args;
use images::Form;

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
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, default_value = "auto", default_missing_value = "auto")]
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

/// A data set as a workload.
#[derive(Debug)]
pub(crate) struct Cubes {
    pub(crate) data: CubeData,
    shape: [usize; 3],
    /// Number of cubes.
    pub(crate) n_items: u64,
}

impl Cubes {
    /// Opens the data.
    pub(crate) fn open(flags: &DataFlags) -> anyhow::Result<Self> {
        let data = flags.data();
        let set = data
            .open(None, false)
            .with_context(|| format!("cannot open {}", data.path().display()))?;
        Ok(Self { shape: set.shape(), n_items: set.n_images() as u64, data })
    }

    fn uri(&self) -> String {
        self.data.path().to_string_lossy().into_owned()
    }

    /// Makes the results folder. Reads the files of `forms` into the page cache unless reads are to
    /// be cold. `of` says how many of what are measured, 0 if it is not known, for the progress.
    pub(crate) fn begin(
        &self,
        flags: &DataFlags,
        forms: &[Form],
        of: (u64, &str),
        arguments: &[OsString],
    ) -> anyhow::Result<Measuring> {
        let uri = self.uri();
        let mut runs = Measuring::begin(&flags.output, of, &uri, HostInfo::gather(), arguments)?;
        runs.session.cache = "unknown";
        if flags.cold().is_none() {
            let mut folders: Vec<PathBuf> =
                forms.iter().flat_map(|form| self.data.folders(*form)).collect();
            folders.sort();
            folders.dedup();
            runs.session.warm(Some(&folders));
        }
        let n_runs = match of {
            (0, _) => String::new(),
            (n, unit) => format!(", {n} {unit}"),
        };
        runs.session.display.line(&format!(
            "{}: {} cubes of {:?}{n_runs}; results: {}",
            data_name(&uri),
            grouped(self.n_items),
            self.shape,
            runs.folder().display()
        ));
        Ok(runs)
    }
}

impl Workload for Cubes {
    type Point = CubeWork;
    type Task = CubeTask;
    type Answer = CubeAnswer;

    fn task(&self, work: &CubeWork) -> CubeTask {
        CubeTask { data: self.data.clone(), work: work.clone() }
    }

    fn recorded(&self, work: &CubeWork, cache: &str) -> GridPoint {
        match work {
            CubeWork::Load(point) => point.recorded(cache),
            CubeWork::Floor(floor) => floor.recorded(cache),
        }
    }

    fn record(&self, _work: &CubeWork, answer: CubeAnswer) -> Option<EpochRecord> {
        Some(*answer)
    }

    fn n_records(&self, work: &CubeWork) -> usize {
        match work {
            CubeWork::Load(point) => point.epochs as usize,
            CubeWork::Floor(_) => 1,
        }
    }

    fn info(&self) -> DataInfo {
        DataInfo {
            uri: shown_uri(&self.uri()),
            total_rows: self.n_items,
            n_cols: self.shape.iter().product::<usize>() as u64,
            ..DataInfo::default()
        }
    }

    fn secrets(&self) -> Secrets {
        self.data.secrets()
    }

    fn format(record: &EpochRecord) -> String {
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
}
