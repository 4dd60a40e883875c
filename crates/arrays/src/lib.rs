#![doc = include_str!("../README.md")]
//!
//! [`ArraySamples`] opens one or several arrays in any [`Storage`]. Each index of their first
//! dimension is a *step*; a sample is a window of steps around its own, of the selected part of
//! each array ([`SampleSpec`], [`Variable`]). An [`ArrayBatch`] has an array of shape
//! `[samples, ...]` for each variable, ready to become a tensor.
//!
//! - A block is decoded in the order in which its samples will be delivered, and a batch is a part
//!   of it: from the codec to the consumer, no sample is copied. Only a batch that comes from two
//!   blocks is.
//! - Memory goes round: a dropped batch's is decoded into again.
//! - A batch that is the whole of its block owns its memory ([`ArrayBatch::into_values`]), so it
//!   can become a tensor without a copy.
//! - [`SampleSpec::threads`] threads work on one block, `PipelineSpec::read_threads` blocks are
//!   read at once, and batches arrive in the plan's order.
//!
//! A dimension may be delivered in another place than it is stored, and turned round by its
//! coordinates: [`SampleSpec::order`], [`Variable::order`], [`SampleSpec::directions`].
//!
//! Batches carry the coordinates of their dimensions ([`VariableValues::coordinates`],
//! [`VariableValues::sample_coordinates`]), and a dimension may be selected by them:
//! `Variable::new("fields").select("channel", ["t2m", "u10"])`.
//!
//! Forecasts are stored by initial and lead time: a sample is then both, beside an analysis at the
//! time that is their sum ([`SampleSpec::lead`]).
//!
//! Samples may be patches of the steps ([`Patches`]), in a grid or at random places; each chunk is
//! decoded once a block for all patches that lie in it.
//!
//! Numbers are changed as they are put into a batch: clipped, their logarithm taken, those at
//! another step subtracted, normalised, rounded to 16 or 32 bits ([`Variable`]). A [`Forcing`] is
//! computed from the times of steps in place of an array: where the sun stands, the progress of
//! year and day.
//!
//! [`StoredArray`] reads ranges of single arrays as they are stored, without an engine, for readers
//! of formats that are built of arrays. [`Group`] opens all arrays of a store as [`ChunkedArray`]s,
//! to copy them chunk by chunk.
//!
//! Crate `zarrs` knows the metadata of Zarr v2 and v3, and decodes everything but chunks that are
//! stored as in memory or compressed by zstd, gzip or zlib alone: those are decoded here, straight
//! into their place. Codecs of numcodecs that it lacks are added to it. A chunk that is not stored
//! reads as the array's fill value.
//!
//! Numbers that stand for others by the CF conventions (`scale_factor`, `add_offset`, `_FillValue`,
//! `missing_value`, `_Unsigned`) are unpacked as xarray does, unless a [`Variable`] is to be
//! delivered [as stored](Variable::as_stored).
//!
//! A chunk that is not stored, a fill value and a NaN are told apart, and samples with any of them
//! may be left out: [`ArraySamples::missing`], [`SampleSpec::missing`].
//!
//! Files may change while arrays are open. A shard that changed since its index was read is an
//! error, and so is a chunk file that changes while it is read: all that is delivered of a file is
//! of one version. Open the arrays again to read the new one. In a folder, a change within the same
//! tick of the system's clock is not seen.
//!
//! [`Storage`]: storage::Storage
#![forbid(unsafe_code)]

mod assemble;
mod axes;
mod batch;
mod block;
pub mod blosc;
mod calendar;
mod chunk_files;
mod chunk_task;
mod chunked_array;
mod chunks;
mod convert;
mod coordinate_arrays;
mod coordinates;
mod counting;
mod cut_variable;
mod decoder;
mod difference;
mod dimensions;
mod element;
mod error;
mod fetch_far;
mod forcing;
mod function;
mod geometry;
mod group;
mod interleaved;
mod joined;
mod kept;
mod labels;
mod leads;
mod member;
mod memory;
mod metadata;
mod missing;
mod numbers;
mod numcodecs;
mod open_array;
mod packing;
mod part;
mod parts;
mod patch_read;
mod patch_row;
mod patches;
mod read;
mod read_files;
mod rollout;
mod samples;
mod scalar;
mod selection;
mod spec;
mod stacked;
mod store;
mod stored;
mod stored_read;
mod texts;
mod tiles;
mod times;
mod variable;
mod window;

pub use assemble::ArrayAssembler;
pub use batch::{ArrayBatch, OwnedValues, VariableValues};
pub use block::ArrayBlock;
pub use chunked_array::{ChunkedArray, Meaning};
pub use coordinates::{CoordinateValues, Coordinates, SkippedCoordinates};
pub use element::{Element, ElementType};
pub use error::Error;
pub use group::Group;
pub use kept::{KeptChunks, KeptRead};
pub use labels::{Label, Selection};
pub use metadata::parse_metadata;
pub use missing::{Missing, MissingCounts, MissingNumbers, MissingPolicy, WhenMissing};
pub use numbers::Number;
pub use patches::CutDimension;
pub use samples::{ArraySamples, ReadScratch};
pub use scalar::Scalar;
pub use selection::{ChunkRuns, Indices, Run};
pub use spec::{
    Dimension, Direction, Forcing, Padding, PatchDimension, Patches, Period, RandomPatches,
    ReadStrategy, SampleSpec, Variable,
};
pub use stored::StoredArray;
pub use stored_read::{DecodeMemory, Request, read_requests};
pub use times::TimeSpan;
pub use window::LeftOut;
