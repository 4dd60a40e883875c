//! Fetching and decoding the chunks that hold wanted cells, each once.

use std::collections::HashSet;
use std::ops::Range;

use super::fetch::{announce, fetch};
use super::plan::{Part, Planned, TileWork};
use super::{ReadStats, Reader};
use crate::error::{Error, Fault};
use crate::filter::{Decoded, Decoder};
use crate::fragment::Field;
use crate::schema::Stored;
use crate::storage::Piece;
use crate::tile::{self, Chunks};

/// A decoded chunk.
#[derive(Debug, Clone)]
pub(super) struct Chunk<'a> {
    pub(super) field: Field,
    /// Index of its tile among those asked for.
    pub(super) work: usize,
    /// The cells it holds.
    pub(super) cells: Range<u32>,
    pub(super) decoded: Decoded<'a>,
}

/// Bytes to fetch for a tile: all of it while its chunks are not known, or a run of chunks.
struct Wish {
    field: Field,
    work: usize,
    /// The chunks wanted; `None` for the whole tile.
    chunks: Option<Range<usize>>,
    range: Range<u64>,
}

/// Tells a storage that wants to know which chunks of `fields` will be read.
pub(super) fn announce_all(
    reader: &Reader,
    planned: &[Planned],
    fields: &[Field],
) -> Result<(), Error> {
    if !reader.files.storage().coalesce().prefetch {
        return Ok(());
    }
    let mut pieces = Vec::new();
    // Tiles on the border of two tasks are in both.
    let mut seen = HashSet::new();
    for planned in planned {
        for &field in fields {
            for work in &planned.works {
                let file = &reader.fragments[work.fragment].files[field.idx()];
                let wishes = wishes(reader, work, 0, &[field])?;
                let wishes =
                    wishes.into_iter().filter(|wish| seen.insert((file, wish.range.clone())));
                pieces.extend(wishes.map(|wish| Piece { file, range: wish.range }));
            }
        }
    }
    announce(&reader.files, &pieces);
    Ok(())
}

/// How many of `works` to decode together so that no more than a batch of the storage is asked for at once.
pub(super) fn batch_len(
    reader: &Reader,
    works: &[TileWork],
    fields: &[Field],
) -> Result<usize, Error> {
    let limit = reader.files.storage().coalesce().batch_bytes;
    let mut bytes = 0;
    for (idx, work) in works.iter().enumerate() {
        for wish in wishes(reader, work, idx, fields)? {
            bytes += wish.range.end - wish.range.start;
        }
        if bytes > limit {
            return Ok(idx.max(1));
        }
    }
    Ok(works.len())
}

/// Decodes the chunks of `fields` of the tiles `works` that hold wanted cells, and gives each to `sink`: by field, then by tile, then by
/// ascending cell.
pub(super) fn for_each(
    reader: &Reader,
    works: &[TileWork],
    fields: &[Field],
    scratch: (&mut Vec<u8>, &mut Decoder),
    stats: &mut ReadStats,
    mut sink: impl FnMut(Chunk<'_>) -> Result<(), Fault>,
) -> Result<(), Error> {
    let (buffer, decoder) = scratch;
    let mut all = Vec::new();
    for &field in fields {
        for (idx, work) in works.iter().enumerate() {
            all.extend(wishes(reader, work, idx, &[field])?);
        }
    }
    let pieces: Vec<_> = all
        .iter()
        .map(|wish| Piece {
            file: &reader.fragments[works[wish.work].fragment].files[wish.field.idx()],
            range: wish.range.clone(),
        })
        .collect();
    let (places, read) = fetch(&reader.files, &pieces, buffer)?;
    stats.bytes_read += read;
    for ((wish, place), piece) in all.iter().zip(places).zip(&pieces) {
        let bytes = &buffer[place];
        stats.cells_decoded +=
            decode(reader, &works[wish.work], wish, bytes, decoder, &mut sink)
                .map_err(|fault| fault.in_file(reader.files.name(piece.file), piece.range.start))?;
    }
    Ok(())
}

fn stored<'a>(reader: &'a Reader, work: &TileWork, field: Field) -> &'a Stored {
    let layout = &reader.fragments[work.fragment].layout;
    match field {
        Field::Rows => &layout.rows,
        Field::Columns => &layout.columns,
        Field::Values => &layout.values,
        Field::Times => &layout.times,
    }
}

/// The chunks of `field` in the index; rows are not among them.
fn slot(field: Field) -> usize {
    field.idx().saturating_sub(1)
}

fn wishes(
    reader: &Reader,
    work: &TileWork,
    idx: usize,
    fields: &[Field],
) -> Result<Vec<Wish>, Error> {
    let fragment = &reader.fragments[work.fragment];
    let tiles = fragment.tiles(&reader.files)?;
    let mut out = Vec::new();
    for &field in fields {
        if field == Field::Times && !fragment.footer.has_timestamps {
            continue;
        }
        let tile = tiles.bytes(field, work.tile);
        match work.index.chunks[slot(field)].get() {
            None => out.push(Wish { field, work: idx, chunks: None, range: tile }),
            Some(chunks) => out.extend(needed(&work.parts, chunks).into_iter().map(|run| {
                let bytes = u64::from(chunks.bytes(run.start).start)
                    ..u64::from(chunks.bytes(run.end - 1).end);
                Wish {
                    field,
                    work: idx,
                    chunks: Some(run),
                    range: tile.start + bytes.start..tile.start + bytes.end,
                }
            })),
        }
    }
    Ok(out)
}

/// Runs of chunks that hold cells of `parts`.
fn needed(parts: &[Part], chunks: &Chunks) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for part in parts {
        let first = chunks.holding(part.cells.0);
        let end = chunks.holding(part.cells.1 - 1) + 1;
        match runs.last_mut() {
            Some(last) if first <= last.end => last.end = last.end.max(end),
            _ => runs.push(first..end),
        }
    }
    runs
}

/// Decodes what `wish` brought; returns the cells decoded, when it is columns.
fn decode(
    reader: &Reader,
    work: &TileWork,
    wish: &Wish,
    bytes: &[u8],
    decoder: &mut Decoder,
    sink: &mut impl FnMut(Chunk<'_>) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let stored = stored(reader, work, wish.field);
    let size = stored.number.size();
    let known = &work.index.chunks[slot(wish.field)];
    let chunks = if let Some(chunks) = known.get() {
        chunks
    } else {
        let n_cells = reader.fragments[work.fragment].tile_cells(work.tile);
        let found = Chunks::find(bytes, n_cells, size)?;
        known.get_or_init(|| found)
    };
    // The bytes begin with the tile, or with the first of the chunks that were asked for.
    let base = wish.chunks.as_ref().map_or(0, |run| chunks.bytes(run.start).start);
    let runs = match &wish.chunks {
        Some(run) => vec![run.clone()],
        None => needed(&work.parts, chunks),
    };
    let mut n_cells = 0;
    for chunk in runs.into_iter().flatten() {
        let at = chunks.bytes(chunk);
        let cells = chunks.values(chunk);
        n_cells += u64::from(cells.end - cells.start);
        let part = &bytes[(at.start - base) as usize..(at.end - base) as usize];
        tile::decode_chunk(part, &stored.pipeline, size, decoder)
            .and_then(|decoded| whole(decoded, &cells, size))
            .and_then(|decoded| sink(Chunk { field: wish.field, work: wish.work, cells, decoded }))
            .map_err(|fault| Fault { at: (at.start - base).into(), what: fault.what })?;
    }
    Ok(if wish.field == Field::Columns { n_cells } else { 0 })
}

/// Makes sure that a chunk has as many values as were seen in it when its tile was first looked at.
fn whole<'a>(decoded: Decoded<'a>, cells: &Range<u32>, size: usize) -> Result<Decoded<'a>, Fault> {
    let (Decoded::Plain(bytes) | Decoded::Planes(bytes)) = decoded;
    let n_cells = (cells.end - cells.start) as usize;
    if bytes.len() == n_cells * size {
        Ok(decoded)
    } else {
        Err(Fault::new(format!("a chunk of {n_cells} cells is {} bytes", bytes.len())))
    }
}

/// The parts of `parts[*next..]` that have cells in `cells`, with those cells; `next` moves past the parts that end there.
pub(super) fn overlaps(
    parts: &[Part],
    next: &mut usize,
    cells: &Range<u32>,
    mut each: impl FnMut(usize, Range<u32>),
) {
    while let Some(part) = parts.get(*next).filter(|part| part.cells.0 < cells.end) {
        let low = part.cells.0.max(cells.start);
        let high = part.cells.1.min(cells.end);
        if low < high {
            each(*next, low..high);
        }
        if part.cells.1 > cells.end {
            break;
        }
        *next += 1;
    }
}
