//! Sets of rows that take little memory: the parts of a split, the cells that a filter keeps.
//!
//! Row numbers are cut into pieces of 65,536. The rows of a piece are a range, a list of 16-bit
//! numbers if they are few, or otherwise one bit for each number of the piece. A set so takes at
//! most 2 bytes for each row, and at most 1/8 byte for each row of the selection that it is from,
//! beside 56 bytes for each piece that has rows.

mod members;
mod ranges;

use std::fmt;
use std::ops::Range;

use members::{Collected, Members};
use ranges::Ranges;

use crate::stop::{Steps, Stopped};

/// A row was added to a set of rows out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "row {row} cannot be added: rows of a set ascend, and the next must be {least} or more, below 2^64 - 1"
)]
pub struct RowOrderError {
    /// The row.
    pub row: u64,
    /// The least row that could have been added.
    pub least: u64,
}

/// Numbers of a piece.
const PIECE: u64 = 1 << 16;

/// A set of rows, in ascending order. Its memory depends on how the rows lie: next to none for long
/// ranges, and never more than 2 bytes per row.
///
/// ```
/// use shuffle::RowSet;
///
/// let rows = RowSet::from_ascending([2, 3, 4, 9])?;
/// assert_eq!((rows.len(), rows.get(3), rows.contains(5)), (4, Some(9), false));
/// assert!(rows.iter().eq([2, 3, 4, 9]));
/// assert!(rows.ranges().eq([2..5, 9..10]));
/// # Ok::<(), shuffle::RowOrderError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RowSet {
    pieces: Vec<Piece>,
    n_rows: u64,
}

/// The rows of a set whose numbers agree in all but the lowest 16 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// The number of its rows with all 16 bits zero.
    start: u64,
    /// Number of the set's rows in earlier pieces.
    n_before: u64,
    /// The lowest 16 bits of each row.
    members: Members,
}

impl RowSet {
    /// Makes a set of rows that ascend.
    ///
    /// # Errors
    /// A row is not above the row before.
    pub fn from_ascending(rows: impl IntoIterator<Item = u64>) -> Result<Self, RowOrderError> {
        let mut builder = RowSetBuilder::default();
        rows.into_iter().try_for_each(|row| builder.push(row))?;
        Ok(builder.finish())
    }

    /// Makes a set of all rows of a range.
    pub fn from_range(rows: Range<u64>) -> Self {
        let mut builder = RowSetBuilder::default();
        builder.add(rows);
        builder.finish()
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.n_rows
    }

    /// Whether the set has no rows.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// The row at a place of the ascending order, from 0; `None` past the last.
    pub fn get(&self, place: u64) -> Option<u64> {
        let idx = self.piece_of_place(place)?;
        let piece = &self.pieces[idx];
        Some(piece.start + u64::from(piece.members.get((place - piece.n_before) as u32)))
    }

    /// The last row, which is the greatest.
    pub fn last(&self) -> Option<u64> {
        self.get(self.n_rows.checked_sub(1)?)
    }

    /// Number of rows of the set that are below `row`.
    pub fn n_below(&self, row: u64) -> u64 {
        let idx = self.pieces.partition_point(|piece| piece.start + (PIECE - 1) < row);
        match self.pieces.get(idx) {
            None => self.n_rows,
            Some(piece) if row <= piece.start => piece.n_before,
            Some(piece) => {
                piece.n_before + u64::from(piece.members.n_below((row - piece.start) as u32))
            }
        }
    }

    /// Whether a row is in the set.
    pub fn contains(&self, row: u64) -> bool {
        self.get(self.n_below(row)) == Some(row)
    }

    /// The rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges().flatten()
    }

    /// The rows as ascending ranges, as few as possible.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        Ranges::new(self, 0..self.n_rows)
    }

    /// The rows at a range of places of the ascending order, as ascending ranges, as few as
    /// possible. Places past the last have no row.
    pub fn ranges_at(&self, places: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        Ranges::new(self, places)
    }

    /// The rows at these places of the ascending order: the set of a split of a split. Places past
    /// the last have no row.
    ///
    /// ```
    /// use shuffle::RowSet;
    ///
    /// let rows = RowSet::from_ascending([2, 3, 4, 9])?;
    /// let places = RowSet::from_ascending([0, 3])?;
    /// assert!(rows.at(&places)?.iter().eq([2, 9]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The thread's work is to end (see [`Stop`](crate::Stop)).
    pub fn at(&self, places: &Self) -> Result<Self, Stopped> {
        let (mut builder, mut steps) = (RowSetBuilder::default(), Steps::default());
        // Both sets are walked once. `rows` are the range at hand, from the place `first` on.
        let mut own = self.ranges();
        let (mut rows, mut first) = (0..0, 0);
        for places in places.ranges() {
            let mut place = places.start;
            while place < places.end {
                steps.begin()?;
                if place - first >= rows.end - rows.start {
                    first += rows.end - rows.start;
                    match own.next() {
                        Some(next) => rows = next,
                        None => return Ok(builder.finish()),
                    }
                    continue;
                }
                let start = rows.start + (place - first);
                let n_rows = (rows.end - start).min(places.end - place);
                builder.add(start..start + n_rows);
                place += n_rows;
            }
        }
        Ok(builder.finish())
    }

    /// The rows of a range, counted from its start.
    ///
    /// ```
    /// use shuffle::RowSet;
    ///
    /// let rows = RowSet::from_ascending([2, 3, 4, 9])?;
    /// assert!(rows.between(3..9)?.iter().eq([0, 1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The thread's work is to end (see [`Stop`](crate::Stop)).
    pub fn between(&self, range: Range<u64>) -> Result<Self, Stopped> {
        if range.is_empty() {
            return Ok(Self::default());
        }
        let (mut builder, mut steps) = (RowSetBuilder::default(), Steps::default());
        for rows in self.ranges_at(self.n_below(range.start)..self.n_below(range.end)) {
            steps.begin()?;
            builder.add(rows.start - range.start..rows.end - range.start);
        }
        Ok(builder.finish())
    }

    /// Bytes of memory that the set takes.
    pub fn memory_bytes(&self) -> usize {
        let members = self.pieces.iter().map(|piece| piece.members.memory_bytes());
        self.pieces.capacity() * size_of::<Piece>() + members.sum::<usize>()
    }

    /// The index of the piece with the row at this place.
    fn piece_of_place(&self, place: u64) -> Option<usize> {
        (place < self.n_rows)
            .then(|| self.pieces.partition_point(|piece| piece.n_before <= place) - 1)
    }
}

impl fmt::Debug for RowSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.get(0), self.last()) {
            (Some(first), Some(last)) => {
                write!(f, "RowSet({} rows, {first} to {last})", self.n_rows)
            }
            _ => write!(f, "RowSet(no rows)"),
        }
    }
}

/// Makes a [`RowSet`] of rows that are given one by one or range by range, in ascending order.
#[derive(Debug, Default)]
pub struct RowSetBuilder {
    done: RowSet,
    /// The piece that rows are added to, and its start.
    collected: Collected,
    start: u64,
    /// The row after the last; 0 if there is none.
    end: u64,
}

impl RowSetBuilder {
    /// Adds a row.
    ///
    /// # Errors
    /// The row is not above the last one, or it is the greatest 64-bit number.
    pub fn push(&mut self, row: u64) -> Result<(), RowOrderError> {
        if row < self.end || row == u64::MAX {
            return Err(RowOrderError { row, least: self.end });
        }
        self.add_row(row);
        Ok(())
    }

    /// Adds the rows of a range.
    ///
    /// # Errors
    /// The range begins at or before the last row.
    pub fn push_range(&mut self, rows: Range<u64>) -> Result<(), RowOrderError> {
        if rows.start < self.end && !rows.is_empty() {
            return Err(RowOrderError { row: rows.start, least: self.end });
        }
        self.add(rows);
        Ok(())
    }

    /// Adds a row above the last one.
    pub(crate) fn add_row(&mut self, row: u64) {
        debug_assert!(row >= self.end, "row {row} after {}", self.end);
        let low = self.enter(row);
        self.collected.add(low);
        self.end = row + 1;
    }

    /// Adds a range of rows above the last one.
    pub(crate) fn add(&mut self, rows: Range<u64>) {
        let mut from = rows.start;
        while from < rows.end {
            let low = self.enter(from);
            let n = (PIECE - u64::from(low)).min(rows.end - from);
            self.collected.add_range(low..low + n as u32);
            from += n;
            self.end = from;
        }
    }

    /// Ends the piece at hand if `row` is in another one; returns the lowest 16 bits.
    fn enter(&mut self, row: u64) -> u32 {
        let low = row % PIECE;
        if row - low != self.start {
            self.end_piece();
            self.start = row - low;
        }
        low as u32
    }

    fn end_piece(&mut self) {
        if let Some((n_rows, members)) = self.collected.take() {
            let n_before = self.done.n_rows;
            self.done.pieces.push(Piece { start: self.start, n_before, members });
            self.done.n_rows += u64::from(n_rows);
        }
    }

    /// The set of all added rows.
    pub fn finish(mut self) -> RowSet {
        self.end_piece();
        self.done.pieces.shrink_to_fit();
        self.done
    }
}
