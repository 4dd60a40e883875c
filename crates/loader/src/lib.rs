#![doc = include_str!("../README.md")]
//!
//! A [`Dataset`] is a selection of cells and genes, from one experiment or several. A [`Loader`]
//! delivers it with the settings of a [`LoaderSpec`]: each pass is an [`Epoch`], which iterates
//! [`Batch`]es. A batch has rows of X (dense, CSR or COO), of further layers, arrays of obsm and
//! modalities, and the obs row and joinid of each; with neighbours, their rows of X, too. Threads
//! read blocks and make batches ahead, within limits; dropping the epoch ends them at any point.
//!
//! Several processes can share one order: [`PipelineSpec::world`] is the rank of this process and
//! their number. [`Epoch::state`] saves a place in the order, and [`Loader::resume`] continues
//! there, with any number of processes.
//!
//! The crate does not depend on a framework. Batches are written into buffers of
//! [`BatchBuffers`]: on the heap by default, or in a framework's own memory (crate `torch-feed`).
#![cfg_attr(docsrs, feature(doc_cfg))]

mod alignment;
mod assemble;
mod batch;
mod beside;
mod block;
mod buffers;
mod cell_source;
mod cells;
mod dataset;
mod element_type;
mod elements;
pub mod encode;
mod epoch;
mod error;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod gene_names;
mod loader;
mod memory;
mod need;
mod neighbours;
mod obs;
mod read;
mod selected;
mod selection;
mod spec;
mod stats;
mod subset;
mod to_arrow;
#[cfg(feature = "ndarray")]
mod to_ndarray;
#[cfg(feature = "sprs")]
mod to_sprs;
mod tokens;
mod unfinished;

pub use alignment::GeneJoin;
pub use batch::{Batch, CooBatch, CsrBatch, Matrix, Modality};
pub use buffers::{
    BatchBuffer, BatchBuffers, BufferError, HeapBuffer, HeapBuffers, ReadableBuffer,
};
pub use cells::Cells;
pub use dataset::Dataset;
pub use densify::Transform;
pub use element_type::ElementType;
pub use elements::{ElementTypeError, Elements, ElementsMut};
pub use epoch::{Epoch, Epochs};
pub use error::{
    ColumnsError, ConcatError, DatasetError, LoaderError, MatrixError, OpenError, ReaderError,
    TokenError,
};
pub use loader::Loader;
pub use memory::CellMemory;
pub use neighbours::{Nearest, NeighbourRows, NeighbourSpec, Neighbours};
pub use pipeline::{
    Budget, LoaderState, PipelineSpec, Skipped, StageTime, StageTimes, WhenDamaged, World,
};
pub use selection::{CellJoin, DatasetSpec, Genes, ModalitySpec};
pub use shuffle::{RowSet, RowSetBuilder, Stop, sample, split};
pub use soma_io::{AxisQuery, GeneSelection, Joinids, ReaderChoice, ValueFilter};
pub use spec::{BatchForm, BlockForm, LoaderSpec, Order, Remainder, Totals, UnknownForm};
pub use stats::EpochStats;
pub use subset::{SubsetError, WeightError};
pub use to_arrow::ToArrowError;
#[cfg(feature = "sprs")]
pub use to_sprs::ToSprsError;
pub use tokens::{TokenBatch, TokenSpec};
