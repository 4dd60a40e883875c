//! Delivers the cells of SOMA experiments in shuffled batches.
//!
//! A [`Dataset`] is a selection of cells and genes, from one experiment or several. A [`Loader`]
//! delivers it with the settings of a [`LoaderSpec`]: each pass is an [`Epoch`], which iterates
//! [`Batch`]es. A batch has rows of X (dense, CSR or COO), of further layers and of arrays of obsm,
//! and the obs row and joinid of each. Threads read blocks and make batches ahead, within limits;
//! dropping the epoch ends them at any point.
//!
//! Several processes can share one order: [`PipelineSpec::world`] is the rank of this process and
//! their number. [`Epoch::state`] saves a place in the order, and [`Loader::resume`] continues
//! there, with any number of processes.
//!
//! The crate does not depend on a framework. Batches are written into buffers of
//! [`BatchBuffers`]: on the heap by default, or in a framework's own memory (crate `torch-feed`).
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, RecordBatch, StringArray};
//! use loader::{BatchForm, BlockForm, Cells, Dataset, GeneSelection, Loader, LoaderSpec};
//! use loader::{Order, PipelineSpec};
//! use soma_io::{CsrBuffers, MemoryReader};
//!
//! // Four cells x three genes; the third cell has no values.
//! let x = MemoryReader::new(CsrBuffers {
//!     row_offsets: vec![0, 2, 3, 3, 4],
//!     columns: vec![0, 2, 1, 2],
//!     values: vec![1.0, 2.0, 3.0, 4.0],
//!     n_columns: 3,
//! })?;
//! let types: ArrayRef = Arc::new(StringArray::from(vec!["B cell", "T cell", "B cell", "B cell"]));
//! let obs = RecordBatch::try_from_iter([("cell_type", types)])?;
//! let dataset = Dataset::new(Arc::new(x), Cells::Range(0..4), obs, GeneSelection::All)?;
//!
//! let spec = LoaderSpec {
//!     pipeline: PipelineSpec {
//!         chunk_rows: 2,
//!         chunks_per_block: 1,
//!         order: Order::InOrder,
//!         batch_rows: 3,
//!         ..PipelineSpec::default()
//!     },
//!     block_form: BlockForm::Csr,
//!     batch_form: BatchForm::Dense,
//!     ..LoaderSpec::default()
//! };
//! let loader = Loader::new(dataset, spec)?;
//! let mut epoch = loader.epoch(0)?;
//! let first = epoch.next().expect("two batches")?;
//! assert_eq!(first.joinids, [0, 1, 2]);
//! assert_eq!(first.x.dense(), Some(&[1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0][..]));
//! assert_eq!(first.obs.num_rows(), 3);
//! let last = epoch.next().expect("two batches")?;
//! assert_eq!(last.x.dense(), Some(&[0.0, 0.0, 4.0][..]));
//! assert!(epoch.next().is_none());
//! assert_eq!(epoch.stats().engine.read.values, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod gene_names;
mod loader;
mod memory;
mod need;
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
pub use batch::{Batch, CooBatch, CsrBatch, Matrix};
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
pub use pipeline::{Budget, LoaderState, PipelineSpec, StageTime, StageTimes, World};
pub use selection::{DatasetSpec, Genes};
pub use shuffle::{RowSet, RowSetBuilder, Stop, sample, split};
pub use soma_io::{AxisQuery, GeneSelection, Joinids, ReaderChoice, ValueFilter};
pub use spec::{BatchForm, BlockForm, LoaderSpec, Order, Remainder, Totals, UnknownForm};
pub use stats::EpochStats;
pub use subset::{SubsetError, WeightError};
pub use to_arrow::ToArrowError;
#[cfg(feature = "sprs")]
pub use to_sprs::ToSprsError;
pub use tokens::{TokenBatch, TokenSpec};
