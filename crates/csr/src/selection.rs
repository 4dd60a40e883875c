//! Which columns of a matrix are read.

use std::ops::Range;

use crate::Error;

/// The columns that a read returns, and their numbers in the result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnSelection {
    /// All columns; each keeps its number.
    #[default]
    All,
    /// A range; the number of a column is its distance from the start.
    Range(Range<u64>),
    /// A list of distinct columns in any order; the number of a column is its place in the list.
    List(Vec<u64>),
}

impl ColumnSelection {
    /// Number of columns that the selection has of a matrix with `n_columns` columns.
    ///
    /// # Errors
    /// [`Error::NoColumn`], [`Error::ColumnTwice`], or [`Error::ManyColumns`] if there are too many
    /// for the columns of CSR.
    pub fn n_columns(&self, n_columns: u64) -> Result<usize, Error> {
        let outside = |column: u64| Error::NoColumn { column, n_columns };
        let n_selected = match self {
            Self::All => n_columns,
            Self::Range(range) if range.is_empty() => 0,
            Self::Range(range) if range.end > n_columns => return Err(outside(range.end - 1)),
            Self::Range(range) => range.end - range.start,
            Self::List(list) => {
                if list.array_windows().all(|[one, next]| one < next) {
                    let last = list.last().filter(|last| **last >= n_columns);
                    return last.map_or(Ok(list.len()), |last| Err(outside(*last)));
                }
                let mut sorted = list.clone();
                sorted.sort_unstable();
                if let Some(last) = sorted.last().filter(|last| **last >= n_columns) {
                    return Err(outside(*last));
                }
                if let Some([column, _]) = sorted.array_windows().find(|[one, next]| one == next) {
                    return Err(Error::ColumnTwice { column: *column });
                }
                list.len() as u64
            }
        };
        let fits = usize::try_from(n_selected).ok().filter(|n| u32::try_from(*n).is_ok());
        fits.ok_or(Error::ManyColumns { n_columns: n_selected })
    }

    /// The columns as a range, if they form one in ascending order; `None` for all columns.
    pub fn range(&self) -> Option<Range<u64>> {
        match self {
            Self::All => None,
            Self::Range(range) => Some(range.clone()),
            Self::List(list) => {
                let range = *list.first()?..list.last()?.checked_add(1)?;
                list.iter().copied().eq(range.clone()).then_some(range)
            }
        }
    }

    /// The column of the matrix that has this number in the result.
    ///
    /// # Panics
    /// The selection is a list with fewer columns.
    pub fn stored_column(&self, number: u32) -> u64 {
        match self {
            Self::All => number.into(),
            Self::Range(range) => range.start + u64::from(number),
            Self::List(list) => list[number as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_counted_and_checked() {
        use ColumnSelection::{All, List, Range};
        let n_columns = |selection: ColumnSelection, of| selection.n_columns(of);
        assert_eq!(n_columns(All, 7), Ok(7));
        assert_eq!(n_columns(Range(2..5), 7), Ok(3));
        assert_eq!(n_columns(Range(5..5), 3), Ok(0));
        assert_eq!(n_columns(List(vec![6, 0]), 7), Ok(2));
        let outside = Err(Error::NoColumn { column: 7, n_columns: 7 });
        assert_eq!(n_columns(Range(2..8), 7), outside);
        assert_eq!(n_columns(List(vec![7, 0]), 7), outside);
        assert_eq!(n_columns(List(vec![3, 3]), 7), Err(Error::ColumnTwice { column: 3 }));
        assert!(n_columns(All, 1 << 40).is_err());
    }
}
