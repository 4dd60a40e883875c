//! Rows that cannot be read: which ones of a block, and how the others are read without them.
//!
//! A block whose read fails is searched by halves for the rows that cannot be read alone, or for
//! the pieces of storage that they lie in ([`Source::unit_end`]). Then the other rows are read
//! together, as the block. Nothing here runs while reads succeed.

use std::error::Error as StdError;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shuffle::Stop;
use worktime::ReadStats;

use crate::source::{BlockRows, Source};

/// What happens if rows cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenDamaged {
    /// The epoch ends with the error.
    #[default]
    Fail,
    /// Batches come without these rows, and [`EpochStats`](crate::EpochStats) counts and names
    /// them.
    ///
    /// A batch whose rows are all left out comes empty, so that all ranks have equally many
    /// batches, and a saved state counts them as if nothing had failed. It is an error if the
    /// storage cannot be reached, if no row of an epoch can be read, or if more than a tenth of a
    /// rank's rows, and at least 100, cannot be read one after another.
    Skip,
}

/// A row that could not be read and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The row.
    pub row: u64,
    /// Its name ([`Source::row_name`]).
    pub name: String,
    /// The error and its causes.
    pub error: Arc<str>,
}

/// A place in a block's order whose row was left out.
#[derive(Debug)]
pub(crate) struct LeftOut {
    /// Number of rows that come before it in the block's order as planned.
    pub(crate) place: usize,
    pub(crate) skipped: Arc<Skipped>,
}

/// What was read of a block.
#[derive(Debug)]
pub(crate) struct ReadOthers {
    pub(crate) stats: ReadStats,
    /// Number of rows.
    pub(crate) n_rows: usize,
    /// Positions among these rows, in the order of delivery.
    pub(crate) order: Vec<u32>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Rows, spread over a block, that are read first. If none of them can be read, the whole block
/// counts as unreadable: reading each of its rows from a store that is gone would take hours.
const N_SPREAD: u64 = 16;

/// Rows that fail one after another before one that was read is read again, to see whether the
/// store is still there.
const N_FAILED: usize = 64;

/// Searches of one block. The second finds what only failed meanwhile.
const N_SEARCHES: usize = 3;

/// The kind of an error of a connection or of memory among these causes, which says nothing about
/// the rows that were to be read.
pub fn system_failure(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    use io::ErrorKind as Kind;
    let mut cause = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        let is_of_system = matches!(
            kind,
            Some(
                Kind::ConnectionRefused
                    | Kind::ConnectionReset
                    | Kind::ConnectionAborted
                    | Kind::NotConnected
                    | Kind::HostUnreachable
                    | Kind::NetworkUnreachable
                    | Kind::NetworkDown
                    | Kind::TimedOut
                    | Kind::OutOfMemory
            )
        );
        if is_of_system {
            return kind;
        }
        cause = error.source();
    }
    None
}

/// The text of an error and its causes, each once.
fn text_of(error: &(dyn StdError + 'static)) -> Arc<str> {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.into()
}

/// All units if they are few; otherwise some of them, spread by the golden ratio, so that damage at
/// regular distances does not hit all of them.
fn spread(units: &[usize]) -> Vec<usize> {
    let n_units = units.len() as u64;
    if n_units <= N_SPREAD {
        return units.to_vec();
    }
    let golden = |n: u64| n.wrapping_mul(0x9E37_79B9) & u64::from(u32::MAX);
    (0..N_SPREAD).map(|n| units[((golden(n) * n_units) >> 32) as usize]).collect()
}

/// Reads the rows of a block that can be read, after reading all failed with `error`.
///
/// # Errors
/// The error is not of the rows, or none of them causes it.
pub(crate) fn read_others<S: Source>(
    (source, stop): (&S, &Stop),
    rows: &BlockRows<'_>,
    (block, scratch): (&mut S::Block, &mut S::Scratch),
    mut error: S::Error,
) -> Result<ReadOthers, S::Error> {
    let mut search = Search::new(source, stop, rows, block, scratch);
    for _ in 0..N_SEARCHES {
        if !source.is_damage(&error) {
            break;
        }
        let n_before = search.n_failed();
        search.find(&error)?;
        if stop.is_set() {
            break;
        }
        let (order, left_out) = search.order();
        match search.read_found(&order) {
            Ok(stats) => {
                let n_rows = search.n_left_rows();
                return Ok(ReadOthers { stats, n_rows, order, left_out });
            }
            Err(again) => error = again,
        }
        if search.n_failed() == n_before {
            break;
        }
    }
    Err(error)
}

/// The search for the rows of a block that cannot be read.
struct Search<'a, S: Source> {
    source: &'a S,
    stop: &'a Stop,
    wanted: &'a BlockRows<'a>,
    block: &'a mut S::Block,
    scratch: &'a mut S::Scratch,
    /// The rows of the block.
    rows: Vec<u64>,
    /// Positions of rows that are read together or not at all.
    units: Vec<Range<usize>>,
    /// Why a unit cannot be read.
    errors: Vec<Option<Arc<str>>>,
    /// A unit that was read by itself.
    readable: Option<usize>,
    n_failed_in_a_row: usize,
}

impl<'a, S: Source> Search<'a, S> {
    fn new(
        source: &'a S,
        stop: &'a Stop,
        wanted: &'a BlockRows<'a>,
        block: &'a mut S::Block,
        scratch: &'a mut S::Scratch,
    ) -> Self {
        let rows: Vec<u64> = wanted.ranges.iter().cloned().flatten().collect();
        let mut units = Vec::new();
        let mut start = 0;
        while let Some(row) = rows.get(start) {
            let end = source.unit_end(*row).max(row.saturating_add(1));
            let n_rows = rows[start..].partition_point(|row| *row < end).max(1);
            units.push(start..start + n_rows);
            start += n_rows;
        }
        let errors = vec![None; units.len()];
        let (readable, n_failed_in_a_row) = (None, 0);
        Self {
            source,
            stop,
            wanted,
            block,
            scratch,
            rows,
            units,
            errors,
            readable,
            n_failed_in_a_row,
        }
    }

    fn n_failed(&self) -> usize {
        self.errors.iter().flatten().count()
    }

    /// Number of rows that did not fail.
    fn n_left_rows(&self) -> usize {
        self.left().iter().map(|unit| self.units[*unit].len()).sum()
    }

    /// The units that did not fail yet.
    fn left(&self) -> Vec<usize> {
        (0..self.units.len()).filter(|unit| self.errors[*unit].is_none()).collect()
    }

    /// Finds the units that cannot be read, after reading all that are left failed with `error`.
    fn find(&mut self, error: &S::Error) -> Result<(), S::Error> {
        let left = self.left();
        let mut known = Some(text_of(error));
        self.readable = None;
        for unit in spread(&left) {
            let Some(error) = self.failure(&[unit])? else {
                self.readable = Some(unit);
                break;
            };
            self.errors[unit] = Some(error);
            known = None;
        }
        let left = self.left();
        if self.readable.is_none() {
            let last = self.errors.iter().flatten().next_back().cloned();
            for unit in left {
                self.errors[unit].clone_from(&last);
            }
            return Ok(());
        }
        if known.is_none() {
            known = self.failure(&left)?;
        }
        if known.is_some() { self.halve(&left, known) } else { Ok(()) }
    }

    /// Finds the units that cannot be read among some that cannot be read together. `known` says
    /// why, if they were read as they are.
    fn halve(&mut self, units: &[usize], known: Option<Arc<str>>) -> Result<(), S::Error> {
        if self.stop.is_set() {
            return Ok(());
        }
        if let [unit] = units {
            let error = if known.is_some() { known } else { self.failure(units)? };
            self.errors[*unit] = error;
            return self.check_store(*unit);
        }
        let (left, right) = units.split_at(units.len() / 2);
        let Some(error) = self.failure(left)? else {
            // The failure is in the other half.
            return self.halve(right, None);
        };
        self.halve(left, Some(error))?;
        match self.failure(right)? {
            Some(error) => self.halve(right, Some(error)),
            None => Ok(()),
        }
    }

    /// Why units cannot be read together; `None` if they can.
    fn failure(&mut self, units: &[usize]) -> Result<Option<Arc<str>>, S::Error> {
        match self.read(units) {
            Ok(_) => {
                self.n_failed_in_a_row = 0;
                Ok(None)
            }
            Err(error) if self.stop.is_set() || !self.source.is_damage(&error) => Err(error),
            Err(error) => Ok(Some(text_of(&error))),
        }
    }

    /// Fails if many units fail one after another, this one included, and one that was read cannot
    /// be read any more.
    fn check_store(&mut self, unit: usize) -> Result<(), S::Error> {
        self.n_failed_in_a_row += usize::from(self.errors[unit].is_some());
        match self.readable {
            Some(readable) if self.n_failed_in_a_row >= N_FAILED => {
                self.n_failed_in_a_row = 0;
                self.read(&[readable]).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn read(&mut self, units: &[usize]) -> Result<ReadStats, S::Error> {
        let ranges = self.ranges(units);
        let n_rows: u64 = ranges.iter().map(|rows| rows.end - rows.start).sum();
        let order: Vec<u32> = (0..n_rows as u32).collect();
        let rows = BlockRows { ranges: &ranges, order: &order, next: &[], ..*self.wanted };
        self.source.read(&rows, self.block, self.scratch, self.stop)
    }

    /// The rows of units, as ascending ranges.
    fn ranges(&self, units: &[usize]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for row in units.iter().flat_map(|unit| &self.rows[self.units[*unit].clone()]) {
            match ranges.last_mut() {
                Some(last) if last.end == *row => last.end += 1,
                _ => ranges.push(*row..row + 1),
            }
        }
        ranges
    }

    /// Reads the rows that did not fail, as the block.
    fn read_found(&mut self, order: &[u32]) -> Result<ReadStats, S::Error> {
        let ranges = self.ranges(&self.left());
        if ranges.is_empty() {
            return Ok(ReadStats::nothing());
        }
        let rows = BlockRows { ranges: &ranges, order, ..*self.wanted };
        self.source.read(&rows, self.block, self.scratch, self.stop)
    }

    /// The positions of the wanted rows among those that did not fail, and the others.
    fn order(&self) -> (Vec<u32>, Vec<LeftOut>) {
        let mut places = vec![Err(0); self.rows.len()];
        let mut n_read = 0;
        for (idx, unit) in self.units.iter().enumerate() {
            for place in &mut places[unit.clone()] {
                *place = if self.errors[idx].is_some() { Err(idx) } else { Ok(n_read) };
                n_read += u32::from(place.is_ok());
            }
        }
        let (mut order, mut left_out) = (Vec::new(), Vec::new());
        for (place, at) in self.wanted.order.iter().enumerate() {
            match places[*at as usize] {
                Ok(at) => order.push(at),
                Err(unit) => left_out.push((place, *at as usize, unit)),
            }
        }
        let left_out = left_out.into_iter().map(|(place, at, unit)| {
            let (row, error) = (self.rows[at], self.errors[unit].clone().unwrap_or_default());
            let skipped = Skipped { row, name: self.source.row_name(row), error };
            LeftOut { place, skipped: Arc::new(skipped) }
        });
        (order, left_out.collect())
    }
}
