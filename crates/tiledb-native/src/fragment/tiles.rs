//! The places and bounds of a fragment's tiles.

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use storage::Files;
use storage::Piece;

use super::footer::{metadata_file, range};
use super::tree::{Bounds, RowTree};
use super::{Field, Footer, Fragment};
use crate::cursor::Cursor;
use crate::error::{Error, Fault};
use crate::generic_tile::Source;
use crate::schema::Dimension;

/// The most metadata of a fragment that is read in one piece: that of about 100,000 tiles, 6
/// billion cells.
const HELD_BYTES: u64 = 8 << 20;

/// All tiles of a fragment.
#[derive(Debug)]
pub(crate) struct Tiles {
    bounds: Vec<Bounds>,
    tree: RowTree,
    /// Offsets of the tiles in the files of [`Field::ALL`], followed by the file's end.
    offsets: [Vec<u64>; Field::N],
}

impl Tiles {
    /// Reads the tiles of `fragments`: their metadata with one call of the storage, and the lengths
    /// of their files with another. Several are decoded by the threads of the current pool.
    pub(super) fn load_all(files: &Files, fragments: &[&Fragment]) -> Result<Vec<Self>, Error> {
        let names = fragments.iter().flat_map(|&fragment| {
            fields(fragment).map(|field| fragment.files[field.idx()].as_str())
        });
        let names: Vec<&str> = names.collect();
        let sizes = files.sizes(&names)?;
        let metadata: Vec<String> =
            fragments.iter().map(|fragment| metadata_file(&fragment.folder)).collect();
        let pieces: Vec<_> = metadata
            .iter()
            .zip(fragments)
            .map(|(file, fragment)| Piece { file, range: places(fragment) })
            .collect();
        let loaded = files.read_each(&pieces)?;
        let mut sizes = sizes.into_iter();
        let sizes_of = |&fragment| sizes.by_ref().take(fields(fragment).count()).collect();
        let sizes: Vec<Vec<u64>> = fragments.iter().map(sizes_of).collect();
        let load = |idx: usize| {
            let (fragment, piece) = (fragments[idx], &pieces[idx]);
            let source = Source::new(files, piece.file, fragment.footer.metadata_bytes)
                .with_loaded(piece.range.start, &loaded[idx]);
            Self::load(files, fragment, &source, &sizes[idx])
        };
        // A single one needs no threads.
        if let [_] = fragments {
            return Ok(vec![load(0)?]);
        }
        (0..fragments.len()).into_par_iter().map(load).collect()
    }

    /// Reads the tiles of one fragment; `sizes` are those of its fields' files.
    fn load(
        files: &Files,
        fragment: &Fragment,
        source: &Source<'_>,
        sizes: &[u64],
    ) -> Result<Self, Error> {
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
        let rtree = source.read(footer.rtree_at)?;
        let bounds = leaves(&rtree, fragment)
            .map_err(|fault| fault.in_unfiltered(files.name(&file), footer.rtree_at))?;
        let mut offsets: [Vec<u64>; Field::N] = Default::default();
        for (field, &size) in fields(fragment).zip(sizes) {
            let at = footer.tile_offsets_at[field.idx()];
            let bytes = source.read(at)?;
            let end = size.min(footer.file_bytes[field.idx()]);
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

/// The fields for which a fragment has files; none if it is empty.
fn fields(fragment: &Fragment) -> impl Iterator<Item = Field> {
    let Footer { n_tiles, has_timestamps, has_delete_times, .. } = fragment.footer;
    let has = move |field: &Field| {
        n_tiles > 0
            && match field {
                Field::Times => has_timestamps,
                Field::DeleteTimes => has_delete_times,
                Field::Rows | Field::Columns | Field::Values => true,
            }
    };
    Field::ALL.into_iter().filter(has)
}

/// The range of the metadata file to read: to its end, since only the beginnings of structures are
/// known. Empty if that is too much; it is then read piece by piece.
fn places(fragment: &Fragment) -> std::ops::Range<u64> {
    let footer = &fragment.footer;
    let offsets = fields(fragment).map(|field| footer.tile_offsets_at[field.idx()]);
    let first = offsets.chain([footer.rtree_at]).min().unwrap_or(0);
    let end = footer.metadata_bytes;
    if footer.n_tiles == 0 || end.saturating_sub(first) > HELD_BYTES {
        end..end
    } else {
        first.min(end)..end
    }
}

/// The last level of the tree, with one rectangle per tile.
fn leaves(bytes: &[u8], fragment: &Fragment) -> Result<Vec<Bounds>, Fault> {
    let n_tiles = fragment.footer.n_tiles;
    let dimensions = fragment.layout.dimensions();
    let bounds_bytes: usize =
        dimensions.iter().map(|dimension| 2 * dimension.datatype.size().unwrap_or(0)).sum();
    let mut cursor = last_level(bytes, n_tiles, bounds_bytes)?;
    (0..n_tiles).map(|_| leaf(&mut cursor, dimensions, fragment)).collect()
}

/// Finds the last level of the tree in `bytes`, with `n_tiles` rectangles of `bounds_bytes` each.
pub(crate) fn last_level(
    bytes: &[u8],
    n_tiles: u64,
    bounds_bytes: usize,
) -> Result<Cursor<'_>, Fault> {
    let mut cursor = Cursor::new(bytes);
    cursor.u32("the fanout of a tree")?;
    let n_levels = cursor.u32("the levels of a tree")?;
    for level in 1..=n_levels {
        let n_bounds = cursor.u64("the rectangles of a level")?;
        if level < n_levels {
            let len = usize::try_from(n_bounds).unwrap_or(usize::MAX).saturating_mul(bounds_bytes);
            cursor.take(len, "the rectangles of a level")?;
            continue;
        }
        if n_bounds != n_tiles
            || ((cursor.remaining().len() / bounds_bytes.max(1)) as u64) < n_tiles
        {
            return Err(Fault::at(
                cursor.at(),
                format!("{n_bounds} rectangles for {n_tiles} tiles"),
            ));
        }
        return Ok(cursor);
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

/// Reads offsets of `n_tiles` tiles, which ascend up to `end`, and appends `end`.
fn tile_offsets(bytes: &[u8], n_tiles: u64, end: u64) -> Result<Vec<u64>, Fault> {
    let offsets = var_tile_offsets(bytes, n_tiles, end)?;
    match offsets.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(misplaced(pair, end)),
        None => Ok(offsets),
    }
}

/// Reads offsets like [`tile_offsets`], of tiles that may be empty.
pub(crate) fn var_tile_offsets(bytes: &[u8], n_tiles: u64, end: u64) -> Result<Vec<u64>, Fault> {
    let mut offsets = tile_numbers(bytes, n_tiles, "tile offsets")?;
    offsets.push(end);
    for pair in offsets.windows(2) {
        if pair[0] > pair[1] || pair[1] - pair[0] > u64::from(u32::MAX) {
            return Err(misplaced(pair, end));
        }
    }
    Ok(offsets)
}

/// Reads one number for each of `n_tiles` tiles, after their count.
pub(crate) fn tile_numbers(bytes: &[u8], n_tiles: u64, what: &str) -> Result<Vec<u64>, Fault> {
    let mut cursor = Cursor::new(bytes);
    let n_numbers = cursor.u64(what)?;
    if n_numbers != n_tiles {
        return Err(Fault::new(format!("{n_numbers} {what} for {n_tiles} tiles")));
    }
    cursor.u64s(n_numbers, what)
}

fn misplaced(pair: &[u64], end: u64) -> Fault {
    Fault::new(format!("a tile from byte {} to {} of a file of {end}", pair[0], pair[1]))
}
