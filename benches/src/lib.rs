//! Criterion benches of somafeed, by layer, and the data that they share.
//!
//! `cargo bench` runs all: `plan` (orders of rows), `densify` (from COO and CSR to dense rows) and `read` (rows of X from disk).
//! Throughput is in cells.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Cells in CSR and as the COO that the same cells come in, for the kernels.
#[derive(Debug)]
pub struct Cells {
    /// Where each row begins, and at last the number of values.
    pub row_offsets: Vec<usize>,
    /// The row of each value.
    pub rows: Vec<i64>,
    /// The column of each value, as COO has it.
    pub genes: Vec<i64>,
    /// The column of each value.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// The number of columns.
    pub n_columns: usize,
}

/// `n_rows` cells with some 1,400 of `n_columns` genes each, spread evenly, from a fixed seed.
pub fn cells(n_rows: usize, n_columns: usize) -> Cells {
    let mut random = ChaCha8Rng::from_seed([7; 32]);
    let mut cells = Cells {
        row_offsets: vec![0],
        rows: Vec::new(),
        genes: Vec::new(),
        columns: Vec::new(),
        values: Vec::new(),
        n_columns,
    };
    // One gene of each so many consecutive ones, at a random place among them.
    let stride = n_columns / 1_400;
    for row in 0..n_rows {
        for first in (0..n_columns - stride).step_by(stride) {
            let column = first + random.next_u32() as usize % stride;
            cells.rows.push(row as i64);
            cells.genes.push(column as i64);
            cells.columns.push(column as u32);
            cells.values.push(1.0 + (random.next_u32() % 9) as f32);
        }
        cells.row_offsets.push(cells.values.len());
    }
    cells
}
