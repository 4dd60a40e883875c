//! Errors of opening and reading arrays.

/// The error of zarrs or of the storage.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of an array: which one, what was tried, and why it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array cannot be opened: there is no metadata, or it is not understood.
    #[error("cannot open the Zarr array {array} in {place}")]
    Open {
        /// Path of the array within the storage.
        array: String,
        /// The storage.
        place: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The array has no dimension to take rows from.
    #[error("the Zarr array {array} is a single value: rows are indices of the first dimension")]
    NoRows {
        /// Path of the array within the storage.
        array: String,
    },

    /// The array holds elements of another type.
    #[error(
        "the Zarr array {array} holds elements of type {stored}, not {wanted}: open it as {stored}"
    )]
    Element {
        /// Path of the array within the storage.
        array: String,
        /// The type that the metadata names.
        stored: String,
        /// The Rust type that was asked for.
        wanted: &'static str,
    },

    /// A row, a chunk or a block has more bytes than memory has addresses.
    #[error("{what} of the Zarr array {array} takes more bytes than this machine can address")]
    TooLarge {
        /// Path of the array within the storage.
        array: String,
        /// A row, a chunk or a block.
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
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Reading ended early, because nobody wants the block any more.
    #[error("reading the Zarr array {array} was stopped")]
    Stopped {
        /// Path of the array within the storage.
        array: String,
    },

    /// There is no memory for a batch.
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
