//! Kernels that convert expression values between COO, CSR and dense rows. Slices in, slices out;
//! no I/O, no threads.
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
//!
//! ```
//! use densify::{AxisIndex, CooToCsr, CooView, CsrMatrix, csr_rows_to_dense};
//!
//! // Cells 10 and 11 of genes 5 and 3, in this order.
//! let (rows, columns) = (AxisIndex::ranges("cell", [10..12])?, AxisIndex::list("gene", &[5, 3])?);
//! let mut counter = CooToCsr::new();
//! let coo = CooView { rows: &[10, 11, 11], columns: &[3, 3, 5], values: &[1.0, 2.0, 4.0] };
//! counter.add(coo, &rows, &columns)?;
//! let mut csr = CsrMatrix::empty(2);
//! counter.finish(rows.len(), columns.len(), &mut csr)?;
//!
//! // The second row, then the first.
//! let mut dense = [0.0; 4];
//! csr_rows_to_dense(csr.view(), &[1, 0], None, &mut dense)?;
//! assert_eq!(dense, [4.0, 2.0, 0.0, 1.0]);
//! # Ok::<(), densify::Error>(())
//! ```

mod coo;
mod csr;
mod csr_rows;
mod dense_rows;
mod error;
mod index;
mod past_caches;
mod transform;

pub use coo::{CooMatrix, CooToCsr, CooView, OwnedCoo, scatter_coo};
pub use csr::{
    CsrMatrix, CsrView, csr_gather_rows, csr_gather_rows_into, csr_rows_to_coo, csr_rows_to_dense,
    dense_rows_to_dense,
};
pub use csr_rows::{CsrRows, PackedValues, PackedView, RowScratch};
pub use error::Error;
pub use index::AxisIndex;
pub use transform::{RowTransforms, Transform, Value};
