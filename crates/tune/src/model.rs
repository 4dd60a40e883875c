//! Model of the cost of a run, fitted to measurements; pure. docs/tune.md derives it.
//!
//! `run_shape` describes what a run reads and `decoding` what it decodes; `cost` and `memory`
//! predict the seconds and bytes. `observation` holds the figures of a measured run,
//! `least_squares` fits the coefficients, and `anchored` corrects predictions near settings that
//! were run.

mod anchored;
mod cost;
mod decoding;
mod least_squares;
mod memory;
mod observation;
#[cfg(test)]
mod planted;
mod run_shape;

pub(crate) use anchored::Anchored;
pub(crate) use cost::{CostModel, Work};
#[cfg(test)]
pub(crate) use decoding::Decoding;
pub use memory::KnownMemory;
pub(crate) use observation::{Observation, median};
#[cfg(test)]
pub(crate) use planted::{observed, planted};
pub(crate) use run_shape::{Probe, RunShape};
