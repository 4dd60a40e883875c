//! Samples of image cubes, as a source of the engine of crate `pipeline`.
//!
//! A [`DataSet`] is a folder of images: cubes of shape `[height, width, channels]` with masks such
//! as labels beside them, stored in one or several forms ([`Form`]). [`ImageSamples`] reads them
//! ([`ImageSpec`]). An [`ImageBatch`] has an array of shape `[samples, ...]` for each key.
//!
//! - In a ring ([`BatchMemory::Ring`]), decoders write straight into the slot that becomes the
//!   batch. Slots are allocated once, pinned if a device needs it.
//! - One thread reads a whole batch, and `PipelineSpec::read_threads` batches are read at once; or
//!   [`ImageSpec::threads`] threads share the images of one batch.
//! - Random maps ([`augment`]) depend on the sample and the epoch, not on threads.
//! - A file that is damaged or does not fit the data set ends the epoch with an error that names
//!   it, or is skipped and listed in the batch ([`WhenDamaged`]).
//!
//! Formats of files are in [`files`].
//!
//! ```
//! # use images::files::{StoredArray, blosc};
//! # let folder = tempfile::tempdir()?;
//! # let images = serde_json::json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
//! # let list = serde_json::json!({"version": 1, "shape": [4, 6, 10], "images": images});
//! # std::fs::write(folder.path().join("images.json"), list.to_string())?;
//! # std::fs::create_dir(folder.path().join("raw16"))?;
//! # let array = StoredArray::new("", &[4, 6, 10], arrays::ElementType::F16).unwrap();
//! # for name in ["a", "b", "c"] {
//! #     let file = blosc::write_array(&array, &[0; 480], 5)?;
//! #     std::fs::write(folder.path().join(format!("raw16/{name}.blosc")), file)?;
//! # }
//! use std::sync::Arc;
//!
//! use half::f16;
//! use images::{
//!     BatchMemory, DataSet, Form, ImageBatch, ImageSamples, ImageSpec, Key, n_slots,
//! };
//! use pipeline::{Pipeline, PipelineSpec};
//! use storage::LocalStorage;
//!
//! // Three cubes of 4 x 6 pixels and 10 channels, in batches of 2. A batch is a block.
//! let data = DataSet::open(Arc::new(LocalStorage::new(folder.path())))?;
//! let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 2, ..Default::default() };
//! let engine = PipelineSpec { batch_rows: 2, ..sizes };
//! let memory = BatchMemory::Ring {
//!     // The consumer has one batch at a time.
//!     n_slots: n_slots(&engine, 1),
//!     n_samples: 2,
//!     allocate: Arc::new(slots::Mapped),
//! };
//! let spec =
//!     ImageSpec { keys: vec![Key::cube("features")], memory, ..ImageSpec::new(Form::Raw16) };
//! let samples = ImageSamples::open(&data, &spec)?;
//!
//! let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned)?;
//! let mut n_cubes = 0;
//! for batch in pipeline.epoch(0)? {
//!     let batch = batch?;
//!     let cubes = batch.key("features").unwrap();
//!     assert_eq!(cubes.shape(), [batch.n_samples(), 4, 6, 10]);
//!     assert_eq!(cubes.values::<f16>()?.len(), batch.n_samples() * 240);
//!     n_cubes += batch.n_samples();
//! }
//! assert_eq!(n_cubes, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod assemble;
pub mod augment;
mod batch;
mod block;
mod data_set;
mod error;
pub mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod image_files;
mod open_key;
mod place;
mod read;
mod read_image;
mod samples;
mod spec;
mod zarr_arrays;

pub use assemble::ImageAssembler;
pub use batch::{ImageBatch, ImageMemory, KeyValues};
pub use block::{ImageBlock, Skipped};
pub use data_set::{DAT_SUFFIX, DataSet, Form, Image, ImageList, LIST_FILE, LIST_VERSION};
pub use error::Error;
pub use samples::{ImageSamples, ReadScratch, n_slots};
pub use spec::{BatchMemory, ImageSpec, Key, Origin, Role, SeededAugmentation, WhenDamaged};
