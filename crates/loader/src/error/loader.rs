//! Errors of a loader and its batches.

use std::ops::Range;

use super::{OpenError, TokenError};
use crate::buffers::BufferError;
use crate::elements::ElementTypeError;

/// A loader or batches that cannot be made. The message names what was tried, on which rows, and
/// what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// An error of the engine: sizes, ranks, memory, a saved state, threads.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),

    /// Sparse batches cannot be made from dense blocks.
    #[error(
        "blocks of form np.array are dense, so sparse batches cannot be made from them: take \
         blocks of form scipy.csr or csr, or dense batches"
    )]
    SparseFromDense,

    /// The requested transform of the values is impossible.
    #[error("cannot transform the values as requested")]
    Transform {
        /// The reason.
        #[source]
        source: densify::Error,
    },

    /// Values should be scaled by the totals in obs, but the data set has no totals.
    #[error(
        "values should be scaled by the totals in obs, but the data set has no totals: name their \
         column in DatasetSpec::totals (raw_sum in the Census), or take Totals::Genes, the sums of \
         the selected genes"
    )]
    NoTotals,

    /// A form was requested for a modality that the data set lacks.
    #[error(
        "a form is given for modality {name:?}, but the data set has {existing:?}: request the \
         modality in DatasetSpec::modalities, or leave its form out"
    )]
    NoModality {
        /// The modality.
        name: String,
        /// The modalities of the data set.
        existing: Vec<String>,
    },

    /// Batches of these settings cannot have neighbours.
    #[error("batches cannot have neighbours: {problem}")]
    NeighbourSettings {
        /// The reason, with the remedy.
        problem: &'static str,
    },

    /// A row of the graph does not give the requested neighbours.
    #[error(
        "cell {joinid} of experiment {experiment} cannot have neighbours by graph {obsp:?} of obsp: \
         {problem}"
    )]
    Neighbours {
        /// The graph.
        obsp: String,
        /// The experiment's index in the data set, from 0.
        experiment: usize,
        /// The cell's joinid.
        joinid: u64,
        /// What is wrong.
        problem: String,
    },

    /// Batches cannot have tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),

    /// A part of the experiment could not be opened or read.
    #[error(transparent)]
    Open(#[from] OpenError),

    /// A cell has values, but no positive total to scale them by.
    #[error(
        "cell {joinid} of experiment {experiment} has values, but its total is {total}: totals \
         must be above 0; leave the cell out"
    )]
    Total {
        /// The experiment's index in the data set, from 0.
        experiment: usize,
        /// The cell's joinid.
        joinid: u64,
        /// The cell's total.
        total: String,
    },

    /// A block or batch is larger than memory can address, or than the system can provide.
    #[error("cannot get {bytes} bytes for {what} of {n_rows} rows x {n_columns} columns: {advice}")]
    OutOfMemory {
        /// The block or batch.
        what: &'static str,
        /// Its size in bytes.
        bytes: u128,
        /// Number of its rows.
        n_rows: u64,
        /// Number of its columns.
        n_columns: u64,
        /// The size to make smaller.
        advice: &'static str,
    },

    /// The [`BatchBuffers`](crate::BatchBuffers) in use could not provide a buffer.
    #[error(transparent)]
    Buffer(#[from] BufferError),

    /// The elements of a buffer have another type than its use in a batch requires.
    #[error(transparent)]
    ElementType(#[from] ElementTypeError),

    /// X could not be read.
    #[error(
        "cannot read block {block_idx} of epoch {epoch} (cells {} to {} of experiment {experiment})",
        joinids.start,
        joinids.end.saturating_sub(1)
    )]
    Read {
        /// The epoch.
        epoch: u64,
        /// The block's index in the epoch's order, from 0.
        block_idx: u64,
        /// The experiment's index in the data set, from 0.
        experiment: usize,
        /// From the first requested joinid to one past the last.
        joinids: Range<u64>,
        /// The reason.
        #[source]
        source: Box<soma_io::Error>,
    },

    /// A block's values could not be converted to the form of blocks or batches.
    #[error("cannot convert the values of block {block_idx} of epoch {epoch}")]
    Densify {
        /// The epoch.
        epoch: u64,
        /// The block's index in the epoch's order, from 0.
        block_idx: u64,
        /// The reason.
        #[source]
        source: densify::Error,
    },

    /// A reader returned CSR of another shape than the requested one.
    #[error(
        "reader {reader:?} returned {found_rows} rows x {found_columns} columns for block \
         {block_idx}, which has {n_rows} x {n_columns}: its read_csr breaks the contract of XReader"
    )]
    BlockShape {
        /// The reader's name.
        reader: &'static str,
        /// The block's index in the epoch's order, from 0.
        block_idx: u64,
        /// Number of returned rows.
        found_rows: usize,
        /// Number of returned columns.
        found_columns: usize,
        /// Number of requested rows.
        n_rows: usize,
        /// Number of requested columns.
        n_columns: usize,
    },

    /// The obs rows or codes of a batch could not be gathered.
    #[error("cannot gather the obs rows of batch {batch_idx}")]
    Obs {
        /// The batch's index in the epoch, from 0.
        batch_idx: u64,
        /// The reason.
        #[source]
        source: arrow_schema::ArrowError,
    },
}
