//! Reads the blocks of a chunk that are wanted, and leaves the others where they are.
//!
//! A chunk may be a hundred times what is wanted of it: one level of 37, a box of a map, a few
//! hours of a year. Blosc compresses blocks that are independent of one another, and a chunk that
//! is not compressed can be read from anywhere. Headers are read first, those of all chunks
//! together, then the blocks.

use std::ops::Range;

use storage::{Piece, Storage};

use crate::blosc::{self, Header};
use crate::chunk_task::{PlacedChunks, Rows, Task, TaskChunk, Worker, place};
use crate::decoder::Decoder;
use crate::error::Cause;
use crate::fetch_far::read_pieces;
use crate::joined::{Joined, join};
use crate::memory::{check_chunk, words};
use crate::part::Part;
use crate::read::Failure;
use crate::read_files::ReadFiles;

/// Bytes of the blocks of a chunk that is not compressed.
const RAW_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of the blocks that are expected of Blosc, before a header says how long they are: what
/// numcodecs chooses for chunks of some megabytes.
const BLOSC_BLOCK_BYTES: usize = 512 << 10;

/// Bytes that are read of a chunk for its header: it lists a thousand blocks.
const HEAD_BYTES: u64 = 4 << 10;

/// Fewest bytes of a chunk, decoded, that is read in parts from a storage that answers at once, and
/// from one that answers late: its header is another request.
const LEAST_BYTES: [usize; 2] = [256 << 10, 8 << 20];

/// The blocks of a chunk, each of which can be decoded by itself.
#[derive(Debug)]
enum Blocks {
    /// Bytes as in memory.
    Raw { n_bytes: usize },
    /// Compressed blocks, and where each lies in the chunk as stored.
    Blosc { header: Header, places: Vec<Range<usize>> },
}

impl Blocks {
    fn block_bytes(&self) -> usize {
        match self {
            Self::Raw { .. } => RAW_BLOCK_BYTES,
            Self::Blosc { header, .. } => header.block_bytes(),
        }
    }

    fn n_bytes(&self) -> usize {
        match self {
            Self::Raw { n_bytes } => *n_bytes,
            Self::Blosc { header, .. } => header.n_bytes(),
        }
    }

    /// The bytes of a block in the decoded chunk.
    fn decoded(&self, block: usize) -> Range<usize> {
        let start = block * self.block_bytes();
        start..self.n_bytes().min(start + self.block_bytes())
    }

    /// The bytes of a block in the chunk as stored.
    fn stored(&self, block: usize) -> Range<usize> {
        match self {
            Self::Raw { .. } => self.decoded(block),
            Self::Blosc { places, .. } => places[block].clone(),
        }
    }

    fn decode(
        &self,
        (stored, offset): (&[u8], usize),
        into: &mut [u8],
        scratch: &mut blosc::DecodeScratch,
    ) -> Result<(), blosc::Error> {
        match self {
            Self::Raw { .. } => into.copy_from_slice(stored),
            Self::Blosc { header, .. } => header.decode((stored, offset), into, scratch)?,
        }
        Ok(())
    }
}

/// A chunk of which some blocks are read.
struct InParts<'a, 'n> {
    /// The number of its task.
    task: usize,
    chunk: TaskChunk<'a>,
    file: &'n str,
    /// Its bytes in the file.
    range: Range<u64>,
    /// Its first bytes, if they say where its blocks are.
    head: Vec<u8>,
    /// `None` if its blocks are not known to us.
    blocks: Option<Blocks>,
    /// The blocks that are wanted, in the order in which they are stored.
    wanted: Vec<usize>,
}

impl InParts<'_, '_> {
    /// Fails for this chunk.
    fn failure(&self, tasks: &[Task<'_>], source: impl Into<Cause>) -> Failure {
        tasks[self.task].failure(self.chunk, &source.into())
    }

    /// Sets its blocks, and finds those that are wanted.
    fn want(&mut self, tasks: &[Task<'_>], blocks: Blocks) {
        self.wanted = tasks[self.task].wanted_blocks(self.chunk, blocks.block_bytes());
        self.wanted.sort_by_key(|block| blocks.stored(*block).start);
        self.blocks = Some(blocks);
    }

    /// The header in its first bytes; `None` if it is of a format that we do not decode.
    fn header(&self, tasks: &[Task<'_>]) -> Result<Option<Header>, Failure> {
        let n_bytes = tasks[self.task].chunks.chunk_bytes();
        let length = (self.range.end - self.range.start) as usize;
        match Header::parse(&self.head, 0, (length, n_bytes)) {
            Ok(header) => Ok(Some(header)),
            Err(blosc::Error::Unsupported { .. }) => Ok(None),
            Err(error) => Err(self.failure(tasks, error)),
        }
    }
}

impl Task<'_> {
    /// Whether its chunks are read in parts, which takes a decoder that can, and at most half of
    /// the blocks.
    pub(crate) fn is_wanted_in_parts(&self, storage: &dyn Storage) -> bool {
        let chunk_bytes = self.chunks.chunk_bytes();
        let [at_once, late] = LEAST_BYTES;
        let least = if storage.request_counts().is_some() { late } else { at_once };
        let block_bytes = match self.chunks.decoder {
            Decoder::Raw => RAW_BLOCK_BYTES,
            Decoder::Blosc(_) => BLOSC_BLOCK_BYTES.min(chunk_bytes / 16),
            _ => return false,
        };
        let n_wanted = self.n_bytes() / self.convert.n_bytes(self.chunks.stored);
        let n_stored = self.n_chunks() * chunk_bytes / self.chunks.stored.n_bytes();
        if chunk_bytes < least || n_stored / 2 < n_wanted || self.is_interleaved() {
            return false;
        }
        let n_blocks = self.n_chunks() * chunk_bytes.div_ceil(block_bytes);
        let n_wanted: usize =
            self.wanted().map(|chunk| self.wanted_blocks(chunk, block_bytes).len()).sum();
        n_wanted <= n_blocks / 2
    }

    /// The blocks of a decoded chunk that have wanted elements, ascending.
    fn wanted_blocks(&self, chunk: TaskChunk<'_>, block_bytes: usize) -> Vec<usize> {
        let n_bytes = self.chunks.stored.n_bytes();
        let row_bytes = self.chunks.geometry.row_stride * n_bytes;
        let mut is_wanted = vec![false; self.chunks.chunk_bytes().div_ceil(block_bytes)];
        let mut want = |row: usize, part: &Part| {
            part.for_each_stored(|run| {
                let start = row * row_bytes + run.start * n_bytes;
                let last = start + run.len() * n_bytes - 1;
                is_wanted[start / block_bytes..=last / block_bytes].fill(true);
            });
        };
        for Rows { first, len, .. } in &self.rows {
            (*first..first + len).for_each(|row| want(row, &chunk.selected.part));
        }
        self.patches.iter().for_each(|patch| want(patch.row, &patch.part));
        is_wanted.iter().enumerate().filter_map(|(block, wanted)| wanted.then_some(block)).collect()
    }
}

impl Worker {
    /// Runs tasks whose chunks are read in parts, all of them together.
    pub(crate) fn run_in_parts(
        &mut self,
        storage: &dyn Storage,
        tasks: &mut [Task<'_>],
    ) -> Result<(), Failure> {
        let mut files = ReadFiles::default();
        let placed = place(storage, tasks, &mut files)?;
        let read = self.read_parts(storage, tasks, (&placed, &files));
        files.check(storage).and(read)
    }

    /// Reads the chunks of all tasks, whose places are known, in parts.
    fn read_parts(
        &mut self,
        storage: &dyn Storage,
        tasks: &mut [Task<'_>],
        (placed, files): (&[PlacedChunks<'_>], &ReadFiles<'_>),
    ) -> Result<(), Failure> {
        let mut all = Vec::new();
        for (idx, (task, placed)) in tasks.iter_mut().zip(placed).enumerate() {
            for (chunk, place) in placed {
                let Some(place) = place else {
                    task.fill(*chunk);
                    continue;
                };
                let (file, range) = (files.names[place.file].as_str(), place.range.clone());
                let (head, blocks, wanted) = (Vec::new(), None, Vec::new());
                all.push(InParts { task: idx, chunk: *chunk, file, range, head, blocks, wanted });
            }
        }
        self.learn_blocks(storage, tasks, &mut all)?;
        let (in_parts, whole): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|chunk| chunk.blocks.is_some());
        self.read_blocks(storage, tasks, &in_parts)?;
        for InParts { task, chunk, file, range, .. } in whole {
            let task = &mut tasks[task];
            self.read_piece(storage, task, chunk, Piece { file, range })
                .map_err(|source| task.failure(chunk, &source))?;
        }
        Ok(())
    }

    /// Finds the blocks of chunks, and those of them that are wanted.
    fn learn_blocks(
        &mut self,
        storage: &dyn Storage,
        tasks: &[Task<'_>],
        all: &mut [InParts<'_, '_>],
    ) -> Result<(), Failure> {
        let begun = worktime::now();
        let is_raw = |chunk: &InParts<'_, '_>| tasks[chunk.task].chunks.decoder.is_raw();
        let (raw, mut compressed): (Vec<_>, Vec<_>) =
            all.iter_mut().partition(|chunk| is_raw(chunk));
        let heads = compressed.iter_mut().map(|chunk| (&mut **chunk, HEAD_BYTES));
        let mut n_fetched = read_heads(storage, tasks, heads)?;
        let mut known = Vec::with_capacity(compressed.len());
        for chunk in compressed {
            let header = chunk.header(tasks)?;
            known.extend(header.map(|header| (chunk, header)));
        }
        // Lists of more blocks than came with the header.
        let longer = known.iter_mut().filter(|(chunk, of)| chunk.head.len() < of.list_end());
        let longer = longer.map(|(chunk, of)| (&mut **chunk, of.list_end() as u64));
        n_fetched += read_heads(storage, tasks, longer)?;
        for chunk in raw {
            let n_bytes = tasks[chunk.task].chunks.chunk_bytes();
            chunk.want(tasks, Blocks::Raw { n_bytes });
        }
        for (chunk, header) in known {
            let places = header.places(&chunk.head, 0);
            let places = places.map_err(|error| chunk.failure(tasks, error))?;
            chunk.want(tasks, Blocks::Blosc { header, places });
        }
        self.stats.add_fetched(n_fetched as u64, worktime::now() - begun);
        Ok(())
    }

    /// Reads the wanted blocks of chunks together, and decodes them.
    fn read_blocks(
        &mut self,
        storage: &dyn Storage,
        tasks: &mut [Task<'_>],
        chunks: &[InParts<'_, '_>],
    ) -> Result<(), Failure> {
        let begun = worktime::now();
        let pieces = chunks.iter().flat_map(|chunk| {
            let blocks = chunk
                .blocks
                .iter()
                .flat_map(|blocks| chunk.wanted.iter().map(move |block| blocks.stored(*block)));
            blocks.map(|Range { start, end }| {
                let [start, end] = [start, end].map(|at| chunk.range.start + at as u64);
                Piece { file: chunk.file, range: start..end }
            })
        });
        let Joined { reads, places, n_bytes } = join(pieces, storage.coalesce().gap_bytes);
        let failed = |source: Cause| match chunks.first() {
            Some(first) => tasks[first.task].failure(first.chunk, &source),
            None => Failure { path: String::new(), source },
        };
        let encoded = words(&mut self.encoded, n_bytes).map_err(failed)?;
        storage.read(&reads, encoded).map_err(|error| failed(error.into()))?;
        self.stats.add_fetched(n_bytes as u64, worktime::now() - begun);
        let mut rest = places.as_slice();
        for chunk in chunks {
            let Some(blocks) = &chunk.blocks else { continue };
            let begun = worktime::now();
            let (places, after) = rest.split_at(chunk.wanted.len());
            rest = after;
            let task = &mut tasks[chunk.task];
            let stored: Vec<(usize, &[u8])> = chunk
                .wanted
                .iter()
                .zip(places)
                .map(|(block, place)| (*block, &encoded[place.clone()]))
                .collect();
            let n_bytes = task
                .put_blocks(
                    chunk.chunk,
                    (blocks, &stored),
                    (&mut self.decoded, &mut self.contexts.blosc),
                )
                .map_err(|source| task.failure(chunk.chunk, &source))?;
            self.stats.add_decoded(0, n_bytes as u64, worktime::now() - begun);
        }
        Ok(())
    }
}

impl Task<'_> {
    /// Decodes blocks of a chunk, puts its selected part into the rows that want it, and returns
    /// how many bytes were decoded.
    fn put_blocks(
        &mut self,
        chunk: TaskChunk<'_>,
        (blocks, stored): (&Blocks, &[(usize, &[u8])]),
        (decoded, scratch): (&mut Vec<u64>, &mut blosc::DecodeScratch),
    ) -> Result<usize, Cause> {
        let all = || stored.iter().map(|(block, _)| blocks.decoded(*block));
        let start = all().map(|block| block.start).min().unwrap_or(0);
        let end = all().map(|block| block.end).max().unwrap_or(0);
        // Elements are aligned in the memory as they are in the chunk.
        let start = start - start % self.chunks.stored.n_bytes();
        check_chunk(end - start)?;
        // Where nothing is wanted between blocks, new memory is not touched.
        let decoded = words(decoded, end - start)?;
        for (block, bytes) in stored {
            let Range { start: first, end } = blocks.decoded(*block);
            let offset = blocks.stored(*block).start;
            blocks.decode((bytes, offset), &mut decoded[first - start..end - start], scratch)?;
        }
        let n_decoded = all().map(|block| block.len()).sum();
        self.scatter(chunk, (decoded, start));
        Ok(n_decoded)
    }
}

/// Reads the first bytes of chunks together, as many of each as are given with it, without those
/// that are there. Returns how many bytes were read.
fn read_heads<'h, 'a: 'h, 'n: 'h>(
    storage: &dyn Storage,
    tasks: &[Task<'_>],
    wanted: impl Iterator<Item = (&'h mut InParts<'a, 'n>, u64)>,
) -> Result<usize, Failure> {
    let (mut chunks, mut pieces) = (Vec::new(), Vec::new());
    for (chunk, n_bytes) in wanted {
        let Range { start, end } = chunk.range;
        let range = start + chunk.head.len() as u64..end.min(start.saturating_add(n_bytes));
        pieces.push(Piece { file: chunk.file, range });
        chunks.push(chunk);
    }
    let heads = read_pieces(storage, &pieces).map_err(|(at, error)| match chunks.get(at) {
        Some(chunk) => chunk.failure(tasks, error),
        None => Failure { path: String::new(), source: error.into() },
    })?;
    let n_bytes = heads.iter().map(Vec::len).sum();
    for (chunk, head) in chunks.into_iter().zip(heads) {
        chunk.head.extend(head);
    }
    Ok(n_bytes)
}
