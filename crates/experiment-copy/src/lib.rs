//! New experiments from existing ones: [`slice()`] copies some cells and genes of an experiment,
//! from a folder or an object store, to a new one.
//!
//! Everything is streamed in bounded memory, and the new experiment appears only when it is
//! complete ([`soma_io::Destination`]).
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use example_data::{GenerateSpec, generate};
//! use experiment_copy::{Genes, SliceSpec, slice};
//! use soma_io::{Experiment, OpenOptions, ValueFilter};
//!
//! let folder = tempfile::tempdir()?;
//! let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
//! let (from, to) = (path("from"), path("to"));
//! let example = GenerateSpec { n_cells: 500, n_genes: 200, seed: 1, ..GenerateSpec::default() };
//! generate(&from, &example, &mut |_| {})?;
//!
//! let spec = SliceSpec {
//!     obs_filter: Some(ValueFilter::parse("nnz > 10")?),
//!     genes: Genes::First(50),
//!     ..SliceSpec::default()
//! };
//! let source = Experiment::open(&from, &OpenOptions::default())?;
//! let report = slice(&source, &to, &spec, &mut |_| ControlFlow::Continue(()))?;
//! assert_eq!(report.n_genes, 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beside;
mod cells;
mod error;
mod genes;
mod matrix;
mod parts;
mod rows;
mod slice;

pub use cells::DatasetSlice;
pub use error::Error;
pub use genes::Genes;
pub use slice::{SliceEvent, SliceReport, SliceSpec, slice};
pub use soma_io::{ColumnChoice, Existing, REPLACE_EXPERIMENT};

/// The column that numbers the rows of a data frame.
const JOINID: &str = "soma_joinid";
