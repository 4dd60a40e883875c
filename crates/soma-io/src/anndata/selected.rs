//! Takes selected genes from rows that have all of them.

use rayon::prelude::*;

use crate::{CsrBuffers, GeneSelection};

/// The columns of X that a selection has, to take them from whole rows.
#[derive(Debug)]
pub(super) struct SelectedColumns {
    /// The column in the result of each column of X; [`NOT_SELECTED`] if it is not selected.
    columns: Vec<u32>,
    /// Whether columns ascend in the result as they do in X.
    ascends: bool,
}

/// Stands for a column of X that is not selected.
const NOT_SELECTED: u32 = u32::MAX;

/// Least rows that a thread takes genes from at once.
const TASK_ROWS: usize = 64;

impl SelectedColumns {
    /// The columns of a selection that was [checked](GeneSelection::n_columns) for an array with
    /// `x_columns` columns.
    pub(super) fn new(genes: &GeneSelection, x_columns: u64) -> Self {
        let mut columns = vec![NOT_SELECTED; x_columns as usize];
        let mut select = |gene: u64, column: u32| columns[gene as usize] = column;
        match genes {
            GeneSelection::All => (0..x_columns).zip(0..).for_each(|(gene, at)| select(gene, at)),
            GeneSelection::Range(range) => {
                range.clone().zip(0..).for_each(|(gene, at)| select(gene, at));
            }
            GeneSelection::List(list) => {
                list.iter().zip(0..).for_each(|(gene, at)| select(*gene, at));
            }
        }
        let ascends = !matches!(genes, GeneSelection::List(list) if !list.is_sorted());
        Self { columns, ascends }
    }

    /// Appends the rows of `whole` to `out`, with the selected genes alone, on the threads of the
    /// current rayon pool. Columns of `whole` are below the number of columns of X.
    pub(super) fn append(&self, whole: &CsrBuffers, out: &mut CsrBuffers) {
        let n_rows = whole.n_rows();
        let lengths: Vec<usize> = (0..n_rows)
            .into_par_iter()
            .with_min_len(TASK_ROWS)
            .map(|row| {
                let (columns, _) = whole.row(row);
                columns.iter().filter(|of| self.columns[**of as usize] != NOT_SELECTED).count()
            })
            .collect();
        let (start, total) = (out.values.len(), lengths.iter().sum::<usize>());
        out.columns.resize(start + total, 0);
        out.values.resize(start + total, 0.0);
        let mut at = start;
        out.row_offsets.extend(lengths.iter().map(|len| {
            at += len;
            at
        }));
        let (mut columns, mut values) = (&mut out.columns[start..], &mut out.values[start..]);
        let mut rows = Vec::with_capacity(n_rows);
        for (row, len) in lengths.into_iter().enumerate() {
            let (of_row, after) = columns.split_at_mut(len);
            let (values_of_row, values_after) = values.split_at_mut(len);
            rows.push((row, of_row, values_of_row));
            (columns, values) = (after, values_after);
        }
        rows.into_par_iter().with_min_len(TASK_ROWS).for_each_init(
            Vec::new,
            |cells: &mut Vec<(u32, f32)>, (row, columns, values)| {
                let (genes, of_row) = whole.row(row);
                let selected = genes.iter().map(|gene| self.columns[*gene as usize]).zip(of_row);
                let selected = selected.filter(|(column, _)| *column != NOT_SELECTED);
                let places = columns.iter_mut().zip(values);
                if self.ascends {
                    for ((to, value), (column, of_cell)) in places.zip(selected) {
                        (*to, *value) = (column, *of_cell);
                    }
                } else {
                    cells.clear();
                    cells.extend(selected.map(|(column, value)| (column, *value)));
                    cells.sort_by_key(|(column, _)| *column);
                    for ((to, value), cell) in places.zip(&*cells) {
                        (*to, *value) = *cell;
                    }
                }
            },
        );
    }
}
