//! The source of a relayout: its parts, its rows, and reading them in order.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use soma_io::{
    ColumnChoice, CsrBuffers, DataFrame, Experiment, FrameCopy, GeneSelection, Matrix, RowRanges,
    XReader,
};

use crate::{Error, RelayoutSpec};

/// Rows are read in multiples of this number: the rows of a row of tiles in the Census's layout.
const TILE_ROWS: u64 = 2048;

/// The experiment to read.
#[derive(Debug)]
pub(crate) struct Source {
    /// The experiment's address; its arrays may be elsewhere.
    uri: String,
    pub(crate) x: Matrix,
    pub(crate) reader: Arc<dyn XReader>,
    pub(crate) obs: FrameCopy,
    pub(crate) var: FrameCopy,
    /// The joinids of all cells, and of all genes below.
    pub(crate) cells: RowRanges,
    pub(crate) genes: RowRanges,
    pub(crate) nnz: u64,
}

impl Source {
    pub(crate) fn open(experiment: &Experiment, spec: &RelayoutSpec) -> Result<Self, Error> {
        let measurement = experiment.measurement(&spec.measurement)?;
        let x = measurement.x(&spec.layer)?;
        // The new X has 32-bit floats.
        let reader = x.exact_reader(spec.reader)?;
        let (obs, var) = (experiment.obs()?, measurement.var()?);
        let cells = joinids(&obs, x.shape().0)?;
        let genes = joinids(&var, x.shape().1)?;
        for (frame, rows, what) in [(&obs, &cells, "cells"), (&var, &genes, "genes")] {
            if rows.n_rows() == 0 {
                return Err(Error::Empty { uri: frame.uri().to_owned(), what });
            }
        }
        let most = u64::from(u32::MAX);
        for (what, rows) in [("the number of cells", &cells), ("the number of genes", &genes)] {
            if rows.n_rows() > most {
                return Err(Error::Size { what, value: rows.n_rows(), least: 1, most });
            }
        }
        let keeps = |is_renumbered: bool| is_renumbered.then_some(spec.joinid_column.as_str());
        let renumbered = |rows: &RowRanges| rows.ranges() != [0..rows.n_rows()];
        let moved = spec.shuffle_seed.is_some() || renumbered(&cells);
        let nnz = reader.nnz()?.map_or_else(|| x.nnz(), Ok)?;
        Ok(Self {
            uri: experiment.uri().to_owned(),
            obs: FrameCopy::new(obs, &ColumnChoice::All, keeps(moved))?,
            var: FrameCopy::new(var, &ColumnChoice::All, keeps(renumbered(&genes)))?,
            x,
            reader,
            cells,
            genes,
            nnz,
        })
    }

    /// The addresses of everything that is read.
    pub(crate) fn uris(&self) -> [String; 4] {
        let (obs, var) = (self.obs.frame().uri(), self.var.frame().uri());
        [&self.uri, self.x.uri(), obs, var].map(str::to_owned)
    }

    /// Mean number of values per cell, rounded up.
    pub(crate) fn mean_nnz(&self) -> u64 {
        self.nnz.div_ceil(self.cells.n_rows()).max(1)
    }

    /// All genes, as a selection for reading X.
    pub(crate) fn gene_selection(&self) -> GeneSelection {
        match self.genes.ranges() {
            [all] if *all == (0..self.x.shape().1) => GeneSelection::All,
            [one] => GeneSelection::Range(one.clone()),
            _ => GeneSelection::List(self.genes.iter().collect()),
        }
    }

    /// Splits all cells, in order, into parts with about `n_values` values each.
    pub(crate) fn parts(&self, n_values: u64) -> impl Iterator<Item = RowRanges> + use<> {
        let n_rows = n_values / self.mean_nnz();
        cut(&self.cells, (n_rows / TILE_ROWS * TILE_ROWS).max(n_rows.min(TILE_ROWS)).max(1))
    }

    /// Reads cells. Fails if a cell has two values of one gene.
    pub(crate) fn read(&self, rows: &RowRanges, out: &mut CsrBuffers) -> Result<(), Error> {
        self.reader.read_csr(rows, &self.gene_selection(), out)?;
        let repeats = |row_idx: &usize| !out.row(*row_idx).0.is_sorted_by(|a, b| a < b);
        match (0..out.n_rows()).find(repeats) {
            None => Ok(()),
            Some(row_idx) => {
                let joinid = rows.iter().nth(row_idx).unwrap_or_default();
                Err(Error::Repeated { uri: self.x.uri().to_owned(), joinid })
            }
        }
    }
}

/// The joinids of a data frame whose axis has `n` rows in X.
fn joinids(frame: &DataFrame, n: u64) -> Result<RowRanges, Error> {
    let n_rows = frame.n_rows()?;
    if n_rows == n || n_rows == 0 {
        // A missing joinid would put another one beyond X; reading the rows then fails.
        return Ok(RowRanges::new((n_rows > 0).then_some(0..n_rows).into_iter().collect())?);
    }
    let batch = frame.read(Some(&["soma_joinid"]), None)?;
    let column = batch.column(0).as_primitive_opt::<Int64Type>();
    let broken = || soma_io::Error::BrokenColumn {
        uri: frame.uri().to_owned(),
        column: "soma_joinid".to_owned(),
        problem: "it is not an array of int64".to_owned(),
    };
    let joinids = column.ok_or_else(broken)?.values();
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    for joinid in joinids.iter().map(|joinid| *joinid as u64).take_while(|joinid| *joinid < n) {
        match ranges.last_mut() {
            Some(last) if last.end == joinid => last.end += 1,
            _ => ranges.push(joinid..joinid + 1),
        }
    }
    Ok(RowRanges::new(ranges)?)
}

/// Splits rows into parts of `n_rows`; the last may be shorter.
pub(crate) fn cut(rows: &RowRanges, n_rows: u64) -> impl Iterator<Item = RowRanges> + use<> {
    let mut rest: std::collections::VecDeque<_> = rows.ranges().iter().cloned().collect();
    std::iter::from_fn(move || {
        let (mut part, mut wanted) = (Vec::new(), n_rows);
        while wanted > 0
            && let Some(mut range) = rest.pop_front()
        {
            if range.end - range.start > wanted {
                rest.push_front(range.start + wanted..range.end);
                range.end = range.start + wanted;
            }
            wanted -= range.end - range.start;
            part.push(range);
        }
        RowRanges::new(part).ok().filter(|part| part.n_rows() > 0)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_all_rows_in_order(lengths in prop::collection::vec((1_u64..5, 1_u64..20), 0..10), n_rows in 1_u64..12) {
            let mut end = 0;
            let ranges = lengths.iter().map(|(gap, len)| {
                let start = end + gap;
                end = start + len;
                start..end
            });
            let rows = RowRanges::new(ranges.collect()).unwrap();
            let parts: Vec<RowRanges> = cut(&rows, n_rows).collect();
            prop_assert!(parts.iter().flat_map(RowRanges::iter).eq(rows.iter()));
            prop_assert!(parts.iter().rev().skip(1).all(|part| part.n_rows() == n_rows));
        }
    }
}
