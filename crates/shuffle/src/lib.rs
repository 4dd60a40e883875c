#![doc = include_str!("../README.md")]
//!
//! The crate does no I/O and starts no threads. Its other parts:
//! - [`split`] divides rows into training, validation and test sets before any plan is made;
//! - [`RowSet`] is a set of rows in little memory, for example a part of a split;
//! - [`sample`] draws the rows of an epoch if they do not come once each, or composes its batches;
//! - [`storage_order`] is the order of rows that are shuffled once, on storage;
//! - [`entropy`] measures and predicts how random an order is;
//! - [`AliasTable`] draws numbers with given weights;
//! - [`RandomKey`] selects random numbers by what they are for.
//!
//! Rows that are stored together are cheap to read together, but they are also alike. A plan
//! compromises: it cuts the rows into *chunks* of consecutive rows, puts the chunks into random
//! order, reads a fixed number of chunks into a *block*, and puts the block's rows into random
//! order in memory. Smaller chunks, and more of them per block, make the order more random and
//! reading slower.
//!
//! A plan is a function of its [`PlanSpec`] and the epoch alone: the same numbers give the same
//! order on every machine, another epoch gives another order, and each row comes exactly once per
//! epoch.
//!
//! Several ranks take parts of one order: [`BatchSpec`] distributes it over global batches, lanes
//! and ranks. A plan can start at any global batch ([`EpochPlan::starting_at`]), also with another
//! number of ranks, and continues with the same rows.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod alias_table;
mod batch_lengths;
mod batch_spec;
pub mod entropy;
mod epoch_plan;
mod labels;
mod plan;
mod random;
mod random_key;
mod row_set;
pub mod sample;
mod sequence;
pub mod split;
pub mod stop;
mod storage_order;
mod windows;

pub use alias_table::{AliasTable, AliasTableError};
pub use batch_lengths::BatchLengths;
pub use batch_spec::{BatchSpec, Remainder};
pub use epoch_plan::{BlockPlan, EpochPlan};
pub use plan::{Order, PlanError, PlanSpec};
pub use random_key::RandomKey;
pub use row_set::{RowOrderError, RowSet, RowSetBuilder};
pub use stop::{Stop, Stopped};
pub use storage_order::storage_order;
pub use windows::ramp_chunks;
