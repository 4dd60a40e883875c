//! The metadata file of a fragment: generic tiles, then the footer with their places.
//!
//! Specification: `format_spec/fragment.md`. The fields are the attributes, the obsolete zipped
//! coordinates, the dimensions. Where the specification is silent, this follows libtiledb: the
//! obsolete field has a zero for every tile, and so have all variable sizes of fields that have
//! none.

use super::field::Field;
use super::generic_tile;

/// Children of a node in the tree of rectangles.
const FANOUT: usize = 10;

/// The least and the greatest coordinate of each of `D` dimensions, both included.
pub(super) type Rectangle<const D: usize> = [(u64, u64); D];

/// Content of a fragment's metadata.
#[derive(Debug)]
pub(super) struct Fragment<'a, const D: usize> {
    /// The format version.
    pub(super) version: u32,
    /// The last part of the schema's path.
    pub(super) schema_name: &'a str,
    /// The bounds of each tile, of which there must be at least one.
    pub(super) bounds: &'a [Rectangle<D>],
    /// The number of cells of each tile: the same for all but the last, which may have fewer.
    pub(super) n_cells: &'a [u64],
    /// Attributes, obsolete coordinates, dimensions.
    pub(super) fields: &'a [Field],
}

/// The bytes of the file.
pub(super) fn metadata<const D: usize>(fragment: &Fragment<'_, D>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut tile = |content: &[u8]| generic_tile::append(fragment.version, content, &mut bytes);
    let rtree_at = tile(&rtree(fragment.bounds));
    let fields = fragment.fields;
    let mut places = Vec::new();
    let sections: [fn(&Field, u64) -> Vec<u8>; 8] = [
        |field, _| counted(&field.offsets),
        |field, _| counted(&field.var_offsets),
        |field, _| counted(&field.var_sizes),
        |field, _| counted(&field.validity_offsets),
        |field, of_first| sized(&field.least(of_first)),
        |field, of_first| sized(&field.greatest(of_first)),
        |field, _| counted(&field.sums()),
        |field, _| counted(&field.null_counts()),
    ];
    let of_first = fragment.n_cells.first().copied().unwrap_or(0);
    for section in sections {
        places.extend(fields.iter().map(|field| tile(&section(field, of_first))));
    }
    let mut whole = Vec::new();
    for field in fields {
        field.put_whole(fragment.n_cells, &mut whole);
    }
    places.push(tile(&whole));
    // No conditions by which cells were deleted.
    places.push(tile(&counted(&[])));
    let footer = footer(fragment, rtree_at, &places);
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&(footer.len() as u64).to_le_bytes());
    bytes
}

fn footer<const D: usize>(fragment: &Fragment<'_, D>, rtree_at: u64, places: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&fragment.version.to_le_bytes());
    put_all(&[fragment.schema_name.len() as u64], &mut out);
    out.extend_from_slice(fragment.schema_name.as_bytes());
    // Not dense; with a domain.
    out.extend_from_slice(&[0, 0]);
    put_rectangle(&union(fragment.bounds), &mut out);
    let last_cells = fragment.n_cells.last().copied().unwrap_or(0);
    put_all(&[fragment.n_cells.len() as u64, last_cells], &mut out);
    // Neither times of cells nor of their deletion.
    out.extend_from_slice(&[0, 0]);
    for file in 0..3 {
        let lengths: Vec<u64> =
            fragment.fields.iter().map(|field| field.file_bytes[file]).collect();
        put_all(&lengths, &mut out);
    }
    put_all(&[rtree_at], &mut out);
    put_all(places, &mut out);
    out
}

/// Appends numbers.
pub(super) fn put_all(numbers: &[u64], out: &mut Vec<u8>) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn put_rectangle<const D: usize>(bounds: &Rectangle<D>, out: &mut Vec<u8>) {
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
fn rtree<const D: usize>(tiles: &[Rectangle<D>]) -> Vec<u8> {
    let mut levels = vec![tiles.to_vec()];
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

/// The smallest rectangle that contains all of these.
fn union<const D: usize>(bounds: &[Rectangle<D>]) -> Rectangle<D> {
    let none = [(u64::MAX, 0); D];
    bounds.iter().fold(none, |mut all, one| {
        for (all, one) in all.iter_mut().zip(one) {
            *all = (all.0.min(one.0), all.1.max(one.1));
        }
        all
    })
}
