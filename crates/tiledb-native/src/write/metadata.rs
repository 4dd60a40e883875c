//! Metadata of a fragment's tiles.

use super::tile::{Summary, Tile};

/// The tiles written so far.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    pub(super) summaries: Vec<Summary>,
    /// The beginning of each tile in the files of rows, columns and values.
    pub(super) offsets: [Vec<u64>; 3],
}

impl Tiles {
    /// Adds tiles, appended to files of these lengths.
    pub(super) fn add(&mut self, tiles: &[Tile], mut file_bytes: [u64; 3]) {
        for tile in tiles {
            self.summaries.push(tile.summary);
            for ((offsets, end), bytes) in
                self.offsets.iter_mut().zip(&mut file_bytes).zip(&tile.bytes)
            {
                offsets.push(*end);
                *end += bytes.len() as u64;
            }
        }
    }

    pub(super) fn n_cells(&self) -> u64 {
        self.summaries.iter().map(|tile| tile.n_cells).sum()
    }

    /// The bounds of all tiles, of which there must be at least one.
    pub(super) fn bounds(&self) -> [(u64, u64); 2] {
        union(&self.summaries.iter().map(|tile| tile.bounds).collect::<Vec<_>>())
    }
}

/// The smallest rectangle that contains all of these.
pub(super) fn union(bounds: &[[(u64, u64); 2]]) -> [(u64, u64); 2] {
    let none = [(u64::MAX, 0); 2];
    bounds.iter().fold(none, |all, one| {
        [0, 1].map(|idx| (all[idx].0.min(one[idx].0), all[idx].1.max(one[idx].1)))
    })
}
