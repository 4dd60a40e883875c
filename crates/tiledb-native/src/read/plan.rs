//! Which tiles hold the wanted rows, and where in them the rows' cells are.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use storage::Piece;

use super::fetch::announce;
use super::kept::{self, Kept};
use super::{Decoding, ReadStats, Reader, Scratch};
use crate::error::Error;
use crate::fragment::{Field, Fragment};
use crate::index_cache::Key;
use crate::request::{Columns, Rows};
use crate::row_index::{Builder, Found, TileIndex};
use crate::schema::Layout;
use crate::tile::{self, Chunks};

/// A task is about so many rows, or a row of space tiles where that is near.
pub(super) const TASK_ROWS: u64 = 2048;
/// Tasks are not made smaller than this to give every thread one.
const SMALLEST_TASK_ROWS: usize = 128;

/// Wanted rows that are read by one thread.
#[derive(Debug)]
pub(super) struct Task {
    /// Sorted and disjoint row ranges.
    pub(super) wanted: Vec<Range<u64>>,
    /// Where in [`Rows::wanted`] the first of them comes from, and how many rows into it this task's part begins.
    pub(super) out_rows: Vec<usize>,
    /// For each range the number of its first row among the task's, and the number of all rows.
    pub(super) bases: Vec<usize>,
}

impl Task {
    fn new(parts: Vec<(Range<u64>, usize)>) -> Self {
        let mut bases = vec![0];
        let mut n_rows = 0;
        for (rows, _) in &parts {
            n_rows += (rows.end - rows.start) as usize;
            bases.push(n_rows);
        }
        let (wanted, out_rows) = parts.into_iter().unzip();
        Self { wanted, out_rows, bases }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.bases.last().copied().unwrap_or(0)
    }

    /// Cuts the task in two halves of about as many rows.
    fn halves(&self) -> [Self; 2] {
        let half = self.n_rows() / 2;
        let mut parts = [Vec::new(), Vec::new()];
        for ((rows, &out_row), &base) in self.wanted.iter().zip(&self.out_rows).zip(&self.bases) {
            let cut = (rows.start + half.saturating_sub(base) as u64).min(rows.end);
            if rows.start < cut {
                parts[0].push((rows.start..cut, out_row));
            }
            if cut < rows.end {
                parts[1].push((cut..rows.end, out_row + (cut - rows.start) as usize));
            }
        }
        parts.map(Self::new)
    }
}

/// Cuts the wanted rows at the borders of space tiles, and further where there are fewer tasks than threads.
pub(super) fn tasks(rows: &Rows, layout: &Layout) -> Vec<Task> {
    let unit = match layout.extent_rows {
        Some(extent) if extent <= 2 * TASK_ROWS => extent * (TASK_ROWS / extent).max(1),
        _ => TASK_ROWS,
    };
    let mut tasks = Vec::new();
    let mut parts: Vec<(Range<u64>, usize)> = Vec::new();
    let mut current = u64::MAX;
    for wanted in &rows.wanted {
        let mut start = wanted.rows.start;
        while start < wanted.rows.end {
            let of = start.saturating_sub(layout.first_row) / unit;
            let border = (of + 1).saturating_mul(unit).saturating_add(layout.first_row);
            let end = wanted.rows.end.min(border);
            if of != current && !parts.is_empty() {
                tasks.push(Task::new(std::mem::take(&mut parts)));
            }
            current = of;
            parts.push((start..end, wanted.out_row + (start - wanted.rows.start) as usize));
            start = end;
        }
    }
    if !parts.is_empty() {
        tasks.push(Task::new(parts));
    }
    while tasks.len() < rayon::current_num_threads() {
        let Some(largest) = (0..tasks.len()).max_by_key(|&idx| tasks[idx].n_rows()) else { break };
        if tasks[largest].n_rows() < 2 * SMALLEST_TASK_ROWS {
            break;
        }
        let halves = tasks[largest].halves();
        tasks.splice(largest..=largest, halves);
    }
    tasks
}

/// A tile that holds wanted rows.
#[derive(Debug)]
pub(super) struct TileWork {
    pub(super) fragment: usize,
    pub(super) tile: usize,
    pub(super) index: Arc<TileIndex>,
    /// What of it is wanted, by ascending cell.
    pub(super) parts: Vec<Part>,
    /// Where only some of the tile's columns are wanted, and it was asked which cells those are: the wanted cells of each row.
    pub(super) kept: Option<Kept>,
}

impl TileWork {
    /// Calls `each` for every row of a part that has wanted cells among `cells`, with those: which of the part's rows it is, and its
    /// cells. All of `cells` are the part's.
    pub(super) fn rows(
        &self,
        part: &Part,
        cells: Range<u32>,
        mut each: impl FnMut(usize, Range<u32>),
    ) {
        let starts = self.index.starts(part.found);
        let kept = self.kept.as_ref().map(|kept| kept.of(part));
        let mut row = starts.partition_point(|&start| start <= cells.start) - 1;
        let mut cell = cells.start;
        while cell < cells.end {
            let end = starts[row + 1].min(cells.end);
            let wanted = match kept {
                Some(kept) => cell.max(kept[row].start)..end.min(kept[row].end),
                None => cell..end,
            };
            if wanted.start < wanted.end {
                each(row, wanted);
            }
            (cell, row) = (end, row + 1);
        }
    }

    /// How many wanted cells each row of a part has.
    fn counts(&self, part: &Part) -> impl Iterator<Item = u32> {
        let starts = self.index.starts(part.found);
        let kept = self.kept.as_ref().map(|kept| kept.of(part));
        starts.windows(2).enumerate().map(move |(row, pair)| match kept {
            Some(kept) => kept[row].end - kept[row].start,
            None => pair[1] - pair[0],
        })
    }
}

/// Rows of a run of a tile, all of one wanted range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) found: Found,
    /// The number of the first of the rows among the task's.
    pub(super) task_row: usize,
    /// The first cell, and one past the last.
    pub(super) cells: (u32, u32),
    /// How many rows the tile's parts before it have.
    pub(super) n_rows_before: usize,
}

/// A task and what it has to decode.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) task: Task,
    /// By fragment, then by tile.
    pub(super) works: Vec<TileWork>,
    /// Wanted cells of each of the task's rows, in all tiles. Where a selection of columns is not known to be a run of cells in each
    /// row, these are all cells.
    pub(super) counts: Vec<u32>,
    /// Whether those are the cells to deliver.
    pub(super) is_counted: bool,
}

impl Planned {
    pub(super) fn n_cells(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }
}

/// For each fragment that may hold rows of a task, by number, its tiles that may.
type Candidates = Vec<(usize, Vec<usize>)>;

/// Finds the tiles of all tasks, building the row indices that are missing.
pub(super) fn plan(
    reader: &Reader,
    tasks: Vec<Task>,
    columns: &Columns,
) -> Result<(Vec<Planned>, ReadStats), Error> {
    load_tiles(reader, &tasks, columns)?;
    announce_rows(reader, &tasks, columns)?;
    let planned: Result<Vec<_>, Error> = tasks
        .into_par_iter()
        .with_max_len(1)
        .map(|task| {
            Reader::timed(|stats| {
                let found = candidates(reader, &task, columns)?;
                reader.with_scratch(|scratch| {
                    plan_one(reader, task, (found, columns), scratch, stats)
                })
            })
        })
        .collect();
    let mut stats = ReadStats::default();
    let planned = planned?.into_iter().map(|(planned, one)| {
        stats.add(one);
        planned
    });
    let planned = planned.collect();
    Ok((planned, stats))
}

/// The wanted row ranges that lie in the bounds of a fragment; none where its columns are not wanted.
fn meeting<'a>(
    fragment: &Fragment,
    task: &'a Task,
    columns: &Columns,
) -> impl Iterator<Item = &'a Range<u64>> {
    let bound = |column: u64| u32::try_from(column).unwrap_or(u32::MAX);
    let bounds = fragment.footer.bounds;
    let bounds = bounds.filter(|[_, of]| columns.meet((bound(of.0), bound(of.1))));
    let (first, last) = bounds.map_or((0, 0), |[rows, _]| {
        let first = task.wanted.partition_point(|range| range.end <= rows.0);
        (first, first.max(task.wanted.partition_point(|range| range.start <= rows.1)))
    });
    task.wanted[first..last].iter()
}

/// Reads where the tiles are of all fragments that may hold rows of the tasks.
fn load_tiles(reader: &Reader, tasks: &[Task], columns: &Columns) -> Result<(), Error> {
    let meets = |fragment: &&Fragment| {
        tasks.iter().any(|task| meeting(fragment, task, columns).next().is_some())
    };
    let fragments: Vec<_> = reader.fragments.iter().filter(meets).collect();
    Fragment::load_tiles(&reader.files, &fragments)
}

/// The tiles whose bounding rectangles meet the wanted rows and columns.
fn candidates(reader: &Reader, task: &Task, columns: &Columns) -> Result<Candidates, Error> {
    let mut found = Vec::new();
    for (fragment_idx, fragment) in reader.fragments.iter().enumerate() {
        let mut meeting = meeting(fragment, task, columns).peekable();
        if meeting.peek().is_none() {
            continue;
        }
        let tiles = fragment.tiles(&reader.files)?;
        let mut wanted = Vec::new();
        for range in meeting {
            tiles.meeting(range.start, range.end - 1, &mut |tile| wanted.push(tile));
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|&tile| columns.is_all() || columns.meet(tiles.bounds(tile).columns));
        found.push((fragment_idx, wanted));
    }
    Ok(found)
}

/// Tells a storage that wants to know which row coordinates will be read.
fn announce_rows(reader: &Reader, tasks: &[Task], columns: &Columns) -> Result<(), Error> {
    if !reader.files.storage().coalesce().prefetch {
        return Ok(());
    }
    let found: Result<Vec<Candidates>, Error> =
        tasks.par_iter().with_max_len(1).map(|task| candidates(reader, task, columns)).collect();
    let keys = found?;
    let keys = keys
        .iter()
        .flatten()
        .flat_map(|(fragment, tiles)| tiles.iter().map(|&tile| (*fragment, tile)));
    let keys: BTreeSet<Key> = keys.collect();
    let known = reader.indices.get_all(keys.iter().copied());
    let mut pieces = Vec::new();
    for ((fragment, tile), _) in keys.into_iter().zip(known).filter(|(_, known)| known.is_none()) {
        let fragment = &reader.fragments[fragment];
        let range = fragment.tiles(&reader.files)?.bytes(Field::Rows, tile);
        pieces.push(Piece { file: &fragment.files[Field::Rows.idx()], range });
    }
    announce(&reader.files, &pieces);
    Ok(())
}

fn plan_one(
    reader: &Reader,
    task: Task,
    (candidates, columns): (Candidates, &Columns),
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<Planned, Error> {
    let mut works = Vec::new();
    for (fragment_idx, wanted) in candidates {
        let indices = indices(reader, fragment_idx, &wanted, scratch, stats)?;
        for (tile, index) in wanted.into_iter().zip(indices) {
            let parts = parts(&task, &index);
            if !parts.is_empty() {
                works.push(TileWork { fragment: fragment_idx, tile, index, parts, kept: None });
            }
        }
    }
    let is_counted = match columns.range() {
        Some(range) if reader.is_direct(false, true) => {
            kept::keep(reader, &mut works, &range, scratch, stats)?
        }
        _ => columns.is_all(),
    };
    let mut counts = vec![0; task.n_rows()];
    for work in &works {
        for part in &work.parts {
            let rows = counts[part.task_row..].iter_mut().zip(work.counts(part));
            rows.for_each(|(count, of_tile)| *count += of_tile);
        }
    }
    Ok(Planned { task, works, counts, is_counted })
}

/// What a tile has of a task's rows.
fn parts(task: &Task, index: &TileIndex) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut n_rows_before = 0;
    index.find(&task.wanted, |idx, found| {
        let starts = index.starts(found);
        let cells = (starts[0], starts[found.n_rows as usize]);
        if cells.0 < cells.1 {
            let task_row = task.bases[idx] + (found.first_row - task.wanted[idx].start) as usize;
            parts.push(Part { found, task_row, cells, n_rows_before });
            n_rows_before += found.n_rows as usize;
        }
    });
    parts
}

/// The row indices of `tiles` of a fragment, from the cache or built.
fn indices(
    reader: &Reader,
    fragment_idx: usize,
    tiles: &[usize],
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<Vec<Arc<TileIndex>>, Error> {
    let fragment = &reader.fragments[fragment_idx];
    let places = fragment.tiles(&reader.files)?;
    let mut found = reader.indices.get_all(tiles.iter().map(|&tile| (fragment_idx, tile)));
    let missing: Vec<usize> = (0..tiles.len()).filter(|&idx| found[idx].is_none()).collect();
    let batch_bytes = reader.files.storage().coalesce().batch_bytes;
    let mut rest = missing.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let n = rest.iter().take_while(|&&idx| {
            let range = places.bytes(Field::Rows, tiles[idx]);
            bytes += range.end - range.start;
            bytes <= batch_bytes
        });
        let (batch, after) = rest.split_at(n.count().max(1));
        let file = &fragment.files[Field::Rows.idx()];
        let pieces: Vec<_> = batch
            .iter()
            .map(|&idx| Piece { file, range: places.bytes(Field::Rows, tiles[idx]) })
            .collect();
        let at = reader.fetch(&pieces, &mut scratch.bytes, stats)?;
        for ((&idx, at), piece) in batch.iter().zip(at).zip(&pieces) {
            let Scratch { bytes, decoding: Decoding { decoder, .. }, .. } = scratch;
            let tile = tiles[idx];
            let index = build(reader, fragment_idx, tile, &bytes[at], decoder)
                .map_err(|fault| fault.in_file(reader.files.name(file), piece.range.start))?;
            let index = Arc::new(index);
            reader.indices.insert(
                (fragment_idx, tile),
                &index,
                index.memory_bytes(fragment.tile_cells(tile)),
            );
            stats.tiles_indexed += 1;
            let size = fragment.layout.rows.number.size();
            stats.bytes_decoded += (fragment.tile_cells(tile) * size) as u64;
            found[idx] = Some(index);
        }
        rest = after;
    }
    Ok(found.into_iter().flatten().collect())
}

fn build(
    reader: &Reader,
    fragment_idx: usize,
    tile: usize,
    bytes: &[u8],
    decoder: &mut crate::filter::Decoder,
) -> Result<TileIndex, crate::error::Fault> {
    let fragment = &reader.fragments[fragment_idx];
    let stored = &fragment.layout.rows;
    let size = stored.number.size();
    let chunks = Chunks::find(bytes, fragment.tile_cells(tile), size)?;
    let bounds = fragment
        .tiles(&reader.files)
        .map_err(|error| crate::error::Fault::new(error.to_string()))?
        .bounds(tile);
    let mut builder = Builder::new(bounds.rows);
    for chunk in 0..chunks.n_chunks() {
        let at = chunks.bytes(chunk);
        let part = &bytes[at.start as usize..at.end as usize];
        let add_run = |row: &[u8], n| builder.add_run(row, n);
        tile::runs_of_chunk(part, &stored.pipeline, size, add_run)
            .and_then(|is_done| {
                if is_done {
                    return Ok(());
                }
                let rows = tile::decode_chunk(part, &stored.pipeline, size, decoder)?;
                builder.add(rows, stored.number)
            })
            .map_err(|fault| crate::error::Fault { at: at.start.into(), what: fault.what })?;
    }
    Ok(builder.finish())
}
