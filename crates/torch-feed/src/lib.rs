//! The loader's batches as [`tch`] tensors.
//!
//! Dense batches are written by the loader's thread straight into memory that torch owns; when a [`TensorBatch`] is
//! dropped its memory is written again for a later one. Sparse batches are torch's CSR tensors. The obs rows stay an
//! Arrow `RecordBatch`, the joinids are an int64 tensor.
//!
//! This is the only crate that knows torch. Programs that link it need an rpath to libtorch: a build script with
//! `DEP_TORCH_FEED_LIB_DIR` gives it, as this crate's own does for its tests.

mod batch;
mod buffers;
mod device;
mod error;
mod memory;
mod pool;
mod staging;
mod stored_type;
mod tensor_loader;
#[cfg(test)]
mod tests;

pub use batch::TensorBatch;
pub use buffers::{TensorBuffer, TensorBuffers};
pub use error::Error;
pub use tensor_loader::{TensorEpoch, TensorLoader};
