#![doc = include_str!("../README.md")]
//!
//! # Cells
//!
//! The loader's thread writes dense batches straight into memory that torch allocated and that
//! their tensors then borrow. When the last tensor that shares the memory is dropped, a later batch
//! reuses it. So tensors may be kept, and cost memory for as long. Sparse batches are torch's CSR
//! or COO tensors. The obs rows stay an Arrow `RecordBatch`; the joinids are an int64 tensor.
//!
//! # Arrays
//!
//! `ArrayTensorLoader` delivers the batches of crate `arrays`: a tensor for each variable. If
//! blocks are as large as batches, a tensor borrows the memory that its chunks were decoded into,
//! so no value is copied on its way from the codec to the model. When the last tensor that shares
//! it is dropped, a later block is decoded into that memory. Copies to a GPU are waited for.
//!
//! # Images
//!
//! With the feature `images`, `ImageMaps` applies the random maps of crate `images` on any device:
//! the same parameters as on the CPU, and the same result. `UNet` is a small model that segments
//! cubes, with its optimizer, and `SegmentationBatch` what it takes.
//!
//! # Documents
//!
//! With the feature `sequences`, `DocumentModel` trains Doc2Vec as PyTorch programs do: batches of
//! targets, negative sampling, Adam. Crate `doc2vec` trains such a model faster on a CPU.
//!
//! # Cells on a GPU
//!
//! [`TensorLoader::to_device`] delivers batches on another device. The loader writes them into
//! pinned memory, from which they are copied without waiting: the host makes the next batches while
//! the device copies and computes. Pinned memory is reused only after a wait for the device that
//! began after its copy; one wait frees all pieces, and happens only if none is free.
//! Sparse rows are sent packed and widened there, and [`TensorLoader::densify_on_device`] makes
//! dense batches from them there.
//!
//! It has run on an H200 (`results/2026-11-26-gpu`). Everything except torch's own calls is tested
//! without a GPU, with a stand-in that copies as late as it may. Known limits: tch has no streams,
//! so a device copies between its kernels, not beside them, and waiting for a copy means waiting
//! for all earlier work. A CUDA error during a wait is a panic in tch, which the loader turns into
//! its own error on its threads.
//!
//! # libtorch at run time
//!
//! Programs that link this crate find libtorch when `cargo run` or `cargo test` starts them.
//! Started in another way they need its folder in `LD_LIBRARY_PATH` or in an rpath, which a build
//! script can set from `DEP_TORCH_FEED_LIB_DIR`, as this crate's own does for its tests. To use a
//! GPU, a program outside of this workspace also links all of libtorch, with the last two link
//! arguments of that build script: no symbol names `libtorch_cuda`, so the linker drops it.
//!
//! This is the only crate that knows torch.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod adam;
mod ahead;
#[cfg(feature = "arrays")]
mod array_tensor_loader;
#[cfg(feature = "arrays")]
mod array_tensors;
mod batch;
mod buffers;
#[cfg(feature = "arrays")]
mod copies_ahead;
mod copy_stream;
mod device;
mod device_choice;
#[cfg(feature = "sequences")]
mod document_model;
mod error;
#[cfg(feature = "images")]
mod image_augmentation;
mod linear_classifier;
mod memory;
#[cfg(feature = "images")]
mod pinned_slots;
mod pool;
mod row_values;
#[cfg(feature = "images")]
mod segmentation_batch;
#[cfg(feature = "sequences")]
mod sequence_tensors;
mod staging;
mod stored_type;
mod tensor_loader;
#[cfg(feature = "arrays")]
mod tensor_source;
#[cfg(test)]
mod tests;
#[cfg(feature = "images")]
mod u_net;

#[cfg(feature = "arrays")]
pub use array_tensor_loader::{ArrayTensorEpoch, ArrayTensorLoader};
#[cfg(feature = "arrays")]
pub use array_tensors::ArrayTensors;
pub use batch::TensorBatch;
pub use buffers::{TensorBuffer, TensorBuffers};
pub use device_choice::DeviceChoice;
#[cfg(feature = "sequences")]
pub use document_model::{DocumentExamples, DocumentModel, DocumentVectors};
pub use error::Error;
#[cfg(feature = "images")]
pub use image_augmentation::ImageMaps;
pub use linear_classifier::LinearClassifier;
#[cfg(feature = "images")]
pub use pinned_slots::PinnedSlots;
pub use row_values::RowValues;
#[cfg(feature = "images")]
pub use segmentation_batch::SegmentationBatch;
pub use tch;
pub use tensor_loader::{TensorEpoch, TensorLoader};
#[cfg(feature = "arrays")]
pub use tensor_source::TensorSource;
#[cfg(feature = "images")]
pub use u_net::{ChannelScale, UNet, UNetSpec};

/// Version of the libtorch that this crate was built with, if its files name it.
pub const LIBTORCH_VERSION: Option<&str> = option_env!("TORCH_FEED_LIBTORCH");

/// Version of the tch crate: no other fits (`Cargo.toml`).
pub const TCH_VERSION: Option<&str> = Some("0.24.0");
