//! Reads of a table: batches of windows, each fetched together and decoded by many threads.

use rayon::prelude::*;

use super::column::TableColumn;
use super::fetched::Fetched;
use super::form::DIMENSION;
use super::fragment::TableFragment;
use super::merge::Kept;
use super::select::{Run, Wanted};
use super::snapshot::{Column, Snapshot};
use super::window::{WantedTile, Window, windows};
use crate::error::Error;

/// Cells of a window, if there are as many.
const WINDOW_CELLS: u64 = 1 << 16;
/// Cells of a batch for each thread.
const BATCH_CELLS: u64 = 1 << 18;
/// Bytes of a batch for each thread and in all, once its columns are decoded: what a read takes
/// beside its result, together with as many bytes as they have in the files. A tile is decoded as a
/// whole, so a window with larger tiles is a batch of its own.
const BATCH_BYTES: u64 = 16 << 20;
const MOST_BATCH_BYTES: u64 = 128 << 20;

/// A read that is planned: its tiles and windows.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    snapshot: &'a Snapshot,
    ranges: Vec<(u64, u64)>,
    tiles: Vec<WantedTile>,
    windows: Vec<Window>,
    /// The cells that count, if others are stored, too.
    kept: Option<&'a Kept>,
}

/// Memory that the batches of a read use one after another.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Filtered bytes.
    buffer: Vec<u8>,
    /// The selected cells.
    runs: Vec<Run>,
}

fn empty(columns: &[(usize, &Column)]) -> Vec<TableColumn> {
    columns.iter().map(|(_, column)| TableColumn::empty(column)).collect()
}

impl<'a> Plan<'a> {
    /// Plans to read the rows in `ranges`, which are sorted and disjoint, all bounds included; also
    /// loads the places of `fields`, and of those that deletes compare.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        ranges: Vec<(u64, u64)>,
        fields: &[usize],
    ) -> Result<Self, Error> {
        let meets = |bounds: (u64, u64)| {
            let at = ranges.partition_point(|range| range.1 < bounds.0);
            ranges.get(at).is_some_and(|range| range.0 <= bounds.1)
        };
        let met: Vec<&TableFragment> = snapshot
            .fragments
            .iter()
            .filter(|fragment| fragment.bounds.is_some_and(meets))
            .collect();
        let of_deletes = met.iter().flat_map(|fragment| snapshot.fields_compared(fragment));
        let mut fields: Vec<usize> = fields.iter().copied().chain(of_deletes).collect();
        fields.sort_unstable();
        fields.dedup();
        TableFragment::load(&snapshot.files, &met, &fields)?;
        let mut tiles = Vec::new();
        for (idx, fragment) in (0_u32..).zip(&snapshot.fragments) {
            for (tile, &bounds) in fragment.tiles().iter().enumerate() {
                if meets(bounds) {
                    let n_cells = fragment.tile_cells(tile);
                    tiles.push(WantedTile { fragment: idx, tile: tile as u32, bounds, n_cells });
                }
            }
        }
        tiles.sort_by_key(|tile| tile.bounds);
        let windows = windows(&tiles, WINDOW_CELLS);
        Ok(Self { snapshot, ranges, tiles, windows, kept: None })
    }

    /// The same, which reads only the cells in `kept`.
    pub(super) fn with_kept(self, kept: Option<&'a Kept>) -> Self {
        Self { kept, ..self }
    }

    /// A tile of a window.
    pub(super) fn tile(&self, tile: u32) -> &WantedTile {
        &self.tiles[tile as usize]
    }

    /// Fetches fields of some tiles.
    pub(super) fn fetch<'b>(
        &'b self,
        wanted: &[(u32, usize)],
        buffer: &'b mut Vec<u8>,
    ) -> Result<Fetched<'b>, Error> {
        Fetched::read(self.snapshot, &self.tiles, wanted, buffer)
    }

    /// Reads columns: of each the index of its field, and the column itself.
    pub(super) fn read(&self, columns: &[(usize, &Column)]) -> Result<Vec<TableColumn>, Error> {
        let mut out = empty(columns);
        let mut memory = Memory::default();
        let fields: Vec<usize> = columns.iter().map(|(field, _)| *field).collect();
        for batch in self.batches(&fields, rayon::current_num_threads()) {
            self.append(batch, columns, &mut memory, &mut out)?;
        }
        Ok(out)
    }

    /// Reads the columns of a batch.
    pub(super) fn read_batch(
        &self,
        batch: &[Window],
        columns: &[(usize, &Column)],
        memory: &mut Memory,
    ) -> Result<Vec<TableColumn>, Error> {
        let mut out = empty(columns);
        self.append(batch, columns, memory, &mut out)?;
        Ok(out)
    }

    /// Appends the rows of a batch to columns.
    fn append(
        &self,
        batch: &[Window],
        columns: &[(usize, &Column)],
        Memory { buffer, runs }: &mut Memory,
        out: &mut [TableColumn],
    ) -> Result<(), Error> {
        runs.clear();
        self.select(batch, buffer, runs)?;
        let mut wanted: Vec<(u32, usize)> = Vec::new();
        let mut tiles: Vec<u32> = runs.iter().map(|run| run.tile).collect();
        tiles.sort_unstable();
        tiles.dedup();
        for (field, _) in columns {
            wanted.extend(tiles.iter().map(|tile| (*tile, *field)));
        }
        let fetched = Fetched::read(self.snapshot, &self.tiles, &wanted, buffer)?;
        let runs: &[Run] = runs;
        out.par_iter_mut()
            .zip(columns)
            .with_max_len(1)
            .try_for_each(|(out, (field, column))| out.append((column, *field), runs, &fetched))
    }

    /// Number of rows.
    pub(super) fn n_rows(&self) -> Result<u64, Error> {
        let (mut buffer, mut runs) = (Vec::new(), Vec::new());
        let mut n_rows = 0_u64;
        for batch in self.batches(&[], rayon::current_num_threads()) {
            runs.clear();
            self.select(batch, &mut buffer, &mut runs)?;
            n_rows +=
                runs.iter().map(|run| u64::from(run.cells.end - run.cells.start)).sum::<u64>();
        }
        Ok(n_rows)
    }

    /// Windows of which `fields` are read together, by `n_threads` threads.
    pub(super) fn batches<'b>(
        &'b self,
        fields: &'b [usize],
        n_threads: usize,
    ) -> impl Iterator<Item = &'b [Window]> {
        let n_threads = n_threads as u64;
        let most = Size {
            cells: BATCH_CELLS * n_threads,
            bytes: MOST_BATCH_BYTES.min(BATCH_BYTES * n_threads),
        };
        let size = |window: &Window| Size {
            cells: window.n_cells,
            bytes: window
                .tiles
                .iter()
                .map(|tile| self.decoded_bytes(*tile, fields))
                .fold(0, u64::saturating_add),
        };
        batches(&self.windows, most, size)
    }

    /// Bytes of `fields`, and of those that deletes compare, in a tile once decoded.
    fn decoded_bytes(&self, tile: u32, fields: &[usize]) -> u64 {
        let wanted = &self.tiles[tile as usize];
        let fragment = self.snapshot.fragment(wanted);
        let bytes = |field: usize| fragment.decoded_bytes(field, wanted.tile as usize);
        let of_deletes = self.snapshot.fields_compared(fragment);
        fields.iter().copied().chain(of_deletes).map(bytes).fold(0, u64::saturating_add)
    }

    /// Appends the selected cells of `batch`, by ascending coordinate.
    fn select(
        &self,
        batch: &[Window],
        buffer: &mut Vec<u8>,
        runs: &mut Vec<Run>,
    ) -> Result<(), Error> {
        let Self { snapshot, tiles, ranges, kept, .. } = self;
        let wanted = Wanted { snapshot, tiles, ranges, kept: *kept };
        let mut undecided: Vec<(u32, usize)> = Vec::new();
        let (mut fragments, mut fields) = (Vec::new(), vec![DIMENSION]);
        for tile in batch.iter().flat_map(|window| wanted.undecided(window)) {
            fragments.push(tiles[tile as usize].fragment);
            let needed = wanted.needed(tile);
            fields.extend_from_slice(&needed);
            undecided.extend(needed.into_iter().map(|field| (tile, field)));
        }
        fragments.sort_unstable();
        fragments.dedup();
        fields.sort_unstable();
        fields.dedup();
        let fragments: Vec<&TableFragment> =
            fragments.into_iter().map(|idx: u32| &snapshot.fragments[idx as usize]).collect();
        TableFragment::load(&snapshot.files, &fragments, &fields)?;
        let fetched = Fetched::read(snapshot, tiles, &undecided, buffer)?;
        let selected: Vec<Vec<Run>> = batch
            .par_iter()
            .with_max_len(1)
            .map(|window| wanted.select(window, &fetched))
            .collect::<Result<_, _>>()?;
        runs.extend(selected.into_iter().flatten());
        Ok(())
    }
}

/// The size of windows.
#[derive(Debug, Clone, Copy)]
struct Size {
    cells: u64,
    bytes: u64,
}

/// Splits windows into batches that exceed `most` by none, or by their only window.
fn batches(
    windows: &[Window],
    most: Size,
    size: impl Fn(&Window) -> Size,
) -> impl Iterator<Item = &[Window]> {
    let mut rest = windows;
    std::iter::from_fn(move || {
        let (mut cells, mut bytes) = (0_u64, 0_u64);
        let fits = |window: &&Window| {
            let size = size(window);
            cells = cells.saturating_add(size.cells);
            bytes = bytes.saturating_add(size.bytes);
            cells <= most.cells && bytes <= most.bytes
        };
        let n_windows = rest.iter().take_while(fits).count().max(1);
        let (batch, after) = rest.split_at_checked(n_windows)?;
        rest = after;
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::Arc;

    use storage::Files;
    use storage::MemoryStorage;

    use super::super::form::Indexing;
    use super::*;

    /// A batch has as many tiles as fit with all that is decoded of them.
    #[test]
    fn texts_that_only_deletes_compare_have_their_size() {
        let open = || {
            let stored =
                MemoryStorage::unpack(include_bytes!("../../tests/data/table-indexed.files"));
            let files = Files::new(Arc::new(stored));
            Snapshot::load(&files, u64::MAX, Indexing::AsStored).unwrap().0
        };
        let (bare, whole) = (open(), open());
        let all: Vec<usize> = (0..whole.columns.len()).collect();
        let sizes = |snapshot: &Snapshot, fields: &[usize]| {
            let plan = Plan::new(snapshot, vec![(0, u64::MAX)], fields).unwrap();
            (0..plan.tiles.len() as u32).map(|tile| plan.decoded_bytes(tile, &[])).collect()
        };
        let of_bare: Vec<u64> = sizes(&bare, &[]);
        assert_eq!(of_bare, sizes(&whole, &all) as Vec<u64>);
        // Offsets of 16 texts, times of deletion, and texts of six bytes.
        assert!(of_bare.iter().any(|bytes| *bytes > 16 * (8 + 6)), "{of_bare:?}");
    }

    proptest! {
        #[test]
        fn batches_are_as_large_as_they_may_be(
            sizes in prop::collection::vec((0_u64..20, 0_u64..200), 0..40),
            cells in 0_u64..60,
            bytes in 0_u64..600,
        ) {
            let windows: Vec<Window> = (0..)
                .zip(&sizes)
                .map(|(idx, (n_cells, _))| Window { bounds: (idx, idx), tiles: Vec::new(), n_cells: *n_cells })
                .collect();
            let size = |window: &Window| {
                let (cells, bytes) = sizes[window.bounds.0 as usize];
                Size { cells, bytes }
            };
            let fits = |batch: &[Window]| {
                let sizes = batch.iter().map(size);
                sizes.clone().map(|size| size.cells).sum::<u64>() <= cells
                    && sizes.map(|size| size.bytes).sum::<u64>() <= bytes
            };
            let mut rest = windows.as_slice();
            for batch in batches(&windows, Size { cells, bytes }, size) {
                prop_assert!(batch.len() == 1 || fits(batch));
                prop_assert!(batch.len() == rest.len() || !fits(&rest[..=batch.len()]));
                prop_assert_eq!(batch, &rest[..batch.len()]);
                rest = &rest[batch.len()..];
            }
            prop_assert!(rest.is_empty());
        }
    }
}
