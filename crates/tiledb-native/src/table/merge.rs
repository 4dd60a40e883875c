//! Which cells count of a table that is read as it is stored, whose dimensions are of any number
//! and type: of several cells with the same coordinates the latest.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter;

use rayon::slice::ParallelSliceMut as _;
use twox_hash::XxHash3_64;

use super::fetched::{DecodedTile, Fetched};
use super::read::Plan;
use super::select::Run;
use super::snapshot::Snapshot;
use super::window::WantedTile;
use crate::error::Error;

/// The cells that count.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The first cell of each tile, by fragment and tile, in the list of all cells.
    tiles: HashMap<(u32, u32), usize>,
    /// Whether each cell counts.
    counts: Vec<bool>,
}

/// Coordinates of a cell, as a hash, and its place in the list of all cells. Takes 16 bytes; among
/// 2^32 different coordinates, two have the same 96 bits in one table of 10^10.
type Cell = ([u32; 3], u32);

/// A tile whose cells are compared with others.
#[derive(Debug)]
struct ComparedTile {
    /// The place of its first cell in the list of all cells.
    first: usize,
    /// Fragment and tile.
    place: (u32, u32),
    /// The time of all cells, unless each has its own.
    time: u64,
    times: Vec<u64>,
}

/// What is collected of the cells.
#[derive(Debug, Default)]
struct Collected {
    kept: Kept,
    tiles: Vec<ComparedTile>,
    cells: Vec<Cell>,
}

impl Kept {
    /// The runs of cells of a tile that count.
    pub(super) fn runs(&self, (idx, tile): (u32, &WantedTile)) -> impl Iterator<Item = Run> {
        let first = self.tiles.get(&(tile.fragment, tile.tile)).copied();
        let counts = first.and_then(|first| self.counts.get(first..first + tile.n_cells as usize));
        let counts = counts.unwrap_or_default();
        let mut at = 0;
        iter::from_fn(move || {
            let start = at + counts[at..].iter().position(|counts| *counts)?;
            at = start + counts[start..].iter().take_while(|counts| **counts).count();
            Some(Run { tile: idx, cells: start as u32..at as u32 })
        })
    }

    /// Reads all coordinates, and finds the cells that count. Takes 17 bytes for each cell, and 8
    /// more if it has a time of its own; what is kept takes one.
    pub(super) fn find(snapshot: &Snapshot) -> Result<Self, Error> {
        let times = snapshot.times_field();
        let dimensions: Vec<usize> = (0..snapshot.n_dimensions).collect();
        let fields: Vec<usize> = dimensions.iter().copied().chain([times]).collect();
        let plan = Plan::new(snapshot, vec![(0, u64::MAX)], &fields)?;
        let mut collected = Collected::default();
        let mut buffer = Vec::new();
        for batch in plan.batches(&dimensions, rayon::current_num_threads()) {
            let tiles: Vec<u32> =
                batch.iter().flat_map(|window| window.tiles.iter().copied()).collect();
            let mut wanted: Vec<(u32, usize)> = Vec::new();
            for tile in &tiles {
                wanted.extend(dimensions.iter().map(|field| (*tile, *field)));
                let of_deletes = snapshot.fields_of_deletes(plan.tile(*tile));
                wanted.extend(of_deletes.map(|field| (*tile, field)));
                let has_times = snapshot.fragment(plan.tile(*tile)).footer.has_timestamps;
                wanted.extend(has_times.then_some((*tile, times)));
            }
            let fetched = plan.fetch(&wanted, &mut buffer)?;
            for tile in tiles {
                collected.add(snapshot, (tile, plan.tile(tile)), &fetched)?;
            }
        }
        Ok(collected.kept())
    }
}

impl Collected {
    /// Adds the cells of a tile.
    fn add(
        &mut self,
        snapshot: &Snapshot,
        (idx, tile): (u32, &WantedTile),
        fetched: &Fetched<'_>,
    ) -> Result<(), Error> {
        let fragment = snapshot.fragment(tile);
        let n_cells = tile.n_cells as usize;
        let first = self.kept.counts.len();
        let place = (tile.fragment, tile.tile);
        let times = if fragment.footer.has_timestamps {
            fetched.times(idx, snapshot.times_field())?
        } else {
            Vec::new()
        };
        let undeleted = fetched.undeleted(idx, &times)?;
        let is_bounded = fragment.is_partly_after(snapshot.timestamp);
        let last = if is_bounded { snapshot.timestamp } else { u64::MAX };
        let is_there = |cell: usize| times.get(cell).is_none_or(|time| *time <= last);
        let is_deleted = |cell: usize| undeleted.as_ref().is_some_and(|kept| !kept[cell]);
        self.reserve(snapshot, n_cells)?;
        self.kept.tiles.insert(place, first);
        self.kept.counts.extend((0..n_cells).map(|cell| is_there(cell) && !is_deleted(cell)));
        if snapshot.allows_duplicates {
            return Ok(());
        }
        // A deleted cell still replaces the earlier ones in its place.
        let hashes = hashes(snapshot, (idx, tile), fetched)?;
        let cells = hashes.into_iter().enumerate().filter(|(cell, _)| is_there(*cell));
        self.cells.extend(cells.map(|(cell, hash)| (hash, (first + cell) as u32)));
        let time = fragment.folder.times.start;
        self.tiles.push(ComparedTile { first, place, time, times });
        Ok(())
    }

    /// Makes room for the cells of a tile.
    fn reserve(&mut self, snapshot: &Snapshot, n_cells: usize) -> Result<(), Error> {
        let n_bytes = n_cells * (size_of::<Cell>() + 1);
        let too_large = || Error::Memory { file: snapshot.files.place(), n_bytes };
        let n_compared = if snapshot.allows_duplicates { 0 } else { n_cells };
        // The place of a cell has 32 bits.
        if n_compared > 0 && u32::try_from(self.kept.counts.len() + n_cells).is_err() {
            return Err(too_large());
        }
        self.kept.counts.try_reserve(n_cells).map_err(|_| too_large())?;
        // The last doubling would take as much as all cells together.
        let Self { cells, .. } = self;
        if cells.capacity() < cells.len() + n_compared {
            let n_more = n_compared.max(cells.len() / 8);
            cells.try_reserve_exact(n_more).map_err(|_| too_large())?;
        }
        Ok(())
    }

    /// Compares the cells with equal coordinates.
    fn kept(self) -> Kept {
        let Self { mut kept, tiles, mut cells } = self;
        cells.par_sort_unstable();
        // Of equal times the last fragment counts, in it the last tile, and in the tile the first
        // cell, as in libtiledb.
        let age = |cell: usize| {
            let tile = &tiles[tiles.partition_point(|tile| tile.first <= cell) - 1];
            let time = tile.times.get(cell - tile.first).copied().unwrap_or(tile.time);
            (time, tile.place, Reverse(cell))
        };
        for equal in cells.chunk_by(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
            let places = equal.iter().map(|(_, place)| *place as usize);
            let latest = places.clone().max_by_key(|place| age(*place));
            places.filter(|place| Some(*place) != latest).for_each(|place| {
                kept.counts[place] = false;
            });
        }
        kept
    }
}

/// A hash of the coordinates of each cell of a tile.
fn hashes(
    snapshot: &Snapshot,
    (idx, tile): (u32, &WantedTile),
    fetched: &Fetched<'_>,
) -> Result<Vec<[u32; 3]>, Error> {
    let n_cells = tile.n_cells as usize;
    let mut hashes: Vec<(u64, u64)> = vec![(1, 2); n_cells];
    for field in 0..snapshot.n_dimensions {
        let DecodedTile::Stored { bytes, offsets, .. } = fetched.decode(idx, field)? else {
            continue;
        };
        let cell_bytes = bytes.len() / n_cells.max(1);
        for (cell, (first, second)) in hashes.iter_mut().enumerate() {
            let range = match &offsets {
                Some(offsets) => offsets[cell]..offsets[cell + 1],
                None => cell * cell_bytes..(cell + 1) * cell_bytes,
            };
            // The length of a text is part of its hash.
            *first = XxHash3_64::oneshot_with_seed(*first, &bytes[range.clone()]);
            *second = XxHash3_64::oneshot_with_seed(*second, &bytes[range]);
        }
    }
    let words = |(first, second): (u64, u64)| [first as u32, (first >> 32) as u32, second as u32];
    Ok(hashes.into_iter().map(words).collect())
}
