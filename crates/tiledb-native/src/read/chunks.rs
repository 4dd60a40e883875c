//! Fetches and decodes the chunks with wanted cells, each once; cached chunks are neither fetched
//! nor decoded.

use std::ops::Range;
use std::sync::Arc;

use storage::Piece;

use super::work::{Part, TileWork};
use super::{Decoding, ReadStats, Reader};
use crate::decoded_cache::DecodedTile;
use crate::decoded_chunk::DecodedChunk;
use crate::error::{Error, Fault};
use crate::filter::Decoded;
use crate::fragment::Field;
use crate::schema::Stored;
use crate::tile::{self, Chunks};
use crate::values::{Columns, Conversion, Values, copy_bytes, copy_times};

/// A decoded chunk.
#[derive(Debug, Clone)]
pub(super) struct Chunk<'a> {
    pub(super) field: Field,
    /// Index of its tile in the list of tiles.
    pub(super) work: usize,
    /// The cells in it.
    pub(super) cells: Range<u32>,
    pub(super) content: Content<'a>,
}

/// The cells of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    /// As the filters returned them.
    Decoded(Decoded<'a>),
    /// From the cache.
    Kept(&'a DecodedChunk),
}

impl<'a> Chunk<'a> {
    /// The place of the tile's cells `cells` in the chunk.
    pub(super) fn place(&self, cells: &Range<u32>) -> Range<usize> {
        (cells.start - self.cells.start) as usize..(cells.end - self.cells.start) as usize
    }

    /// The columns of a chunk of columns; `work` is its tile.
    pub(super) fn columns(&self, reader: &Reader, work: &TileWork) -> Result<Columns<'a>, Fault> {
        let fragment = &reader.fragments[work.fragment];
        let tiles = fragment.tiles(&reader.files).map_err(|error| Fault::new(error.to_string()))?;
        let bounds = tiles.bounds(work.tile).columns;
        let columns = match self.content {
            Content::Decoded(decoded) => {
                let number = fragment.layout.columns.number;
                Some(Columns::new(decoded, self.cells.len(), number, bounds))
            }
            Content::Kept(kept) => Columns::kept(kept, bounds),
        };
        columns.ok_or_else(|| misplaced(Field::Columns))
    }

    /// The values of a chunk of values.
    pub(super) fn values(&self, reader: &Reader, work: &TileWork) -> Result<Values<'a>, Fault> {
        let values = match self.content {
            Content::Decoded(decoded) => {
                let number = reader.fragments[work.fragment].layout.values.number;
                let conversion = Conversion { number, narrowing: reader.narrowing };
                Some(Values::new(decoded, self.cells.len(), conversion))
            }
            Content::Kept(kept) => Values::kept(kept),
        };
        values.ok_or_else(|| misplaced(Field::Values))
    }

    /// Copies the values of the cells at `range` of a chunk of values, as stored.
    pub(super) fn copy_bytes(
        &self,
        reader: &Reader,
        work: &TileWork,
        range: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let Content::Decoded(decoded) = self.content else { return Err(misplaced(Field::Values)) };
        let size = stored(reader, work, Field::Values).number.size();
        copy_bytes(decoded, (self.cells.len(), size), range, out);
        Ok(())
    }

    /// Copies the times of the cells at `range` of a chunk of times.
    pub(super) fn copy_times(&self, range: Range<usize>, out: &mut [u64]) -> Result<(), Fault> {
        let Content::Decoded(decoded) = self.content else { return Err(misplaced(Field::Times)) };
        copy_times(decoded, self.cells.len(), range, out);
        Ok(())
    }

    /// Caches the cells as chunk `idx` of the tile, if there is room and they are valid. Invalid
    /// cells are reported by the read that wants them.
    fn keep(
        &mut self,
        reader: &Reader,
        work: &TileWork,
        (tile, idx): (&'a DecodedTile, usize),
        scratch: &mut Vec<u8>,
    ) {
        let n = self.cells.len();
        if !reader.decoded.has_room(n) {
            return;
        }
        let decoded = match self.field {
            Field::Columns => {
                let columns = self.columns(reader, work).ok();
                columns.and_then(|columns| DecodedChunk::of_columns(&columns, n, scratch))
            }
            Field::Values => self
                .values(reader, work)
                .ok()
                .map(|values| DecodedChunk::of_values(&values, n, scratch)),
            Field::Rows | Field::Times | Field::DeleteTimes => None,
        };
        let kept = decoded.and_then(|decoded| reader.decoded.keep(tile, idx, decoded));
        if let Some(kept) = kept {
            self.content = Content::Kept(kept);
        }
    }
}

/// The fault that a cached chunk belongs to another field.
fn misplaced(field: Field) -> Fault {
    Fault::new(format!("a cached chunk is not of field {field:?}"))
}

/// The part of a tile to read: all of it if its chunks are unknown, otherwise a run of chunks.
struct Wish {
    field: Field,
    work: usize,
    /// The chunks; `None` for the whole tile.
    chunks: Option<Range<usize>>,
    /// The bytes to fetch; none if the chunks are cached.
    range: Range<u64>,
    /// The tile's cached chunks, if there are any.
    kept: Option<Arc<DecodedTile>>,
}

impl Wish {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether everything wanted is cached.
    fn is_kept(&self) -> bool {
        self.range.is_empty()
    }
}

/// The parts of a field of `works` to fetch.
pub(super) fn to_fetch<'a>(
    reader: &'a Reader,
    works: &[TileWork],
    field: Field,
) -> Result<Vec<Piece<'a>>, Error> {
    let wishes = wishes(reader, works, &[field])?;
    let fetched = wishes.iter().filter(|wish| !wish.is_kept());
    Ok(fetched.map(|wish| piece(reader, works, wish)).collect())
}

/// Number of `works` to decode together so that they make about one batch of requests.
pub(super) fn batch_len(
    reader: &Reader,
    works: &[TileWork],
    fields: &[Field],
) -> Result<usize, Error> {
    let limit = reader.files.storage().coalesce().batch_bytes;
    let mut bytes = 0;
    for (idx, work) in works.iter().enumerate() {
        bytes +=
            wishes(reader, std::slice::from_ref(work), fields)?.iter().map(Wish::len).sum::<u64>();
        if bytes > limit {
            return Ok(idx.max(1));
        }
    }
    Ok(works.len())
}

/// Decodes the chunks of `fields` of the tiles `works` that contain wanted cells, and passes each
/// to `sink`: by field, then by tile, then by ascending cell. Requests at most one batch of the
/// storage at a time.
pub(super) fn for_each(
    reader: &Reader,
    works: &[TileWork],
    fields: &[Field],
    scratch: (&mut Vec<u8>, &mut Decoding),
    stats: &mut ReadStats,
    mut sink: impl FnMut(Chunk<'_>) -> Result<(), Fault>,
) -> Result<(), Error> {
    let (buffer, decoding) = scratch;
    let all = wishes(reader, works, fields)?;
    let limit = reader.files.storage().coalesce().batch_bytes;
    let mut rest = all.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|wish| {
            bytes += wish.len();
            bytes <= limit
        });
        let (batch, after) = rest.split_at(fits.count().max(1));
        let fetched = batch.iter().filter(|wish| !wish.is_kept());
        let pieces: Vec<_> = fetched.map(|wish| piece(reader, works, wish)).collect();
        let mut places = reader.fetch(&pieces, buffer, stats)?.into_iter();
        for wish in batch {
            let work = &works[wish.work];
            let place = if wish.is_kept() { None } else { places.next() };
            let bytes = place.map_or(&[][..], |place| &buffer[place]);
            let piece = piece(reader, works, wish);
            let n_cells = decode(reader, work, wish, bytes, decoding, &mut sink)
                .map_err(|fault| fault.in_file(reader.files.name(piece.file), piece.range.start))?;
            let size = stored(reader, work, wish.field).number.size();
            let n_values = if wish.field == Field::Columns { n_cells } else { 0 };
            *stats += ReadStats::of_decoded(n_values, n_cells * size as u64);
        }
        rest = after;
    }
    Ok(())
}

fn stored<'a>(reader: &'a Reader, work: &TileWork, field: Field) -> &'a Stored {
    let layout = &reader.fragments[work.fragment].layout;
    match field {
        Field::Rows => &layout.rows,
        Field::Columns => &layout.columns,
        Field::Values => &layout.values,
        Field::Times | Field::DeleteTimes => &layout.times,
    }
}

/// The index of `field`'s chunks in the row index, which has none for rows.
fn slot(field: Field) -> usize {
    field.idx().saturating_sub(1)
}

/// The parts of `fields` of `works` to fetch: by field, then by tile.
fn wishes(reader: &Reader, works: &[TileWork], fields: &[Field]) -> Result<Vec<Wish>, Error> {
    let mut out = Vec::with_capacity(fields.len() * works.len());
    for &field in fields {
        for (idx, work) in works.iter().enumerate() {
            let fragment = &reader.fragments[work.fragment];
            let is_there = match field {
                Field::Times => fragment.footer.has_timestamps,
                Field::DeleteTimes => fragment.footer.has_delete_times,
                Field::Rows | Field::Columns | Field::Values => true,
            };
            if !is_there {
                continue;
            }
            let tile = fragment.tiles(&reader.files)?.bytes(field, work.tile);
            let Some(chunks) = work.index.chunks[slot(field)].get() else {
                out.push(Wish { field, work: idx, chunks: None, range: tile, kept: None });
                continue;
            };
            let kept = reader.decoded.tile((work.fragment, work.tile), field, chunks.n_chunks());
            let is_kept = |chunk| kept.as_ref().is_some_and(|kept| kept.get(chunk).is_some());
            for run in needed(&work.parts, chunks) {
                let mut rest = run;
                while !rest.is_empty() {
                    let of_first = is_kept(rest.start);
                    let end = (rest.start + 1..rest.end).find(|&chunk| is_kept(chunk) != of_first);
                    let run = rest.start..end.unwrap_or(rest.end);
                    rest.start = run.end;
                    let bytes = chunks.bytes(run.start).start..chunks.bytes(run.end - 1).end;
                    let end = if of_first { bytes.start } else { bytes.end };
                    let range = tile.start + u64::from(bytes.start)..tile.start + u64::from(end);
                    let kept = kept.clone();
                    out.push(Wish { field, work: idx, chunks: Some(run), range, kept });
                }
            }
        }
    }
    Ok(out)
}

fn piece<'a>(reader: &'a Reader, works: &[TileWork], wish: &Wish) -> Piece<'a> {
    let fragment = &reader.fragments[works[wish.work].fragment];
    Piece { file: &fragment.files[wish.field.idx()], range: wish.range.clone() }
}

/// Runs of chunks that contain cells of `parts`.
fn needed<'a>(parts: &'a [Part], chunks: &'a Chunks) -> impl Iterator<Item = Range<usize>> + 'a {
    let holding = |part: &Part| chunks.holding(part.cells.0)..chunks.holding(part.cells.1 - 1) + 1;
    let mut rest = parts.iter().map(holding).peekable();
    std::iter::from_fn(move || {
        let mut run = rest.next()?;
        while let Some(next) = rest.next_if(|next| next.start <= run.end) {
            run.end = run.end.max(next.end);
        }
        Some(run)
    })
}

/// Decodes the fetched bytes of `wish`; returns the number of decoded cells.
fn decode(
    reader: &Reader,
    work: &TileWork,
    wish: &Wish,
    bytes: &[u8],
    Decoding { decoder, packed }: &mut Decoding,
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
    // The bytes begin with the tile, or with the first requested chunk.
    let base = wish.chunks.as_ref().map_or(0, |run| chunks.bytes(run.start).start);
    let found = wish.chunks.is_none().then(|| needed(&work.parts, chunks));
    let runs = wish.chunks.clone().into_iter().chain(found.into_iter().flatten());
    // If the chunks were known, the cache was already asked.
    let tile = wish.kept.clone().or_else(|| {
        let of_new =
            || reader.decoded.tile((work.fragment, work.tile), wish.field, chunks.n_chunks());
        wish.chunks.is_none().then(of_new).flatten()
    });
    let mut n_cells = 0;
    for idx in runs.flatten() {
        let at = chunks.bytes(idx);
        let cells = chunks.values(idx);
        let (field, of) = (wish.field, wish.work);
        let done = if let Some(kept) = tile.as_deref().and_then(|tile| tile.get(idx)) {
            sink(Chunk { field, work: of, cells, content: Content::Kept(kept) })
        } else {
            n_cells += u64::from(cells.end - cells.start);
            let part = &bytes[(at.start - base) as usize..(at.end - base) as usize];
            tile::decode_chunk(part, &stored.pipeline, size, decoder)
                .and_then(|decoded| tile::whole(decoded, &cells, size))
                .and_then(|decoded| {
                    let mut chunk =
                        Chunk { field, work: of, cells, content: Content::Decoded(decoded) };
                    if let Some(tile) = tile.as_deref() {
                        chunk.keep(reader, work, (tile, idx), packed);
                    }
                    sink(chunk)
                })
        };
        done.map_err(|fault| fault.moved_to((at.start - base).into()))?;
    }
    Ok(n_cells)
}

/// Calls `each` for the parts of `parts[*next..]` that have cells in `cells`, with those cells;
/// `next` moves past the parts that end there.
///
/// # Errors
/// The first error of `each`.
pub(super) fn overlaps(
    parts: &[Part],
    next: &mut usize,
    cells: &Range<u32>,
    mut each: impl FnMut(usize, Range<u32>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    while let Some(part) = parts.get(*next).filter(|part| part.cells.0 < cells.end) {
        let low = part.cells.0.max(cells.start);
        let high = part.cells.1.min(cells.end);
        if low < high {
            each(*next, low..high)?;
        }
        if part.cells.1 > cells.end {
            break;
        }
        *next += 1;
    }
    Ok(())
}
