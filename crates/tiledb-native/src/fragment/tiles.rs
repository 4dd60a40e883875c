//! Where a fragment's tiles are and what they bound.

use super::footer::{metadata_file, range};
use super::tree::RowTree;
use super::{Field, Fragment};
use crate::cursor::Cursor;
use crate::error::{Error, Fault};
use crate::files::Files;
use crate::generic_tile;
use crate::schema::Dimension;

/// The bounding rectangle of a tile's cells, all bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) rows: (u64, u64),
    pub(crate) columns: (u32, u32),
}

/// All tiles of a fragment.
#[derive(Debug)]
pub(crate) struct Tiles {
    bounds: Vec<Bounds>,
    tree: RowTree,
    /// Offsets of the tiles in the files of [`Field::ALL`], and the file's end.
    offsets: [Vec<u64>; 4],
}

impl Tiles {
    pub(super) fn load(files: &Files, fragment: &Fragment) -> Result<Self, Error> {
        let file = metadata_file(&fragment.folder);
        let footer = &fragment.footer;
        let n_tiles = footer.n_tiles;
        if n_tiles == 0 {
            return Ok(Self {
                bounds: Vec::new(),
                tree: RowTree::new(&[]),
                offsets: Default::default(),
            });
        }
        let rtree = generic_tile::read(files, &file, footer.metadata_bytes, footer.rtree_at)?;
        let bounds = leaves(&rtree, fragment)
            .map_err(|fault| fault.in_unfiltered(files.name(&file), footer.rtree_at))?;
        let mut offsets: [Vec<u64>; 4] = Default::default();
        for field in Field::ALL {
            if field == Field::Times && !footer.has_timestamps {
                continue;
            }
            let at = footer.tile_offsets_at[field.idx()];
            let bytes = generic_tile::read(files, &file, footer.metadata_bytes, at)?;
            let end = files.size(&fragment.files[field.idx()])?.min(footer.file_bytes[field.idx()]);
            offsets[field.idx()] = tile_offsets(&bytes, n_tiles, end)
                .map_err(|fault| fault.in_unfiltered(files.name(&file), at))?;
        }
        let tree = RowTree::new(&bounds);
        Ok(Self { bounds, tree, offsets })
    }

    pub(crate) fn bounds(&self, tile: usize) -> Bounds {
        self.bounds[tile]
    }

    /// The bytes of tile `tile` in the file of `field`.
    pub(crate) fn bytes(&self, field: Field, tile: usize) -> std::ops::Range<u64> {
        let offsets = &self.offsets[field.idx()];
        offsets[tile]..offsets[tile + 1]
    }

    /// Calls `each` with the tiles, ascending, whose bounds meet the rows `first..=last`.
    pub(crate) fn meeting(&self, first: u64, last: u64, each: &mut dyn FnMut(usize)) {
        self.tree.meeting(&self.bounds, (first, last), each);
    }
}

/// The last level of the tree: one rectangle a tile.
fn leaves(bytes: &[u8], fragment: &Fragment) -> Result<Vec<Bounds>, Fault> {
    let n_tiles = fragment.footer.n_tiles;
    let dimensions = fragment.layout.dimensions();
    let mut cursor = Cursor::new(bytes);
    cursor.u32("the fanout of a tree")?;
    let n_levels = cursor.u32("the levels of a tree")?;
    let bounds_bytes: usize =
        dimensions.iter().map(|dimension| 2 * dimension.datatype.size().unwrap_or(0)).sum();
    for level in 1..=n_levels {
        let n_bounds = cursor.u64("the rectangles of a level")?;
        if level < n_levels {
            let len = usize::try_from(n_bounds).unwrap_or(usize::MAX).saturating_mul(bounds_bytes);
            cursor.take(len, "the rectangles of a level")?;
            continue;
        }
        if n_bounds != n_tiles || cursor.remaining().len() / bounds_bytes.max(1) < n_tiles as usize
        {
            return Err(Fault::at(
                cursor.at(),
                format!("{n_bounds} rectangles for {n_tiles} tiles"),
            ));
        }
        return (0..n_tiles).map(|_| leaf(&mut cursor, dimensions, fragment)).collect();
    }
    Err(Fault::at(cursor.at(), "a tree without levels"))
}

fn leaf(
    cursor: &mut Cursor<'_>,
    dimensions: &[Dimension; 2],
    fragment: &Fragment,
) -> Result<Bounds, Fault> {
    let at = cursor.at();
    let rows = range(cursor, &dimensions[0])?;
    let columns = range(cursor, &dimensions[1])?;
    let inside = |(low, high): (u64, u64), shape: (u64, u64)| low >= shape.0 && high < shape.1;
    let fits = (u32::try_from(columns.0), u32::try_from(columns.1));
    match fits {
        (Ok(low), Ok(high))
            if inside(rows, fragment.layout.shape[0])
                && inside(columns, fragment.layout.shape[1]) =>
        {
            Ok(Bounds { rows, columns: (low, high) })
        }
        _ => Err(Fault::at(
            at,
            format!("a tile of rows {rows:?} and columns {columns:?} lies outside the array"),
        )),
    }
}

/// Offsets of `n_tiles` tiles that ascend up to `end`, with `end` behind them.
fn tile_offsets(bytes: &[u8], n_tiles: u64, end: u64) -> Result<Vec<u64>, Fault> {
    let mut cursor = Cursor::new(bytes);
    let n_offsets = cursor.u64("the number of tile offsets")?;
    if n_offsets != n_tiles {
        return Err(Fault::new(format!("{n_offsets} offsets for {n_tiles} tiles")));
    }
    let mut offsets = cursor.u64s(n_offsets, "tile offsets")?;
    offsets.push(end);
    for pair in offsets.windows(2) {
        if pair[0] >= pair[1] || pair[1] - pair[0] > u64::from(u32::MAX) {
            return Err(Fault::new(format!(
                "a tile from byte {} to {} of a file of {end}",
                pair[0], pair[1]
            )));
        }
    }
    Ok(offsets)
}
