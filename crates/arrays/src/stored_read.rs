//! Plans reads of ranges of rows of several arrays, and runs them together.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use storage::{Expected, Storage};
use worktime::ReadStats;

use crate::chunk_task::{Place, PlacedChunks, Rows, Task, Worker, pieces, place};
use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::error::Error;
use crate::joined::join;
use crate::kept::KeptRead;
use crate::numbers::Number;
use crate::read::Failure;
use crate::read_files::ReadFiles;
use crate::stored::StoredArray;

/// Least bytes of a batch: to hand over fewer to another thread costs more than it saves.
const MIN_BATCH_BYTES: u64 = 64 << 10;

/// Memory of decoding that reads use again. Several reads may use it at the same time.
#[derive(Debug, Default)]
pub struct DecodeMemory {
    free: Mutex<Vec<Worker>>,
}

impl DecodeMemory {
    /// Reads a batch.
    fn run(
        &self,
        storage: &dyn Storage,
        names: &[String],
        (mut batch, gap_bytes): (Vec<Wanted<'_>>, u64),
    ) -> Result<ReadStats, Failure> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = free.unwrap_or_default();
        worker.stats = ReadStats::nothing();
        let read = worker.run_placed(storage, names, (&mut batch[..], gap_bytes));
        let stats = worker.stats;
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        read.map(|()| stats)
    }
}

/// Rows of a chunk of the first dimension, and their chunks in the order of their places.
type Wanted<'a> = (Task<'a>, PlacedChunks<'a>);

/// Ranges of rows of one array, and the memory that they are read into.
#[derive(Debug)]
pub struct Request<'a> {
    array: &'a StoredArray,
    tasks: Vec<Task<'a>>,
    stored_only: bool,
    /// The read that keeps the chunks, and the number that its rows begin with.
    keep_in: Option<(&'a KeptRead<'a>, u64)>,
}

impl<'a> Request<'a> {
    /// Keeps compressed chunks once they are decoded, as far as there is room, and takes those that
    /// are there: their files are not looked at again. The read calls the array's first row
    /// `first_row`.
    #[must_use]
    pub fn keep_in(self, read: &'a KeptRead<'a>, first_row: u64) -> Self {
        Self { keep_in: Some((read, first_row)), ..self }
    }

    /// Makes a chunk whose file is missing an error, if `stored_only`; otherwise it reads as the
    /// fill value, like a chunk that the index of its shard leaves out.
    #[must_use]
    pub fn stored_only(self, stored_only: bool) -> Self {
        Self { stored_only, ..self }
    }
}

impl StoredArray {
    /// Asks for ranges of rows as numbers of type `T`: `into` is as long as all elements of these
    /// rows, which ascend and do not overlap.
    ///
    /// # Errors
    /// [`Error::ReadElements`] if the rows are beyond the array or not in order, if `into` has
    /// another length, or if `T` does not take the elements.
    pub fn request<'a, T: Number>(
        &'a self,
        rows: &[Range<u64>],
        into: &'a mut [T],
    ) -> Result<Request<'a>, Error> {
        let taken = self.chunks().filter(|chunks| T::takes(chunks.stored));
        let chunks = taken.ok_or_else(|| {
            self.failed(format!("its elements of type {} do not fit", self.type_name()).into())
        })?;
        let is_as_stored = T::is_as_stored(chunks.stored);
        let convert = if is_as_stored { AS_STORED } else { To::<T>::CONVERT };
        self.plan((chunks, convert), rows, bytemuck::cast_slice_mut(into))
    }

    /// Asks for ranges of rows as they are stored, as bytes in the machine's order.
    ///
    /// # Errors
    /// Those of [`request`](Self::request).
    pub fn request_bytes<'a>(
        &'a self,
        rows: &[Range<u64>],
        into: &'a mut [u8],
    ) -> Result<Request<'a>, Error> {
        let chunks = self.chunks().ok_or_else(|| {
            self.failed(format!("its elements of type {} are no numbers", self.type_name()).into())
        })?;
        self.plan((chunks, AS_STORED), rows, into)
    }

    fn plan<'a>(
        &'a self,
        (chunks, convert): (&'a Chunks, &'static Convert),
        rows: &[Range<u64>],
        into: &'a mut [u8],
    ) -> Result<Request<'a>, Error> {
        let n_rows = self.n_rows();
        let mut joined: Vec<Range<u64>> = Vec::new();
        let mut total = 0_u64;
        let mut at = 0;
        for range in rows {
            if range.start < at || range.end < range.start || n_rows < range.end {
                let text = format!("rows {range:?} are beyond its {n_rows} rows, or out of order");
                return Err(self.failed(text.into()));
            }
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range.clone()),
            }
            at = range.end;
            total += range.end - range.start;
        }
        let geometry = &chunks.geometry;
        let row_bytes = geometry.row_len.checked_mul(convert.n_bytes(chunks.stored));
        let wanted = row_bytes.and_then(|of_row| of_row.checked_mul(usize::try_from(total).ok()?));
        let Some(row_bytes) = row_bytes.filter(|_| wanted == Some(into.len())) else {
            let text = format!("{total} rows do not fit memory of {} bytes", into.len());
            return Err(self.failed(text.into()));
        };
        let chunk_rows = geometry.chunk_rows;
        let mut rest = into;
        let mut tasks: Vec<Task<'a>> = Vec::new();
        for range in joined {
            let mut at = range.start;
            while at < range.end {
                let chunk_row = at / chunk_rows;
                let end = range.end.min(chunk_row.saturating_add(1).saturating_mul(chunk_rows));
                let (first, len) = ((at % chunk_rows) as usize, (end - at) as usize);
                let (into, after) = std::mem::take(&mut rest).split_at_mut(len * row_bytes);
                rest = after;
                let rows = Rows { first, len, into };
                match tasks.last_mut() {
                    Some(last) if last.chunk_row == chunk_row => last.rows.push(rows),
                    _ => {
                        let of_chunks = (chunk_row, geometry.segments());
                        tasks.push(Task::new((chunks, convert), of_chunks, vec![rows]));
                    }
                }
                at = end;
            }
        }
        Ok(Request { array: self, tasks, stored_only: false, keep_in: None })
    }
}

/// Delivers elements as they are stored.
const AS_STORED: &Convert = &Convert::Copy;

/// Delivers elements as numbers of type `T`.
struct To<T>(PhantomData<T>);

impl<T: Number> To<T> {
    const CONVERT: &'static Convert = &Convert::Numbers {
        n_bytes: size_of::<T>(),
        convert: |element, from, into| T::convert(element, from, bytemuck::cast_slice_mut(into)),
    };
}

/// Reads requests of several arrays in `storage` together: each chunk is decoded once, by the
/// threads of the current rayon pool, straight into its place where it is wanted whole.
///
/// A storage that prefetches gets all ranges announced at once. A file that changes meanwhile is an
/// error.
///
/// # Errors
/// [`Error::ReadElements`]. The memory of the requests then has any content.
pub fn read_requests(
    storage: &dyn Storage,
    memory: &DecodeMemory,
    requests: Vec<Request<'_>>,
) -> Result<ReadStats, Error> {
    let mut files = ReadFiles::default();
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    let failed = |Failure { path: array, source }| {
        let place = storage.place();
        Error::ReadElements { array, place, source }
    };
    for Request { array, mut tasks, stored_only, keep_in } in requests {
        if let Some((read, first_row)) = keep_in {
            let kept = read.kept();
            for task in &mut tasks {
                let rows = task.array_rows();
                let row = |row: u64| first_row.saturating_add(row);
                task.next_use = read.next_use(row(rows.start)..row(rows.end));
            }
            let missing = tasks.into_par_iter().filter_map(|mut task| {
                let is_put = task.put_kept(kept);
                (!is_put).then_some(task)
            });
            tasks = missing.collect();
            for task in &mut tasks {
                task.keep(kept, storage);
            }
        }
        array.learn_shards(storage, &tasks)?;
        let placed = place(storage, &tasks, &mut files).map_err(failed)?;
        for (task, mut placed) in tasks.into_iter().zip(placed) {
            if stored_only {
                task.check_stored(&placed).map_err(failed)?;
            }
            placed.sort_by_key(|(_, place)| start(place.as_ref()));
            wanted.push((task, placed));
        }
    }
    wanted.sort_by_key(|(_, placed)| placed.iter().find_map(|(_, place)| start(place.as_ref())));
    let coalesce = storage.coalesce();
    let total: u64 = wanted.iter().map(|(_, placed)| stored_bytes(placed)).sum();
    let share = total / (4 * rayon::current_num_threads().max(1) as u64);
    let batch_bytes = share.clamp(MIN_BATCH_BYTES, coalesce.batch_bytes.max(MIN_BATCH_BYTES));
    let mut batches: Vec<Vec<Wanted<'_>>> = Vec::new();
    let mut n_bytes = batch_bytes;
    for one in wanted {
        if n_bytes >= batch_bytes {
            batches.push(Vec::new());
            n_bytes = 0;
        }
        let delivered = one.0.n_bytes() as u64;
        n_bytes = n_bytes.saturating_add(stored_bytes(&one.1).max(delivered / 4));
        if let Some(last) = batches.last_mut() {
            last.push(one);
        }
    }
    let names = &files.names;
    if coalesce.prefetches() {
        let pieces = batches.iter().flatten().flat_map(|(_, placed)| pieces(placed, names));
        storage.prefetch(&join(pieces, coalesce.gap_bytes).reads, Expected::Now);
    }
    let read = batches
        .into_par_iter()
        .map(|batch| memory.run(storage, names, (batch, coalesce.gap_bytes)))
        .try_reduce(ReadStats::nothing, |mut sum, part| {
            sum += part;
            Ok(sum)
        });
    // Bytes that make no chunk may come from another version.
    files.check(storage).and(read).map_err(failed)
}

/// The file and the first byte of a chunk.
fn start(place: Option<&Place>) -> Option<(usize, u64)> {
    place.map(|place| (place.file, place.range.start))
}

/// Bytes of chunks as stored.
fn stored_bytes(placed: &PlacedChunks<'_>) -> u64 {
    let places = placed.iter().filter_map(|(_, place)| place.as_ref());
    places.map(|place| place.range.end - place.range.start).sum()
}

impl StoredArray {
    /// Reads the indices of the shards that tasks need, all of them together.
    fn learn_shards(&self, storage: &dyn Storage, tasks: &[Task<'_>]) -> Result<(), Error> {
        let Some(chunks) = self.chunks() else { return Ok(()) };
        let all: Vec<Vec<u64>> = tasks
            .iter()
            .flat_map(|task| task.wanted().map(move |chunk| task.indices(chunk)))
            .collect();
        let learnt = chunks.files.learn_shards(storage, all.iter().map(Vec::as_slice));
        learnt.map_err(|source| self.failed(source))
    }
}

impl Task<'_> {
    /// Fails if a chunk is not stored, except one that the index of its shard leaves out.
    fn check_stored(&self, placed: &PlacedChunks<'_>) -> Result<(), Failure> {
        for (chunk, _) in placed.iter().filter(|(_, place)| place.is_none()) {
            let indices = self.indices(*chunk);
            if !self.chunks.files.is_left_out(&indices) {
                let what = "its file was lost, or left out since it has nothing but zeros";
                let source = format!("chunk {indices:?} is not stored: {what}").into();
                return Err(Failure { path: self.chunks.path.clone(), source });
            }
        }
        Ok(())
    }
}
