//! Experiments to try things on: a Census-shaped one made from a seed ([`generate`]), and counts of a 10x Genomics folder
//! ([`import_10x`]).
//!
//! Both write through [`soma_io::ExperimentWriter`], in bounded memory, under another name until the experiment is whole.

mod columns;
mod destination;
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

/// The measurement that is written.
const MEASUREMENT: &str = "RNA";
/// The layer of X that is written.
const LAYER: &str = "raw";
