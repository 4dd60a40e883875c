//! The flags of commands that measure, the beginning of a measurement, and fields as a workload.

use std::ffi::OsString;

use anyhow::Context as _;
use bench_report::{DataInfo, EpochRecord, GridPoint, HostInfo, Measured};
use bench_run::{
    Address, Cold, LinkAccess, LinkServers, Measuring, OutputFlags, Secrets, Session, Workload,
    data_name, grouped, shown_uri,
};
use clap::Args;

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
    /// Drop the data from the page cache before each process, by auto, drop or advise [default of
    /// HOW: auto]; else it is read into it first
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    cold: Option<Cold>,
    /// Seed of the order
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    output: OutputFlags,
}

impl DataFlags {
    /// Opens the data, read over the link or through the cache of `far`. Samples are those of
    /// `point`.
    pub(crate) fn open(&self, far: FarAccess, point: &Point) -> anyhow::Result<Fields> {
        let data = FieldData { uri: self.uri.full().to_owned(), arrays: self.arrays.clone(), far };
        let (samples, validation) = data.parts(&data.storage()?, point)?;
        let n_validation = validation.map_or(0, |samples| samples.n_samples());
        let info = DataInfo {
            uri: shown_uri(&self.uri.to_string()),
            total_rows: samples.n_samples() + n_validation,
            n_cols: samples.sample_bytes() / VALUE_BYTES,
            ..DataInfo::default()
        };
        Ok(Fields { data, info, cold: self.cold })
    }

    /// Makes the results folder, and warms the page cache unless it is to be cold. `of` is the
    /// number of measurements, 0 if it is not known, and their name, for the progress.
    pub(crate) fn begin(
        &self,
        fields: &Fields,
        of: (u64, &str),
        host: HostInfo,
        arguments: &[OsString],
    ) -> anyhow::Result<Measuring> {
        let uri = self.uri.to_string();
        let mut measuring = Measuring::begin(&self.output, of, &uri, host, arguments)?;
        if self.cold.is_some() {
            measuring.session.cache = "cold";
        } else {
            measuring.session.warm(fields.data.folders().as_deref());
        }
        let n_runs = match of {
            (0, _) => String::new(),
            (n, unit) => format!(", {n} {unit}"),
        };
        measuring.session.display.line(&format!(
            "{}: {} samples of {:.1} MB{n_runs}; results: {}",
            data_name(&uri),
            grouped(fields.info.total_rows),
            (fields.info.n_cols * VALUE_BYTES) as f64 / 1e6,
            measuring.folder().display()
        ));
        Ok(measuring)
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
    #[arg(long, alias = "repetitions", value_name = "N", default_value_t = 1)]
    repeat: u64,
}

impl BenchFlags {
    /// Measures all points.
    pub(crate) fn measure(
        &self,
        points: &[Point],
        arguments: &[OsString],
    ) -> anyhow::Result<Measuring> {
        let first = points.first().context("there is no point to measure")?;
        let host = HostInfo::gather();
        // The server ends with the measurement.
        let (_link, far): (Option<LinkServers>, _) = self.far.begin(self.data.uri.full(), &host)?;
        let fields = self.data.open(far, first)?;
        let n_runs = points.len() as u64 * self.repeat;
        let mut measuring = self.data.begin(&fields, (n_runs, "points"), host, arguments)?;
        measuring.measure_rounds(points, self.repeat, |point, _| (&fields, point.clone()))?;
        measuring.session.display.finish();
        Ok(measuring)
    }
}

/// Bytes of a value in a batch.
const VALUE_BYTES: u64 = size_of::<f32>() as u64;

/// A store as a workload.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) data: FieldData,
    info: DataInfo,
    /// How the page cache is made cold before each process, if it is.
    cold: Option<Cold>,
}

impl Workload for Fields {
    type Point = Point;
    type Task = FieldTask;
    type Answer = FieldAnswer;

    fn task(&self, point: &Point) -> FieldTask {
        FieldTask { data: self.data.clone(), point: point.clone() }
    }

    fn recorded(&self, point: &Point, cache: &str) -> GridPoint {
        self.data.recorded(point, cache)
    }

    fn record(&self, _point: &Point, answer: FieldAnswer) -> Option<EpochRecord> {
        Some(*answer)
    }

    fn n_records(&self, point: &Point) -> usize {
        point.n_records()
    }

    fn info(&self) -> DataInfo {
        self.info.clone()
    }

    fn secrets(&self) -> Secrets {
        self.data.secrets()
    }

    fn link(&self) -> Option<&LinkAccess> {
        self.data.far.link()
    }

    fn page_cache(&self, session: &Session) -> &'static str {
        let Some(how) = self.cold else { return session.cache };
        session.cool(self.data.folders().as_deref(), how)
    }

    fn format(record: &EpochRecord) -> String {
        let measured = &record.measured;
        let rate = megabytes_per_second(record).unwrap_or_default();
        let per_batch =
            measured.elapsed.unwrap_or_default() / measured.n_batches.unwrap_or(1) as f64;
        let peak = measured
            .max_mem
            .map_or_else(String::new, |bytes| format!(", {:.2} GB peak", bytes as f64 / 1e9));
        format!("{} MB/s, {per_batch:.3} s a batch{peak}", grouped(rate.round() as u64))
    }
}

/// Bytes of samples that were delivered; of a plain read, of files.
pub(crate) fn delivered_bytes(record: &EpochRecord) -> Option<u64> {
    if record.point.chunk_method == Strategy::PlainRead.name() {
        return record.measured.bytes_read;
    }
    Some(record.measured.n_rows? * record.data.n_cols * VALUE_BYTES)
}

/// Megabytes (10^6 bytes) of samples delivered per second, the first batch included; for a plain
/// read, of files read.
pub(crate) fn megabytes_per_second(record: &EpochRecord) -> Option<f64> {
    let Measured { elapsed, .. } = &record.measured;
    let n_bytes = delivered_bytes(record)?;
    elapsed.filter(|secs| *secs > 0.0).map(|secs| n_bytes as f64 / secs / 1e6)
}
