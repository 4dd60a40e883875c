//! The loader's batches as [`tch`] tensors.
//!
//! Dense batches are written by the loader's thread straight into memory that torch allocated and
//! that their tensors then borrow; when the last tensor that shares it is dropped, the memory is
//! written again for a later batch. So tensors may be kept, and cost memory while they are. Sparse
//! batches are torch's CSR or COO tensors. The obs rows stay an Arrow `RecordBatch`, the joinids
//! are an int64 tensor.
//!
//! # On a GPU
//!
//! [`TensorLoader::to_device`] gives batches on another device. The loader then writes them into pinned memory, from which they are
//! copied without waiting: the host goes on to make the next batches while the device copies and computes. A piece of pinned memory
//! is not written again before the device has been waited for after its copy began, which happens once for all pieces, and only
//! when there is none else. [`TensorLoader::densify_on_device`] sends what is stored instead, 8 bytes a value, and makes dense
//! batches of it there.
//!
//! ```no_run
//! # fn feed(dataset: loader::Dataset, spec: loader::LoaderSpec) -> Result<(), torch_feed::Error> {
//! use tch::Device;
//! use torch_feed::TensorLoader;
//!
//! let loader = TensorLoader::new(dataset, spec)?.to_device(Device::Cuda(0))?.densify_on_device()?;
//! for batch in loader.epoch(0)? {
//!     let batch = batch?;
//!     assert_eq!(batch.x().device(), Device::Cuda(0));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! None of this has been run on a GPU yet. All but torch's own calls is tested without one, by a stand-in that copies as late as it
//! may. Known limits: tch knows no streams of its own, so a device copies between its kernels and not beside them, and waiting for a
//! copy is waiting for all that was asked of the device before; a CUDA error that turns up while waiting is a panic of tch's, which
//! the loader makes its own error where it is on its thread.
//!
//! This is the only crate that knows torch. Programs that link it need an rpath to libtorch: a build script with
//! `DEP_TORCH_FEED_LIB_DIR` gives it, as this crate's own does for its tests.

mod batch;
mod buffers;
mod device;
mod error;
mod linear_classifier;
mod memory;
mod pool;
mod row_values;
mod staging;
mod stored_type;
mod tensor_loader;
#[cfg(test)]
mod tests;

pub use batch::TensorBatch;
pub use buffers::{TensorBuffer, TensorBuffers};
pub use error::Error;
pub use linear_classifier::LinearClassifier;
pub use row_values::RowValues;
pub use tensor_loader::{TensorEpoch, TensorLoader};
