//! Which cells of a window belong to the result, and in which order.

use std::cmp::Reverse;
use std::ops::Range;

use super::fetched::Fetched;
use super::form::{DIMENSION, Indexing};
use super::merge::Kept;
use super::snapshot::Snapshot;
use super::window::{WantedTile, Window};
use crate::error::Error;

/// Consecutive cells of one tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Index in the list of tiles.
    pub(super) tile: u32,
    pub(super) cells: Range<u32>,
}

/// A cell that may belong to the result.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    coordinate: u64,
    /// Its time, and the rank of its tile by fragment and place; all equal if the array allows
    /// duplicates.
    age: (u64, u32),
    tile: u32,
    cell: u32,
    is_deleted: bool,
}

/// The wanted cells of a read: the state, the tiles, and the sorted coordinates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) tiles: &'a [WantedTile],
    /// Sorted and disjoint, all bounds included.
    pub(super) ranges: &'a [(u64, u64)],
    /// The cells that count, if rows are not found by coordinates and others are stored, too.
    pub(super) kept: Option<&'a Kept>,
}

/// Tiles of a window that overlap one another, or a single one.
#[derive(Debug)]
struct Cluster {
    tiles: Vec<u32>,
    /// Whether all cells of its only tile belong to the result, in their order.
    is_whole: bool,
}

impl<'a> Wanted<'a> {
    fn tile(&self, tile: u32) -> &'a WantedTile {
        &self.tiles[tile as usize]
    }

    /// Groups the tiles of `window`, which are sorted by their least coordinate.
    fn clusters(&self, window: &Window) -> Vec<Cluster> {
        let mut clusters: Vec<Cluster> = Vec::new();
        let mut last = 0;
        for &tile in &window.tiles {
            let (first, end) = self.tile(tile).bounds;
            match clusters.last_mut() {
                Some(cluster) if first <= last => cluster.tiles.push(tile),
                _ => clusters.push(Cluster { tiles: vec![tile], is_whole: false }),
            }
            last = last.max(end);
        }
        for cluster in &mut clusters {
            cluster.is_whole = self.is_whole(&cluster.tiles, window);
            // At equal coordinates the cells of older fragments come first.
            cluster.tiles.sort_by_key(|tile| {
                let WantedTile { fragment, tile, .. } = *self.tile(*tile);
                (fragment, tile)
            });
        }
        clusters
    }

    /// Whether `tiles` is one tile whose cells all belong to the result and ascend, as far as its
    /// fragment's metadata show.
    fn is_whole(&self, tiles: &[u32], window: &Window) -> bool {
        let &[tile] = tiles else { return false };
        if self.snapshot.indexing == Indexing::AsStored {
            return true;
        }
        let tile = self.tile(tile);
        let fragment = self.snapshot.fragment(tile);
        let (first, last) = tile.bounds;
        let at = self.ranges.partition_point(|range| range.1 < first);
        let is_wanted =
            self.ranges.get(at).is_some_and(|range| range.0 <= first && last <= range.1);
        let may_repeat = fragment.footer.has_timestamps && !self.snapshot.allows_duplicates;
        is_wanted
            && first >= window.bounds.0
            && last <= window.bounds.1
            && !may_repeat
            && !fragment.is_partly_after(self.snapshot.timestamp)
            && !fragment.deletes.is_any()
            && self.snapshot.cells_ascend
    }

    /// The tiles of `window` whose coordinates are needed to select cells.
    pub(super) fn undecided(&self, window: &Window) -> impl Iterator<Item = u32> {
        let clusters = self.clusters(window).into_iter().filter(|cluster| !cluster.is_whole);
        clusters.flat_map(|cluster| cluster.tiles)
    }

    /// The fields that are needed to select cells of an undecided tile.
    pub(super) fn needed(&self, tile: u32) -> Vec<usize> {
        let tile = self.tile(tile);
        let mut fields = vec![DIMENSION];
        fields.extend(self.snapshot.fields_of_deletes(tile).filter(|field| *field != DIMENSION));
        fields.extend(self.needs_times(tile).then(|| self.snapshot.times_field()));
        fields
    }

    fn needs_times(&self, tile: &WantedTile) -> bool {
        let fragment = self.snapshot.fragment(tile);
        fragment.footer.has_timestamps
            && (!self.snapshot.allows_duplicates
                || fragment.deletes.needs_times()
                || fragment.is_partly_after(self.snapshot.timestamp))
    }

    /// Selects the cells of `window`, by ascending coordinate; `fetched` has the needed fields of
    /// its undecided tiles.
    pub(super) fn select(&self, window: &Window, fetched: &Fetched<'_>) -> Result<Vec<Run>, Error> {
        let mut runs = Vec::new();
        for cluster in self.clusters(window) {
            if cluster.is_whole {
                let tile = cluster.tiles[0];
                match self.kept {
                    Some(kept) => runs.extend(kept.runs((tile, self.tile(tile)))),
                    None => runs.push(Run { tile, cells: 0..self.tile(tile).n_cells }),
                }
            } else {
                self.merge(&cluster.tiles, window, fetched, &mut runs)?;
            }
        }
        Ok(runs)
    }

    /// Appends the cells of overlapping tiles, which are sorted by age.
    fn merge(
        &self,
        tiles: &[u32],
        window: &Window,
        fetched: &Fetched<'_>,
        runs: &mut Vec<Run>,
    ) -> Result<(), Error> {
        let mut found = Vec::new();
        for (rank, &tile) in (0_u32..).zip(tiles) {
            self.candidates((tile, rank), window, fetched, &mut found)?;
        }
        // At equal times the last fragment wins, in it the last tile, and in the tile the first
        // cell, as in libtiledb. The sort keeps the order of equal cells.
        let key = |candidate: &Candidate| (candidate.coordinate, Reverse(candidate.age));
        if !found.is_sorted_by_key(key) {
            found.sort_by_key(key);
        }
        if !self.snapshot.allows_duplicates {
            found.dedup_by_key(|candidate| candidate.coordinate);
        }
        // A deleted cell still replaces the earlier ones in its place.
        found.retain(|candidate| !candidate.is_deleted);
        for Candidate { tile, cell, .. } in found {
            match runs.last_mut() {
                Some(run) if run.tile == tile && run.cells.end == cell => run.cells.end += 1,
                _ => runs.push(Run { tile, cells: cell..cell + 1 }),
            }
        }
        Ok(())
    }

    /// Appends the cells of a tile that lie in the window and in a wanted range, and are not later
    /// than the opening time.
    fn candidates(
        &self,
        (tile, rank): (u32, u32),
        window: &Window,
        fetched: &Fetched<'_>,
        found: &mut Vec<Candidate>,
    ) -> Result<(), Error> {
        let wanted = self.tile(tile);
        let fragment = self.snapshot.fragment(wanted);
        let coordinates = fetched.coordinates(tile)?;
        let times = if self.needs_times(wanted) {
            fetched.times(tile, self.snapshot.times_field())?
        } else {
            Vec::new()
        };
        let kept = fetched.undeleted(tile, &times)?;
        let is_bounded = fragment.is_partly_after(self.snapshot.timestamp);
        let mut range = (1, 0);
        for (cell, coordinate) in (0_u32..).zip(coordinates) {
            if coordinate < window.bounds.0 || coordinate > window.bounds.1 {
                continue;
            }
            if coordinate < range.0 || coordinate > range.1 {
                let at = self.ranges.partition_point(|range| range.1 < coordinate);
                match self.ranges.get(at).filter(|range| range.0 <= coordinate) {
                    Some(next) => range = *next,
                    None => continue,
                }
            }
            let time = match times.get(cell as usize) {
                Some(time) => *time,
                None => fragment.folder.times.start,
            };
            if is_bounded && time > self.snapshot.timestamp {
                continue;
            }
            let age = if self.snapshot.allows_duplicates { (0, 0) } else { (time, rank) };
            let is_deleted = kept.as_ref().is_some_and(|kept| !kept[cell as usize]);
            found.push(Candidate { coordinate, age, tile, cell, is_deleted });
        }
        Ok(())
    }
}
