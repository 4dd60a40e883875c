//! The selected cells of an experiment: the joinid of each row.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};

use crate::error::Error;

pub(crate) const JOINID: &str = "soma_joinid";

/// The joinids of the selected cells, strictly ascending. Row `i` of the selection is the `i`-th.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cells {
    /// All joinids of a range.
    Range(Range<u64>),
    /// A list of joinids.
    List(Arc<[u64]>),
}

impl Cells {
    /// Number of cells.
    pub fn n_rows(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::List(joinids) => joinids.len() as u64,
        }
    }

    /// The joinid of a row of the selection.
    ///
    /// # Panics
    /// If `row_idx` is not below [`n_rows`](Self::n_rows).
    pub fn joinid(&self, row_idx: u64) -> u64 {
        match self {
            Self::Range(range) => {
                assert!(row_idx < self.n_rows(), "row {row_idx} of {} cells", self.n_rows());
                range.start + row_idx
            }
            Self::List(joinids) => joinids[row_idx as usize],
        }
    }

    /// The joinids of ascending, disjoint ranges of rows, merged into as few ranges as possible.
    pub(crate) fn joinid_ranges(&self, rows: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::with_capacity(rows.len());
        let mut push = |joinids: Range<u64>| match ranges.last_mut() {
            Some(last) if last.end == joinids.start => last.end = joinids.end,
            _ => ranges.push(joinids),
        };
        for rows in rows.iter().filter(|rows| !rows.is_empty()) {
            match self {
                Self::Range(range) => push(range.start + rows.start..range.start + rows.end),
                Self::List(joinids) => {
                    joinids[rows.start as usize..rows.end as usize]
                        .iter()
                        .for_each(|&id| push(id..id + 1));
                }
            }
        }
        ranges
    }

    /// The cells of obs rows, by their column `soma_joinid`; a range if it has no gaps.
    ///
    /// # Errors
    /// A column that is missing, is not of type int64, has nulls or negative joinids.
    pub fn from_obs(obs: &RecordBatch) -> Result<Self, Error> {
        let problem = |problem: &str| Error::JoinidColumn { problem: problem.to_owned() };
        let column = obs.column_by_name(JOINID).ok_or_else(|| problem("it is missing"))?;
        let joinids = column
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| problem("it is not of type int64"))?;
        if joinids.null_count() > 0 {
            return Err(problem("it has nulls"));
        }
        let negative = |id: &i64| problem(&format!("it has {id}, but joinids are not negative"));
        let ids = joinids.values().iter().map(|id| u64::try_from(*id).map_err(|_| negative(id)));
        Ok(Self::of(ids.collect::<Result<_, _>>()?))
    }

    /// The cells with these joinids; a range if there are no gaps.
    pub(crate) fn of(joinids: Vec<u64>) -> Self {
        let consecutive = joinids.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        match (joinids.first(), joinids.last()) {
            (Some(first), Some(last)) if consecutive && *last < u64::MAX => {
                Self::Range(*first..last + 1)
            }
            _ => Self::List(joinids.into()),
        }
    }

    /// The last joinid, which is the largest.
    fn last(&self) -> Option<u64> {
        self.n_rows().checked_sub(1).map(|last| self.joinid(last))
    }

    /// Fails unless the joinids ascend strictly.
    pub(crate) fn check_ascending(&self) -> Result<(), Error> {
        let Self::List(joinids) = self else { return Ok(()) };
        match joinids.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(idx) => Err(Error::CellsNotAscending {
                row_idx: idx + 1,
                joinid: joinids[idx + 1],
                before: joinids[idx],
            }),
            None => Ok(()),
        }
    }

    /// The first joinid that is not below `x_rows`.
    pub(crate) fn first_outside(&self, x_rows: u64) -> Option<u64> {
        self.last().filter(|&last| last >= x_rows)?;
        match self {
            Self::Range(range) => Some(range.start.max(x_rows)),
            Self::List(joinids) => Some(joinids[joinids.partition_point(|&id| id < x_rows)]),
        }
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(range) => write!(f, "Cells({range:?})"),
            Self::List(joinids) => write!(f, "Cells({} joinids)", joinids.len()),
        }
    }
}
