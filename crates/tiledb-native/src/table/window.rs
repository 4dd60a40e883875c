//! Windows: intervals of coordinates whose cells are read together.
//!
//! Tiles of one fragment do not overlap, and mostly those of several do not either. A window then
//! has one tile, or several small ones. If tiles overlap, a window has all tiles that meet it, and
//! a tile that meets two windows is decoded twice. A window ends only when its new tiles have at
//! least as many cells as those that began before it, so that this about doubles the work at most.

/// A tile that may have wanted cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WantedTile {
    /// Index of the fragment; later fragments have greater ones.
    pub(super) fragment: u32,
    pub(super) tile: u32,
    /// Its least and its greatest coordinate.
    pub(super) bounds: (u64, u64),
    pub(super) n_cells: u32,
}

/// An interval of coordinates, and the tiles that meet it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// The first and the last coordinate.
    pub(super) bounds: (u64, u64),
    /// Indices in the list of tiles.
    pub(super) tiles: Vec<u32>,
    /// Cells of the tiles.
    pub(super) n_cells: u64,
}

/// Splits all coordinates into windows of at least `target_cells` cells, if there are as many, for
/// `tiles` sorted by their least coordinate.
pub(super) fn windows(tiles: &[WantedTile], target_cells: u64) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut open = Window { bounds: (0, u64::MAX), tiles: Vec::new(), n_cells: 0 };
    let (mut carried_cells, mut last_start) = (0, 0);
    for (idx, tile) in (0_u32..).zip(tiles) {
        let new_cells = open.n_cells - carried_cells;
        let start = tile.bounds.0;
        if new_cells >= target_cells.max(carried_cells) && start > last_start {
            let reaches = |idx: &&u32| tiles[**idx as usize].bounds.1 >= start;
            let carried: Vec<u32> = open.tiles.iter().filter(reaches).copied().collect();
            carried_cells = carried.iter().map(|idx| u64::from(tiles[*idx as usize].n_cells)).sum();
            let next = Window { bounds: (start, u64::MAX), tiles: carried, n_cells: carried_cells };
            open.bounds.1 = start - 1;
            windows.push(std::mem::replace(&mut open, next));
        }
        last_start = start;
        open.tiles.push(idx);
        open.n_cells += u64::from(tile.n_cells);
    }
    if !open.tiles.is_empty() {
        windows.push(open);
    }
    windows
}

/// Sorts and joins ranges of coordinates, cut to `within`; all bounds of the result are included.
pub(super) fn joined(
    ranges: Option<&[std::ops::Range<u64>]>,
    within: (u64, u64),
) -> Vec<(u64, u64)> {
    let Some(ranges) = ranges else { return vec![within] };
    let mut sorted: Vec<(u64, u64)> = ranges
        .iter()
        .filter(|range| range.start < range.end)
        .map(|range| (range.start.max(within.0), (range.end - 1).min(within.1)))
        .filter(|(first, last)| first <= last)
        .collect();
    sorted.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match joined.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_cover_everything_once(
            bounds in prop::collection::vec((0_u64..200, 0_u64..60, 1_u32..50), 0..60),
            target in 1_u64..200,
        ) {
            let mut tiles: Vec<_> = (0_u32..).zip(&bounds)
                .map(|(tile, &(low, n, n_cells))| WantedTile { fragment: 0, tile, bounds: (low, low + n), n_cells })
                .collect();
            tiles.sort_by_key(|tile| tile.bounds);
            let windows = windows(&tiles, target);
            for pair in windows.windows(2) {
                prop_assert_eq!(pair[0].bounds.1 + 1, pair[1].bounds.0);
            }
            if let (Some(first), Some(last)) = (windows.first(), windows.last()) {
                prop_assert_eq!((first.bounds.0, last.bounds.1), (0, u64::MAX));
            }
            let mut decoded = 0;
            for window in &windows {
                let meets = |tile: &&WantedTile| tile.bounds.0 <= window.bounds.1 && tile.bounds.1 >= window.bounds.0;
                let expected: Vec<_> = tiles.iter().filter(meets).map(|tile| tile.tile).collect();
                let found: Vec<_> = window.tiles.iter().map(|idx| tiles[*idx as usize].tile).collect();
                prop_assert_eq!(found, expected);
                decoded += window.n_cells;
            }
            let all: u64 = tiles.iter().map(|tile| u64::from(tile.n_cells)).sum();
            prop_assert!(decoded <= 3 * all, "{} cells of {}", decoded, all);
        }

        #[test]
        fn joined_ranges_hold_the_same(ranges in prop::collection::vec((0_u64..50, 0_u64..50), 0..10), low in 0_u64..50, n in 0_u64..50) {
            let ranges: Vec<_> = ranges.into_iter().map(|(start, end)| start..end).collect();
            let within = (low, low + n);
            let joined = joined(Some(&ranges), within);
            for pair in joined.windows(2) {
                prop_assert!(pair[0].1 + 1 < pair[1].0);
            }
            for coordinate in 0..101 {
                let wanted = ranges.iter().any(|range| range.contains(&coordinate)) && coordinate >= within.0 && coordinate <= within.1;
                prop_assert_eq!(joined.iter().any(|range| range.0 <= coordinate && coordinate <= range.1), wanted);
            }
        }
    }
}
