//! The metadata file of a fragment: generic tiles, then the footer with their places.
//!
//! Specification: `format_spec/fragment.md`. The fields are the attribute, the obsolete zipped
//! coordinates, rows, columns. Where the specification is silent, this follows libtiledb: the
//! obsolete field has a zero for every tile, and so do all variable sizes.

use std::io::Write as _;

use super::metadata::{Tiles, union};
use super::tile::{Form, add};

/// Children of a node in the tree of rectangles.
const FANOUT: usize = 10;
/// Bytes per chunk of a generic tile.
const CHUNK_BYTES: usize = 1 << 16;
/// The number of the gzip filter, and libtiledb's level for metadata.
const GZIP: (u8, i32) = (1, 1);
/// The number of the datatype char.
const CHAR: u8 = 4;
/// Attribute, obsolete coordinates, rows, columns.
const N_FIELDS: usize = 4;

type Rectangle = [(u64, u64); 2];

/// The bytes of the file, for a fragment with tiles. `file_bytes` are the sizes of rows, columns
/// and values.
pub(super) fn metadata(form: &Form, tiles: &Tiles, file_bytes: [u64; 3]) -> Vec<u8> {
    let mut out = Metadata { bytes: Vec::new(), version: form.version };
    let n_tiles = tiles.summaries.len();
    let rtree_at = out.tile(&rtree(tiles));
    let zeros = vec![0; n_tiles];
    let [rows, columns, values] = &tiles.offsets;
    let mut places = Vec::new();
    places.extend([values, &zeros, rows, columns].map(|offsets| out.tile(&counted(offsets))));
    // Offsets and sizes of values of variable length, and offsets of validity.
    for _ in 0..3 * N_FIELDS {
        places.push(out.tile(&counted(&zeros)));
    }
    let least = tiles.summaries.iter().flat_map(|tile| tile.least.to_le_bytes()).collect();
    let greatest = tiles.summaries.iter().flat_map(|tile| tile.greatest.to_le_bytes()).collect();
    for values in [least, greatest] {
        // Coordinates are described by the rectangles; the obsolete ones have zeros.
        let fields = [values, vec![0; 16 * n_tiles], Vec::new(), Vec::new()];
        places.extend(fields.map(|values| out.tile(&sized(&values))));
    }
    let sums = |sum: &dyn Fn(usize) -> u64| (0..n_tiles).map(sum).collect::<Vec<u64>>();
    let of = &tiles.summaries;
    for sums in [
        sums(&|tile| of[tile].sum.to_bits()),
        zeros,
        sums(&|tile| of[tile].row_sum.cast_unsigned()),
        sums(&|tile| of[tile].column_sum.cast_unsigned()),
    ] {
        places.push(out.tile(&counted(&sums)));
    }
    for _ in 0..N_FIELDS {
        places.push(out.tile(&counted(&[])));
    }
    let whole_at = out.tile(&whole(tiles));
    let conditions_at = out.tile(&counted(&[]));
    let mut bytes = out.bytes;
    let footer = footer(form, tiles, file_bytes, (rtree_at, &places, [whole_at, conditions_at]));
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&(footer.len() as u64).to_le_bytes());
    bytes
}

fn footer(
    form: &Form,
    tiles: &Tiles,
    [rows, columns, values]: [u64; 3],
    (rtree_at, places, last): (u64, &[u64], [u64; 2]),
) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&form.version.to_le_bytes());
    out.extend_from_slice(&(form.schema_name.len() as u64).to_le_bytes());
    out.extend_from_slice(form.schema_name.as_bytes());
    // Not dense; with a domain.
    out.extend_from_slice(&[0, 0]);
    put_rectangle(&tiles.bounds(), &mut out);
    let last_cells = tiles.summaries.last().map_or(0, |tile| tile.n_cells);
    put_all(&[tiles.summaries.len() as u64, last_cells], &mut out);
    // Neither times of cells nor of their deletion.
    out.extend_from_slice(&[0, 0]);
    put_all(&[values, 0, rows, columns], &mut out);
    put_all(&[0; 2 * N_FIELDS], &mut out);
    put_all(&[rtree_at], &mut out);
    put_all(places, &mut out);
    put_all(&last, &mut out);
    out
}

fn put_all(numbers: &[u64], out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn put_rectangle(bounds: &Rectangle, out: &mut Vec<u8>) {
    for (least, greatest) in bounds {
        put_all(&[*least, *greatest], out);
    }
}

/// The number of values, then the values.
fn counted(values: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + 8 * values.len());
    put_all(&[values.len() as u64], &mut out);
    put_all(values, &mut out);
    out
}

/// The number of bytes, zero bytes of variable length, then the bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + bytes.len());
    put_all(&[bytes.len() as u64, 0], &mut out);
    out.extend_from_slice(bytes);
    out
}

/// The tree of rectangles: those of the tiles, and above each level the unions of [`FANOUT`]
/// rectangles, up to one.
fn rtree(tiles: &Tiles) -> Vec<u8> {
    let leaves: Vec<Rectangle> = tiles.summaries.iter().map(|tile| tile.bounds).collect();
    let mut levels = vec![leaves];
    while let Some(level) = levels.last().filter(|level| level.len() > 1) {
        let above = level.chunks(FANOUT).map(union).collect();
        levels.push(above);
    }
    let mut out = Vec::new();
    out.extend_from_slice(&(FANOUT as u32).to_le_bytes());
    out.extend_from_slice(&(levels.len() as u32).to_le_bytes());
    for level in levels.iter().rev() {
        put_all(&[level.len() as u64], &mut out);
        for bounds in level {
            put_rectangle(bounds, &mut out);
        }
    }
    out
}

/// Least and greatest value, sum and number of nulls of each field of the whole fragment.
fn whole(tiles: &Tiles) -> Vec<u8> {
    let of = &tiles.summaries;
    let least =
        of.iter().fold(f32::MAX, |all, tile| if all < tile.least { all } else { tile.least });
    let greatest =
        of.iter().fold(f32::MIN, |all, tile| if all > tile.greatest { all } else { tile.greatest });
    let mut sum = 0.0;
    for tile in of {
        if add(&mut sum, tile.sum) {
            break;
        }
    }
    let integers = |sum: &dyn Fn(usize) -> i64| {
        (0..of.len()).fold(0_i64, |all, tile| all.saturating_add(sum(tile))).cast_unsigned()
    };
    let mut out = Vec::new();
    let mut field = |least: &[u8], greatest: &[u8], sum: u64| {
        for bytes in [least, greatest] {
            put_all(&[bytes.len() as u64], &mut out);
            out.extend_from_slice(bytes);
        }
        put_all(&[sum, 0], &mut out);
    };
    field(&least.to_le_bytes(), &greatest.to_le_bytes(), sum.to_bits());
    field(&[0; 8], &[0; 8], 0);
    field(&[], &[], integers(&|tile| of[tile].row_sum));
    field(&[], &[], integers(&|tile| of[tile].column_sum));
    out
}

/// A metadata file being built.
struct Metadata {
    bytes: Vec<u8>,
    version: u32,
}

impl Metadata {
    /// Appends a generic tile, and returns its place.
    fn tile(&mut self, content: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        let mut tile = (content.len().div_ceil(CHUNK_BYTES) as u64).to_le_bytes().to_vec();
        for chunk in content.chunks(CHUNK_BYTES) {
            let data = deflate(chunk);
            // For the chunk: its length before and after, and that of the filter's metadata. For
            // the filter: no metadata part, one data part.
            let lengths = [chunk.len(), data.len(), 16, 0, 1, chunk.len(), data.len()];
            for len in lengths {
                tile.extend_from_slice(&(len as u32).to_le_bytes());
            }
            tile.extend_from_slice(&data);
        }
        let pipeline = gzip_pipeline();
        self.bytes.extend_from_slice(&self.version.to_le_bytes());
        put_all(&[tile.len() as u64, content.len() as u64], &mut self.bytes);
        self.bytes.push(CHAR);
        put_all(&[1], &mut self.bytes);
        // Not encrypted.
        self.bytes.push(0);
        self.bytes.extend_from_slice(&(pipeline.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&pipeline);
        self.bytes.extend_from_slice(&tile);
        at
    }
}

/// The largest chunk, the number of filters, then the filter's number, the length of its options,
/// the compressor and its level.
fn gzip_pipeline() -> Vec<u8> {
    let (gzip, level) = GZIP;
    let mut out = (CHUNK_BYTES as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&1_u32.to_le_bytes());
    out.push(gzip);
    out.extend_from_slice(&5_u32.to_le_bytes());
    out.push(gzip);
    out.extend_from_slice(&level.to_le_bytes());
    out
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::new(GZIP.1.unsigned_abs());
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), level);
    // Writing to memory cannot fail.
    drop(out.write_all(bytes));
    out.finish().unwrap_or_default()
}
