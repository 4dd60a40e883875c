//! The record of one epoch of a grid point: settings, machine and outcome.
//!
//! An [`EpochRecord`] is made of groups of plain data. Each field is one column of the Parquet file
//! and one key of the JSON, with the same name. Columns of arrayloader-benchmarks' 2024 results
//! keep their names if they mean the same; of its 31 columns these are renamed or dropped:
//!
//! | published column | here |
//! |---|---|
//! | `alb_start_dt` | `run_start_dt`: the program has another name |
//! | `gc` | dropped: nothing collects garbage |
//! | `instance_id`, `instance_type` | dropped: they came from a cloud's network service; `cpu_model`, `n_cores`, `memory_bytes`, `gpu` describe any machine, `metadata` takes the rest |
//! | `py_buffer_size` | dropped: there is no second buffer |
//! | `collection_id`, `census_uri`, `census_version`, `start_idx`, `end_idx`, `sorted_datasets` | dropped: they select from the Census by its list of data sets; `uri` and `total_rows` describe the data that was read |
//!
//! Two kinds of columns have a stricter meaning: `max_mem` is the true peak (there it was sampled),
//! and `n_rows` and `elapsed` include the first batch (there they did not; see `n_rows_after_first`
//! and `elapsed_after_first`).

use std::{collections::BTreeMap, iter};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Field;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    HostInfo, Measured, StageTimes,
    column::{BadColumn, ColumnGroup, ColumnValue, column_group},
    settings::{Settings, add_columns_of_before},
};

column_group! {
    /// A run: one invocation of the program by one person at one revision.
    pub struct RunInfo {
        /// Name of the run, shared by all of its rows and unique to it.
        pub run_id: String,
        /// Start of the run, in microseconds.
        pub run_start_dt: Timestamp,
        /// The full command line.
        pub command: String,
        /// Git revision of the program.
        pub sha: Option<String>,
        /// Whether the working tree had uncommitted changes.
        pub git_dirty: Option<bool>,
        /// The user's notes, as `key=value` pairs.
        pub metadata: BTreeMap<String, String>,
    }
}

column_group! {
    /// Versions of the software involved.
    pub struct Versions {
        /// Version of this project.
        pub somafeed: Option<String>,
        /// Version of the compiler, as it prints it.
        pub rustc: Option<String>,
        /// Version of the loaded libtiledb.
        pub libtiledb: Option<String>,
        /// Version of the loaded libtorch.
        pub libtorch: Option<String>,
        /// Version of the tch crate.
        pub tch: Option<String>,
        /// For a peer, its version and those of its dependencies, like `tiledbsoma-ml 0.1.0, torch
        /// 2.11.0`; null for our own loader.
        pub peer: Option<String>,
    }
}

column_group! {
    /// The data that was read.
    pub struct DataInfo {
        /// Path or URI of the experiment.
        pub uri: String,
        /// How the data was rewritten for training, for instance `relaid`; null for the original
        /// layout.
        pub layout: Option<String>,
        /// Selected samples, whether or not the epoch went through all of them.
        pub total_rows: u64,
        /// Selected genes, which are the columns of a batch.
        pub n_cols: u64,
        /// Non-zeros of the whole X.
        pub total_nnz: Option<u64>,
    }
}

column_group! {
    /// The settings of a grid point, as they ran: those of every kind of samples in columns of
    /// their own, the rest by name.
    pub struct GridPoint {
        /// The loader: `somafeed`, or a peer's name. Null in old files, which means
        /// `somafeed`.
        pub loader: Option<String>,
        /// The kind of samples: `cells`, `fields`, `cubes` or `sequences`. Null in older files,
        /// which means cells.
        pub workload: Option<String>,
        /// How a block becomes batches, in the words of the kind of samples; a peer's name if it
        /// has its own way.
        pub chunk_method: String,
        /// Rows per batch.
        pub batch_size: u64,
        /// Number of ranks that shared the samples, all at the same time; null for one process
        /// without a rank.
        pub world_size: Option<u64>,
        /// Rows per chunk.
        pub chunk_size: u64,
        /// Chunks per block.
        pub chunks_per_block: u64,
        /// Rows per block: `chunk_size` times `chunks_per_block`.
        pub block_size: u64,
        /// `shuffled`, `in-order` or `listed`.
        pub order: String,
        /// Form of a batch.
        pub form: String,
        /// The implementation that read the data.
        pub reader: String,
        /// Seed of the order.
        pub seed: u64,
        /// Number of batches after which an epoch was cut off; null if it ran to its end.
        pub max_batches: Option<u64>,
        /// The consumer, like `fixed:12.5` (milliseconds per batch); null if batches were dropped
        /// at once.
        pub consumer: Option<String>,
        /// State of the page cache when the epoch began: `warm`, `unknown`, `cold-dropped` (the
        /// whole machine's cache was dropped) or `cold-advised` (the kernel was advised to drop the
        /// data's files).
        pub cache: String,
        /// Further settings by name.
        pub settings: Settings,
    }
}

/// The name of our own loader in [`GridPoint::loader`].
pub const OWN_LOADER: &str = "somafeed";

impl GridPoint {
    /// The loader's name, if it is not ours.
    fn peer(&self) -> Option<&str> {
        self.loader.as_deref().filter(|name| *name != OWN_LOADER)
    }

    /// An identifier of the settings: equal settings have equal identifiers. The seed is left out,
    /// because a measurement with another seed is a repetition.
    pub fn id(&self) -> String {
        let Self {
            chunk_method,
            chunk_size,
            chunks_per_block,
            batch_size,
            form,
            order,
            reader,
            cache,
            ..
        } = self;
        let always = format!(
            "{chunk_method} {chunk_size}x{chunks_per_block} b{batch_size} {form} {order} {reader} {cache}"
        );
        let sometimes = [
            self.peer().map(str::to_owned),
            self.world_size.map(|n| format!("ranks={n}")),
            self.max_batches.map(|n| format!("batches={n}")),
            self.consumer.clone(),
        ];
        let further = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        iter::once(always)
            .chain(sometimes.into_iter().flatten())
            .chain(further)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// How an epoch ended.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It ran to its end, or to `max_batches`.
    Ok,
    /// Memory ran out, or the kernel killed the process because of it.
    Oom,
    /// The process died without a message.
    Crashed,
    /// It failed with a message.
    #[default]
    Error,
}

impl Status {
    const ALL: [Self; 4] = [Self::Ok, Self::Oom, Self::Crashed, Self::Error];

    /// The status's name in the file.
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
/// A successful record has the settings that ran, read back from the loader. A failed one has the
/// requested settings, a [`Status`] and a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EpochRecord {
    /// The run that it belongs to.
    #[serde(flatten)]
    pub run: RunInfo,
    /// The machine.
    #[serde(flatten)]
    pub host: HostInfo,
    /// Versions of the software involved.
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
    /// The time of its stages.
    #[serde(flatten)]
    pub stages: StageTimes,
}

impl EpochRecord {
    /// Whether both epochs measured the same and this one ended well: same conditions, process
    /// number and epoch.
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

/// The column computed on writing: [`GridPoint::id`].
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
        let mut points = GridPoint::decode(batch)?;
        add_columns_of_before(batch, &mut points)?;
        let mut points = points.into_iter();
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
