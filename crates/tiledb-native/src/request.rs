//! The request of a read: rows and columns.

use std::collections::HashMap;
use std::ops::Range;

use csr::ColumnSelection;

use crate::error::Error;

/// Marks an absent column.
const ABSENT: u32 = u32::MAX;
/// Wider spans of columns are looked up in a hash table instead of an array.
const MAX_TABLE: u64 = 1 << 24;

/// A [`ColumnSelection`] prepared for lookups.
#[derive(Debug)]
pub(crate) enum Columns {
    All,
    /// The first column and the number of columns.
    Range(u32, u32),
    /// Positions, indexed by column minus the first one.
    Table(u32, Vec<u32>),
    Hash(HashMap<u32, u32>),
}

impl Columns {
    /// Prepares `selection` for an array whose columns lie within `shape`; also returns the number
    /// of columns to deliver.
    pub(crate) fn new(
        selection: &ColumnSelection,
        shape: (u64, u64),
    ) -> Result<(Self, usize), Error> {
        let n_columns = shape.1;
        if *selection == ColumnSelection::All {
            let n = usize::try_from(n_columns);
            return Ok((Self::All, n.map_err(|_| csr::Error::ManyColumns { n_columns })?));
        }
        let n = selection.n_columns(n_columns)?;
        let range = match (selection, selection.range()) {
            (ColumnSelection::List(list), None) => return Ok((Self::list(list), n)),
            (_, range) => range.unwrap_or_default(),
        };
        // Columns beyond u32 contain no cells: an array with such cells is not opened.
        let start = u32::try_from(range.start).unwrap_or(u32::MAX);
        Ok((Self::Range(start, n as u32), n))
    }

    /// Columns that were checked.
    fn list(list: &[u64]) -> Self {
        let numbered = list.iter().zip(0_u32..);
        let narrow = numbered.filter_map(|(column, at)| Some((u32::try_from(*column).ok()?, at)));
        let positions: HashMap<u32, u32> = narrow.collect();
        let Some((&low, &high)) = positions.keys().min().zip(positions.keys().max()) else {
            return Self::Range(0, 0);
        };
        let span = u64::from(high - low) + 1;
        if span > MAX_TABLE {
            return Self::Hash(positions);
        }
        let mut table = vec![ABSENT; span as usize];
        for (column, position) in positions {
            table[(column - low) as usize] = position;
        }
        Self::Table(low, table)
    }

    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// The first column and the end, if the columns form a range.
    pub(crate) fn range(&self) -> Option<Range<u32>> {
        match self {
            Self::Range(start, len) => Some(*start..start.saturating_add(*len)),
            Self::All | Self::Table(..) | Self::Hash(_) => None,
        }
    }

    /// Whether a tile whose columns lie within `bounds` (both included) may contain any of them.
    pub(crate) fn meet(&self, bounds: (u32, u32)) -> bool {
        match self {
            // Searching all columns of a hash table would cost more than it saves.
            Self::All | Self::Hash(_) => true,
            Self::Range(start, len) => {
                *len > 0
                    && bounds.1 >= *start
                    && u64::from(bounds.0) < u64::from(*start) + u64::from(*len)
            }
            Self::Table(low, table) => {
                let first = bounds.0.saturating_sub(*low) as usize;
                let end = (bounds.1 as usize + 1).saturating_sub(*low as usize).min(table.len());
                table
                    .get(first..end)
                    .is_some_and(|part| part.iter().any(|&position| position != ABSENT))
            }
        }
    }

    /// The position of `column`.
    #[inline]
    pub(crate) fn position(&self, column: u32) -> Option<u32> {
        match self {
            Self::All => Some(column),
            Self::Range(start, len) => {
                Some(column.wrapping_sub(*start)).filter(|position| position < len)
            }
            Self::Table(low, table) => table
                .get(column.wrapping_sub(*low) as usize)
                .copied()
                .filter(|&position| position != ABSENT),
            Self::Hash(positions) => positions.get(&column).copied(),
        }
    }
}

/// Consecutive requested rows, and their place in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) rows: Range<u64>,
    /// The output row of the first of them.
    pub(crate) out_row: usize,
}

/// The requested rows in ascending order.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Sorted and disjoint.
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) total: usize,
    /// The place of each requested range among the rows of `wanted`, if some rows were requested
    /// repeatedly. Then `wanted` contains every row once, in ascending order, and these ranges are
    /// copied from it.
    pub(crate) copies: Option<Vec<Range<usize>>>,
}

impl Rows {
    /// Sorts the requested ranges, whose rows must be below `n_rows`.
    pub(crate) fn new(asked: &[Range<u64>], n_rows: u64) -> Result<Self, Error> {
        let mut wanted = Vec::with_capacity(asked.len());
        let mut out_row = 0_usize;
        for range in asked {
            if range.end > n_rows || range.start > range.end {
                return Err(Error::RowsOutOfBounds { start: range.start, end: range.end, n_rows });
            }
            let len = usize::try_from(range.end - range.start)
                .ok()
                .and_then(|len| out_row.checked_add(len));
            let end =
                len.ok_or(Error::RowsOutOfBounds { start: range.start, end: range.end, n_rows })?;
            if range.start < range.end {
                wanted.push(Wanted { rows: range.clone(), out_row });
            }
            out_row = end;
        }
        wanted.sort_by_key(|wanted| wanted.rows.start);
        if wanted.windows(2).all(|pair| pair[0].rows.end <= pair[1].rows.start) {
            return Ok(Self { wanted, total: out_row, copies: None });
        }
        Ok(Self::with_copies(asked, &wanted))
    }

    fn with_copies(asked: &[Range<u64>], sorted: &[Wanted]) -> Self {
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut n_rows = 0;
        for one in sorted {
            match wanted.last_mut() {
                Some(last) if one.rows.start <= last.rows.end => {
                    n_rows += one.rows.end.saturating_sub(last.rows.end) as usize;
                    last.rows.end = last.rows.end.max(one.rows.end);
                }
                _ => {
                    wanted.push(Wanted { rows: one.rows.clone(), out_row: n_rows });
                    n_rows += (one.rows.end - one.rows.start) as usize;
                }
            }
        }
        let place = |range: &Range<u64>| {
            let at = wanted.partition_point(|wanted| wanted.rows.end < range.end);
            let Some(holder) = wanted.get(at).filter(|_| range.start < range.end) else {
                return 0..0;
            };
            let first = holder.out_row + (range.start - holder.rows.start) as usize;
            first..first + (range.end - range.start) as usize
        };
        let copies = asked.iter().map(place).collect();
        Self { wanted, total: n_rows, copies: Some(copies) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_order_asked() {
        let rows = Rows::new(&[10..12, 0..3, 5..5], 20).unwrap();
        assert_eq!(
            rows.wanted,
            [Wanted { rows: 0..3, out_row: 2 }, Wanted { rows: 10..12, out_row: 0 }]
        );
        assert_eq!((rows.total, rows.copies), (5, None));
    }

    #[test]
    fn rows_asked_twice_are_read_once() {
        let rows = Rows::new(&[4..8, 0..2, 6..10, 1..2], 20).unwrap();
        assert_eq!(
            rows.wanted,
            [Wanted { rows: 0..2, out_row: 0 }, Wanted { rows: 4..10, out_row: 2 }]
        );
        assert_eq!(rows.copies, Some(vec![2..6, 0..2, 4..8, 1..2]));
    }

    #[test]
    fn rows_beyond_the_array_are_an_error() {
        let backwards = Range { start: 3, end: 2 };
        for bad in [19..21, backwards, 0..u64::MAX] {
            assert!(matches!(Rows::new(&[bad], 20), Err(Error::RowsOutOfBounds { .. })));
        }
    }

    #[test]
    fn columns_by_position() {
        let (columns, n) = Columns::new(&ColumnSelection::List(vec![7, 3, 9]), (0, 10)).unwrap();
        assert_eq!(n, 3);
        assert_eq!(
            [3, 7, 9, 4, 0].map(|column| columns.position(column)),
            [Some(1), Some(0), Some(2), None, None]
        );
        assert!(
            columns.meet((0, 3))
                && columns.meet((8, 20))
                && !columns.meet((4, 6))
                && !columns.meet((10, 20))
        );
        let twice = Columns::new(&ColumnSelection::List(vec![7, 7]), (0, 10));
        assert!(matches!(twice, Err(Error::Selection(csr::Error::ColumnTwice { column: 7 }))));
        let beyond = Columns::new(&ColumnSelection::List(vec![10]), (0, 10));
        let outside = csr::Error::NoColumn { column: 10, n_columns: 10 };
        assert!(matches!(beyond, Err(Error::Selection(error)) if error == outside));
        let (columns, _) = Columns::new(&ColumnSelection::Range(4..6), (0, 10)).unwrap();
        assert_eq!(
            [3, 4, 5, 6].map(|column| columns.position(column)),
            [None, Some(0), Some(1), None]
        );
        assert!(columns.meet((5, 9)) && !columns.meet((6, 9)) && !columns.meet((0, 3)));
    }
}
