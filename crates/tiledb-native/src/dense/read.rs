//! Reads of a dense array: tiles are fetched some at a time, decoded by several threads, and copied
//! to their place.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use csr::Narrowing;
use rayon::prelude::*;
use storage::Piece;
use worktime::{ReadStats, ThreadTime};

use super::DenseArray;
use super::blocks::{Run, TileParts, by_tile, runs};
use crate::error::{Error, Fault};
use crate::filter::Decoder;
use crate::fragment::{metadata_file, var_tile_offsets};
use crate::generic_tile::Source;
use crate::memory::reserve;
use crate::read::fetch::fetch;
use crate::tile::{self, Chunks};
use crate::values::{Conversion, Values};

/// Bytes that are fetched together, or those of one block.
const FETCH_BYTES: u64 = 32 << 20;
/// Memory of a thread that decodes a chunk.
const THREAD_BYTES: u64 = 16 << 20;

/// The most memory of a read, for tiles of `tile_bytes` bytes: filtered bytes, and decoded blocks.
pub(super) fn working_bytes(tile_bytes: u64, n_threads: u64) -> u64 {
    let fetched = FETCH_BYTES.saturating_add(tile_bytes);
    fetched.saturating_mul(2).saturating_add(n_threads.saturating_mul(THREAD_BYTES))
}

/// The wanted cells of one space tile.
#[derive(Debug)]
struct Block<'a> {
    parts: [&'a TileParts; 2],
    /// The fragments that have some of them, oldest first.
    stored: Vec<StoredPart>,
}

/// The wanted cells of a space tile in one fragment.
#[derive(Debug)]
struct StoredPart {
    fragment: usize,
    tile: u64,
    runs: Vec<Run>,
    /// The chunks of the tile, if it was fetched before.
    chunks: Option<Arc<Chunks>>,
    /// The ranges of the file to fetch: the whole tile, or the chunks of `wanted`.
    ranges: Vec<Range<u64>>,
    /// The wanted chunks, ascending; empty if all are fetched.
    wanted: Vec<usize>,
}

impl StoredPart {
    fn n_bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

impl Block<'_> {
    fn n_bytes(&self) -> u64 {
        self.stored.iter().map(StoredPart::n_bytes).sum()
    }

    fn n_columns(&self) -> usize {
        self.parts[1].len()
    }
}

impl DenseArray {
    /// Reads on the current thread pool.
    pub(super) fn read_blocks(
        &self,
        rows: &[Range<u64>],
        columns: &[Range<u64>],
        narrowing: Narrowing,
        out: &mut [f32],
    ) -> Result<ReadStats, Error> {
        let start = worktime::now();
        let mut stats = ReadStats::nothing();
        let conversion = Conversion { number: self.layout.number, narrowing };
        let mut fill = [0.0];
        let of_fill = crate::filter::Decoded::Plain(&self.layout.fill);
        Values::new(of_fill, 1, conversion).copy(0..1, &mut fill);
        out.fill(fill[0]);
        let [rows, columns] =
            [(rows, 0), (columns, 1)].map(|(of, axis)| by_tile(of, &self.layout.axes[axis]));
        let width = columns.iter().map(TileParts::len).sum();
        let mut blocks = Vec::new();
        for rows in &rows {
            for columns in &columns {
                blocks.push(self.block([rows, columns])?);
            }
        }
        let (mut buffer, mut in_threads) = (Vec::new(), ThreadTime::default());
        let mut rest = blocks.as_slice();
        while !rest.is_empty() {
            let mut n_bytes = 0_u64;
            let fits = |block: &&Block<'_>| {
                n_bytes = n_bytes.saturating_add(block.n_bytes());
                n_bytes <= FETCH_BYTES
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let cell_form = (conversion, fill[0]);
            in_threads += self.read_group(now, cell_form, &mut buffer, &mut stats, (width, out))?;
            rest = later;
        }
        stats.values = out.len() as u64;
        stats.bytes_needed = Some(stats.values * self.layout.number.size() as u64);
        let fetch = stats.times.map_or_else(ThreadTime::default, |times| times.fetch);
        stats.add_decoded(0, 0, worktime::now() - start - (fetch + in_threads));
        Ok(stats)
    }

    /// What is to be read for the wanted cells of a tile.
    fn block<'a>(&self, parts: [&'a TileParts; 2]) -> Result<Block<'a>, Error> {
        let mut stored = Vec::new();
        // A fragment with all of the cells hides the older ones.
        for (idx, fragment) in self.fragments.iter().enumerate().rev() {
            let meets = |axis: usize| parts[axis].meet(&fragment.bounds[axis]);
            let tile = fragment.tile(&self.layout, parts.map(|parts| parts.tile));
            let Some(tile) = tile.filter(|_| meets(0) && meets(1)) else { continue };
            stored.push(self.stored_part(idx, tile, parts)?);
            if (0..2).all(|axis| parts[axis].lie_within(&fragment.bounds[axis])) {
                break;
            }
        }
        stored.reverse();
        Ok(Block { parts, stored })
    }

    fn stored_part(
        &self,
        idx: usize,
        tile: u64,
        parts: [&TileParts; 2],
    ) -> Result<StoredPart, Error> {
        let offsets = self.offsets(idx)?;
        let at = tile as usize;
        let (start, end) = match offsets.get(at..at + 2) {
            Some([start, end]) => (*start, *end),
            _ => return Err(self.damaged(idx, Fault::new("a tile without a place"), 0)),
        };
        let runs = runs(&self.layout, parts, &self.fragments[idx].bounds);
        let known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let chunks = known.get(&(idx, tile)).cloned();
        drop(known);
        let mut wanted = Vec::new();
        for run in chunks.iter().flat_map(|chunks| runs.iter().map(move |run| (chunks, run))) {
            let (chunks, cells) = (run.0, &run.1.cells);
            let (first, last) = (chunks.holding(cells.start), chunks.holding(cells.end - 1));
            let first = wanted.last().map_or(first, |before: &usize| first.max(before + 1));
            wanted.extend(first..=last);
        }
        let ranges = match &chunks {
            None => vec![start..end],
            Some(chunks) => {
                let range = |chunk: &usize| {
                    let bytes = chunks.bytes(*chunk);
                    start + u64::from(bytes.start)..start + u64::from(bytes.end)
                };
                wanted.iter().map(range).collect()
            }
        };
        Ok(StoredPart { fragment: idx, tile, runs, chunks, ranges, wanted })
    }

    /// The places of a fragment's tiles.
    fn offsets(&self, idx: usize) -> Result<&[u64], Error> {
        let fragment = &self.fragments[idx];
        if let Some(offsets) = fragment.offsets.get() {
            return Ok(offsets);
        }
        let metadata = metadata_file(&fragment.folder);
        let source = Source::new(&self.files, &metadata, fragment.metadata_bytes);
        let bytes = source.read(fragment.offsets_at)?;
        let end = self.files.size(&fragment.file)?.min(fragment.file_bytes);
        let offsets = var_tile_offsets(&bytes, fragment.n_tiles, end)
            .map_err(|fault| self.damaged(idx, fault, fragment.offsets_at))?;
        // Two threads may both have read them; either result serves.
        Ok(fragment.offsets.get_or_init(|| offsets))
    }

    /// Fetches some blocks together, decodes them, and copies them to their place in `out`, which
    /// is `width` wide. Returns the time in which this thread took part in decoding or waited for
    /// it, which each thread counts by itself.
    fn read_group(
        &self,
        blocks: &[Block<'_>],
        (conversion, fill): (Conversion, f32),
        buffer: &mut Vec<u8>,
        stats: &mut ReadStats,
        (width, out): (usize, &mut [f32]),
    ) -> Result<ThreadTime, Error> {
        let start = worktime::now();
        let pieces: Vec<Piece<'_>> = blocks
            .iter()
            .flat_map(|block| &block.stored)
            .flat_map(|part| {
                let file = self.fragments[part.fragment].file.as_str();
                part.ranges.iter().map(move |range| Piece { file, range: range.clone() })
            })
            .collect();
        let (places, n_bytes) = fetch(&self.files, &pieces, buffer)?;
        stats.add_fetched(n_bytes, worktime::now() - start);
        let mut places = places.into_iter();
        let fetched: Vec<Vec<Vec<Range<usize>>>> = blocks
            .iter()
            .map(|block| {
                let of_part = |part: &StoredPart| places.by_ref().take(part.ranges.len()).collect();
                block.stored.iter().map(of_part).collect()
            })
            .collect();
        let buffer = buffer.as_slice();
        let start = worktime::now();
        let decoded: Vec<(Vec<f32>, ReadStats)> = blocks
            .par_iter()
            .zip(&fetched)
            .with_max_len(1)
            .map(|(block, places)| {
                let (start, mut stats) = (worktime::now(), ReadStats::nothing());
                let (values, n) = self.decode(block, places, buffer, (conversion, fill))?;
                let n_bytes = n * conversion.number.size() as u64;
                stats.add_decoded(n, n_bytes, worktime::now() - start);
                Ok((values, stats))
            })
            .collect::<Result<_, Error>>()?;
        let in_threads = worktime::now() - start;
        for (block, (values, of_block)) in blocks.iter().zip(&decoded) {
            *stats += *of_block;
            let [rows, columns] = block.parts.map(TileParts::start);
            let lines = values.chunks_exact(block.n_columns().max(1));
            for (row, line) in (rows..).zip(lines) {
                let at = row * width + columns;
                out[at..at + line.len()].copy_from_slice(line);
            }
        }
        Ok(in_threads)
    }

    /// Decodes a block. Also returns the number of decoded cells.
    fn decode(
        &self,
        block: &Block<'_>,
        places: &[Vec<Range<usize>>],
        buffer: &[u8],
        (conversion, fill): (Conversion, f32),
    ) -> Result<(Vec<f32>, u64), Error> {
        let n_values = block.parts[0].len().saturating_mul(block.n_columns());
        let mut values = Vec::new();
        reserve(&mut values, n_values).map_err(|fault| fault.in_file(self.files.place(), 0))?;
        values.resize(n_values, fill);
        let mut n_decoded = 0;
        for (part, places) in block.stored.iter().zip(places) {
            let bytes: Vec<&[u8]> = places.iter().map(|place| &buffer[place.clone()]).collect();
            let name = || self.files.name(&self.fragments[part.fragment].file);
            let at = part.ranges.first().map_or(0, |range| range.start);
            let target = (values.as_mut_slice(), block.n_columns());
            n_decoded += self
                .decode_part(part, &bytes, conversion, target)
                .map_err(|fault| fault.in_unfiltered(name(), at))?;
        }
        Ok((values, n_decoded))
    }

    /// Decodes the wanted cells of a tile of one fragment to their place in a block.
    fn decode_part(
        &self,
        part: &StoredPart,
        bytes: &[&[u8]],
        conversion: Conversion,
        (out, n_columns): (&mut [f32], usize),
    ) -> Result<u64, Fault> {
        let value_bytes = conversion.number.size();
        let chunks = if let Some(chunks) = &part.chunks {
            Arc::clone(chunks)
        } else {
            let n_cells = self.layout.tile_cells() as usize;
            let found =
                Chunks::find(bytes.first().copied().unwrap_or_default(), n_cells, value_bytes)?;
            let found = Arc::new(found);
            let mut known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert((part.fragment, part.tile), Arc::clone(&found));
            found
        };
        let places: HashMap<usize, usize> = part.wanted.iter().copied().zip(0..).collect();
        let of_chunk = |chunk: usize| {
            if part.chunks.is_some() {
                return places.get(&chunk).and_then(|at| bytes.get(*at).copied());
            }
            let range = chunks.bytes(chunk);
            bytes.first().and_then(|tile| tile.get(range.start as usize..range.end as usize))
        };
        let pipeline = &self.fragments[part.fragment].values.pipeline;
        let mut decoder = Decoder::default();
        let mut values = Vec::new();
        let (mut current, mut n_decoded) = (0..0, 0);
        for run in &part.runs {
            let mut cell = run.cells.start;
            while cell < run.cells.end {
                if !current.contains(&cell) {
                    let chunk = chunks.holding(cell);
                    current = chunks.values(chunk);
                    let n_cells = (current.end - current.start) as usize;
                    let bytes = of_chunk(chunk).unwrap_or_default();
                    let decoded = tile::decode_chunk(bytes, pipeline, value_bytes, &mut decoder)?;
                    let decoded = tile::whole(decoded, &current, value_bytes)?;
                    values.clear();
                    values.resize(n_cells, 0.0);
                    Values::new(decoded, n_cells, conversion).copy(0..n_cells, &mut values);
                    n_decoded += n_cells as u64;
                    if !current.contains(&cell) {
                        return Err(Fault::new(format!("no chunk has cell {cell}")));
                    }
                }
                let end = run.cells.end.min(current.end);
                let from = &values[(cell - current.start) as usize..(end - current.start) as usize];
                let along = (cell - run.cells.start) as usize;
                if self.layout.cells_by_row {
                    let at = run.row * n_columns + run.column + along;
                    out[at..at + from.len()].copy_from_slice(from);
                } else {
                    for (row, value) in (run.row + along..).zip(from) {
                        out[row * n_columns + run.column] = *value;
                    }
                }
                cell = end;
            }
        }
        Ok(n_decoded)
    }
}
