//! Example experiments: a Census-shaped one made from a seed ([`generate`]), and an import of a 10x
//! Genomics folder ([`import_10x`]).
//!
//! Both write through [`soma_io::ExperimentWriter`], in bounded memory, and under another name
//! until the experiment is complete.
//!
//! ```
//! use example_data::{GenerateSpec, generate};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("example");
//! let spec = GenerateSpec { n_cells: 500, n_genes: 200, seed: 1, ..GenerateSpec::default() };
//! let report = generate(&path.to_string_lossy(), &spec, &mut |n_cells| assert!(n_cells <= 500))?;
//! assert_eq!((report.n_cells, report.n_genes), (500, 200));
//! assert!(path.join("ms/RNA/X/raw").is_dir());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod columns;
mod error;
mod generate;
mod model;
mod pieces;
mod random;
mod tenx;

pub use error::Error;
pub use generate::{GenerateReport, GenerateSpec, generate};
pub use soma_io::{Config, Extent};
pub use tenx::{ImportReport, ImportSpec, import_10x};

/// Name of the measurement.
const MEASUREMENT: &str = "RNA";
/// Name of the layer of X.
const LAYER: &str = "raw";
