//! A tree of row bounds over the tiles in their order, which finds the tiles that meet a range of
//! rows without visiting all of them.
//!
//! The tree in the fragment's metadata bounds runs of its fanout; this one has the same shape, for
//! rows only.

const FANOUT: usize = 16;

/// The bounding rectangle of a tile's cells, all bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) rows: (u64, u64),
    pub(crate) columns: (u32, u32),
}

#[derive(Debug)]
pub(crate) struct RowTree {
    /// Bounds of every run of [`FANOUT`] nodes of the level below; the first level is over the
    /// tiles.
    levels: Vec<Vec<(u64, u64)>>,
}

impl RowTree {
    pub(crate) fn new(tiles: &[Bounds]) -> Self {
        let union = |run: &[(u64, u64)]| {
            run.iter().fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)))
        };
        let rows: Vec<_> = tiles.iter().map(|bounds| bounds.rows).collect();
        let mut levels = Vec::new();
        let mut below = rows;
        while below.len() > FANOUT {
            below = below.chunks(FANOUT).map(union).collect();
            levels.push(below.clone());
        }
        Self { levels }
    }

    /// Calls `each` with the tiles, ascending, whose rows meet `wanted.0..=wanted.1`.
    pub(crate) fn meeting(
        &self,
        tiles: &[Bounds],
        wanted: (u64, u64),
        each: &mut dyn FnMut(usize),
    ) {
        let n_top = self.levels.last().map_or(tiles.len(), Vec::len);
        self.descend(self.levels.len(), 0..n_top, tiles, wanted, each);
    }

    fn descend(
        &self,
        level: usize,
        range: std::ops::Range<usize>,
        tiles: &[Bounds],
        wanted: (u64, u64),
        each: &mut dyn FnMut(usize),
    ) {
        let meets = |rows: (u64, u64)| rows.0 <= wanted.1 && rows.1 >= wanted.0;
        let Some(below) = level.checked_sub(1) else {
            range.filter(|&tile| meets(tiles[tile].rows)).for_each(each);
            return;
        };
        let n_below = below.checked_sub(1).map_or(tiles.len(), |lower| self.levels[lower].len());
        for idx in range {
            if meets(self.levels[below][idx]) {
                self.descend(
                    below,
                    idx * FANOUT..n_below.min((idx + 1) * FANOUT),
                    tiles,
                    wanted,
                    each,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(rows in prop::collection::vec((0_u64..500, 0_u64..60), 0..700), first in 0_u64..600, n in 0_u64..80) {
            let tiles: Vec<_> =
                rows.iter().map(|&(low, n)| Bounds { rows: (low, low + n), columns: (0, 0) }).collect();
            let last = first + n;
            let mut found = Vec::new();
            RowTree::new(&tiles).meeting(&tiles, (first, last), &mut |tile| found.push(tile));
            let scan: Vec<_> =
                (0..tiles.len()).filter(|&idx| tiles[idx].rows.0 <= last && tiles[idx].rows.1 >= first).collect();
            prop_assert_eq!(found, scan);
        }
    }
}
