//! Reads: rows and columns in, CSR out.
//!
//! A read goes in two rounds, each in parallel over *tasks*, which are runs of the wanted rows that share no tile with another task
//! but at their edges. The first round finds the tiles and, from the row indices, where the cells are; the second fetches and
//! decodes just the chunks that hold them.
//!
//! Where all columns are wanted, or a range of them ([`kept`]), the first round already knows how many values each row has: the
//! second writes straight into the caller's buffers, columns and values of a task apart from each other ([`direct`]). For a list of
//! columns, or where the times of cells decide which of them count, tasks keep what they find and are put together afterwards
//! ([`staged`]). A range is read that way, too, where a row's cells are in no order, and from an object store, which is told ahead what
//! will be read.

mod chunks;
mod direct;
mod fetch;
mod kept;
mod output;
mod plan;
mod staged;
mod target;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use worktime::ReadTimes;

use crate::decoded_cache::DecodedCache;
use crate::error::{Error, Fault};
use crate::filter::Decoder;
use crate::fragment::{Field, Fragment};
use crate::index_cache::IndexCache;
use crate::request::{ColumnSelection, Columns, Rows};
use crate::schema::Layout;
use direct::Outcome;
pub(crate) use output::Output;
use storage::Files;
use storage::Piece;

/// What a thread keeps, about: bytes as they were fetched, a chunk that is decoded, the wanted cells of the tiles in work.
const THREAD_BYTES: u64 = 16 << 20;

/// What a read did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Values delivered.
    pub nnz: u64,
    /// Cells whose columns were decoded: at least as many as were wanted, since a chunk is decoded whole, but for those that were kept
    /// decoded.
    pub cells_decoded: u64,
    /// Bytes read from storage, those between coalesced ranges included.
    pub bytes_read: u64,
    /// Bytes that came out of the filters, of all fields.
    pub bytes_decoded: u64,
    /// Bytes that the values delivered take as they are stored: row, column and value of each.
    pub bytes_needed: u64,
    /// Time that the threads spent fetching and decoding.
    pub times: ReadTimes,
    /// Tiles whose row index had to be built.
    pub tiles_indexed: u64,
    /// Requests sent to an object store, what was fetched ahead included; a try again of a failed one is not counted. The store counts
    /// those of all reads, so that of two reads at the same time each counts some of the other's. `None` of a folder.
    pub requests: Option<u64>,
}

impl ReadStats {
    fn add(&mut self, other: Self) {
        self.nnz += other.nnz;
        self.cells_decoded += other.cells_decoded;
        self.bytes_read += other.bytes_read;
        self.bytes_decoded += other.bytes_decoded;
        self.times += other.times;
        self.tiles_indexed += other.tiles_indexed;
    }
}

/// What reads of one array share.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) files: Files,
    pub(crate) layout: std::sync::Arc<Layout>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) indices: IndexCache,
    pub(crate) decoded: DecodedCache,
    pub(crate) timestamp: u64,
    /// Rows and columns of the array at that time, if a fragment has cells outside them.
    pub(crate) crop: Option<[Range<u64>; 2]>,
    /// Whether a value was found that is no count, wanted or not.
    pub(crate) has_floats: AtomicBool,
    /// Whether a read had to collect what it might have written to its place: later ones do not try.
    pub(crate) is_collected: AtomicBool,
    /// Buffers that threads of earlier reads have left.
    pub(crate) scratch: Mutex<Vec<Scratch>>,
}

/// Buffers of one thread, reused from task to task and from read to read.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Filtered bytes as they were read.
    bytes: Vec<u8>,
    decoding: Decoding,
    columns: Vec<u32>,
    /// Columns or counts of packed rows.
    narrow: Vec<u16>,
    values: Vec<f32>,
    times: Vec<u64>,
}

/// What decoding a chunk takes.
#[derive(Debug, Default)]
struct Decoding {
    decoder: Decoder,
    /// Cells that are about to be kept.
    packed: Vec<u8>,
}

impl Reader {
    /// Cells of all fragments.
    pub(crate) fn n_cells(&self) -> u64 {
        self.fragments.iter().map(Fragment::n_cells).fold(0, u64::saturating_add)
    }

    /// Bytes of memory that a read of `nnz` cells takes at most, beside those of its result: what each thread keeps, row indices, and
    /// the rows of all tasks where they are collected before they are put together. That cells repeat, or stand in no order, is known
    /// only after a read that found it so.
    pub(crate) fn working_bytes(&self, nnz: u64, columns: &ColumnSelection, n_threads: u64) -> u64 {
        let n_cells = self.n_cells();
        // Row indices take fewer than an eighth of a byte for each cell.
        let indices = (self.indices.limit_bytes() as u64).min(n_cells / 8);
        let is_all = *columns == ColumnSelection::All;
        let collected = if self.is_direct(is_all, columns.range().is_some()) {
            0
        } else {
            let row_cells = n_cells / self.layout.shape[0].1.max(1);
            let task_cells = row_cells.saturating_mul(plan::TASK_ROWS).saturating_mul(n_threads);
            let at_once = nnz.min(task_cells).saturating_mul(staged::COLLECTED_CELL_BYTES);
            nnz.saturating_mul(staged::TASK_CELL_BYTES).saturating_add(at_once)
        };
        collected.saturating_add(indices).saturating_add(n_threads.saturating_mul(THREAD_BYTES))
    }

    /// Whether cells of all columns, or of a range of them, are written straight to their place, as far as is known. From a storage
    /// that is told ahead what will be read, a range is collected as a list is.
    fn is_direct(&self, is_all: bool, is_range: bool) -> bool {
        let is_announced = self.files.storage().coalesce().prefetch;
        (is_all || (is_range && !is_announced))
            && !self.is_by_time()
            && self.crop.is_none()
            && !self.is_collected.load(Ordering::Relaxed)
    }

    /// Returns an error if a tile has columns outside the array although its fragment has none.
    /// Packing would turn them into others.
    fn check_columns(&self, planned: &[plan::Planned]) -> Result<(), Error> {
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
    fn is_by_time(&self) -> bool {
        self.fragments.iter().any(|fragment| fragment.is_partly_after(self.timestamp))
    }

    /// Reads `rows` into `out`, on the current thread pool. Packed rows must not have more columns than those can have.
    pub(crate) fn read(
        &self,
        rows: &[Range<u64>],
        selection: &ColumnSelection,
        mut out: Output<'_>,
    ) -> Result<ReadStats, Error> {
        let rows = Rows::new(rows, self.layout.shape[0].1)?;
        let (columns, n_columns) = Columns::new(selection, self.layout.shape[1])?;
        out.keep_counts(!self.has_floats.load(Ordering::Relaxed));
        let before = self.files.storage().requests();
        let read = match &rows.copies {
            None => self.read_distinct(&rows, &columns, out.reborrow()),
            Some(copies) => {
                out.fill_from(copies, |distinct| self.read_distinct(&rows, &columns, distinct))
            }
        };
        if read.is_err() {
            out.clear();
        }
        out.set_n_columns(n_columns)?;
        let mut stats = read?;
        stats.nnz = out.nnz() as u64;
        let Layout { rows, columns, values, .. } = &*self.layout;
        let cell_bytes: usize =
            [rows, columns, values].map(|stored| stored.number.size()).iter().sum();
        stats.bytes_needed = stats.nnz * cell_bytes as u64;
        let after = self.files.storage().requests();
        stats.requests = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(stats)
    }

    fn read_distinct(
        &self,
        rows: &Rows,
        columns: &Columns,
        mut out: Output<'_>,
    ) -> Result<ReadStats, Error> {
        let tasks = plan::tasks(rows, &self.layout);
        let (planned, mut stats) = plan::plan(self, tasks, columns)?;
        if columns.is_all() && self.crop.is_none() {
            self.check_columns(&planned)?;
        }
        let is_tried = self.is_direct(columns.is_all(), columns.range().is_some());
        if is_tried && planned.iter().all(|planned| planned.is_counted) {
            let (mut outcome, read) = direct::read(self, rows, &planned, columns, out.reborrow())?;
            stats.add(read);
            if outcome == Outcome::Unfit {
                self.hold_floats(&mut out);
                let (again, read) = direct::read(self, rows, &planned, columns, out.reborrow())?;
                stats.add(read);
                outcome = again;
            }
            if outcome == Outcome::Done {
                return Ok(stats);
            }
        }
        self.is_collected.fetch_or(is_tried, Ordering::Relaxed);
        stats.add(staged::read(self, rows, &planned, columns, out)?);
        Ok(stats)
    }

    /// Makes packed rows hold values as they are, now and in later reads: some are no counts. The rows become larger by that, so what is
    /// kept of cells makes room, until it is told anew how much may be kept.
    fn hold_floats(&self, out: &mut Output<'_>) {
        self.has_floats.store(true, Ordering::Relaxed);
        self.decoded.set_limit_bytes(0);
        out.keep_counts(false);
    }

    /// Whether a cell may be found more than once and only the latest counts.
    fn keeps_latest(&self) -> bool {
        !self.layout.allows_duplicates
            && (self.fragments.len() > 1
                || self.fragments.iter().any(|fragment| fragment.footer.has_timestamps))
    }

    /// Runs a part of a read on this thread. Time not spent fetching counts as decoding.
    fn timed<T>(
        work: impl FnOnce(&mut ReadStats) -> Result<T, Error>,
    ) -> Result<(T, ReadStats), Error> {
        let (start, mut stats) = (worktime::now(), ReadStats::default());
        let done = work(&mut stats)?;
        stats.times.decode += worktime::now() - start - stats.times.fetch;
        Ok((done, stats))
    }

    /// Reads `wanted` into `buffer`, which only grows; returns where in it each piece is.
    fn fetch(
        &self,
        wanted: &[Piece<'_>],
        buffer: &mut Vec<u8>,
        stats: &mut ReadStats,
    ) -> Result<Vec<Range<usize>>, Error> {
        let start = worktime::now();
        let (places, read) = fetch::fetch(&self.files, wanted, buffer)?;
        stats.times.fetch += worktime::now() - start;
        stats.bytes_read += read;
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

/// Writes the counts of a task's rows where the offsets of their ends will be.
fn put_counts(task: &plan::Task, counts: &[u32], row_offsets: &mut [usize]) {
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
