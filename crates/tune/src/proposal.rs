//! The search for settings, over what the model predicts; pure.
//!
//! `candidates` are the settings to choose from, `choice` takes the fastest that fit, `refinement`
//! says which of them to run before the choice stands, and `probe_design` which runs come first.

mod candidates;
mod choice;
mod probe_design;
mod refinement;

pub(crate) use candidates::specs;
pub(crate) use choice::{Candidate, Goal, MEMORY_MARGIN, frontier};
pub(crate) use probe_design::design;
pub(crate) use refinement::Refinement;
