//! The model of what a run costs, fitted to what was measured; pure. docs/tune.md derives it.
//!
//! `run_shape` is what a run reads, `decoding` what it decodes, `cost` and `memory` what that
//! takes; `observation` is what was measured of a run, `least_squares` fits the coefficients, and
//! `anchored` corrects predictions by what was measured.

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
pub(crate) use memory::KnownMemory;
pub(crate) use observation::{Observation, median};
#[cfg(test)]
pub(crate) use planted::{observed, planted};
pub(crate) use run_shape::{Probe, RunShape};
