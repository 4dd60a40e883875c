//! Cells as samples for which settings are proposed.

use std::path::PathBuf;

use bench_report::{DataInfo, EpochRecord, GridPoint, HostInfo};
use bench_run::{Interrupted, LinkAccess, Secrets, Workload, format_row};
use grid_point::{
    Conditions, Data, Opened, Point, PointAnswer, PointTask, PointWork, ReaderFlag, as_asked,
};
use loader::{LoaderSpec, PipelineSpec, ReaderChoice};
use serde_json::{Value, json};
use tune::{RunSettings, Runs, Tunable};

use super::args::TuneArgs;
use super::written::Written;

/// Batches made ahead while the consumer uses another. More would only hide the differences between
/// batches.
pub(super) const PREFETCH_BATCHES: usize = 1;

/// The selected cells.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    pub(super) args: &'a TuneArgs,
    /// The data, with the reader of the next run.
    pub(super) data: Data,
    pub(super) opened: Opened,
    /// File of the program's code, and the machine, for the conditions of rows.
    pub(super) program: PathBuf,
    pub(super) host: HostInfo,
}

impl Cells<'_> {
    /// The reader of the next run. An AnnData has one reader, which no choice names.
    fn reader(&self) -> ReaderChoice {
        self.data.reader.parse().unwrap_or(ReaderChoice::Auto)
    }

    fn conditions(&self, point: &Point, record: &EpochRecord) -> anyhow::Result<String> {
        let (data, opened, host) = (&self.data, &self.opened, &self.host);
        Conditions::new(&self.program, data, opened, host, &record.versions)?.digest(point, None)
    }
}

impl Workload for Cells<'_> {
    type Point = Point;
    type Task = PointTask;
    type Answer = PointAnswer;

    fn task(&self, point: &Point) -> PointTask {
        let work = PointWork::Measure(Box::new(point.clone()));
        PointTask { data: self.data.clone(), work }
    }

    fn recorded(&self, point: &Point, cache: &str) -> GridPoint {
        as_asked(point, &self.data, cache)
    }

    fn record(&self, point: &Point, answer: PointAnswer) -> Option<EpochRecord> {
        let PointAnswer::Epoch(mut record) = answer else { return None };
        record.measured.conditions = self.conditions(point, &record).ok();
        Some(*record)
    }

    fn n_records(&self, point: &Point) -> usize {
        point.n_epochs as usize
    }

    fn info(&self) -> DataInfo {
        self.data.info(&self.opened)
    }

    fn secrets(&self) -> Secrets {
        self.data.secrets()
    }

    fn link(&self) -> Option<&LinkAccess> {
        self.data.link.as_ref()
    }

    fn format(record: &EpochRecord) -> String {
        format_row(record, 1)
    }
}

impl Tunable for Cells<'_> {
    type Samples = Self;

    fn samples(&self) -> &Self {
        self
    }

    fn point(&self, run: &RunSettings) -> Point {
        let pipeline = PipelineSpec {
            batch_rows: self.args.batch_size,
            seed: self.args.seed,
            prefetch_blocks: run.prefetch_blocks as usize,
            prefetch_batches: PREFETCH_BATCHES,
            ..PipelineSpec::default()
        };
        let batch_form = self.args.batch_form.into();
        let spec = LoaderSpec { pipeline, batch_form, ..LoaderSpec::default() };
        Point { spec, max_batches: run.max_batches, ..Point::default() }.with_blocks(run.spec)
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        self.data.folders()
    }

    fn fixed(&self) -> Vec<(&'static str, Value)> {
        vec![("reader", json!(self.reader().name()))]
    }

    fn written(&self, settings: &RunSettings) -> Vec<(&'static str, String)> {
        let RunSettings { spec, prefetch_blocks, .. } = *settings;
        let (args, data, reader) = (self.args, &self.data, self.reader());
        let written = Written { args, data, reader, spec, prefetch_blocks };
        vec![
            ("command", written.command()),
            ("python", written.python()),
            ("loader_spec", written.loader_spec()),
        ]
    }

    /// Takes the reader asked for. With `auto`, takes the one that reads a block faster if both can
    /// read X.
    fn choose(runs: &mut Runs<Self>, first: &RunSettings) -> anyhow::Result<()> {
        const PURPOSE: &str = "probe of the reader";
        if runs.kind.args.reader != ReaderFlag::Auto || runs.kind.reader() != ReaderChoice::Native {
            return Ok(());
        }
        let secs = |record: &EpochRecord| record.measured.read_secs;
        let by_native = runs.measure(first, PURPOSE)?;
        ReaderChoice::Libtiledb.name().clone_into(&mut runs.kind.data.reader);
        let is_quicker = match runs.measure(first, PURPOSE) {
            Ok(record) => secs(&record)
                .zip(secs(&by_native))
                .is_some_and(|(libtiledb, native)| libtiledb < native),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                runs.say(&format!("warning: the native reader is taken: {error:#}"));
                false
            }
        };
        if !is_quicker {
            ReaderChoice::Native.name().clone_into(&mut runs.kind.data.reader);
        }
        Ok(())
    }
}
