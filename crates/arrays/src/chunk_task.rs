//! Reads and decodes the chunks of one task into the rows that want them.

use std::ops::Range;
use std::sync::Arc;

use storage::{FileVersion, Piece, Storage};
use worktime::{ReadStats, ThreadTime};

use crate::chunk_files::{ChunkFile, PlaceInShard, check_version, version_of};
use crate::decoder::Contexts;
use crate::error::Cause;
use crate::fetch_far::fetch_all;
use crate::geometry::{Segment, SelectedChunk};
use crate::memory::{check_chunk, words};
use crate::read::Failure;
use crate::variable::OpenVariable;

/// A row that wants chunks of a task.
#[derive(Debug)]
pub(crate) struct RowTarget<'a> {
    /// The row's index in the chunk.
    row_in_chunk: usize,
    /// The memory of the segment in this row.
    pub(crate) into: &'a mut [u8],
}

/// The chunks of one segment in one range of the first dimension, and the rows that want them.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) variable: &'a OpenVariable,
    /// The chunks' index in the first dimension.
    chunk_row: u64,
    pub(crate) segment: &'a Segment,
    pub(crate) rows: Vec<RowTarget<'a>>,
}

/// The tasks that read the rows `steps` of a variable into `into`, one after another.
pub(crate) fn tasks<'a>(
    variable: &'a OpenVariable,
    steps: &[u64],
    into: &'a mut [u8],
) -> Vec<Task<'a>> {
    let geometry = &variable.geometry;
    let rows = into.chunks_exact_mut(variable.row_bytes());
    let mut rows: Vec<(u64, &mut [u8])> = steps.iter().copied().zip(rows).collect();
    rows.sort_by_key(|(step, _)| *step);
    let mut tasks: Vec<Task<'a>> = Vec::new();
    for (step, row) in rows {
        let chunk_row = step / geometry.chunk_rows;
        let row_in_chunk = (step % geometry.chunk_rows) as usize;
        let n_segments = geometry.segments.len();
        if tasks.last().is_none_or(|last| last.chunk_row != chunk_row) {
            tasks.extend(geometry.segments.iter().map(|segment| Task {
                variable,
                chunk_row,
                segment,
                rows: Vec::new(),
            }));
        }
        let mut rest = row;
        let first = tasks.len() - n_segments;
        for task in &mut tasks[first..] {
            let n_bytes = task.segment.elements.len() * variable.element.n_bytes();
            let (into, after) = rest.split_at_mut(n_bytes);
            task.rows.push(RowTarget { row_in_chunk, into });
            rest = after;
        }
    }
    tasks
}

impl Task<'_> {
    /// Bytes that the task delivers.
    pub(crate) fn n_bytes(&self) -> usize {
        self.rows.iter().map(|row| row.into.len()).sum()
    }

    /// Bytes of its chunks, whole and decoded: about as many are fetched, at most.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        (self.segment.chunks.len() * self.variable.chunk_bytes()) as u64
    }

    /// The indices of a chunk.
    pub(crate) fn indices(&self, chunk: &SelectedChunk) -> Vec<u64> {
        std::iter::once(self.chunk_row).chain(chunk.indices.iter().copied()).collect()
    }

    /// The place of a whole chunk that is delivered as it is decoded, to a single row.
    fn direct(&mut self, chunk: &SelectedChunk) -> Option<&mut [u8]> {
        let variable = self.variable;
        if variable.geometry.chunk_rows != 1 || variable.convert != crate::convert::Convert::Copy {
            return None;
        }
        let [row] = &mut self.rows[..] else { return None };
        let elements = chunk.part.whole()?;
        let n_bytes = variable.element.n_bytes();
        row.into.get_mut(elements.start * n_bytes..elements.end * n_bytes)
    }

    /// Copies the selected part of a decoded chunk to its rows.
    fn scatter(&mut self, chunk: &SelectedChunk, decoded: &[u8]) {
        let Self { variable, rows, .. } = self;
        let row_bytes = variable.chunk_row_bytes();
        for RowTarget { row_in_chunk, into } in rows {
            let row = &decoded[*row_in_chunk * row_bytes..][..row_bytes];
            variable.scatter(&chunk.part, (row, 0), into);
        }
    }

    /// Writes the fill value where a chunk that is not stored would go.
    pub(crate) fn fill(&mut self, chunk: &SelectedChunk) {
        let Self { variable, rows, .. } = self;
        let n_to = variable.element.n_bytes();
        let mut stored = [0_u64];
        let mut element = [0_u64];
        let stored: &mut [u8] = &mut bytemuck::bytes_of_mut(&mut stored)[..variable.fill.len()];
        stored.copy_from_slice(&variable.fill);
        let element: &mut [u8] = &mut bytemuck::bytes_of_mut(&mut element)[..n_to];
        variable.convert.run(stored, element);
        for RowTarget { into, .. } in rows {
            chunk.part.for_each_run(|run| {
                let to = &mut into[run.dst * n_to..][..run.len * n_to];
                to.chunks_exact_mut(n_to).for_each(|to| to.copy_from_slice(element));
            });
        }
    }
}

/// What a reading thread uses again, and what it counts.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    /// A chunk as stored. Words, so that elements in it are aligned.
    pub(crate) encoded: Vec<u64>,
    /// A chunk decoded.
    decoded: Vec<u64>,
    contexts: Contexts,
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
        if storage.request_counts().is_some() {
            return self.run_far(storage, tasks);
        }
        for task in tasks {
            let (variable, segment) = (task.variable, task.segment);
            if task.is_interleaved() {
                self.run_interleaved(storage, task)?;
                continue;
            }
            let mut shard = ReadShard::default();
            for chunk in &segment.chunks {
                let indices = task.indices(chunk);
                let read = self.read_near(storage, task, (chunk, &indices), &mut shard);
                read.map_err(|source| failure(variable, &indices, &source))?;
            }
            let checked = shard.check(storage);
            checked.map_err(|source| failure(variable, &shard.chunk, &source))?;
        }
        Ok(())
    }

    /// Reads a chunk from a storage that answers at once. `shard` is the one that was read last.
    fn read_near(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
        (chunk, indices): (&SelectedChunk, &[u64]),
        shard: &mut ReadShard,
    ) -> Result<(), Cause> {
        let Some(ChunkFile { file, in_shard }) = task.variable.files.find(storage, indices)? else {
            task.fill(chunk);
            return Ok(());
        };
        let Some(PlaceInShard { range, version }) = in_shard else {
            let Some(version) = version_of(storage, &file)? else {
                task.fill(chunk);
                return Ok(());
            };
            let read = self.read_range(storage, task, chunk, (&file, 0..version.size));
            // A chunk that changed meanwhile may be of two versions.
            return if storage.keeps_versions() {
                read
            } else {
                check_version(storage, &file, &version).and(read)
            };
        };
        // Shards are compared when all of a task's chunks in them were read.
        if shard.file != file {
            shard.check(storage)?;
            *shard = ReadShard { file, version: Some(version), chunk: indices.to_vec() };
        }
        let read = self.read_range(storage, task, chunk, (&shard.file, range));
        // Bytes that make no chunk may come from another version.
        read.or_else(|cause| shard.check(storage).and(Err(cause)))
    }

    /// Reads a range of a file, which is a chunk.
    fn read_range(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
        chunk: &SelectedChunk,
        (file, range): (&str, Range<u64>),
    ) -> Result<(), Cause> {
        let start = worktime::now();
        let (variable, chunk_bytes) = (task.variable, task.variable.chunk_bytes());
        let n_bytes = stored_len(&range, chunk_bytes, variable.decoder.is_raw())?;
        let piece = [Piece { file, range }];
        if variable.decoder.is_raw()
            && let Some(into) = task.direct(chunk)
        {
            storage.read(&piece, into)?;
            self.stats.add_fetched(n_bytes as u64, worktime::now() - start);
            self.stats.add_decoded(0, n_bytes as u64, ThreadTime::default());
            return Ok(());
        }
        let encoded = words(&mut self.encoded, n_bytes)?;
        storage.read(&piece, encoded)?;
        let fetched = worktime::now();
        self.stats.add_fetched(n_bytes as u64, fetched - start);
        let decoding = (&mut self.decoded, &mut self.contexts);
        place(task, chunk, encoded, decoding)?;
        self.stats.add_decoded(0, chunk_bytes as u64, worktime::now() - fetched);
        Ok(())
    }

    /// Reads the chunks of all tasks from a storage that answers late, all at once.
    fn run_far(&mut self, storage: &dyn Storage, tasks: &mut [Task<'_>]) -> Result<(), Failure> {
        let mut wanted = Vec::new();
        for (idx, task) in tasks.iter().enumerate() {
            for chunk in &task.segment.chunks {
                let indices = task.indices(chunk);
                let found = task.variable.files.find(storage, &indices);
                let found = found.and_then(|found| {
                    let place = found.as_ref().and_then(|found| found.in_shard.as_ref());
                    let range = place.map(|place| &place.range);
                    let (len, is_raw) =
                        (task.variable.chunk_bytes(), task.variable.decoder.is_raw());
                    range.map_or(Ok(0), |range| stored_len(range, len, is_raw)).map(|_| found)
                });
                let found = found.map_err(|source| failure(task.variable, &indices, &source))?;
                wanted.push((idx, chunk, indices, found));
            }
        }
        let start = worktime::now();
        let stored: Vec<_> = wanted
            .iter()
            .filter_map(|(idx, _, indices, found)| Some((idx, indices, found.as_ref()?)))
            .collect();
        let files: Vec<&ChunkFile> = stored.iter().map(|(.., file)| *file).collect();
        let fetched = fetch_all(storage, &files).map_err(|(at, error)| match stored.get(at) {
            Some((idx, indices, _)) => failure(tasks[**idx].variable, indices, &error),
            None => Failure { path: String::new(), source: error },
        })?;
        self.stats.add_fetched(0, worktime::now() - start);
        let mut fetched = fetched.into_iter();
        for (idx, chunk, indices, found) in &wanted {
            let Some(task) = tasks.get_mut(*idx) else { continue };
            let variable = task.variable;
            let encoded = found.as_ref().and_then(|_| fetched.next()).transpose();
            let placed = encoded
                .map_err(Cause::from)
                .and_then(|encoded| self.place_fetched(task, chunk, encoded.flatten()));
            placed.map_err(|source| failure(variable, indices, &source))?;
        }
        Ok(())
    }

    /// Decodes a chunk that was fetched; `None` if it is not stored.
    fn place_fetched(
        &mut self,
        task: &mut Task<'_>,
        chunk: &SelectedChunk,
        encoded: Option<Vec<u8>>,
    ) -> Result<(), Cause> {
        let Some(bytes) = encoded else {
            task.fill(chunk);
            return Ok(());
        };
        let start = worktime::now();
        let decoding = (&mut self.decoded, &mut self.contexts);
        if task.variable.decoder.is_raw() && task.direct(chunk).is_none() {
            // Elements are taken out of the bytes themselves, which must be aligned for that.
            let encoded = words(&mut self.encoded, bytes.len())?;
            encoded.copy_from_slice(&bytes);
            place(task, chunk, encoded, decoding)?;
        } else {
            place(task, chunk, &bytes, decoding)?;
        }
        let chunk_bytes = task.variable.chunk_bytes() as u64;
        self.stats.add_fetched(bytes.len() as u64, ThreadTime::default());
        self.stats.add_decoded(0, chunk_bytes, worktime::now() - start);
        Ok(())
    }
}

/// Decodes a chunk and puts its selected part into the rows that want it.
fn place(
    task: &mut Task<'_>,
    chunk: &SelectedChunk,
    encoded: &[u8],
    (decoded, contexts): (&mut Vec<u64>, &mut Contexts),
) -> Result<(), Cause> {
    let variable = task.variable;
    if let Some(into) = task.direct(chunk) {
        return variable.decoder.decode(encoded, into, contexts);
    }
    let n_bytes = variable.chunk_bytes();
    if variable.decoder.is_raw() && encoded.len() == n_bytes {
        task.scatter(chunk, encoded);
        return Ok(());
    }
    check_chunk(n_bytes)?;
    let decoded = words(decoded, n_bytes)?;
    variable.decoder.decode(encoded, decoded, contexts)?;
    task.scatter(chunk, decoded);
    Ok(())
}

/// The shard that a task read last, to be compared with the version that its index has.
#[derive(Debug, Default)]
struct ReadShard {
    file: String,
    version: Option<Arc<FileVersion>>,
    /// The indices of the first chunk that was read of it.
    chunk: Vec<u64>,
}

impl ReadShard {
    /// Fails if the shard changed since its index was read.
    fn check(&self, storage: &dyn Storage) -> Result<(), Cause> {
        match &self.version {
            Some(version) if !storage.keeps_versions() => {
                check_version(storage, &self.file, version)
            }
            _ => Ok(()),
        }
    }
}

/// Bytes of a stored chunk, after a check that they are plausible: a buffer of that size is
/// allocated.
pub(crate) fn stored_len(
    range: &Range<u64>,
    chunk_bytes: usize,
    is_raw: bool,
) -> Result<usize, Cause> {
    let stored = range.end.saturating_sub(range.start);
    // Codecs add little to what they cannot compress.
    let most = (chunk_bytes as u64).saturating_mul(2).saturating_add(1 << 16);
    if is_raw && stored != chunk_bytes as u64 {
        return Err(format!("has {stored} bytes, {chunk_bytes} are expected").into());
    }
    if most < stored {
        return Err(format!("has {stored} bytes, a chunk of {chunk_bytes} has fewer").into());
    }
    Ok(stored as usize)
}

pub(crate) fn failure(variable: &OpenVariable, indices: &[u64], source: &Cause) -> Failure {
    let mut text = format!("chunk {indices:?}: {source}");
    let mut cause = source.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Failure { path: variable.path.clone(), source: text.into() }
}
