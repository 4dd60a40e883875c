//! Samples of N-d arrays in [Zarr](https://zarr.dev), for the engine of crate `pipeline`.
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
//! Batches carry the coordinates of their dimensions ([`VariableValues::coordinates`],
//! [`VariableValues::sample_coordinates`]), and a dimension may be selected by them:
//! `Variable::new("fields").select("channel", ["t2m", "u10"])`.
//!
//! [`StoredArray`] reads ranges of single arrays as they are stored, without an engine, for readers
//! of formats that are built of arrays.
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
//! Files may change while arrays are open. A shard that changed since its index was read is an
//! error, and so is a chunk file that changes while it is read: all that is delivered of a file is
//! of one version. Open the arrays again to read the new one. In a folder, a change within the same
//! tick of the system's clock is not seen.
//!
//! ```
//! # use zarrs::array::{ArrayBuilder, data_type};
//! # let folder = tempfile::tempdir()?;
//! # let store = std::sync::Arc::new(zarrs::filesystem::FilesystemStore::new(folder.path())?);
//! # let mut stored =
//! #     ArrayBuilder::new(vec![10, 2, 3], vec![4, 2, 3], data_type::float32(), 0.0_f32);
//! # let stored = stored.dimension_names(Some(["time", "lat", "channel"]));
//! # let stored = stored.build(store.clone(), "/fields")?;
//! # stored.store_metadata()?;
//! # let values: Vec<f32> = (0..60_u8).map(f32::from).collect();
//! # stored.store_array_subset(&stored.subset_all(), &values)?;
//! # let mut names = ArrayBuilder::new(vec![3], vec![3], data_type::string(), "");
//! # let names = names.dimension_names(Some(["channel"])).build(store.clone(), "/channel")?;
//! # names.store_metadata()?;
//! # names.store_array_subset(&names.subset_all(), &["t2m", "u10", "sun"])?;
//! # let mut times = ArrayBuilder::new(vec![10], vec![10], data_type::int64(), 0_i64);
//! # let hours = serde_json::json!({"units": "hours since 2026-01-01"});
//! # times.attributes(hours.as_object().unwrap().clone());
//! # let times = times.dimension_names(Some(["time"])).build(store, "/time")?;
//! # times.store_metadata()?;
//! # let hours: Vec<i64> = (0..10).map(|step| step * 6).collect();
//! # times.store_array_subset(&times.subset_all(), &hours)?;
//! use std::sync::Arc;
//!
//! use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
//! use pipeline::{Pipeline, PipelineSpec};
//! use storage::LocalStorage;
//!
//! // An array `fields` (time, lat, channel) of 10 steps of 2 x 3 values. A sample has two weather
//! // channels of the step before and of its own as `inputs`, of the step after it as `targets`,
//! // and the known sunlight of that step as `forcings`.
//! let weather = Variable::new("fields").select("channel", ["t2m", "u10"]);
//! let spec = SampleSpec::new([
//!     weather.clone().named("inputs").steps([-1, 0]),
//!     weather.named("targets").steps([1]),
//!     Variable::new("fields").named("forcings").steps([1]).select("channel", ["sun"]),
//! ]);
//! let samples = ArraySamples::open(Arc::new(LocalStorage::new(folder.path())), &spec)?;
//! assert_eq!(samples.n_samples(), 8);
//!
//! let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 4, ..Default::default() };
//! let spec = PipelineSpec { batch_rows: 4, ..sizes };
//! let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples)?;
//! for batch in pipeline.epoch(0)? {
//!     let batch = batch?;
//!     let [inputs, targets] = ["inputs", "targets"].map(|name| batch.variable(name).unwrap());
//!     assert_eq!((inputs.shape(), targets.shape()), (vec![4, 2, 2, 2], vec![4, 2, 2]));
//!     assert_eq!(inputs.values::<f32>()?.len(), 32);
//!
//!     let channels = inputs.coordinates("channel").unwrap();
//!     assert_eq!(channels.strings().unwrap(), ["t2m", "u10"]);
//!     // The times of the two steps of each of the four samples.
//!     let times = inputs.sample_coordinates().unwrap();
//!     assert_eq!(times.attribute("units"), Some("hours since 2026-01-01"));
//!     assert_eq!(times.integers().unwrap()[1], 6 + 6 * batch.samples()[0] as i64);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Storage`]: storage::Storage
#![forbid(unsafe_code)]

mod assemble;
mod batch;
mod block;
mod chunk_files;
mod chunk_task;
mod chunks;
mod convert;
mod coordinate_arrays;
mod coordinates;
mod decoder;
mod element;
mod error;
mod fetch_far;
mod geometry;
mod interleaved;
mod joined;
mod labels;
mod memory;
mod metadata;
mod numbers;
mod numcodecs;
mod packing;
mod part;
mod read;
mod read_files;
mod samples;
mod scalar;
mod selection;
mod spec;
mod store;
mod stored;
mod stored_read;
mod texts;
mod variable;
mod window;

pub use assemble::ArrayAssembler;
pub use batch::{ArrayBatch, OwnedValues, ValuesMemory, VariableValues};
pub use block::ArrayBlock;
pub use coordinates::{CoordinateValues, Coordinates, SkippedCoordinates};
pub use element::{Element, ElementType};
pub use error::Error;
pub use labels::{Label, Selection};
pub use metadata::parse_metadata;
pub use numbers::Number;
pub use samples::{ArraySamples, ReadScratch};
pub use scalar::Scalar;
pub use selection::Indices;
pub use spec::{Dimension, ReadStrategy, SampleSpec, Variable};
pub use stored::StoredArray;
pub use stored_read::{DecodeMemory, Request, read_requests};
