//! The search for settings, based on the model's predictions; pure.
//!
//! `candidates` lists the settings to choose from, `choice` picks the fastest that fit,
//! `refinement` decides which to run before the choice is final, and `probe_design` plans the first
//! runs.

mod candidates;
mod choice;
mod probe_design;
mod refinement;

pub(crate) use candidates::specs;
pub(crate) use choice::{Candidate, Goal, MEMORY_MARGIN, frontier};
pub(crate) use probe_design::design;
pub(crate) use refinement::Refinement;
