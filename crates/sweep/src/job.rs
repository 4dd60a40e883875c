//! What passes between the sweep and the process that measures a point: the job on its stdin, events on its stdout, a line of JSON
//! each.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bench_report::EpochRecord;
use loader::{Budget, LoaderSpec, Order, Remainder, Totals, Transform};
use serde::{Deserialize, Serialize};

use crate::consumer::Consumer;
use crate::io_limit::IoLimit;
use crate::page_cache::Cold;
use crate::peers::{Delivered, PeerConversion, PeerEpoch, PeerFacts};
use crate::read_chunks::{ChunksJob, ChunksRead};
use crate::readers::ReadKind;
use crate::secrets::{Address, Secrets};
use crate::tune::{SurveyJob, Surveyed};

/// The data to measure on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Data {
    /// Path or URI of the experiment.
    pub(crate) uri: Address,
    /// Settings of TileDB.
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) measurement: String,
    pub(crate) layer: String,
    /// Name of a `loader::ReaderChoice`.
    pub(crate) reader: String,
    /// Range of joinids; all cells where there is none.
    pub(crate) cells: Option<Range<u64>>,
    /// The first so many genes; all where there is none.
    pub(crate) n_genes: Option<u64>,
    pub(crate) obs_columns: Vec<String>,
    /// obs columns whose entropy within batches is measured; where there is no list, the default.
    pub(crate) entropy_of: Option<Vec<String>>,
    /// In tiledbsoma's grammar.
    pub(crate) obs_filter: Option<String>,
    /// As `obs_filter`.
    pub(crate) var_filter: Option<String>,
    /// obs column of the totals to scale by; the sum of the selected genes where there is none.
    pub(crate) totals: Option<String>,
    /// What reading is held to.
    pub(crate) io_limit: Option<IoLimit>,
}

/// The settings of one grid point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) chunk_rows: u64,
    pub(crate) chunks_per_block: u64,
    pub(crate) batch_rows: u64,
    /// Name of a `loader::BlockForm`.
    pub(crate) method: String,
    /// Name of a `loader::BatchForm`.
    pub(crate) form: String,
    pub(crate) transform: PointTransform,
    pub(crate) shuffled: bool,
    pub(crate) seed: u64,
    pub(crate) drop_last: bool,
    pub(crate) prefetch_blocks: usize,
    pub(crate) prefetch_batches: usize,
    pub(crate) n_epochs: u64,
    /// Batches after which an epoch is cut off.
    pub(crate) max_batches: Option<u64>,
    pub(crate) consumer: Consumer,
    /// Bytes of memory that the process may take beside those of its start.
    pub(crate) memory_limit: Option<u64>,
    /// Bytes of values that may stay decoded.
    pub(crate) keep_decoded: Option<u64>,
    /// Bytes of memory above which the process is ended.
    pub(crate) process_limit: Option<u64>,
    /// How the data is put out of the page cache before each epoch; where it is not, it stays as the sweep left it.
    pub(crate) cold: Option<Cold>,
}

/// A `loader::Transform`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PointTransform {
    pub(crate) target_sum: Option<f64>,
    pub(crate) log1p: bool,
    pub(crate) clip: Option<(f32, f32)>,
}

impl From<PointTransform> for Transform {
    fn from(PointTransform { target_sum, log1p, clip }: PointTransform) -> Self {
        Self { target_sum, log1p, clip }
    }
}

impl Point {
    /// The loader's settings for this data; `taken` bytes of the memory are taken already.
    pub(crate) fn loader_spec(&self, data: &Data, taken: u64) -> anyhow::Result<LoaderSpec> {
        Ok(LoaderSpec {
            chunk_rows: self.chunk_rows,
            chunks_per_block: self.chunks_per_block,
            order: if self.shuffled { Order::Shuffled } else { Order::InOrder },
            seed: self.seed,
            batch_rows: self.batch_rows,
            block_form: self.method.parse()?,
            batch_form: self.form.parse()?,
            remainder: if self.drop_last { Remainder::Drop } else { Remainder::Short },
            prefetch_blocks: self.prefetch_blocks,
            prefetch_batches: self.prefetch_batches,
            transform: self.transform.into(),
            totals: if data.totals.is_some() { Totals::Obs } else { Totals::Genes },
            memory: match self.memory_limit {
                Some(limit) => Budget::new(limit.saturating_sub(taken)),
                None => Budget::unlimited(),
            },
            keep_decoded_bytes: self.keep_decoded,
            ..LoaderSpec::default()
        })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}x{}", self.method, self.chunks_per_block, self.chunk_rows)
    }
}

/// What a process is started for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Open the data and see whether all points can be loaded, without measuring.
    Check(Vec<Point>),
    /// Measure one point.
    Measure(Point),
    /// Load an epoch of one point without measuring, and tell what it delivered.
    Tally(Point),
    /// Read X without a loader, and tell what memory that takes.
    Read {
        /// What is read.
        kind: ReadKind,
        /// Seed of the random rows.
        seed: u64,
    },
    /// Read X chunk by chunk as CSR, and tell what was read.
    ReadChunks(ChunksJob),
    /// Write the experiment anew for training, and tell what that took.
    Relayout {
        /// Where.
        target: String,
    },
    /// Open the data and tell what of it decides which settings are good.
    Survey(SurveyJob),
}

/// All that the process needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) data: Data,
    /// State of the page cache, to be noted.
    pub(crate) cache: String,
    pub(crate) task: Task,
}

/// What the process tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The data is open.
    Opened(Opened),
    /// An epoch goes on.
    Progress {
        /// Rows so far.
        n_rows: u64,
        /// Rows that the epoch will have.
        of_rows: u64,
    },
    /// An epoch is over. The record's run and host are left to the sweep.
    Epoch(Box<EpochRecord>),
    /// A peer's epoch is over.
    PeerEpoch(Box<PeerEpoch>),
    /// What a peer can do.
    PeerFacts(Box<PeerFacts>),
    /// A copy of the data was made for a loader.
    PeerConversion(PeerConversion),
    /// An epoch was tallied.
    Delivered(Delivered),
    /// X was read.
    Read {
        /// The most memory that it took.
        peak_bytes: u64,
    },
    /// X was read chunk by chunk.
    ChunksRead(Box<ChunksRead>),
    /// The data was looked at.
    Surveyed(Box<Surveyed>),
    /// Something does not work as it should, and it goes on.
    Warning {
        /// What, in one line.
        message: String,
    },
    /// It cannot go on.
    Failed {
        /// Why, in one line.
        message: String,
    },
    /// The task is done.
    Done,
}

impl Event {
    /// Its messages, which may be of others, without what the job keeps secret.
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        let hide = |text: &mut String| *text = secrets.hide(text);
        match &mut self {
            Self::Warning { message } | Self::Failed { message } => hide(message),
            Self::Epoch(record) => record.measured.message.iter_mut().for_each(hide),
            Self::Opened(opened) => opened.why_not_native.iter_mut().for_each(hide),
            _ => {}
        }
        self
    }
}

/// Data that is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Opened {
    /// Selected.
    pub(crate) n_cells: u64,
    /// Selected.
    pub(crate) n_genes: u64,
    /// Values of the whole layer.
    pub(crate) total_nnz: u64,
    /// Name of the reader of X.
    pub(crate) reader: String,
    /// Why it is libtiledb, where that was left to choose.
    pub(crate) why_not_native: Option<String>,
}

/// A point for tests.
#[cfg(test)]
pub(crate) fn point_for_tests() -> Point {
    Point {
        chunk_rows: 64,
        chunks_per_block: 128,
        batch_rows: 1024,
        method: "scipy.csr".into(),
        form: "csr".into(),
        transform: PointTransform { target_sum: Some(1e4), log1p: true, clip: None },
        shuffled: false,
        seed: u64::MAX,
        drop_last: true,
        prefetch_blocks: 2,
        prefetch_batches: 3,
        n_epochs: 1,
        max_batches: Some(5),
        consumer: Consumer::Fixed { millis: 2.5 },
        memory_limit: Some(5 << 30),
        keep_decoded: None,
        process_limit: Some(6 << 30),
        cold: Some(Cold::Advise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        point_for_tests()
    }

    #[test]
    fn jobs_and_events_pass_through_a_line_of_json() {
        let data = Data {
            cells: Some(3..u64::MAX),
            config: [("a".into(), "b\nc".into())].into(),
            ..Data::default()
        };
        let job = Job { data, cache: "warm".into(), task: Task::Check(vec![point()]) };
        let line = serde_json::to_string(&job).unwrap();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(serde_json::from_str::<Job>(&line).unwrap(), job);

        let mut record = EpochRecord::default();
        record.measured.elapsed = Some(0.1 + 0.2);
        record.measured.batch_wait_secs = vec![1e-9, 0.3];
        for event in [
            Event::Done,
            Event::Epoch(Box::new(record)),
            Event::Failed { message: "a \"b\"".into() },
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(line.lines().count(), 1);
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
    }

    #[test]
    fn points_become_the_loaders_settings() {
        let spec = point().loader_spec(&Data::default(), 1 << 30).unwrap();
        assert_eq!((spec.chunk_rows, spec.chunks_per_block, spec.batch_rows), (64, 128, 1024));
        assert_eq!(
            (spec.block_form.name(), spec.batch_form.name(), spec.order),
            ("scipy.csr", "csr", Order::InOrder)
        );
        assert_eq!(
            (spec.prefetch_blocks, spec.prefetch_batches, spec.remainder, spec.seed),
            (2, 3, Remainder::Drop, u64::MAX)
        );
        assert_eq!(spec.memory.limit(), Some(4 << 30));
        assert!(
            Point { method: "other".into(), ..point() }
                .loader_spec(&Data::default(), 1 << 30)
                .is_err()
        );
        assert_eq!(point().to_string(), "scipy.csr 128x64");
    }
}
