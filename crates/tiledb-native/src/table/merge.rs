//! Which cells count of a table that is read as it is stored, whose dimensions are of any number
//! and type: of several cells with the same coordinates the latest.

use std::collections::HashMap;

use super::fetched::{DecodedTile, Fetched};
use super::read::Plan;
use super::select::Run;
use super::snapshot::Snapshot;
use super::window::WantedTile;
use crate::error::Error;

/// The cells that count, of each tile by fragment and tile.
#[derive(Debug, Default)]
pub(super) struct Kept {
    cells: HashMap<(u32, u32), Vec<std::ops::Range<u32>>>,
}

/// A cell, and its time.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    time: u64,
    /// Fragment and tile.
    tile: (u32, u32),
    cell: u32,
    is_deleted: bool,
}

impl Kept {
    /// The runs of cells of a tile that count.
    pub(super) fn runs(&self, (idx, tile): (u32, &WantedTile)) -> impl Iterator<Item = Run> {
        let runs = self.cells.get(&(tile.fragment, tile.tile)).into_iter().flatten();
        runs.map(move |cells| Run { tile: idx, cells: cells.clone() })
    }

    /// Reads all coordinates, and finds the cells that count. Takes their memory.
    pub(super) fn find(snapshot: &Snapshot) -> Result<Self, Error> {
        let times = snapshot.times_field();
        let dimensions: Vec<usize> = (0..snapshot.n_dimensions).collect();
        let mut fields: Vec<usize> = dimensions.iter().copied().chain([times]).collect();
        for fragment in &snapshot.fragments {
            fields.extend(fragment.deletes.fields());
            let delete_times = fragment.deletes.has_delete_times();
            fields.extend(delete_times.then(|| snapshot.delete_times_field()));
        }
        fields.sort_unstable();
        fields.dedup();
        let plan = Plan::new(snapshot, vec![(0, u64::MAX)], &fields)?;
        let mut latest: HashMap<Vec<u8>, Candidate> = HashMap::new();
        let mut found = Self::default();
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
                let cells = candidates(snapshot, (tile, plan.tile(tile)), &fetched)?;
                if snapshot.allows_duplicates {
                    cells.filter(|cell| !cell.is_deleted).for_each(|cell| found.add(cell));
                    continue;
                }
                let keys = keys((tile, plan.tile(tile)), &dimensions, &fetched)?;
                for cell in cells {
                    let key = keys[cell.cell as usize].clone();
                    let last = latest.entry(key).or_insert(cell);
                    // At equal times the last fragment counts, in it the last tile, and in the tile
                    // the first cell, as in libtiledb.
                    if (last.time, last.tile) < (cell.time, cell.tile) {
                        *last = cell;
                    }
                }
            }
        }
        // A deleted cell still replaces the earlier ones in its place.
        let latest = latest.into_values().filter(|cell| !cell.is_deleted);
        let mut cells: Vec<Candidate> = latest.collect();
        cells.sort_unstable_by_key(|cell| (cell.tile, cell.cell));
        for cell in cells {
            found.add(cell);
        }
        Ok(found)
    }

    /// Adds a cell after those before it in its tile.
    fn add(&mut self, Candidate { tile, cell, .. }: Candidate) {
        let runs = self.cells.entry(tile).or_default();
        match runs.last_mut() {
            Some(run) if run.end == cell => run.end += 1,
            _ => runs.push(cell..cell + 1),
        }
    }
}

/// The cells of a tile that are not later than the opening time.
fn candidates(
    snapshot: &Snapshot,
    (idx, tile): (u32, &WantedTile),
    fetched: &Fetched<'_>,
) -> Result<impl Iterator<Item = Candidate> + use<>, Error> {
    let fragment = snapshot.fragment(tile);
    let start = fragment.folder.times.start;
    let times = if fragment.footer.has_timestamps {
        fetched.times(idx, snapshot.times_field())?
    } else {
        Vec::new()
    };
    let undeleted = fetched.undeleted(idx, &times)?;
    let last =
        if fragment.is_partly_after(snapshot.timestamp) { snapshot.timestamp } else { u64::MAX };
    let place = (tile.fragment, tile.tile);
    let cells = (0..tile.n_cells).map(move |cell| {
        let time = times.get(cell as usize).copied().unwrap_or(start);
        let is_deleted = undeleted.as_ref().is_some_and(|kept| !kept[cell as usize]);
        Candidate { time, tile: place, cell, is_deleted }
    });
    Ok(cells.filter(move |cell| cell.time <= last))
}

/// The coordinates of each cell of a tile, as bytes that are equal if they are.
fn keys(
    (idx, tile): (u32, &WantedTile),
    dimensions: &[usize],
    fetched: &Fetched<'_>,
) -> Result<Vec<Vec<u8>>, Error> {
    let n_cells = tile.n_cells as usize;
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(); n_cells];
    for field in dimensions {
        let DecodedTile::Stored { bytes, offsets, .. } = fetched.decode(idx, *field)? else {
            continue;
        };
        let cell_bytes = bytes.len() / n_cells.max(1);
        for (cell, key) in keys.iter_mut().enumerate() {
            let range = match &offsets {
                Some(offsets) => offsets[cell]..offsets[cell + 1],
                None => cell * cell_bytes..(cell + 1) * cell_bytes,
            };
            key.extend((range.len() as u64).to_le_bytes());
            key.extend_from_slice(&bytes[range]);
        }
    }
    Ok(keys)
}
