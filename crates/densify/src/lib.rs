#![doc = include_str!("../README.md")]
//!
//! | path | from | through | to |
//! |---|---|---|---|
//! | `np.array` | COO by joinid | [`scatter_coo`], then [`dense_rows_to_dense`] | a dense block, then dense batches |
//! | `scipy.csr` | COO by joinid | [`CooToCsr`], then [`csr_rows_to_dense`] | a CSR block, then dense batches |
//! | native | a reader's CSR, whole or packed | [`csr_rows_to_dense`], [`csr_gather_rows`] | dense or CSR batches |
//!
//! All three give the same numbers. If an array stores several values for one cell and gene, CSR
//! keeps all of them in the order in which they were read, and dense rows keep the last one.
//!
//! Dense rows are row-major, `f32` or `f16`: the value of row `i` and column `j` is at
//! `i * n_columns + j`. Kernels can scale values, take their logarithm and clip them on the way
//! ([`Transform`]).
#![cfg_attr(docsrs, feature(doc_cfg))]

mod coo;
mod csr_rows;
mod dense_rows;
mod error;
mod gather;
mod gathered;
mod index;
mod past_caches;
mod to_dense;
mod transform;

pub use coo::{CooToCsr, CooView, OwnedCoo, scatter_coo};
pub use csr_rows::{CsrRows, RowScratch};
pub use error::Error;
pub use gather::{csr_gather_counts_into, csr_gather_rows, csr_gather_rows_into, csr_rows_to_coo};
pub use gathered::{Column, GatheredValue};
pub use index::AxisIndex;
pub use to_dense::{csr_rows_to_dense, dense_rows_to_dense};
pub use transform::{RowTransforms, Transform, Value};
