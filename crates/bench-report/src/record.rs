//! The record of one epoch of a grid point: what ran, where, and what it cost.
//!
//! An [`EpochRecord`] is groups of plain data; each field is one column of the Parquet file and one key of the JSON,
//! under its own name. The columns that arrayloader-benchmarks published in 2024 keep their names where they mean the
//! same; of its 31 these are renamed or dropped:
//!
//! | published column | here |
//! |---|---|
//! | `alb_start_dt` | `run_start_dt`: the program has another name |
//! | `gc` | dropped: nothing collects garbage |
//! | `instance_id`, `instance_type` | dropped: they came from a cloud's network service; `cpu_model`, `n_cores`, `memory_bytes`, `gpu` describe any machine, `metadata` takes the rest |
//! | `py_buffer_size` | dropped: there is no second buffer |
//! | `collection_id`, `census_uri`, `census_version`, `start_idx`, `end_idx`, `sorted_datasets` | dropped: they select from the Census by its list of data sets; `uri` and `total_rows` say what was read |
//!
//! and these mean something stricter: `max_mem` is the true peak (it was sampled), `n_rows` and `elapsed` include the
//! first batch (they left it out; see `n_rows_after_first` and `elapsed_after_first`).

use std::{collections::BTreeMap, iter};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Field;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    HostInfo, Measured, StageTimes,
    column::{BadColumn, ColumnGroup, ColumnValue, column_group},
};

column_group! {
    /// The run: one call of the program, by one person, at one revision.
    pub struct RunInfo {
        /// Name of the run, the same in all of its rows and in no other run's.
        pub run_id: String,
        /// When the run began. Times are kept to the microsecond.
        pub run_start_dt: Timestamp,
        /// The exact command.
        pub command: String,
        /// Git revision of the program.
        pub sha: Option<String>,
        /// Whether the program had changes that are in no revision.
        pub git_dirty: Option<bool>,
        /// What the user wanted noted, `key=value` each.
        pub metadata: BTreeMap<String, String>,
    }
}

column_group! {
    /// Versions of what took part.
    pub struct Versions {
        /// Version of this project.
        pub somafeed: Option<String>,
        /// The compiler's, as it states it.
        pub rustc: Option<String>,
        /// Version of the libtiledb that was loaded.
        pub libtiledb: Option<String>,
        /// Version of the libtorch that was loaded.
        pub libtorch: Option<String>,
        /// Version of the tch crate.
        pub tch: Option<String>,
        /// Of a peer, its version and those of what it stands on, as `tiledbsoma-ml 0.1.0, torch 2.11.0`; null for our own loader.
        pub peer: Option<String>,
    }
}

column_group! {
    /// The data that was read.
    pub struct DataInfo {
        /// Path or URI of the experiment.
        pub uri: String,
        /// What wrote the data anew for training, as `relaid`; null where it is read as it was.
        pub layout: Option<String>,
        /// Measurement of the experiment, such as `RNA`.
        pub measurement: Option<String>,
        /// Layer of the measurement's X, such as `raw`.
        pub layer: Option<String>,
        /// The condition on the cells, in tiledbsoma's grammar; null when there was none.
        pub obs_filter: Option<String>,
        /// The condition on the genes.
        pub var_filter: Option<String>,
        /// Cells that were selected, whether or not the epoch went through all.
        pub total_rows: u64,
        /// Genes that were selected: columns of a batch.
        pub n_cols: u64,
        /// Non-zeros of the whole X.
        pub total_nnz: Option<u64>,
    }
}

column_group! {
    /// The settings of a grid point, as they ran.
    pub struct GridPoint {
        /// Whose loader: `somafeed`, or a peer's name; null in files from before there were peers, which are ours.
        pub loader: Option<String>,
        /// How a block becomes batches: `np.array`, `scipy.csr` or `native`; a peer's name where it has a way of its own.
        pub chunk_method: String,
        /// Rows a batch.
        pub batch_size: u64,
        /// Rows a chunk.
        pub chunk_size: u64,
        /// Chunks a block.
        pub chunks_per_block: u64,
        /// Rows a block: `chunk_size` times `chunks_per_block`.
        pub block_size: u64,
        /// `shuffled` or `in-order`.
        pub order: String,
        /// What a batch's X is: `dense`, `f16`, `csr` or `coo`.
        pub form: String,
        /// What was done to the values of a batch, as `per 10000 of raw_sum, log1p`; null when nothing.
        pub transform: Option<String>,
        /// Which implementation read X: `libtiledb`, `native` or `memory`.
        pub reader: String,
        /// Blocks read ahead of the one in use.
        pub prefetch_blocks: u64,
        /// Seed of the order.
        pub seed: u64,
        /// Batches after which an epoch was cut off; null when it went to the end.
        pub max_batches: Option<u64>,
        /// Whether the last, short batch was left out.
        pub drop_last: bool,
        /// Bytes of libtiledb's read buffers (`soma.init_buffer_bytes`).
        pub soma_buffer_size: Option<u64>,
        /// Threads that the loader was allowed.
        pub n_threads: Option<u64>,
        /// What took the batches, as `fixed:12.5`: so many milliseconds for each; null where they were dropped at once.
        pub consumer: Option<String>,
        /// Bytes of memory that the process was to take at most beside what it had at its start; null where there was no limit.
        pub memory_limit: Option<u64>,
        /// Bytes of X's values that were to stay decoded at most; null where that was left to `memory_limit`, none without one.
        pub keep_decoded: Option<u64>,
        /// Batches made ahead of the one in use; null in files from before it was noted.
        pub prefetch_batches: Option<u64>,
        /// Bytes of memory above which the process was to be ended; null where it was not limited so.
        pub point_memory_limit: Option<u64>,
        /// What was to end it: `cgroup`, or `rlimit`, which counts private memory that is asked for rather than used.
        pub point_memory_limit_by: Option<String>,
        /// Bytes a second that reading from storage was held to; null where there was no limit.
        pub io_limit: Option<u64>,
        /// What held it: `bucket`, which counts what the reader asks for, or `kernel`, which counts what the disk reads.
        pub io_limit_by: Option<String>,
        /// State of the page cache when the epoch began: `warm`, `unknown`, or `cold` and how: `cold-dropped` (the machine's whole cache)
        /// or `cold-advised` (the data's files, by advice to the kernel).
        pub cache: String,
    }
}

/// The name of our own loader in [`GridPoint::loader`].
pub const OWN_LOADER: &str = "somafeed";

impl GridPoint {
    /// The loader's name, where it is not ours.
    fn peer(&self) -> Option<&str> {
        self.loader.as_deref().filter(|name| *name != OWN_LOADER)
    }

    /// Names the settings; the same settings have the same name. The seed is left out: the same point measured with
    /// another seed is a repetition.
    pub fn id(&self) -> String {
        let Self {
            chunk_method,
            chunk_size,
            chunks_per_block,
            batch_size,
            form,
            order,
            reader,
            ..
        } = self;
        let cache = &self.cache;
        let always = format!(
            "{chunk_method} {chunk_size}x{chunks_per_block} b{batch_size} {form} {order} {reader} {cache} prefetch{}",
            self.prefetch_blocks
        );
        let sometimes = [
            self.peer().map(str::to_owned),
            self.transform.clone(),
            self.max_batches.map(|n| format!("max{n}")),
            self.soma_buffer_size.map(|bytes| format!("buffer{bytes}")),
            self.n_threads.map(|n| format!("threads{n}")),
            self.drop_last.then(|| "drop-last".to_owned()),
            self.consumer.clone(),
            self.memory_limit.map(|bytes| format!("memory{bytes}")),
            self.keep_decoded.map(|bytes| format!("keep{bytes}")),
            self.io_limit
                .map(|rate| format!("io{rate} {}", self.io_limit_by.as_deref().unwrap_or("?"))),
            self.prefetch_batches.filter(|n| *n != 1).map(|n| format!("ahead{n}")),
            self.point_memory_limit.map(|bytes| format!("limit{bytes}")),
            self.point_memory_limit_by.clone(),
        ];
        iter::once(always).chain(sometimes.into_iter().flatten()).collect::<Vec<_>>().join(" ")
    }
}

/// How an epoch ended.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It went as far as it was meant to.
    Ok,
    /// Memory ran out, or the kernel killed the process for it.
    Oom,
    /// The process died without a word.
    Crashed,
    /// It failed with a message.
    #[default]
    Error,
}

impl Status {
    const ALL: [Self; 4] = [Self::Ok, Self::Oom, Self::Crashed, Self::Error];

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Oom => "oom",
            Self::Crashed => "crashed",
            Self::Error => "error",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// One row of the results: one epoch of one grid point, or the attempt at it.
///
/// A record that was measured holds what ran, read back from the loader, not what was asked for. One that failed
/// holds the settings that were asked for, a [`Status`] and a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpochRecord {
    /// The run it belongs to.
    #[serde(flatten)]
    pub run: RunInfo,
    /// The machine.
    #[serde(flatten)]
    pub host: HostInfo,
    /// Versions of what took part.
    #[serde(flatten)]
    pub versions: Versions,
    /// The data.
    #[serde(flatten)]
    pub data: DataInfo,
    /// The settings.
    #[serde(flatten)]
    pub point: GridPoint,
    /// The outcome.
    #[serde(flatten)]
    pub measured: Measured,
    /// Where its time went.
    #[serde(flatten)]
    pub stages: StageTimes,
}

impl EpochRecord {
    /// Whether this epoch ended well and is the one that `other` is of, too: the same conditions, process number and epoch.
    pub fn is_same_measurement(&self, other: &Self) -> bool {
        let key = |record: &Self| {
            let Measured { conditions, repeat, epoch, .. } = &record.measured;
            (conditions.clone(), repeat.unwrap_or(0), *epoch)
        };
        self.measured.status == Status::Ok
            && self.measured.conditions.is_some()
            && key(self) == key(other)
    }
}

/// The column that is derived from others on writing: [`GridPoint::id`].
const POINT_ID: &str = "point_id";

impl ColumnGroup for EpochRecord {
    fn fields() -> Vec<Field> {
        let mut fields = RunInfo::fields();
        fields.push(String::field(POINT_ID));
        fields.extend(GridPoint::fields());
        fields.extend(Measured::fields());
        fields.extend(StageTimes::fields());
        fields.extend(DataInfo::fields());
        fields.extend(HostInfo::fields());
        fields.extend(Versions::fields());
        fields
    }

    fn arrays(rows: &[&Self]) -> Vec<ArrayRef> {
        let ids: Vec<String> = rows.iter().map(|row| row.point.id()).collect();
        let mut arrays = group_arrays(rows, |row| &row.run);
        arrays.push(String::encode(ids.iter()));
        arrays.extend(group_arrays(rows, |row| &row.point));
        arrays.extend(group_arrays(rows, |row| &row.measured));
        arrays.extend(group_arrays(rows, |row| &row.stages));
        arrays.extend(group_arrays(rows, |row| &row.data));
        arrays.extend(group_arrays(rows, |row| &row.host));
        arrays.extend(group_arrays(rows, |row| &row.versions));
        arrays
    }

    fn decode(batch: &RecordBatch) -> Result<Vec<Self>, BadColumn> {
        let mut runs = RunInfo::decode(batch)?.into_iter();
        let mut hosts = HostInfo::decode(batch)?.into_iter();
        let mut versions = Versions::decode(batch)?.into_iter();
        let mut data = DataInfo::decode(batch)?.into_iter();
        let mut points = GridPoint::decode(batch)?.into_iter();
        let mut stages = StageTimes::decode(batch)?.into_iter();
        let measured = Measured::decode(batch)?.into_iter();
        Ok(measured
            .map(|measured| Self {
                run: runs.next().unwrap_or_default(),
                host: hosts.next().unwrap_or_default(),
                versions: versions.next().unwrap_or_default(),
                data: data.next().unwrap_or_default(),
                point: points.next().unwrap_or_default(),
                stages: stages.next().unwrap_or_default(),
                measured,
            })
            .collect())
    }
}

fn group_arrays<'a, G: ColumnGroup + 'a>(
    rows: &[&'a EpochRecord],
    group: impl Fn(&'a EpochRecord) -> &'a G,
) -> Vec<ArrayRef> {
    G::arrays(&rows.iter().map(|row| group(row)).collect::<Vec<_>>())
}
