//! Finds the tiles with wanted rows, and the rows' cells in them.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use storage::{Expected, Piece};

use super::chunks;
use super::fetch::announce;
use super::kept;
use super::task::Task;
use super::work::{Part, Planned, TileWork};
use super::{Decoding, ROWS, ReadStats, Reader, Scratch};
use crate::deletes::{DeletableCells, Deleted, FieldCells};
use crate::error::Error;
use crate::fragment::{Field, Fragment};
use crate::index_cache::Key;
use crate::request::Columns;
use crate::row_index::{Builder, Found, TileIndex};
use crate::tile::{self, Chunks};

/// The tiles that may contain rows of a task, by the index of their fragment.
type Candidates = Vec<(usize, Vec<usize>)>;

/// Finds the tiles of all tasks, and builds missing row indices.
pub(super) fn plan(
    reader: &Reader,
    tasks: Vec<Task>,
    columns: &Columns,
) -> Result<(Vec<Planned>, ReadStats), Error> {
    load_tiles(reader, &tasks, columns)?;
    announce_tiles(reader, &tasks, columns, Expected::Now)?;
    plan_all(reader, tasks, columns)
}

/// Number of cells of all columns in the rows of tasks, whose tiles' row coordinates alone are
/// read. Each cell must be a value of its own, unless its row was deleted as a whole.
pub(super) fn n_cells(reader: &Reader, tasks: Vec<Task>) -> Result<u64, Error> {
    let (columns, _) = Columns::new(&csr::ColumnSelection::All, reader.layout.shape[1])?;
    load_tiles(reader, &tasks, &columns)?;
    let (planned, _) = plan_all(reader, tasks, &columns)?;
    let counts = planned.iter().flat_map(|planned| &planned.counts);
    Ok(counts.map(|count| u64::from(*count)).sum())
}

fn plan_all(
    reader: &Reader,
    tasks: Vec<Task>,
    columns: &Columns,
) -> Result<(Vec<Planned>, ReadStats), Error> {
    let planned: Result<Vec<_>, Error> = tasks
        .into_par_iter()
        .with_max_len(1)
        .map(|task| {
            Reader::timed(|stats| {
                let found = candidates(reader, &task, columns)?;
                let wanted = (found, columns);
                reader.with_scratch(|scratch| plan_one(reader, task, wanted, scratch, stats))
            })
        })
        .collect();
    let mut stats = ReadStats::nothing();
    let planned = planned?.into_iter().map(|(planned, one)| {
        stats += one;
        planned
    });
    let planned = planned.collect();
    Ok((planned, stats))
}

/// The wanted row ranges within the bounds of a fragment; none if its columns are not wanted.
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

/// Reads the tiles' places of all fragments that may contain rows of the tasks.
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

/// Announces to a storage with prefetching what a read will want, before its rows are found: first
/// the row coordinates of all tiles without a row index, then for each task these tiles and the
/// wanted chunks of the others, in the order in which they will be read. A few of the tiles may
/// turn out to have none of the wanted rows, but waiting for the row coordinates would cost another
/// round. Not announced are times of cells, values that depend on the columns found, and a second
/// pass over the cells, because values do not fit the buffers or rows are unordered.
pub(super) fn announce_tiles(
    reader: &Reader,
    tasks: &[Task],
    columns: &Columns,
    read: Expected,
) -> Result<(), Error> {
    if !reader.files.storage().coalesce().prefetches() {
        return Ok(());
    }
    let fields = announced_fields(columns);
    let of_task = |task: &Task| {
        let (works, unknown) = known(reader, task, candidates(reader, task, columns)?);
        let chunks: Result<Vec<_>, Error> =
            fields.iter().map(|&field| chunks::to_fetch(reader, &works, field)).collect();
        Ok((unknown, chunks?))
    };
    let by_task: Result<Vec<(Vec<Key>, Vec<_>)>, Error> =
        tasks.par_iter().with_max_len(1).map(of_task).collect();
    let by_task = by_task?;
    let unknown: BTreeSet<Key> = by_task.iter().flat_map(|(keys, _)| keys).copied().collect();
    let piece = |(fragment, tile): Key, field: Field| {
        let fragment = &reader.fragments[fragment];
        let range = fragment.tiles(&reader.files)?.bytes(field, tile);
        Ok::<_, Error>(Piece { file: &fragment.files[field.idx()], range })
    };
    let mut pieces = Vec::new();
    for &key in &unknown {
        pieces.push(piece(key, Field::Rows)?);
    }
    // Tiles on the border of two tasks are in both.
    let (mut left, mut seen) = (unknown, HashSet::new());
    for (keys, chunks) in by_task {
        let keys: Vec<Key> = keys.into_iter().filter(|key| left.remove(key)).collect();
        for (&field, mut of_field) in fields.iter().zip(chunks) {
            for &key in &keys {
                of_field.push(piece(key, field)?);
            }
            of_field.retain(|piece| seen.insert((piece.file, piece.range.clone())));
            of_field.sort_by(|a, b| (a.file, a.range.start).cmp(&(b.file, b.range.start)));
            pieces.append(&mut of_field);
        }
    }
    announce(&reader.files, &pieces, read);
    Ok(())
}

/// The fields that are read of every tile: if only some columns are wanted, they decide which
/// tiles' values are.
fn announced_fields(columns: &Columns) -> &'static [Field] {
    if columns.is_all() { &[Field::Columns, Field::Values] } else { &[Field::Columns] }
}

/// The tiles of a task whose row indices are known, and those without one. Reads nothing.
fn known(reader: &Reader, task: &Task, candidates: Candidates) -> (Vec<TileWork>, Vec<Key>) {
    let (mut works, mut unknown) = (Vec::new(), Vec::new());
    for (fragment, tiles) in candidates {
        let kept = kept_rows(reader, fragment, task);
        let indices = reader.indices.get_all(tiles.iter().map(|&tile| (fragment, tile)));
        for (tile, index) in tiles.into_iter().zip(indices) {
            let key = (fragment, tile);
            let Some(index) = index else {
                unknown.push(key);
                continue;
            };
            let parts = parts(task, &index, kept.as_deref());
            if !parts.is_empty() {
                works.push(TileWork::new(key, index, parts));
            }
        }
    }
    (works, unknown)
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
        let kept = kept_rows(reader, fragment_idx, &task);
        let indices = indices(reader, fragment_idx, &wanted, scratch, stats)?;
        for (tile, index) in wanted.into_iter().zip(indices) {
            let parts = parts(&task, &index, kept.as_deref());
            if !parts.is_empty() {
                works.push(TileWork::new((fragment_idx, tile), index, parts));
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

/// Whether each of a task's rows was not deleted from a fragment, if whole rows may have been.
fn kept_rows(reader: &Reader, fragment: usize, task: &Task) -> Option<Vec<bool>> {
    let fragment = &reader.fragments[fragment];
    if reader.deleted != Deleted::Rows || !fragment.deletes.is_any() {
        return None;
    }
    let size = fragment.layout.rows.number.size();
    let mut stored = Vec::with_capacity(task.n_rows() * size);
    for row in task.wanted.iter().flat_map(Clone::clone) {
        stored.extend_from_slice(&row.to_le_bytes()[..size]);
    }
    let mut fields = [None; 3];
    fields[ROWS] = Some(FieldCells::fixed(&stored, size));
    let n_cells = task.n_rows();
    let rows = DeletableCells { n_cells, fields: &fields, times: &[], delete_times: &[] };
    Some(reader.deletes.kept(&fragment.deletes, reader.timestamp, rows))
}

/// The parts of a tile that belong to a task's rows, of these only those that are `kept`.
fn parts(task: &Task, index: &TileIndex, kept: Option<&[bool]>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut n_rows_before = 0;
    let mut add = |found: Found, task_row: usize| {
        let starts = index.starts(found);
        let cells = (starts[0], starts[found.n_rows as usize]);
        if cells.0 < cells.1 {
            parts.push(Part { found, task_row, cells, n_rows_before });
            n_rows_before += found.n_rows as usize;
        }
    };
    index.find(&task.wanted, |idx, found| {
        let task_row = task.bases[idx] + (found.first_row - task.wanted[idx].start) as usize;
        let Some(kept) = kept else { return add(found, task_row) };
        let mut at = 0;
        for run in kept[task_row..task_row + found.n_rows as usize].chunk_by(|a, b| a == b) {
            if run[0] {
                add(found.part(at, run.len()), task_row + at);
            }
            at += run.len();
        }
    });
    parts
}

/// The row indices of `tiles` of a fragment, from the cache or newly built.
pub(super) fn indices(
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
            let size = fragment.layout.rows.number.size();
            *stats += ReadStats::of_decoded(0, (fragment.tile_cells(tile) * size) as u64);
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
            .map_err(|fault| fault.moved_to(at.start.into()))?;
    }
    Ok(builder.finish())
}
