//! Errors of opening and reading arrays.

use crate::element::ElementType;

/// The error of zarrs, of a codec or of the storage.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of opening arrays or reading samples.
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

    /// The array that has the name of a dimension cannot be read, or has another length.
    #[error(
        "cannot read the coordinates {array} of dimension {dimension} in {place}; to do without \
         them, set `SampleSpec::coordinates` to false"
    )]
    Coordinates {
        /// Path of the array of coordinates within the storage.
        array: String,
        /// The dimension.
        dimension: String,
        /// The storage.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The array has no dimension, so it has no samples.
    #[error("the Zarr array {array} is a single value: samples are made of the first dimension")]
    NoRows {
        /// Path of the array within the storage.
        array: String,
    },

    /// The elements of the array are of a type that is not supported.
    #[error(
        "the Zarr array {array} holds elements of type {stored}: numbers and bool are supported"
    )]
    Element {
        /// Path of the array within the storage.
        array: String,
        /// The type in the metadata.
        stored: String,
    },

    /// An attribute by which stored numbers stand for others is not understood.
    #[error(
        "cannot unpack the Zarr array {array}: correct the attribute, or deliver the numbers as \
         they are stored (`Variable::as_stored`)"
    )]
    Attribute {
        /// Path of the array within the storage.
        array: String,
        /// The attribute, its value, and what is expected.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Values were asked for as another type than they have.
    #[error("the variable {variable} has elements of type {element}, not {wanted}")]
    WrongElement {
        /// The variable.
        variable: String,
        /// The type that it has.
        element: ElementType,
        /// The requested Rust type.
        wanted: &'static str,
    },

    /// The selection does not fit the array.
    #[error("cannot select along dimension {dimension} of the Zarr array {array}: {reason}")]
    Select {
        /// Path of the array within the storage.
        array: String,
        /// Name or position of the dimension.
        dimension: String,
        /// What does not fit.
        reason: String,
    },

    /// The settings do not make samples.
    #[error("the settings of the samples do not fit: {reason}")]
    Spec {
        /// What does not fit.
        reason: String,
    },

    /// A sample has missing numbers, and the settings want none.
    #[error("the variable {variable} has {what} at step {step}")]
    Missing {
        /// The variable.
        variable: String,
        /// The step, counted over all stores.
        step: u64,
        /// How many numbers, and of which kind.
        what: String,
    },

    /// An object has more bytes than memory has addresses.
    #[error("{what} of the Zarr array {array} takes more bytes than this machine can address")]
    TooLarge {
        /// Path of the array within the storage.
        array: String,
        /// The object.
        what: &'static str,
    },

    /// A chunk cannot be read or decoded; the cause names it.
    #[error("cannot read the Zarr array {array} for block {block_idx} of epoch {epoch}")]
    Read {
        /// Path of the array within the storage.
        array: String,
        /// The epoch.
        epoch: u64,
        /// The block, counted from 0.
        block_idx: u64,
        /// The cause, with the indices of the chunk.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A chunk cannot be read or decoded into the caller's memory; the cause names it.
    #[error("cannot read samples of the Zarr array {array}")]
    ReadInto {
        /// Path of the array within the storage.
        array: String,
        /// The cause, with the indices of the chunk.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Elements of an array cannot be read or decoded; the cause names the chunk.
    #[error("cannot read the Zarr array {array} in {place}")]
    ReadElements {
        /// Path of the array within the storage.
        array: String,
        /// The storage.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Samples cannot be read into the caller's memory.
    #[error("the memory does not fit the samples: {reason}")]
    Destination {
        /// What does not fit.
        reason: String,
    },

    /// Memory for samples cannot be allocated.
    #[error("cannot allocate {bytes} bytes for {n_samples} samples: make blocks smaller")]
    Memory {
        /// Bytes of the samples.
        bytes: u64,
        /// The number of samples.
        n_samples: usize,
    },

    /// An error of the engine.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),
}
