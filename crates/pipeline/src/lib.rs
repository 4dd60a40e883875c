#![doc = include_str!("../README.md")]
//!
//! A [`Source`] knows one kind of samples: how to read a block of them, and how to make batches
//! from rows of blocks. [`Pipeline`] does the rest, whatever the samples are:
//!
//! - it plans the order of every epoch, a function of the settings, the seed and the epoch (crate
//!   `shuffle`);
//! - it deals one order to all ranks, and resumes a saved [`LoaderState`] with any number of ranks;
//! - it reads blocks and makes batches ahead, in threads that start and end with the epoch;
//! - it keeps to a [`Budget`] of memory, alone or shared with other loaders;
//! - it counts and times everything that ran ([`EpochStats`]).
#![forbid(unsafe_code)]

mod budget;
mod cut;
mod epoch;
mod error;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod memory;
mod pipeline;
mod read;
mod selected;
mod skip;
mod source;
mod spec;
mod stages;
mod state;
mod stats;
mod upcoming;
mod world;

pub use budget::{Budget, Lease};
pub use epoch::Epoch;
pub use error::Error;
pub use pipeline::{Epochs, Pipeline};
pub use selected::Selected;
pub use shuffle::Stop;
pub use skip::{Skipped, WhenDamaged, system_failure};
pub use source::{
    Assemble, BatchPlace, BlockBytes, BlockPart, BlockPlace, BlockRows, Need, Source,
};
pub use spec::PipelineSpec;
pub use stages::{StageTime, StageTimes};
pub use state::LoaderState;
pub use stats::EpochStats;
pub use upcoming::Upcoming;
pub use worktime::ReadStats;
pub use world::World;
