//! Samples of known size, for tests.

use crate::model::KnownMemory;
use crate::survey::Facts;

/// Facts of data whose batches are copied from blocks.
pub(crate) fn copied(n_rows: u64, batch_rows: u64) -> Facts {
    let memory =
        KnownMemory { row_bytes: 6e3, least_row_bytes: 6e3, batch_bytes: 2.5e8, n_batches: 3 };
    Facts { n_rows, batch_rows, whole_batches: false, most_row_bytes: 1e4, memory }
}
