//! The selected cells of an experiment: the joinid of each row.

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use shuffle::{RowSet, RowSetBuilder, stop};

use crate::error::DatasetError;

pub(crate) const JOINID: &str = "soma_joinid";

/// The joinids of the selected cells, strictly ascending. Row `i` of the selection is the `i`-th.
///
/// Two selections are equal if they have the same joinids, in whatever form.
#[derive(Clone)]
#[non_exhaustive]
pub enum Cells {
    /// All joinids of a range.
    Range(Range<u64>),
    /// A list of joinids: 8 bytes per cell.
    List(Arc<[u64]>),
    /// A set of joinids: at most 2 bytes per cell, and mostly far less. Filters and parts of splits
    /// have this form.
    Set(Arc<RowSet>),
}

impl Cells {
    /// Number of cells.
    pub fn n_rows(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::List(joinids) => joinids.len() as u64,
            Self::Set(joinids) => joinids.len(),
        }
    }

    /// The joinid of a row of the selection.
    ///
    /// # Panics
    /// If `row_idx` is not below [`n_rows`](Self::n_rows).
    pub fn joinid(&self, row_idx: u64) -> u64 {
        assert!(row_idx < self.n_rows(), "row {row_idx} of {} cells", self.n_rows());
        match self {
            Self::Range(range) => range.start + row_idx,
            Self::List(joinids) => joinids[row_idx as usize],
            // There is a joinid: the row is below their number.
            Self::Set(joinids) => joinids.get(row_idx).unwrap_or(u64::MAX),
        }
    }

    /// Number of cells whose joinids are below `joinid`.
    pub(crate) fn n_below(&self, joinid: u64) -> u64 {
        match self {
            Self::Range(range) => {
                joinid.clamp(range.start, range.end.max(range.start)) - range.start
            }
            Self::List(joinids) => joinids.partition_point(|id| *id < joinid) as u64,
            Self::Set(joinids) => joinids.n_below(joinid),
        }
    }

    /// Whether the cell with this joinid is selected.
    pub(crate) fn contains(&self, joinid: u64) -> bool {
        match self {
            Self::Range(range) => range.contains(&joinid),
            Self::List(joinids) => joinids.binary_search(&joinid).is_ok(),
            Self::Set(joinids) => {
                joinids.n_below(joinid) < joinids.n_below(joinid.saturating_add(1))
            }
        }
    }

    /// The joinids, ascending.
    pub fn joinids(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges().flatten()
    }

    /// Bytes of memory of the joinids.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Range(_) => 0,
            Self::List(joinids) => size_of_val(&**joinids),
            Self::Set(joinids) => joinids.memory_bytes(),
        }
    }

    /// The joinids as ranges of consecutive ones, in order.
    pub(crate) fn ranges(&self) -> Box<dyn Iterator<Item = Range<u64>> + '_> {
        match self {
            Self::Range(range) => {
                Box::new(iter::once(range.clone()).filter(|range| !range.is_empty()))
            }
            Self::List(joinids) => Box::new(runs(joinids)),
            Self::Set(joinids) => Box::new(joinids.ranges()),
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
                Self::Set(joinids) => joinids.ranges_at(rows.clone()).for_each(&mut push),
            }
        }
        ranges
    }

    /// The cells of obs rows, by their column `soma_joinid`; a range if it has no gaps.
    ///
    /// # Errors
    /// A column that is missing, is not of type int64, has nulls or negative joinids.
    pub fn from_obs(obs: &RecordBatch) -> Result<Self, DatasetError> {
        let problem = |problem: &str| DatasetError::JoinidColumn { problem: problem.to_owned() };
        let column = obs.column_by_name(JOINID).ok_or_else(|| problem("it is missing"))?;
        let joinids = column
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| problem("it is not of type int64"))?;
        if joinids.null_count() > 0 {
            return Err(problem("it has nulls"));
        }
        let joinids = joinids.values();
        if let Some(id) = joinids.iter().find(|id| **id < 0) {
            return Err(problem(&format!("it has {id}, but joinids are not negative")));
        }
        Ok(Self::from_joinids(joinids.iter().map(|id| *id as u64).collect()))
    }

    /// The cells with these joinids; a range if there are no gaps. What does not ascend stays a
    /// list, which the data set reports.
    fn from_joinids(joinids: Vec<u64>) -> Self {
        match RowSet::from_ascending(joinids.iter().copied()) {
            Ok(set) => Self::of_set(set),
            Err(_) => Self::List(joinids.into()),
        }
    }

    /// The cells with these joinids; a range if there are no gaps.
    pub(crate) fn of_set(joinids: RowSet) -> Self {
        let only = {
            let mut ranges = joinids.ranges();
            ranges.next().filter(|_| ranges.next().is_none())
        };
        only.map_or_else(|| Self::Set(Arc::new(joinids)), Self::Range)
    }

    /// The cells at these rows of the selection. Rows past the last have none.
    ///
    /// # Errors
    /// The thread's work is to end.
    pub(crate) fn at(&self, rows: &RowSet) -> Result<Self, shuffle::Stopped> {
        match self {
            Self::Range(range) => RowSet::from_range(range.clone()).at(rows).map(Self::of_set),
            Self::Set(joinids) => joinids.at(rows).map(Self::of_set),
            Self::List(joinids) => {
                let at = rows.iter().map_while(|row| joinids.get(row as usize).copied());
                stop::collect(rows.len(), at).map(Self::from_joinids)
            }
        }
    }

    /// The last joinid, which is the largest.
    fn last(&self) -> Option<u64> {
        self.n_rows().checked_sub(1).map(|last| self.joinid(last))
    }

    /// One past the largest joinid; 0 without cells.
    pub(crate) fn end(&self) -> u64 {
        self.last().map_or(0, |last| last.saturating_add(1))
    }

    /// Fails unless the joinids ascend strictly.
    pub(crate) fn check_ascending(&self) -> Result<(), DatasetError> {
        let Self::List(joinids) = self else { return Ok(()) };
        match joinids.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(idx) => Err(DatasetError::CellsNotAscending {
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
            Self::Set(joinids) => joinids.get(joinids.n_below(x_rows)),
        }
    }
}

/// Runs of consecutive joinids.
pub(crate) fn runs(joinids: &[u64]) -> impl Iterator<Item = Range<u64>> + '_ {
    let runs = joinids.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    runs.map(|run| run[0]..run[0].saturating_add(run.len() as u64))
}

impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        self.n_rows() == other.n_rows() && self.ranges().eq(other.ranges())
    }
}

impl Eq for Cells {}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(range) => write!(f, "Cells({range:?})"),
            Self::List(_) | Self::Set(_) => write!(f, "Cells({} joinids)", self.n_rows()),
        }
    }
}

/// Collects the joinids of selected cells, which come batch by batch.
#[derive(Debug, Default)]
pub(crate) struct CollectedCells {
    joinids: RowSetBuilder,
    n_rows: usize,
    last: u64,
    /// The first problem; what comes after it is not collected.
    problem: Option<DatasetError>,
}

impl CollectedCells {
    pub(crate) fn add(&mut self, joinids: &[u64]) {
        for run in runs(joinids) {
            if self.problem.is_some() {
                return;
            }
            let n_rows = (run.end - run.start) as usize;
            if self.joinids.push_range(run.clone()).is_err() {
                let (row_idx, joinid, before) = (self.n_rows, run.start, self.last);
                self.problem = Some(DatasetError::CellsNotAscending { row_idx, joinid, before });
            }
            self.n_rows += n_rows;
            self.last = run.end.saturating_sub(1);
        }
    }

    /// The cells with all joinids.
    ///
    /// # Errors
    /// The joinids do not ascend.
    pub(crate) fn finish(self) -> Result<Cells, DatasetError> {
        self.problem.map_or_else(|| Ok(Cells::of_set(self.joinids.finish())), Err)
    }
}
