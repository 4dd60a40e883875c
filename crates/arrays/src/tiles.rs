//! Copies parts of chunks that have no long runs in common with the row: their innermost dimension
//! is another one, or turned round.

use crate::convert::Convert;
use crate::element::ElementType;
use crate::part::Part;

/// Indices of the dimension that is innermost in the chunk, of one tile: a line of the cache has
/// as many elements of four bytes.
const TILE_STORED: usize = 16;

/// Indices of the dimension that is innermost in the row, of one tile.
const TILE_PLACED: usize = 64;

/// The elements of a tile, as stored, in the order of the row; in words, so that they are aligned.
type Tile = [u64; TILE_STORED * TILE_PLACED];

impl Convert {
    /// Does what [`scatter`](Self::scatter) does, tile by tile: each line of the caches, of the
    /// chunk and of the row, is used as a whole.
    pub(crate) fn scatter_tiles(
        &self,
        element: ElementType,
        part: &Part,
        (from, first): (&[u8], usize),
        (into, at): (&mut [u8], usize),
    ) {
        let mut dims = part.offsets();
        let Some((in_chunk, in_row)) = part.innermost() else { return };
        let placed = std::mem::take(&mut dims[in_row]);
        let stored = match in_chunk {
            _ if in_chunk == in_row => vec![[0, 0]],
            _ => std::mem::take(&mut dims[in_chunk]),
        };
        dims.retain(|dim| !dim.is_empty());
        let (n_from, n_to) = (element.n_bytes(), self.n_bytes(element));
        let mut tile: Tile = [0; TILE_STORED * TILE_PLACED];
        for_each_place(&dims, [0, 0], &mut |[src, dst]| {
            // Those that follow each other in the row.
            for placed in placed.chunk_by(|[_, one], [_, next]| one + 1 == *next) {
                for placed in placed.chunks(TILE_PLACED) {
                    for stored in stored.chunks(TILE_STORED) {
                        let from = (from, src, first);
                        match n_from {
                            1 => gather::<1>(from, (stored, placed), &mut tile),
                            2 => gather::<2>(from, (stored, placed), &mut tile),
                            4 => gather::<4>(from, (stored, placed), &mut tile),
                            _ => gather::<8>(from, (stored, placed), &mut tile),
                        }
                        let rows = bytemuck::cast_slice::<u64, u8>(&tile);
                        let rows = rows.chunks_exact(TILE_PLACED * n_from);
                        for (row, [_, place]) in rows.zip(stored) {
                            let to = dst + place + placed.first().map_or(0, |[_, first]| *first);
                            let row = &row[..placed.len() * n_from];
                            let into = &mut into[to * n_to..][..placed.len() * n_to];
                            if self.is_copy() {
                                into.copy_from_slice(row);
                            } else {
                                self.run(element, row, (into, at + to));
                            }
                        }
                    }
                }
            }
        });
    }
}

/// Puts elements of `N` bytes into a tile, one row of it for each of the `stored` indices. The
/// first element of `from` has the place `first` in the chunk.
fn gather<const N: usize>(
    (from, src, first): (&[u8], usize, usize),
    (stored, placed): (&[[usize; 2]], &[[usize; 2]]),
    tile: &mut Tile,
) {
    let (from, _) = from.as_chunks::<N>();
    let (tile, _) = bytemuck::cast_slice_mut::<u64, u8>(tile).as_chunks_mut::<N>();
    if let [[of_stored, _]] = stored {
        for (to, [of_placed, _]) in tile.iter_mut().zip(placed) {
            *to = from[src + of_placed + of_stored - first];
        }
        return;
    }
    let is_run = stored.windows(2).all(|two| two[0][0] + 1 == two[1][0]);
    for (column, [of_placed, _]) in placed.iter().enumerate() {
        let start = src + of_placed;
        let rows = tile.chunks_exact_mut(TILE_PLACED);
        match stored {
            [[of_first, _], ..] if is_run => {
                let run = &from[start + of_first - first..][..stored.len()];
                rows.zip(run).for_each(|(row, element)| row[column] = *element);
            }
            _ => rows.zip(stored).for_each(|(row, [of_stored, _])| {
                row[column] = from[start + of_stored - first];
            }),
        }
    }
}

/// Calls `f` with the places in the chunk and in the row of each index of all dimensions.
fn for_each_place(
    dims: &[Vec<[usize; 2]>],
    [src, dst]: [usize; 2],
    f: &mut impl FnMut([usize; 2]),
) {
    match dims.split_first() {
        None => f([src, dst]),
        Some((outer, inner)) => {
            for [of_src, of_dst] in outer {
                for_each_place(inner, [src + of_src, dst + of_dst], f);
            }
        }
    }
}
