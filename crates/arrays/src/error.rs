//! Errors of opening and reading arrays.

/// The error of zarrs or of the storage.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of opening an array or reading its rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array cannot be opened: its metadata is missing or not supported.
    #[error("cannot open the Zarr array {array} in {place}")]
    Open {
        /// Path of the array within the storage.
        array: String,
        /// The storage.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The array has no dimension, so it has no rows.
    #[error("the Zarr array {array} is a single value: rows are indices of the first dimension")]
    NoRows {
        /// Path of the array within the storage.
        array: String,
    },

    /// The array has elements of another type.
    #[error(
        "the Zarr array {array} holds elements of type {stored}, not {wanted}: open it as {stored}"
    )]
    Element {
        /// Path of the array within the storage.
        array: String,
        /// The type in the metadata.
        stored: String,
        /// The requested Rust type.
        wanted: &'static str,
    },

    /// A row, a chunk or a block has more bytes than memory has addresses.
    #[error("{what} of the Zarr array {array} takes more bytes than this machine can address")]
    TooLarge {
        /// Path of the array within the storage.
        array: String,
        /// The object: a row, a chunk or a block.
        what: &'static str,
    },

    /// Rows cannot be read.
    #[error(
        "cannot read rows {start} to {end} of the Zarr array {array} for block {block_idx} of epoch \
         {epoch}"
    )]
    Read {
        /// Path of the array within the storage.
        array: String,
        /// The first row.
        start: u64,
        /// The row after the last.
        end: u64,
        /// The epoch.
        epoch: u64,
        /// The block, counted from 0.
        block_idx: u64,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Reading was stopped, because the block is no longer needed.
    #[error("reading the Zarr array {array} was stopped")]
    Stopped {
        /// Path of the array within the storage.
        array: String,
    },

    /// Memory for a batch cannot be allocated.
    #[error("cannot allocate {bytes} bytes for a batch of {n_rows} rows: make batches smaller")]
    BatchMemory {
        /// Bytes of the batch.
        bytes: usize,
        /// Rows of the batch.
        n_rows: usize,
    },

    /// An error of the engine.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),
}
