//! The pipeline from a selection of cells and genes to shuffled batches: plan, read, block, batch.
//!
//! [`Dataset`] says what there is, [`LoaderSpec`] how it is wanted, [`Loader`] gives an [`Epoch`] for each pass, and an
//! epoch iterates [`Batch`]es: rows of X, dense or CSR, with the obs row and joinid of each. One thread reads blocks
//! ahead, another makes batches ahead, both bounded; dropping the epoch at any point ends them.
//!
//! The crate knows no framework: dense batches are written into what [`BatchBuffers`] gives, which is the heap here
//! and can be a framework's own memory elsewhere.

mod batch;
mod block;
mod buffers;
mod cells;
mod cut;
mod dataset;
mod epoch;
mod error;
mod loader;
mod read;
mod spec;
mod stats;

pub use batch::{Batch, Matrix};
pub use buffers::{BatchBuffers, HeapBuffer, HeapBuffers};
pub use cells::Cells;
pub use dataset::{Dataset, DatasetSpec};
pub use densify::CsrMatrix;
pub use epoch::Epoch;
pub use error::Error;
pub use loader::Loader;
pub use soma_io::GeneSelection;
pub use spec::{BatchForm, LoaderSpec, Method, Order};
pub use stats::EpochStats;
