//! The chunks that some rows want: found, read and decoded into these rows.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use storage::{FileVersion, Piece, Storage};
use worktime::{ReadStats, ThreadTime};

use crate::chunk_files::{ChunkFile, PlaceInShard};
use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::counting::Counting;
use crate::decoder::Contexts;
use crate::error::Cause;
use crate::fetch_far::fetch_all;
use crate::geometry::{Segment, SelectedChunk};
use crate::joined::join;
use crate::kept::KeptChunks;
use crate::memory::{check_chunk, copy, words};
use crate::patch_row::PatchRow;
use crate::read::Failure;
use crate::read_files::ReadFiles;

/// Consecutive rows of the chunks of a task, and their memory.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// The first row in the chunk.
    pub(crate) first: usize,
    pub(crate) len: usize,
    /// The memory of the task's elements in these rows, one row after another.
    pub(crate) into: &'a mut [u8],
}

/// The chunks of some segments in one range of rows, and the rows that want them.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) chunks: &'a Chunks,
    pub(crate) convert: &'a Convert,
    /// The chunks' index in the dimension of the rows.
    pub(crate) chunk_row: u64,
    pub(crate) segments: &'a [Segment],
    pub(crate) rows: Vec<Rows<'a>>,
    /// Rows that want parts of their own of the only chunk, in place of `rows`.
    pub(crate) patches: Vec<PatchRow<'a>>,
    /// Whether blocks of the chunks are read instead of whole chunks.
    pub(crate) is_in_parts: bool,
    /// Where the chunks are kept when they are decoded.
    pub(crate) keep_in: Option<&'a KeptChunks>,
    /// When the chunks are needed again, if that is known ([`storage::NextUseCache`]).
    pub(crate) next_use: Option<u64>,
    /// What is counted; the rows have no memory then.
    pub(crate) counting: Option<&'a Counting<'a>>,
}

/// A chunk of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskChunk<'a> {
    pub(crate) selected: &'a SelectedChunk,
    /// The first element of its segment in the task's rows.
    pub(crate) start: usize,
}

/// The stored bytes of a chunk.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its number among the files of the read.
    pub(crate) file: usize,
    pub(crate) range: Range<u64>,
}

/// The chunks of a task, each with its place if it is stored.
pub(crate) type PlacedChunks<'a> = Vec<(TaskChunk<'a>, Option<Place>)>;

/// Finds the chunks of tasks, all of them together.
pub(crate) fn place<'a>(
    storage: &dyn Storage,
    tasks: &[Task<'a>],
    files: &mut ReadFiles<'a>,
) -> Result<Vec<PlacedChunks<'a>>, Failure> {
    let mut found = Vec::new();
    for task in tasks {
        for chunk in task.wanted() {
            let file = task.chunks.files.find(storage, &task.indices(chunk));
            found.push(file.map_err(|source| task.failure(chunk, &source))?);
        }
    }
    let whole = found.iter().flatten().filter(|file| file.in_shard.is_none());
    let whole: Vec<&str> = whole.map(|file| file.file.as_str()).collect();
    let mut versions = storage.versions(&whole).into_iter();
    let mut found = found.into_iter();
    let mut placed = Vec::with_capacity(tasks.len());
    for task in tasks {
        let mut of_task = Vec::new();
        for chunk in task.wanted() {
            let place = locate(found.next().flatten(), &mut versions).and_then(|located| {
                let Some((file, range, version)) = located else { return Ok(None) };
                check_stored_len(&range, task.chunks)?;
                let file = files.add(file, version, (task.chunks, &task.indices(chunk)));
                Ok(Some(Place { file, range }))
            });
            of_task.push((chunk, place.map_err(|source| task.failure(chunk, &source))?));
        }
        placed.push(of_task);
    }
    Ok(placed)
}

/// The file, the range and the version of a chunk.
type Located = (String, Range<u64>, Arc<FileVersion>);

/// Where a chunk that was found lies; `None` if it is not stored.
/// `versions` are those of files that are chunks.
fn locate(
    found: Option<ChunkFile>,
    versions: &mut impl Iterator<Item = io::Result<FileVersion>>,
) -> Result<Option<Located>, Cause> {
    let Some(ChunkFile { file, in_shard }) = found else { return Ok(None) };
    if let Some(PlaceInShard { range, version }) = in_shard {
        return Ok(Some((file, range, version)));
    }
    match versions.next() {
        Some(Ok(version)) => Ok(Some((file, 0..version.size, Arc::new(version)))),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Some(Err(error)) => Err(error.into()),
        None => Err("the storage knows no version of it".into()),
    }
}

/// The step of a row, and its memory.
pub(crate) type WantedRow<'a> = (u64, &'a mut [u8]);

/// The tasks that read rows of an array.
pub(crate) fn tasks<'a>(
    (chunks, convert): (&'a Chunks, &'a Convert),
    mut rows: Vec<WantedRow<'a>>,
) -> Vec<Task<'a>> {
    let (geometry, n_to) = (&chunks.geometry, convert.n_bytes(chunks.stored));
    rows.sort_by_key(|(step, _)| *step);
    let mut tasks: Vec<Task<'a>> = Vec::new();
    for (step, row) in rows {
        let chunk_row = step / geometry.chunk_rows;
        let first = (step % geometry.chunk_rows) as usize;
        if tasks.last().is_none_or(|last| last.chunk_row != chunk_row) {
            tasks.extend(geometry.segments().chunks(1).map(|segments| {
                let rows = Vec::new();
                Task::new((chunks, convert), (chunk_row, segments), rows)
            }));
        }
        let mut rest = row;
        let first_task = tasks.len() - geometry.segments().len();
        for task in &mut tasks[first_task..] {
            let (into, after) = rest.split_at_mut(task.row_elements() * n_to);
            task.rows.push(Rows { first, len: 1, into });
            rest = after;
        }
    }
    tasks
}

impl<'a> Task<'a> {
    /// A task that reads whole chunks and keeps none.
    pub(crate) fn new(
        (chunks, convert): (&'a Chunks, &'a Convert),
        (chunk_row, segments): (u64, &'a [Segment]),
        rows: Vec<Rows<'a>>,
    ) -> Self {
        let (is_in_parts, keep_in, next_use, counting) = (false, None, None, None);
        Self {
            chunks,
            convert,
            chunk_row,
            segments,
            rows,
            patches: Vec::new(),
            is_in_parts,
            keep_in,
            next_use,
            counting,
        }
    }

    /// Keeps the chunks in `kept` when they are decoded, if they are worth it and not needed later
    /// than those that are there.
    pub(crate) fn keep(&mut self, kept: &'a KeptChunks, storage: &dyn Storage) {
        let is_kept =
            self.is_worth_keeping(storage) && kept.would_keep(self.decoded_bytes(), self.next_use);
        self.keep_in = is_kept.then_some(kept);
    }

    /// The rows of the array that its chunks have.
    pub(crate) fn array_rows(&self) -> Range<u64> {
        let chunk_rows = self.chunks.geometry.chunk_rows;
        let first = self.chunk_row.saturating_mul(chunk_rows);
        first..first.saturating_add(chunk_rows)
    }

    /// What a chunk is called among those that are kept.
    pub(crate) fn kept_as(&self, chunk: TaskChunk<'_>) -> (Arc<str>, Vec<u64>) {
        (Arc::clone(&self.chunks.kept_as), self.indices(chunk))
    }

    /// Bytes that the task delivers, or would deliver if it did not count.
    pub(crate) fn n_bytes(&self) -> usize {
        let n_to = self.convert.n_bytes(self.chunks.stored);
        let row_bytes = self.row_elements() * n_to;
        let of_patches: usize = self.patches.iter().map(|patch| patch.part.n_elements()).sum();
        self.rows.iter().map(|rows| rows.len * row_bytes).sum::<usize>() + of_patches * n_to
    }

    /// Bytes of its chunks, whole and decoded, or of twice the wanted part: about as many are
    /// fetched, at most.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        if self.is_in_parts {
            return 2 * self.n_bytes() as u64;
        }
        self.decoded_bytes()
    }

    /// Bytes of its chunks, decoded.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        (self.n_chunks() * self.chunks.chunk_bytes()) as u64
    }

    /// Whether its chunks, kept decoded, save more than a copy from the system's own cache.
    fn is_worth_keeping(&self, storage: &dyn Storage) -> bool {
        let costs_more = !self.chunks.decoder.is_raw() || storage.request_counts().is_some();
        costs_more && !self.is_in_parts
    }

    /// The number of its chunks.
    pub(crate) fn n_chunks(&self) -> usize {
        self.segments.iter().map(|segment| segment.chunks.len()).sum()
    }

    /// The place in the row of the first element that its segments have.
    pub(crate) fn first_element(&self) -> usize {
        self.segments.first().map_or(0, |segment| segment.elements.start)
    }

    /// Elements of a row that its segments have.
    fn row_elements(&self) -> usize {
        let start = self.first_element();
        self.segments.last().map_or(0, |segment| segment.elements.end - start)
    }

    /// Its chunks.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = TaskChunk<'a>> + use<'a> {
        let segments = self.segments;
        let first = segments.first().map_or(0, |segment| segment.elements.start);
        segments.iter().flat_map(move |segment| {
            let start = segment.elements.start - first;
            segment.chunks.iter().map(move |selected| TaskChunk { selected, start })
        })
    }

    /// The indices of a chunk.
    pub(crate) fn indices(&self, chunk: TaskChunk<'_>) -> Vec<u64> {
        self.chunks.geometry.indices(self.chunk_row, chunk.selected)
    }

    /// The failure of a chunk.
    pub(crate) fn failure(&self, chunk: TaskChunk<'_>, source: &Cause) -> Failure {
        self.chunks.failure(&self.indices(chunk), source)
    }

    /// The places of a whole chunk that is delivered as it is decoded, one or several; missing
    /// elements become NaN there ([`Convert::mask`]).
    fn direct(&mut self, chunk: TaskChunk<'_>) -> Option<Vec<&mut [u8]>> {
        let (n_bytes, row_elements) = (self.chunks.stored.n_bytes(), self.row_elements());
        let in_place = self.convert.is_in_place(self.chunks.stored);
        let elements = chunk.selected.part.whole().filter(|_| in_place)?;
        let n_rows = self.chunks.geometry.chunk_rows as usize;
        if 1 < n_rows && elements.len() != row_elements {
            return None;
        }
        let start = (chunk.start + elements.start) * n_bytes;
        let place = start..start + n_rows * elements.len() * n_bytes;
        let places = self.rows.iter_mut().map(|Rows { first, len, into }| {
            (*first == 0 && *len == n_rows).then(|| into.get_mut(place.clone())).flatten()
        });
        places.collect::<Option<Vec<_>>>().filter(|places| !places.is_empty())
    }

    /// Decodes a chunk as far as needed, puts its selected part into the rows that want it, and
    /// returns how many bytes were decoded.
    fn put(
        &mut self,
        chunk: TaskChunk<'_>,
        encoded: &[u8],
        (decoded, contexts): (&mut Vec<u64>, &mut Contexts),
    ) -> Result<usize, Cause> {
        let (chunks, convert) = (self.chunks, self.convert);
        let n_bytes = chunks.chunk_bytes();
        let kept = self.keep_in.map(|kept| (kept, self.kept_as(chunk), self.next_use));
        // A chunk that is kept is decoded as a whole.
        let is_kept = kept.is_some();
        let keep = |decoded: &[u8]| {
            if let Some((kept, key, next_use)) = kept {
                kept.insert(key, decoded, next_use);
            }
        };
        if let Some(places) = self.direct(chunk) {
            fill_each(places, |into| {
                chunks.decoder.decode(encoded, into, contexts)?;
                keep(into);
                convert.mask(chunks.stored, into);
                Ok(())
            })?;
            return Ok(n_bytes);
        }
        let is_aligned = encoded.as_ptr().addr().is_multiple_of(chunks.stored.n_bytes());
        if chunks.decoder.is_raw() && encoded.len() == n_bytes && is_aligned {
            self.scatter(chunk, (encoded, 0));
            keep(encoded);
            return Ok(n_bytes);
        }
        let row_stride = chunks.geometry.row_stride;
        let last = self.rows.iter().map(|rows| rows.first + rows.len - 1).max().unwrap_or(0);
        let end = last * row_stride + chunk.selected.part.span().end;
        let of_patches = self.patches.iter().map(|patch| patch.end(row_stride)).max();
        let end = end.max(of_patches.unwrap_or(0));
        let end = if is_kept { n_bytes } else { end * chunks.stored.n_bytes() };
        let to_decode = chunks.decoder.bytes_to_decode(end, n_bytes);
        check_chunk(to_decode)?;
        let decoded = words(decoded, to_decode)?;
        chunks.decoder.decode_first(encoded, (decoded, n_bytes), contexts)?;
        self.scatter(chunk, (decoded, 0));
        keep(decoded);
        Ok(to_decode)
    }

    /// Copies the selected part of a chunk to its rows. `decoded` has it all; its first byte has
    /// the place `start` in the chunk, which is that of an element.
    pub(crate) fn scatter(&mut self, chunk: TaskChunk<'_>, (decoded, start): (&[u8], usize)) {
        if let Some(counting) = self.counting {
            return self.count(counting, chunk, (decoded, start));
        }
        let (row_elements, part) = (self.row_elements(), &chunk.selected.part);
        let task_start = self.first_element();
        for patch in &self.patches {
            patch.scatter((self.chunks, self.convert), (decoded, start));
        }
        let is_row = part.whole().is_some_and(|elements| elements.len() == row_elements);
        let Self { chunks, convert, rows, .. } = self;
        let n_from = chunks.stored.n_bytes();
        let from_bytes = chunks.geometry.row_stride * n_from;
        let n_to = convert.n_bytes(chunks.stored);
        for Rows { first, len, into } in rows {
            if is_row {
                // Rows lie together: they are the first dimension, or the chunk has one.
                let row_bytes = row_elements * n_from;
                let from = &decoded[*first * row_bytes - start..][..*len * row_bytes];
                convert.run(chunks.stored, from, (into, task_start));
                continue;
            }
            let rows = (*first..*first + *len).map(|row| row * from_bytes);
            for (at, into) in rows.zip(into.chunks_exact_mut(row_elements * n_to)) {
                // `decoded` may begin within the row.
                let from = &decoded[at.saturating_sub(start)..];
                let first = start.saturating_sub(at) / n_from;
                convert.scatter(
                    chunks.stored,
                    part,
                    (from, first),
                    (&mut into[chunk.start * n_to..], task_start + chunk.start),
                );
            }
        }
    }

    /// Writes the fill value where a chunk that is not stored would go. The chunk itself takes no
    /// memory: no byte says that it is as large as the metadata has it.
    pub(crate) fn fill(&mut self, chunk: TaskChunk<'_>) {
        if let Some(counting) = self.counting {
            return self.count_absent(counting, chunk);
        }
        let row_elements = self.row_elements();
        let task_start = self.first_element();
        let Self { chunks, convert, rows, patches, .. } = self;
        let n_to = convert.n_bytes(chunks.stored);
        // Words are aligned for every type.
        let mut stored = [0_u64];
        let stored = &mut bytemuck::bytes_of_mut(&mut stored)[..chunks.fill.len()];
        stored.copy_from_slice(&chunks.fill);
        let elements = convert.of_each_plane(chunks.stored, stored);
        let fill = (chunks.stored, &elements[..]);
        let at = task_start + chunk.start;
        for row in rows.iter_mut().flat_map(|rows| rows.into.chunks_exact_mut(row_elements * n_to))
        {
            let into = &mut row[chunk.start * n_to..];
            convert.fill(fill, &chunk.selected.part, (into, at));
        }
        for patch in patches {
            patch.fill(convert, fill);
        }
    }
}

/// Fills the first place, and copies it to the others.
fn fill_each(
    mut places: Vec<&mut [u8]>,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Cause>,
) -> Result<(), Cause> {
    let Some((first, others)) = places.split_first_mut() else { return Ok(()) };
    fill(first)?;
    for other in others {
        copy(first, other);
    }
    Ok(())
}

/// What a reading thread uses again, and what it counts.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    /// Chunks as stored. Words, so that elements in them are aligned.
    pub(crate) encoded: Vec<u64>,
    /// A chunk decoded.
    pub(crate) decoded: Vec<u64>,
    pub(crate) contexts: Contexts,
    /// Counts of the present read.
    pub(crate) stats: ReadStats,
}

impl Worker {
    /// Runs tasks: one, or several whose files are fetched together.
    pub(crate) fn run(
        &mut self,
        storage: &dyn Storage,
        tasks: &mut [Task<'_>],
    ) -> Result<(), Failure> {
        tasks.sort_by_key(|task| task.is_in_parts);
        let (whole, in_parts) = tasks.split_at_mut(tasks.partition_point(|task| !task.is_in_parts));
        if storage.request_counts().is_some() {
            self.run_far(storage, whole)?;
            return self.run_in_parts(storage, in_parts);
        }
        for task in in_parts.chunks_mut(1) {
            self.run_in_parts(storage, task)?;
        }
        for task in whole {
            let mut files = ReadFiles::default();
            let placed =
                place(storage, std::slice::from_ref(task), &mut files)?.pop().unwrap_or_default();
            let read = if task.is_interleaved() {
                self.read_bands(storage, task, (&placed, &files))
            } else {
                self.read_each(storage, task, (&placed, &files))
            };
            // Bytes that make no chunk may come from another version.
            files.check(storage).and(read)?;
        }
        Ok(())
    }

    /// Reads the chunks of a task from a storage that answers at once, one after another.
    fn read_each(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
        (placed, files): (&PlacedChunks<'_>, &ReadFiles<'_>),
    ) -> Result<(), Failure> {
        for (chunk, place) in placed {
            let Some(Place { file, range }) = place else {
                task.fill(*chunk);
                continue;
            };
            let piece = Piece { file: &files.names[*file], range: range.clone() };
            self.read_piece(storage, task, *chunk, piece)
                .map_err(|source| task.failure(*chunk, &source))?;
        }
        Ok(())
    }

    /// Reads a part of a file, which is a chunk.
    pub(crate) fn read_piece(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
        chunk: TaskChunk<'_>,
        piece: Piece<'_>,
    ) -> Result<(), Cause> {
        let start = worktime::now();
        let n_bytes = (piece.range.end - piece.range.start) as usize;
        let (convert, stored) = (task.convert, task.chunks.stored);
        if task.chunks.decoder.is_raw()
            && let Some(places) = task.direct(chunk)
        {
            fill_each(places, |into| {
                storage.read(std::slice::from_ref(&piece), into)?;
                convert.mask(stored, into);
                Ok(())
            })?;
            self.stats.add_fetched(n_bytes as u64, worktime::now() - start);
            self.stats.add_decoded(0, n_bytes as u64, ThreadTime::default());
            return Ok(());
        }
        let encoded = words(&mut self.encoded, n_bytes)?;
        storage.read(&[piece], encoded)?;
        let fetched = worktime::now();
        self.stats.add_fetched(n_bytes as u64, fetched - start);
        let n_decoded = task.put(chunk, encoded, (&mut self.decoded, &mut self.contexts))?;
        self.stats.add_decoded(0, n_decoded as u64, worktime::now() - fetched);
        Ok(())
    }

    /// Reads the chunks of all tasks from a storage that answers late, all at once.
    fn run_far(&mut self, storage: &dyn Storage, tasks: &mut [Task<'_>]) -> Result<(), Failure> {
        let mut wanted = Vec::new();
        let mut shards = ReadFiles::default();
        for (idx, task) in tasks.iter().enumerate() {
            for chunk in task.wanted() {
                let indices = task.indices(chunk);
                let found = task.chunks.files.find(storage, &indices).and_then(|found| {
                    if let Some(ChunkFile { file, in_shard: Some(place) }) = &found {
                        check_stored_len(&place.range, task.chunks)?;
                        let version = Arc::clone(&place.version);
                        shards.add(file.clone(), version, (task.chunks, &indices));
                    }
                    Ok(found)
                });
                let found = found.map_err(|source| task.failure(chunk, &source))?;
                wanted.push((idx, chunk, found));
            }
        }
        let start = worktime::now();
        let stored: Vec<_> = wanted
            .iter()
            .filter_map(|(idx, chunk, found)| Some((*idx, *chunk, found.as_ref()?)))
            .collect();
        let files: Vec<&ChunkFile> = stored.iter().map(|(.., file)| *file).collect();
        let fetched = fetch_all(storage, &files).map_err(|(at, error)| match stored.get(at) {
            Some((idx, chunk, _)) => tasks[*idx].failure(*chunk, &error),
            None => Failure { path: String::new(), source: error },
        })?;
        shards.check(storage)?;
        self.stats.add_fetched(0, worktime::now() - start);
        let mut fetched = fetched.into_iter();
        for (idx, chunk, found) in &wanted {
            let Some(task) = tasks.get_mut(*idx) else { continue };
            let encoded = found.as_ref().and_then(|_| fetched.next()).transpose();
            let placed = encoded
                .map_err(Cause::from)
                .and_then(|encoded| self.put_fetched(task, *chunk, encoded.flatten()));
            placed.map_err(|source| task.failure(*chunk, &source))?;
        }
        Ok(())
    }

    /// Decodes a chunk that was fetched; `None` if it is not stored.
    fn put_fetched(
        &mut self,
        task: &mut Task<'_>,
        chunk: TaskChunk<'_>,
        encoded: Option<Vec<u8>>,
    ) -> Result<(), Cause> {
        let Some(encoded) = encoded else {
            task.fill(chunk);
            return Ok(());
        };
        let start = worktime::now();
        let n_decoded = task.put(chunk, &encoded, (&mut self.decoded, &mut self.contexts))?;
        self.stats.add_fetched(encoded.len() as u64, ThreadTime::default());
        self.stats.add_decoded(0, n_decoded as u64, worktime::now() - start);
        Ok(())
    }

    /// Reads the chunks of all tasks, whose places are known: those that lie close together in one
    /// read.
    pub(crate) fn run_placed(
        &mut self,
        storage: &dyn Storage,
        names: &[String],
        (batch, gap_bytes): (&mut [(Task<'_>, PlacedChunks<'_>)], u64),
    ) -> Result<(), Failure> {
        let pieces = batch.iter().flat_map(|(_, placed)| pieces(placed, names));
        let joined = join(pieces, gap_bytes);
        let path = batch.first().map_or("", |(task, _)| &task.chunks.path);
        let failed = |source: Cause| Failure { path: path.to_owned(), source };
        let encoded = words(&mut self.encoded, joined.n_bytes).map_err(failed)?;
        storage.read(&joined.reads, encoded).map_err(|error| {
            let file = joined.reads.first().map_or("", |read| read.file);
            let n = joined.reads.len();
            failed(format!("{n} ranges of bytes, the first in {file}: {error}").into())
        })?;
        self.stats.add_fetched(joined.n_bytes as u64, ThreadTime::default());
        let mut places = joined.places.iter();
        for (task, placed) in batch {
            for (chunk, place) in placed {
                if place.is_none() {
                    task.fill(*chunk);
                    continue;
                }
                let encoded = places.next().and_then(|place| encoded.get(place.clone()));
                let decoding = (&mut self.decoded, &mut self.contexts);
                let n_bytes = task
                    .put(*chunk, encoded.unwrap_or_default(), decoding)
                    .map_err(|source| task.failure(*chunk, &source))?;
                let n_values = n_bytes / task.chunks.stored.n_bytes();
                self.stats += ReadStats::of_decoded(n_values as u64, n_bytes as u64);
            }
        }
        Ok(())
    }
}

/// The stored bytes of chunks.
pub(crate) fn pieces<'n>(
    placed: &PlacedChunks<'_>,
    names: &'n [String],
) -> impl Iterator<Item = Piece<'n>> {
    placed.iter().filter_map(|(_, place)| {
        let Place { file, range } = place.as_ref()?;
        Some(Piece { file: names.get(*file)?, range: range.clone() })
    })
}

/// Checks that the bytes of a stored chunk are plausible: a buffer of that size is allocated.
fn check_stored_len(range: &Range<u64>, chunks: &Chunks) -> Result<(), Cause> {
    let stored = range.end.saturating_sub(range.start);
    let chunk_bytes = chunks.chunk_bytes();
    // Codecs add little to what they cannot compress.
    let most = (chunk_bytes as u64).saturating_mul(2).saturating_add(1 << 16);
    if chunks.decoder.is_raw() && stored != chunk_bytes as u64 {
        return Err(format!("has {stored} bytes, {chunk_bytes} are expected").into());
    }
    if most < stored {
        return Err(format!("has {stored} bytes, a chunk of {chunk_bytes} has fewer").into());
    }
    Ok(())
}
