//! Samples of N-d arrays in [Zarr](https://zarr.dev), for the engine of crate `pipeline`.
//!
//! [`ArrayRows`] opens an array in any [`Storage`]: each index of its first dimension is a sample,
//! a *row*. A block is read as one region for each run of consecutive rows. A [`RowBatch`] contains
//! the values of its rows in order, ready to become a tensor of shape `[rows, ...]`.
//!
//! Crate `zarrs` reads Zarr v2 and v3: regular chunks or shards, uncompressed or compressed with
//! blosc, gzip or zstd. A chunk that is not stored reads as the array's fill value. Each read
//! decodes on the thread that requests it; `PipelineSpec::read_threads` sets the number of threads.
//!
//! ```
//! # use zarrs::array::{ArrayBuilder, ArraySubset, data_type};
//! # let folder = tempfile::tempdir()?;
//! # let store = std::sync::Arc::new(zarrs::filesystem::FilesystemStore::new(folder.path())?);
//! # let stored = ArrayBuilder::new(vec![10, 2, 3], vec![4, 2, 3], data_type::float32(), 0.0_f32);
//! # let stored = stored.build(store, "/fields")?;
//! # stored.store_metadata()?;
//! # let values: Vec<f32> = (0..60_u8).map(f32::from).collect();
//! # stored.store_array_subset(&stored.subset_all(), &values)?;
//! use std::sync::Arc;
//!
//! use arrays::{ArrayRows, RowBatch};
//! use pipeline::{Pipeline, PipelineSpec};
//! use storage::LocalStorage;
//!
//! // An array `fields` of 10 samples of 2 x 3 values.
//! let storage = Arc::new(LocalStorage::new(folder.path()));
//! let rows = ArrayRows::<f32>::open(storage, "fields")?;
//! assert_eq!(rows.row_shape(), [2, 3]);
//!
//! let sizes = PipelineSpec { chunk_rows: 2, chunks_per_block: 3, ..Default::default() };
//! let spec = PipelineSpec { batch_rows: 4, ..sizes };
//! let pipeline = Pipeline::new(Arc::new(rows), spec, RowBatch::n_rows)?;
//! let mut n_rows = 0;
//! for batch in pipeline.epoch(0)? {
//!     let batch = batch?;
//!     assert_eq!(batch.values().len(), batch.n_rows() * 2 * 3);
//!     n_rows += batch.n_rows();
//! }
//! assert_eq!(n_rows, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Storage`]: storage::Storage

mod array_rows;
mod assemble;
mod batch;
mod block;
mod chunks;
mod element;
mod error;
mod parts;
mod store;

pub use array_rows::{ArrayRows, RowScratch};
pub use assemble::RowAssembler;
pub use batch::RowBatch;
pub use block::RowBlock;
pub use element::Element;
pub use error::Error;
