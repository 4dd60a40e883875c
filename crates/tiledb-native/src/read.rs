//! Reads: rows and columns in, CSR out.
//!
//! A read takes two rounds, each in parallel over *tasks*: runs of the wanted rows that share no
//! tile with another task except at their edges. The first round finds the tiles and, from the row
//! indices, the places of the cells. The second fetches and decodes only the chunks that contain
//! them.
//!
//! If all columns are wanted, or a range of them ([`kept`]), the first round already knows the
//! number of values of each row. The second then writes straight into the caller's buffers, columns
//! and values of a task separately ([`direct`]). For a list of columns, or if the times of cells or
//! conditions by which single cells were deleted decide which of them count, tasks keep their
//! results, which are merged afterwards ([`staged`]). A range is also read that way if a row's
//! cells are unordered, and from an object store, to which reads are announced. Rows that were
//! deleted as a whole are left out in the first round.

mod chunks;
mod count;
mod direct;
pub(crate) mod fetch;
mod kept;
mod next;
mod output;
mod plan;
mod staged;
mod target;
mod task;
mod work;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use csr::{ColumnSelection, Narrowing};
use worktime::ReadStats;

use crate::decoded_cache::DecodedCache;
use crate::deletes::{Deleted, Deletes};
use crate::error::{Error, Fault};
use crate::filter::Decoder;
use crate::fragment::{Field, Fragment};
use crate::index_cache::IndexCache;
use crate::request::{Columns, Rows};
use crate::schema::Layout;
use direct::Outcome;
pub(crate) use next::NextRead;
pub(crate) use output::Output;
use storage::{Files, Piece, RequestCounts};

/// Approximate memory of a thread: fetched bytes, a decoded chunk, the wanted cells of the tiles
/// being read.
const THREAD_BYTES: u64 = 16 << 20;

/// Indices of the fields of a matrix in conditions.
pub(crate) const ROWS: usize = 0;
const COLUMNS: usize = 1;
const VALUES: usize = 2;

/// The state that reads of one array share.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) files: Files,
    pub(crate) layout: Arc<Layout>,
    pub(crate) fragments: Arc<[Fragment]>,
    pub(crate) indices: Arc<IndexCache>,
    pub(crate) decoded: DecodedCache,
    pub(crate) deletes: Arc<Deletes>,
    pub(crate) deleted: Deleted,
    pub(crate) timestamp: u64,
    /// How values become f32, also the kept ones.
    pub(crate) narrowing: Narrowing,
    /// Rows and columns of the array at that time, if a fragment has cells outside them.
    pub(crate) crop: Option<[Range<u64>; 2]>,
    /// Whether any value that is not a count was found, wanted or not.
    pub(crate) has_floats: AtomicBool,
    /// Whether a read had to collect cells instead of writing them in place; later reads then
    /// collect at once.
    pub(crate) is_collected: AtomicBool,
    /// The rows to announce once the present read has announced its own.
    pub(crate) next: Mutex<Option<NextRead>>,
    /// The requests that reads have counted as theirs.
    pub(crate) counted: Arc<Mutex<RequestCounts>>,
    /// Buffers left by the threads of earlier reads.
    pub(crate) scratch: Mutex<Vec<Scratch>>,
}

/// Buffers of one thread, reused from task to task and from read to read.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Filtered bytes as read.
    bytes: Vec<u8>,
    decoding: Decoding,
    columns: Vec<u32>,
    /// Columns or counts of packed rows.
    narrow: Vec<u16>,
    values: Vec<f32>,
    times: Vec<u64>,
    delete_times: Vec<u64>,
    /// Values as stored.
    stored: Vec<u8>,
}

/// Working memory for decoding a chunk.
#[derive(Debug, Default)]
struct Decoding {
    decoder: Decoder,
    /// Packed cells, before they are cached.
    packed: Vec<u8>,
}

impl Reader {
    /// Number of cells in all fragments.
    pub(crate) fn n_cells(&self) -> u64 {
        self.fragments.iter().map(Fragment::n_cells).fold(0, u64::saturating_add)
    }

    /// The most memory, in bytes, that a read of `nnz` cells takes in addition to its result: each
    /// thread's memory, row indices, ranges fetched ahead, and the rows of all tasks if they are
    /// collected before they are merged. Repeated or unordered cells are known only after a read
    /// has found them.
    pub(crate) fn working_bytes(&self, nnz: u64, columns: &ColumnSelection, n_threads: u64) -> u64 {
        let n_cells = self.n_cells();
        // Row indices take less than an eighth of a byte per cell.
        let indices = (self.indices.limit_bytes() as u64).min(n_cells / 8);
        let is_all = *columns == ColumnSelection::All;
        let collected = if self.is_direct(is_all, columns.range().is_some()) {
            0
        } else {
            let row_cells = n_cells / self.layout.shape[0].1.max(1);
            let task_cells = row_cells.saturating_mul(task::TASK_ROWS).saturating_mul(n_threads);
            let deletable = if self.deletes_cells() { staged::DELETABLE_CELL_BYTES } else { 0 };
            let cell_bytes = staged::COLLECTED_CELL_BYTES + deletable;
            let at_once = nnz.min(task_cells).saturating_mul(cell_bytes);
            nnz.saturating_mul(staged::TASK_CELL_BYTES).saturating_add(at_once)
        };
        [indices, self.files.storage().coalesce().prefetch_bytes]
            .into_iter()
            .fold(collected, u64::saturating_add)
            .saturating_add(n_threads.saturating_mul(THREAD_BYTES))
    }

    /// Whether cells of all columns, or of a range, are written straight to their place, as far as
    /// is known. From a storage to which reads are announced, a range is collected like a list.
    fn is_direct(&self, is_all: bool, is_range: bool) -> bool {
        let is_announced = self.files.storage().coalesce().prefetches();
        (is_all || (is_range && !is_announced))
            && !self.is_by_time()
            && !self.deletes_cells()
            && self.crop.is_none()
            && !self.is_collected.load(Ordering::Relaxed)
    }

    /// Fails if a tile has columns outside the array although its fragment has none. Packing would
    /// change them.
    fn check_columns(&self, planned: &[work::Planned]) -> Result<(), Error> {
        let n_columns = self.layout.shape[1].1;
        for work in planned.iter().flat_map(|planned| &planned.works) {
            let fragment = &self.fragments[work.fragment];
            let (_, last) = fragment.tiles(&self.files)?.bounds(work.tile).columns;
            if u64::from(last) >= n_columns {
                let what = format!("a tile with columns to {last} of an array with {n_columns}");
                let file = &fragment.files[Field::Columns.idx()];
                return Err(Fault::new(what).in_file(self.files.name(file), 0));
            }
        }
        Ok(())
    }

    /// Whether the times of cells decide which of them count at the opening time.
    pub(crate) fn is_by_time(&self) -> bool {
        self.fragments.iter().any(|fragment| fragment.is_partly_after(self.timestamp))
    }

    /// Whether any cell may have been deleted.
    pub(crate) fn has_deletes(&self) -> bool {
        self.deleted != Deleted::Nothing
    }

    /// Whether single cells may have been deleted.
    fn deletes_cells(&self) -> bool {
        self.deleted == Deleted::Cells
    }

    /// Whether cells were deleted by their values. These are then needed as stored, so that no
    /// converted ones can be kept.
    pub(crate) fn has_deletes_by_value(&self) -> bool {
        self.fragments.iter().any(|fragment| fragment.deletes.fields().contains(&VALUES))
    }

    /// Reads `rows` into `out`, on the current thread pool. Packed rows must not exceed their limit
    /// of columns.
    pub(crate) fn read(
        &self,
        rows: &[Range<u64>],
        selection: &ColumnSelection,
        mut out: Output<'_>,
    ) -> Result<ReadStats, Error> {
        let rows = Rows::new(rows, self.layout.shape[0].1)?;
        let (columns, n_columns) = Columns::new(selection, self.layout.shape[1])?;
        out.keep_counts(!self.has_floats.load(Ordering::Relaxed));
        let read = match &rows.copies {
            None => self.read_distinct(&rows, &columns, out.reborrow()),
            Some(copies) => {
                out.fill_from(copies, |distinct| self.read_distinct(&rows, &columns, distinct))
            }
        };
        if read.is_err() {
            out.clear();
            // Forget the announced read: this one failed.
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let sent = self.sent_since_the_last_read();
        out.set_n_columns(n_columns)?;
        let mut stats = read?;
        stats.values = out.nnz() as u64;
        let Layout { rows, columns, values, .. } = &*self.layout;
        let cell_bytes: usize =
            [rows, columns, values].map(|stored| stored.number.size()).iter().sum();
        stats.bytes_needed = Some(stats.values * cell_bytes as u64);
        stats.requests = sent.map(|sent| sent.sent);
        stats.bytes_read = sent.map_or(stats.bytes_read, |sent| Some(sent.bytes));
        Ok(stats)
    }

    /// The requests that no read has counted yet; those of a folder are not counted.
    fn sent_since_the_last_read(&self) -> Option<RequestCounts> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.files.storage().request_counts()?;
        let before = std::mem::replace(&mut *counted, now);
        Some(now.since(before))
    }

    fn read_distinct(
        &self,
        rows: &Rows,
        columns: &Columns,
        mut out: Output<'_>,
    ) -> Result<ReadStats, Error> {
        let tasks = task::tasks(rows, &self.layout);
        let (planned, mut stats) = plan::plan(self, tasks, columns)?;
        // Now the row indices of the present tiles are known: for the next read neither their row
        // coordinates are requested, nor those of them that have none of its rows.
        self.announce_next();
        if columns.is_all() && self.crop.is_none() {
            self.check_columns(&planned)?;
        }
        let is_tried = self.is_direct(columns.is_all(), columns.range().is_some());
        if is_tried && planned.iter().all(|planned| planned.is_counted) {
            let (mut outcome, read) = direct::read(self, rows, &planned, columns, out.reborrow())?;
            stats += read;
            if outcome == Outcome::Unfit {
                self.store_floats(&mut out);
                let (again, read) = direct::read(self, rows, &planned, columns, out.reborrow())?;
                stats += read;
                outcome = again;
            }
            if outcome == Outcome::Done {
                return Ok(stats);
            }
        }
        self.is_collected.fetch_or(is_tried, Ordering::Relaxed);
        stats += staged::read(self, rows, &planned, columns, out)?;
        Ok(stats)
    }

    /// Makes packed rows store full values, now and in later reads, because some are not counts.
    /// The rows become larger, so cached cells are dropped until a new limit is set.
    fn store_floats(&self, out: &mut Output<'_>) {
        self.has_floats.store(true, Ordering::Relaxed);
        self.decoded.set_limit_bytes(0);
        out.keep_counts(false);
    }

    /// Whether a cell may occur more than once, and only the latest counts.
    fn keeps_latest(&self) -> bool {
        !self.layout.allows_duplicates
            && (self.fragments.len() > 1
                || self.fragments.iter().any(|fragment| fragment.footer.has_timestamps))
    }

    /// Runs a part of a read on this thread. Time not spent fetching counts as decoding.
    fn timed<T>(
        work: impl FnOnce(&mut ReadStats) -> Result<T, Error>,
    ) -> Result<(T, ReadStats), Error> {
        let (start, mut stats) = (worktime::now(), ReadStats::nothing());
        let done = work(&mut stats)?;
        let fetch = stats.times.unwrap_or_default().fetch;
        stats.add_decoded(0, 0, worktime::now() - start - fetch);
        Ok((done, stats))
    }

    /// Reads `wanted` into `buffer`, which only grows. Returns the place of each piece in it.
    fn fetch(
        &self,
        wanted: &[Piece<'_>],
        buffer: &mut Vec<u8>,
        stats: &mut ReadStats,
    ) -> Result<Vec<Range<usize>>, Error> {
        let start = worktime::now();
        let (places, read) = fetch::fetch(&self.files, wanted, buffer)?;
        stats.add_fetched(read, worktime::now() - start);
        Ok(places)
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let taken = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = taken.unwrap_or_default();
        let out = work(&mut scratch);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        out
    }
}

/// Writes the counts of a task's rows to the places of their end offsets.
fn put_counts(task: &task::Task, counts: &[u32], row_offsets: &mut [usize]) {
    for (pair, &out_row) in task.bases.windows(2).zip(&task.out_rows) {
        let ends = &mut row_offsets[out_row + 1..];
        ends.iter_mut()
            .zip(&counts[pair[0]..pair[1]])
            .for_each(|(end, &count)| *end = count as usize);
    }
}

/// Sorts a row by column; values of one column keep their order.
fn sort_row(columns: &mut [u32], values: &mut [f32]) {
    let mut pairs: Vec<(u32, f32)> = columns.iter().copied().zip(values.iter().copied()).collect();
    pairs.sort_by_key(|&(column, _)| column);
    for ((column, value), (to_column, to_value)) in
        pairs.into_iter().zip(columns.iter_mut().zip(values))
    {
        (*to_column, *to_value) = (column, value);
    }
}
