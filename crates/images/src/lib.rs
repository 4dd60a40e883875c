#![doc = include_str!("../README.md")]
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
//!   it, or is skipped and listed in the batch ([`WhenDamaged`](pipeline::WhenDamaged)).
//!
//! Formats of files are in [`files`].
#![forbid(unsafe_code)]

mod assemble;
pub mod augment;
mod batch;
mod block;
mod data_set;
mod error;
pub mod files;
#[cfg(any(test, somafeed_fuzz))]
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
pub use block::ImageBlock;
pub use data_set::{DAT_SUFFIX, DataSet, Form, Image, ImageList, LIST_FILE, LIST_VERSION};
pub use error::Error;
pub use samples::{ImageSamples, ReadScratch, n_slots};
pub use spec::{BatchMemory, ImageSpec, Key, Origin, Role, SeededAugmentation};
