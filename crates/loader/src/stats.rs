//! Counts and times of an epoch of cells: the engine's, with the settings and the reader's name.

use crate::StageTimes;
use crate::dataset::Dataset;
use crate::spec::LoaderSpec;

/// Counts and times of one epoch, so far or in full.
///
/// A block and its reads count when the block is ready, so these counts run ahead of the batches
/// until the epoch ends. Seconds are wall time, summed over the work of one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EpochStats {
    /// The epoch's number.
    pub epoch: u64,
    /// The settings with which it ran, which may read ahead less than requested.
    pub spec: LoaderSpec,
    /// Name of the reader of X; several names are joined by `+` if the readers of the experiments
    /// differ.
    pub reader: String,
    /// Number of genes, the columns of every batch.
    pub n_columns: usize,
    /// Number of blocks read.
    pub n_blocks: u64,
    /// Rows of the largest block as read: a row that is delivered several times counts once.
    pub max_block_rows: usize,
    /// Number of batches delivered.
    pub n_batches: u64,
    /// Rows of the largest batch.
    pub max_batch_rows: usize,
    /// Number of cells delivered.
    pub n_rows: u64,
    /// Number of values read: all values of the blocks' rows and the selected genes.
    pub nnz: u64,
    /// Bytes that the reader fetched from storage, if it counts them.
    pub bytes_read: Option<u64>,
    /// Requests that the reader sent to an object store; `None` for a folder and for libtiledb.
    pub requests: Option<u64>,
    /// Values that the reader decoded to find the values it returned, if it counts them.
    pub cells_decoded: Option<u64>,
    /// Bytes that the reader's filters produced, if it counts them.
    pub bytes_decoded: Option<u64>,
    /// Stored size of the values read, in bytes, if the reader counts it.
    pub bytes_needed: Option<u64>,
    /// Time in the reader.
    pub read_secs: f64,
    /// Time to convert the reader's tables to blocks, from COO to CSR or dense. 0 for
    /// [`BlockForm::Csr`](crate::BlockForm::Csr), unless experiments are combined or genes absent.
    pub convert_secs: f64,
    /// Time to make batches from blocks: copying or densifying rows, gathering obs.
    pub batch_secs: f64,
    /// How long the consumer waited for each delivered batch.
    pub wait_secs: Vec<f64>,
    /// Time of each stage, summed over all threads.
    pub stages: StageTimes,
    /// How many batches were ready when the consumer asked for each delivered batch.
    pub ready_batches: Vec<u32>,
    /// How many blocks were read but not begun when the consumer asked for each delivered batch.
    pub ready_blocks: Vec<u32>,
    /// From the start of the epoch to the delivery of its first batch.
    pub first_batch_secs: Option<f64>,
    /// From the start of the epoch to the consumer's last answer: a batch, an error, or the end.
    pub elapsed_secs: f64,
}

impl EpochStats {
    pub(crate) fn new(of: pipeline::EpochStats, spec: LoaderSpec, dataset: &Dataset) -> Self {
        Self {
            epoch: of.epoch,
            spec,
            reader: dataset.reader_name(),
            n_columns: dataset.n_columns(),
            n_blocks: of.n_blocks,
            max_block_rows: of.max_block_rows,
            n_batches: of.n_batches,
            max_batch_rows: of.max_batch_rows,
            n_rows: of.n_rows,
            nnz: of.read.values,
            bytes_read: of.read.bytes_read,
            requests: of.read.requests,
            cells_decoded: of.read.values_decoded,
            bytes_decoded: of.read.bytes_decoded,
            bytes_needed: of.read.bytes_needed,
            read_secs: of.read_secs,
            convert_secs: of.convert_secs,
            batch_secs: of.batch_secs,
            wait_secs: of.wait_secs,
            stages: of.stages,
            ready_batches: of.ready_batches,
            ready_blocks: of.ready_blocks,
            first_batch_secs: of.first_batch_secs,
            elapsed_secs: of.elapsed_secs,
        }
    }
}
