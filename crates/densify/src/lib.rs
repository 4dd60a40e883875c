//! Kernels between the forms that expression values come in: COO, CSR and dense rows. Slices in, slices out; no I/O, no threads.
//!
//! | path | from | by way of | to |
//! |---|---|---|---|
//! | `np.array` | COO by joinid | [`scatter_coo`] | a dense block, row-major |
//! | `scipy.csr` | COO by joinid | [`CooToCsr`], then [`csr_rows_to_dense`] | a CSR block, then dense batches |
//! | native | CSR as a reader gives it | [`csr_rows_to_dense`], [`csr_gather_rows`] | dense or CSR batches |
//!
//! The three give the same numbers. Where a cell is there twice, which arrays that allow duplicates can have, CSR keeps both in the
//! order in which they were read, and dense rows have the one that was read last.
//!
//! Dense rows are row-major `f32`: the value of row `i` and column `j` is at `i * n_columns + j`.

mod coo;
mod csr;
mod error;
mod index;

pub use coo::{CooToCsr, CooView, OwnedCoo, scatter_coo};
pub use csr::{CsrMatrix, CsrView, csr_gather_rows, csr_rows_to_dense};
pub use error::Error;
pub use index::AxisIndex;
