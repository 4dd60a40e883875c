//! Ends loops over rows from another thread.
//!
//! Samplings, splits and encoders of 10^8 rows take seconds. A [`Stop`] for the thread that makes
//! them ([`Stop::watch`]) ends each of their loops with [`Stopped`], at most [`STOP_ROWS`]
//! rows after it was set. It never changes a result that is returned.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows that a loop handles between two looks at the [`Stop`] of its thread.
pub const STOP_ROWS: usize = 1 << 16;

/// The [`Stop`] of the thread was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request")]
pub struct Stopped;

thread_local! {
    static OF_THREAD: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Asks work in other threads to end. Clones set and see the same flag.
///
/// ```
/// use shuffle::{Stop, Stopped, split};
///
/// let stop = Stop::default();
/// stop.set();
/// let groups = vec![0; 1000];
/// let stopped = stop.watch(|| split::stratified(&groups, &[0.5, 0.5], 42));
/// assert_eq!(stopped.unwrap_err(), split::Error::Stopped(Stopped));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    is_set: AtomicBool,
    /// Rows that watched loops have begun, or would have.
    n_rows: AtomicU64,
    /// The number of rows at which the flag sets itself; 0 means never.
    at_row: u64,
}

impl Stop {
    /// A stop that sets itself once watched loops have handled this many rows, so that a test ends
    /// work in its middle. 0 means never.
    pub fn at_row(at_row: u64) -> Self {
        Self(Arc::new(Flag { at_row, ..Flag::default() }))
    }

    /// Whether work should end.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Asks work to end.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Number of rows that watched loops have begun to handle, with those that a loop did not
    /// handle because it ended before.
    pub fn n_rows(&self) -> u64 {
        self.0.n_rows.load(Ordering::Relaxed)
    }

    /// Does work on this thread whose loops over rows end with [`Stopped`] soon after this
    /// stop was set.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the stop of the work around, also after a panic.
        struct Around(Option<Stop>);
        impl Drop for Around {
            fn drop(&mut self) {
                OF_THREAD.set(self.0.take());
            }
        }
        let _around = Around(OF_THREAD.replace(Some(self.clone())));
        work()
    }

    /// Counts rows that are about to be handled.
    fn begin(&self, n_rows: u64) -> Result<(), Stopped> {
        let flag = &*self.0;
        let n_before = flag.n_rows.fetch_add(n_rows, Ordering::Relaxed);
        if flag.at_row > 0 && n_before >= flag.at_row {
            self.set();
        }
        if self.is_set() { Err(Stopped) } else { Ok(()) }
    }
}

/// To be called before each [`STOP_ROWS`] rows of a loop, or fewer.
///
/// # Errors
/// The thread's work is to end.
pub fn begin_rows(n_rows: usize) -> Result<(), Stopped> {
    OF_THREAD.with_borrow(|stop| stop.as_ref().map_or(Ok(()), |stop| stop.begin(n_rows as u64)))
}

/// The rows in pieces, of at most [`STOP_ROWS`] each; errors once the thread's work is to end.
pub fn pieces<Row>(rows: &[Row]) -> impl Iterator<Item = Result<&[Row], Stopped>> {
    rows.chunks(STOP_ROWS).map(|piece| begin_rows(piece.len()).map(|()| piece))
}

/// Like [`pieces`], of the numbers `0..n_rows`.
pub fn ranges(n_rows: u64) -> impl Iterator<Item = Result<Range<u64>, Stopped>> {
    let piece = STOP_ROWS as u64;
    (0..n_rows.div_ceil(piece)).map(move |idx| {
        let range = idx * piece..n_rows.min((idx + 1) * piece);
        begin_rows((range.end - range.start) as usize).map(|()| range)
    })
}

/// Handles each row of an iterator.
///
/// # Errors
/// A row's error; the thread's work is to end.
pub fn each<Row, E: From<Stopped>>(
    mut rows: impl ExactSizeIterator<Item = Row>,
    mut handle: impl FnMut(Row) -> Result<(), E>,
) -> Result<(), E> {
    for piece in ranges(rows.len() as u64) {
        let piece = piece?;
        rows.by_ref().take((piece.end - piece.start) as usize).try_for_each(&mut handle)?;
    }
    Ok(())
}

/// A value for each row.
///
/// # Errors
/// The thread's work is to end.
pub fn map<Row, Value>(
    rows: &[Row],
    mut value: impl FnMut(&Row) -> Value,
) -> Result<Vec<Value>, Stopped> {
    let mut values = Vec::with_capacity(rows.len());
    for piece in pieces(rows) {
        values.extend(piece?.iter().map(&mut value));
    }
    Ok(values)
}

/// The first `n_rows` rows of an iterator.
///
/// # Errors
/// The thread's work is to end.
pub fn collect<Row>(n_rows: u64, mut rows: impl Iterator<Item = Row>) -> Result<Vec<Row>, Stopped> {
    let mut list = Vec::with_capacity(n_rows as usize);
    for places in ranges(n_rows) {
        list.extend(places?.zip(&mut rows).map(|(_, row)| row));
    }
    Ok(list)
}

/// The position of the first row that is looked for.
///
/// # Errors
/// The thread's work is to end.
pub fn position<Row>(
    mut rows: impl ExactSizeIterator<Item = Row>,
    mut is_it: impl FnMut(Row) -> bool,
) -> Result<Option<usize>, Stopped> {
    for piece in ranges(rows.len() as u64) {
        let piece = piece?;
        let mut rows = rows.by_ref().take((piece.end - piece.start) as usize);
        if let Some(at) = rows.position(&mut is_it) {
            return Ok(Some(piece.start as usize + at));
        }
    }
    Ok(None)
}

/// Looks at the [`Stop`] of its thread once for every [`STOP_ROWS`] steps of a loop whose length is
/// not known.
#[derive(Debug, Default)]
pub struct Steps {
    n_left: usize,
}

impl Steps {
    /// To be called before each step.
    ///
    /// # Errors
    /// The thread's work is to end.
    pub fn begin(&mut self) -> Result<(), Stopped> {
        if self.n_left == 0 {
            begin_rows(STOP_ROWS)?;
            self.n_left = STOP_ROWS;
        }
        self.n_left -= 1;
        Ok(())
    }
}

/// Sorts in place; the order of equal items is any.
///
/// # Errors
/// The thread's work is to end; the items are then in any order.
pub(crate) fn sort<Item: Ord + Copy>(items: &mut [Item]) -> Result<(), Stopped> {
    let mut unsorted = vec![items];
    while let Some(part) = unsorted.pop() {
        if part.len() <= STOP_ROWS {
            begin_rows(part.len())?;
            part.sort_unstable();
            continue;
        }
        let pivot = near_median(part);
        let n_low = move_to_front(part, |item| item < pivot)?;
        let (low, rest) = part.split_at_mut(n_low);
        if low.is_empty() {
            // Without this, parts of equal items would never end.
            let n_equal = move_to_front(rest, |item| item == pivot)?;
            unsorted.push(&mut rest[n_equal..]);
        } else {
            unsorted.extend([low, rest]);
        }
    }
    Ok(())
}

/// An item with about equally many below and above it: the median of items at scattered places,
/// which no pattern in the order of the items can meet.
fn near_median<Item: Ord + Copy>(items: &[Item]) -> Item {
    const N_SAMPLED: u64 = 1023;
    let place = |idx: u64| (idx.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16) as usize % items.len();
    let mut sampled: Vec<Item> = (0..N_SAMPLED).map(|idx| items[place(idx)]).collect();
    *sampled.select_nth_unstable(N_SAMPLED as usize / 2).1
}

/// Moves the items that `is_first` is true for before all others; returns their number.
fn move_to_front<Item: Copy>(
    items: &mut [Item],
    is_first: impl Fn(Item) -> bool,
) -> Result<usize, Stopped> {
    let mut n_first = 0;
    for piece in ranges(items.len() as u64) {
        let piece = piece?;
        for idx in piece.start as usize..piece.end as usize {
            let item = items[idx];
            items.swap(idx, n_first);
            n_first += usize::from(is_first(item));
        }
    }
    Ok(n_first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn lists_of_any_length_are_sorted(
            seed in any::<u64>(),
            n_rows in 0_u64..400_000,
            pattern in 0..6,
        ) {
            let mixed = |row: u64| (row ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let item = |row: u64| match pattern {
                0 => mixed(row),
                1 => mixed(row) % 3,
                2 => row,
                3 => n_rows - row,
                4 => row.min(n_rows - row),
                _ => row % 300,
            };
            let mut items: Vec<u64> = (0..n_rows).map(item).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            let stop = Stop::default();
            stop.watch(|| sort(&mut items)).unwrap();
            prop_assert!(items == expected);
            // Each halving of the list, and the pieces at its end, handle all rows once.
            let n_halvings = (n_rows / STOP_ROWS as u64 + 1).ilog2();
            prop_assert!(stop.n_rows() <= n_rows * u64::from(2 * n_halvings + 2));
        }
    }

    #[test]
    fn a_stop_ends_loops_within_the_stated_rows() {
        let rows = vec![0_u8; 10 * STOP_ROWS + 1];
        let stop = Stop::at_row(3 * STOP_ROWS as u64 + 1);
        assert_eq!(stop.watch(|| map(&rows, |_| ())), Err(Stopped));
        // The last of them were not handled.
        assert_eq!(stop.n_rows(), 5 * STOP_ROWS as u64);
        // No longer watched.
        assert_eq!(map(&rows, |_| ()).map(|values| values.len()), Ok(rows.len()));
    }

    #[test]
    fn steps_are_counted_before_they_are_done() {
        let stop = Stop::at_row(STOP_ROWS as u64);
        let mut steps = Steps::default();
        let most = 2 * STOP_ROWS;
        let n_done = stop.watch(|| (0..most).take_while(|_| steps.begin().is_ok()).count());
        assert_eq!(n_done, STOP_ROWS);
    }

    #[test]
    fn all_rows_are_in_pieces() {
        let n_rows = 2 * STOP_ROWS as u64 + 7;
        let all: Result<Vec<_>, _> = ranges(n_rows).collect();
        assert_eq!(all.unwrap().into_iter().flatten().count() as u64, n_rows);
        assert_eq!(position([1, 2, 3].iter(), |row| *row == 3), Ok(Some(2)));
    }
}
