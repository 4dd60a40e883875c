//! What an epoch of cells did: the engine's counts under the names of single-cell data.

use crate::StageTimes;
use crate::dataset::Dataset;
use crate::spec::LoaderSpec;

/// Counts and times of one epoch, so far or in full.
///
/// Blocks and what was read for them count when the block is ready, so before the epoch ends they run
/// ahead of the batches. Seconds are wall time, summed over the work of one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EpochStats {
    /// Which epoch.
    pub epoch: u64,
    /// The settings that it ran with.
    pub spec: LoaderSpec,
    /// The name of the reader that gave the blocks; several joined by `+` if experiments have different ones.
    pub reader: String,
    /// Genes, the columns of every batch.
    pub n_columns: usize,
    /// Blocks read.
    pub n_blocks: u64,
    /// Rows of the largest block, as read: a row that comes several times counts once.
    pub max_block_rows: usize,
    /// Batches handed over.
    pub n_batches: u64,
    /// Rows of the largest batch.
    pub max_batch_rows: usize,
    /// Cells handed over.
    pub n_rows: u64,
    /// Values read for the blocks: all those of their rows and the selected genes.
    pub nnz: u64,
    /// Bytes that the reader took from storage, if it knows.
    pub bytes_read: Option<u64>,
    /// Requests that the reader sent to an object store; `None` for a folder, and for libtiledb.
    pub requests: Option<u64>,
    /// Values that the reader decoded to find those, if it knows.
    pub cells_decoded: Option<u64>,
    /// Bytes that came out of the reader's filters, if it knows.
    pub bytes_decoded: Option<u64>,
    /// Bytes that the values read take as they are stored, if the reader knows.
    pub bytes_needed: Option<u64>,
    /// Time in the reader.
    pub read_secs: f64,
    /// Time to turn what was read into blocks: COO to CSR or to dense. The native method needs none.
    pub convert_secs: f64,
    /// Time to make batches of blocks: copying or densifying rows, taking obs.
    pub batch_secs: f64,
    /// For each batch handed over, how long the consumer waited for it.
    pub wait_secs: Vec<f64>,
    /// Time of each stage, of all threads.
    pub stages: StageTimes,
    /// For each batch handed over, how many batches were ready when the consumer asked for it.
    pub ready_batches: Vec<u32>,
    /// For each batch handed over, how many blocks had been read and not been begun when the consumer
    /// asked for it.
    pub ready_blocks: Vec<u32>,
    /// From the start of the epoch until its first batch was handed over.
    pub first_batch_secs: Option<f64>,
    /// From the start of the epoch until the consumer last got an answer: a batch, an error or the end.
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
