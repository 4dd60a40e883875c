//! Criterion benches of somafeed, by layer, and their shared data.
//!
//! `cargo bench` runs all of them: `plan` (orders of rows), `densify` (from COO and CSR to dense
//! rows), `tokens` (from CSR to sequences) and `read` (rows of X from disk). Throughput is in
//! cells.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Cells for the kernels, both as CSR and as COO.
#[derive(Debug)]
pub struct Cells {
    /// The beginning of each row, followed by the number of values.
    pub row_offsets: Vec<usize>,
    /// The row of each value.
    pub rows: Vec<i64>,
    /// The column of each value, for COO.
    pub genes: Vec<i64>,
    /// The column of each value, for CSR.
    pub columns: Vec<u32>,
    /// The values.
    pub values: Vec<f32>,
    /// Number of columns.
    pub n_columns: usize,
}

/// Makes `n_rows` cells with about 1,400 of `n_columns` genes each, from a fixed seed. Numbers of
/// genes are log-normal within 200 to 8,000 (and at most half of the genes); genes are random,
/// distinct and ascending within a cell.
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
    let mut taken = vec![false; n_columns];
    for row in 0..n_rows {
        let nnz = ((1_400.0 * (0.5 * normal(&mut random)).exp()) as usize).clamp(200, 8_000);
        taken.fill(false);
        let mut n_left = nnz.min(n_columns / 2);
        while n_left > 0 {
            let column = below(&mut random, n_columns);
            n_left -= usize::from(!taken[column]);
            taken[column] = true;
        }
        for column in (0..n_columns).filter(|column| taken[*column]) {
            cells.rows.push(row as i64);
            cells.genes.push(column as i64);
            cells.columns.push(column as u32);
            cells.values.push(1.0 + below(&mut random, 9) as f32);
        }
        cells.row_offsets.push(cells.values.len());
    }
    cells
}

/// A number below `bound`, uniform enough for a bench.
fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u64::from(random.next_u32()) * bound as u64) >> 32) as usize
}

/// An approximately normal number with mean 0 and deviation 1: the sum of twelve uniform numbers,
/// minus 6.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX)).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_promised() {
        let cells = cells(200, 20_000);
        assert_eq!(cells.row_offsets.len(), 201);
        let mut nnz = Vec::new();
        for bounds in cells.row_offsets.windows(2) {
            let columns = &cells.columns[bounds[0]..bounds[1]];
            assert!(columns.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(columns.iter().all(|column| (*column as usize) < cells.n_columns));
            nnz.push(columns.len());
        }
        nnz.sort_unstable();
        assert!(200 <= nnz[0] && nnz[199] <= 8_000);
        assert!((1_200..1_600).contains(&nnz[100]), "the median is {}", nnz[100]);
    }
}
