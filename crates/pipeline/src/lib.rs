//! The engine behind every loader: plan, read, assemble, deliver.
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
//!
//! ```
//! use std::sync::Arc;
//!
//! use pipeline::{
//!     Assemble, BatchPlace, BlockBytes, BlockPart, BlockRows, Error, Need, Pipeline,
//!     PipelineSpec, ReadStats, Source, Stop,
//! };
//! use worktime::ThreadTime;
//!
//! /// The squares of 0, 1, 2 ...
//! struct Squares(u64);
//!
//! impl Source for Squares {
//!     type Block = Vec<u64>;
//!     type Batch = Vec<u64>;
//!     type Error = Error;
//!     type Scratch = ();
//!     type Assembler = Squared;
//!
//!     fn n_rows(&self) -> u64 {
//!         self.0
//!     }
//!     fn fingerprint(&self) -> String {
//!         format!("squares below {}", self.0)
//!     }
//!     fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
//!         let (block, batch) = (8 * block_rows, 8 * batch_rows);
//!         Ok(Need { block, largest: block, batch, ..Need::default() })
//!     }
//!     fn block_bytes(&self, block: &Vec<u64>) -> BlockBytes {
//!         let now = size_of_val(block.as_slice()) as u64;
//!         BlockBytes { now, most: now }
//!     }
//!     fn read(
//!         &self,
//!         rows: &BlockRows<'_>,
//!         into: &mut Vec<u64>,
//!         (): &mut (),
//!         _: &Stop,
//!     ) -> Result<ReadStats, Error> {
//!         into.clear();
//!         into.extend(rows.ranges.iter().cloned().flatten().map(|row| row * row));
//!         Ok(ReadStats { values: into.len() as u64, ..ReadStats::default() })
//!     }
//!     fn assembler(&self, _: u64) -> Result<Squared, Error> {
//!         Ok(Squared::default())
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Squared(Vec<u64>);
//!
//! impl Assemble for Squared {
//!     type Block = Vec<u64>;
//!     type Batch = Vec<u64>;
//!     type Error = Error;
//!
//!     fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
//!         self.0 = Vec::with_capacity(n_rows);
//!         Ok(())
//!     }
//!     fn add(&mut self, block: &Vec<u64>, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
//!         self.0.extend(part.order.iter().map(|row| block[*row as usize]));
//!         Ok(ThreadTime::default())
//!     }
//!     fn finish(&mut self, _: BatchPlace) -> Result<Vec<u64>, Error> {
//!         Ok(std::mem::take(&mut self.0))
//!     }
//! }
//!
//! let sizes = PipelineSpec { chunk_rows: 2, chunks_per_block: 3, ..Default::default() };
//! let spec = PipelineSpec { batch_rows: 4, ..sizes };
//! let pipeline = Pipeline::new(Arc::new(Squares(10)), spec, Vec::len)?;
//! let mut all: Vec<u64> = Vec::new();
//! for batch in pipeline.epoch(0)? {
//!     all.extend(batch?);
//! }
//! all.sort();
//! assert_eq!(all, [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]);
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod budget;
mod cut;
mod epoch;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod memory;
mod pipeline;
mod read;
mod selected;
mod source;
mod spec;
mod stages;
mod state;
mod stats;
mod world;

pub use budget::{Budget, Lease};
pub use epoch::Epoch;
pub use error::Error;
pub use pipeline::{Epochs, Pipeline};
pub use selected::Selected;
pub use shuffle::Stop;
pub use source::{
    Assemble, BatchPlace, BlockBytes, BlockPart, BlockPlace, BlockRows, Need, Source,
};
pub use spec::PipelineSpec;
pub use stages::{StageTime, StageTimes};
pub use state::LoaderState;
pub use stats::EpochStats;
pub use worktime::ReadStats;
pub use world::World;
