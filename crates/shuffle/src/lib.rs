//! Scatter-gather shuffling, as plans: which rows are read together, and in which order they are delivered. No I/O, no threads.
//! Which rows are for training and which for test is decided before that: [`split`]; and where rows do not come each once, which do:
//! [`sample`]. Rows that are shuffled on storage, once, go by [`storage_order`]. How random the order is, is measured and predicted in [`entropy`].
//!
//! Rows that are stored together are cheap to read together, and rows that are stored together are alike. The scheme between the
//! two: the rows are cut into *chunks* of consecutive rows; the chunks are put into random order; so many chunks at a time are read
//! into a *block*, whose rows are put into random order in memory. Small chunks and many of them to a block make the order more
//! random, and reading dearer.
//!
//! A plan is a function of its [`PlanSpec`] and the epoch alone: the same numbers give the same order on every machine, another
//! epoch gives another order, and each row comes exactly once per epoch.
//!
//! Several ranks take parts of one order: [`BatchSpec`] says how it is dealt to global batches, lanes and ranks. A plan begins at any
//! global batch ([`EpochPlan::starting_at`]), also with another number of ranks, and goes on with the same rows.
//!
//! ```
//! use shuffle::{Order, PlanSpec};
//!
//! let spec = PlanSpec { n_rows: 10, chunk_rows: 2, chunks_per_block: 3, order: Order::Shuffled, seed: 42 };
//! let blocks: Vec<_> = spec.epoch(0)?.collect();
//! assert_eq!(blocks.len(), 2);
//! let mut delivered: Vec<u64> = blocks.iter().flat_map(|block| block.delivered_rows()).collect();
//! delivered.sort_unstable();
//! assert_eq!(delivered, (0..10).collect::<Vec<_>>());
//!
//! // Two ranks; each takes two rows of every global batch of four.
//! use shuffle::{BatchSpec, Remainder};
//!
//! let batches = BatchSpec { batch_rows: 2, rank: 0, world_size: 2, lanes: 2, remainder: Remainder::Drop };
//! let plan = spec.dealt_epoch(0, &batches)?;
//! assert_eq!((plan.n_batches(), plan.n_rows()), (2, 4));
//! # Ok::<(), shuffle::Error>(())
//! ```

mod batch_lengths;
mod batch_spec;
pub mod entropy;
mod epoch_plan;
mod error;
mod plan;
mod random;
pub mod sample;
mod sequence;
pub mod split;
mod storage_order;

pub use batch_lengths::BatchLengths;
pub use batch_spec::{BatchSpec, Remainder};
pub use epoch_plan::{BlockPlan, EpochPlan};
pub use error::Error;
pub use plan::{Order, PlanSpec};
pub use storage_order::storage_order;
