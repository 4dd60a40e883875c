//! The requests of the check: rows and genes of every kind, valid and invalid.

use std::ops::Range;

use super::rows;
use crate::{GeneSelection, RowRanges};

/// One request: rows and genes.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) rows: RowRanges,
    pub(super) genes: GeneSelection,
}

pub(super) fn every_row(n_rows: u64) -> RowRanges {
    rows(if n_rows == 0 { Vec::new() } else { vec![0..n_rows] })
}

/// Every kind of rows with every kind of genes; all of X first.
pub(super) fn all(n_rows: u64, n_columns: u64) -> Vec<Request> {
    let rows = [
        every_row(n_rows),
        rows(Vec::new()),
        rows(within(n_rows, [0..1])),
        rows(within(n_rows, [n_rows.saturating_sub(1)..n_rows])),
        rows(within(n_rows, [1..n_rows / 2, n_rows / 2 + 1..n_rows])),
        // Single rows far apart, like shuffled chunks of one row.
        rows(within(n_rows, (0..n_rows).step_by(7).map(|row| row..row + 1))),
    ];
    let genes = [
        GeneSelection::All,
        GeneSelection::Range(0..n_columns),
        GeneSelection::Range(n_columns / 3..n_columns.div_ceil(2)),
        GeneSelection::Range(n_columns.saturating_sub(1)..n_columns),
        GeneSelection::Range(n_columns / 2..n_columns / 2),
        GeneSelection::List(Vec::new()),
        GeneSelection::List((n_columns / 4..n_columns.min(n_columns / 4 + 40)).rev().collect()),
        GeneSelection::List(scattered(n_columns)),
    ];
    let pairs = rows.iter().flat_map(|rows| genes.iter().map(move |genes| (rows, genes)));
    pairs.map(|(rows, genes)| Request { rows: rows.clone(), genes: genes.clone() }).collect()
}

/// Cuts ranges at `n_rows`, and drops empty ones.
fn within(n_rows: u64, ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let cut = |range: Range<u64>| range.start..range.end.min(n_rows);
    ranges.into_iter().map(cut).filter(|range| !range.is_empty()).collect()
}

/// About 23 genes from the whole range, out of order.
fn scattered(n_columns: u64) -> Vec<u64> {
    let step = n_columns / 23 + 1;
    let mut genes: Vec<u64> = (0..n_columns).step_by(step as usize).collect();
    let half = genes.len() / 2;
    genes.rotate_left(half);
    genes
}

/// Requests that must fail: rows after the last one, genes that do not exist, a gene twice.
pub(super) fn refused(n_rows: u64, n_columns: u64) -> Vec<(RowRanges, GeneSelection)> {
    let behind = [n_rows..n_rows + 1, 0..n_rows + 1, u64::MAX - 2..u64::MAX, 0..1 << 62];
    let mut refused: Vec<_> =
        behind.into_iter().map(|range| (rows(vec![range]), GeneSelection::All)).collect();
    let genes = [
        GeneSelection::Range(0..n_columns + 1),
        GeneSelection::Range(n_columns..n_columns + 1),
        GeneSelection::Range(0..u64::MAX),
        GeneSelection::List(vec![n_columns]),
        GeneSelection::List(vec![0, u64::MAX]),
        GeneSelection::List(vec![0, 0]),
    ];
    refused.extend(genes.into_iter().map(|genes| (every_row(n_rows), genes)));
    refused
}
