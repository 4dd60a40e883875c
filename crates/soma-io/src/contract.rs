//! Checks any reader of X against the contract of [`XReader`], in the tests of its crate.
//!
//! [`check`] compares a reader with the rows that it should return. It covers everything that
//! [`XReader`] documents and the loader relies on:
//!
//! - rows: all, none, the first, the last, ranges with gaps; a row beyond the last is an error
//!   before anything is read;
//! - genes: all, ranges, lists in any order, none; a gene that does not exist or is listed twice is
//!   an error;
//! - CSR, packed CSR and COO agree with each other and with the expected rows, also in buffers with
//!   other contents, after a failed read, and in several threads at once;
//! - counts, statistics, kept values, and a consumer of COO that fails.
//!
//! ```
//! use soma_io::{CsrBuffers, MemoryReader, contract};
//!
//! let rows = CsrBuffers {
//!     row_offsets: vec![0, 2, 3],
//!     columns: vec![0, 2, 1],
//!     values: vec![1.0, 2.0, 3.0],
//!     n_columns: 3,
//! };
//! contract::check(&MemoryReader::new(rows.clone())?, &rows);
//! # Ok::<(), soma_io::Error>(())
//! ```

mod forms;
mod limits;
mod requests;

use std::collections::HashMap;

use self::requests::Request;
use crate::{CsrBuffers, GeneSelection, RowRanges, XReader};

/// Number of threads that read at the same time.
const N_THREADS: usize = 3;
/// Step between requests that are repeated; the selection includes all kinds of rows and of genes.
const SOME: usize = 7;

/// Checks `reader` against the contract of [`XReader`]. `expected` is all of X: row `i` has joinid
/// `i`.
///
/// # Panics
/// If the reader breaks the contract; the message names the rule, the rows and the genes.
pub fn check(reader: &dyn XReader, expected: &CsrBuffers) {
    expected.check().unwrap_or_else(|error| panic!("the expected rows are not CSR: {error}"));
    limits::check_counts(reader, expected);
    let requests = requests::all(reader.n_rows(), reader.n_columns());
    // All requests share the buffers, so each read replaces the rows of another.
    let mut buffers = forms::Buffers::default();
    let check_each = |step: usize, buffers: &mut forms::Buffers| {
        for request in requests.iter().step_by(step) {
            forms::check(reader, request, &request.expected(expected), buffers);
        }
    };
    check_each(1, &mut buffers);
    for (rows, genes) in requests::refused(reader.n_rows(), reader.n_columns()) {
        forms::check_refused(reader, &rows, &genes, &mut buffers);
    }
    // Buffers left by failed reads must be usable.
    check_each(SOME, &mut buffers);
    forms::check_giving_up(reader, expected);
    limits::check_times(reader, &requests[0]);
    limits::check_kept(reader, || check_each(SOME, &mut buffers));
    std::thread::scope(|scope| {
        for _ in 0..N_THREADS {
            scope.spawn(|| check_each(SOME, &mut forms::Buffers::default()));
        }
    });
}

impl Request {
    /// The expected rows of the request, taken from `all`.
    fn expected(&self, all: &CsrBuffers) -> CsrBuffers {
        let columns: Option<HashMap<u64, u32>> = match &self.genes {
            GeneSelection::All => None,
            GeneSelection::Range(range) => Some(range.clone().zip(0..).collect()),
            GeneSelection::List(list) => Some(list.iter().copied().zip(0..).collect()),
        };
        let column = |gene: u32| match &columns {
            None => Some(gene),
            Some(columns) => columns.get(&u64::from(gene)).copied(),
        };
        let n_columns = columns.as_ref().map_or(all.n_columns, HashMap::len);
        let mut out = CsrBuffers { n_columns, ..CsrBuffers::default() };
        for row in self.rows.iter() {
            let (genes, values) = all.row(row as usize);
            let mut cells: Vec<(u32, f32)> = genes
                .iter()
                .zip(values)
                .filter_map(|(gene, value)| Some((column(*gene)?, *value)))
                .collect();
            cells.sort_by_key(|(column, _)| *column);
            out.columns.extend(cells.iter().map(|(column, _)| *column));
            out.values.extend(cells.iter().map(|(_, value)| *value));
            out.row_offsets.push(out.values.len());
        }
        out
    }

    /// The joinid of the gene in a column of the result.
    fn joinid(&self, column: u32) -> i64 {
        match &self.genes {
            GeneSelection::All => i64::from(column),
            GeneSelection::Range(range) => range.start as i64 + i64::from(column),
            GeneSelection::List(list) => list[column as usize] as i64,
        }
    }
}

/// Makes row ranges; panics unless they ascend.
fn rows(ranges: Vec<std::ops::Range<u64>>) -> RowRanges {
    RowRanges::new(ranges).unwrap_or_else(|error| panic!("the check's own ranges: {error}"))
}

#[cfg(test)]
mod tests;
