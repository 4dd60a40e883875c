//! Reads cells into buffers of each task, selects among them, and merges the tasks: for selections
//! of columns, for cells selected by time or by condition, and for arrays without duplicates whose
//! fragments overlap.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::chunks;
use super::work::{Planned, TileWork};
use super::{COLUMNS, Output, ROWS, ReadStats, Reader, Scratch, VALUES};
use crate::deletes::{DeletableCells, FieldCells};
use crate::error::Error;
use crate::fragment::Field;
use crate::request::{Columns, Rows};

/// Bytes of a cell in a task's rows, until all tasks are merged: column and value.
pub(super) const TASK_CELL_BYTES: u64 = 8;
/// Bytes of a cell while its task runs: place, value and age as collected, and its place in order.
pub(super) const COLLECTED_CELL_BYTES: u64 = 36;

/// Further bytes of a cell if cells may have been deleted: its fields as stored, its times, and
/// whether it was.
pub(super) const DELETABLE_CELL_BYTES: u64 = 44;

/// Cells collected by a task, in the order of the files.
#[derive(Debug, Default)]
struct Cells {
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
    /// The time of each cell, and the index of its tile in the order of fragments and tiles; only
    /// if the latest cell must be selected.
    ages: Vec<(u64, u32)>,
    /// Whether each cell was deleted; empty if none can be. A deleted cell still replaces earlier
    /// ones in its place.
    deleted: Vec<bool>,
}

/// The rows of a task.
#[derive(Debug)]
struct TaskRows {
    counts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
    /// Whether any place has several cells.
    has_repeats: bool,
}

/// Reads the planned rows, in the wanted columns.
pub(super) fn read(
    reader: &Reader,
    rows: &Rows,
    planned: &[Planned],
    columns: &Columns,
    mut out: Output<'_>,
) -> Result<ReadStats, Error> {
    let done: Result<Vec<_>, Error> = planned
        .par_iter()
        .with_max_len(1)
        .map(|planned| {
            Reader::timed(|stats| {
                let mut read = |with_ages| {
                    let cells = reader.with_scratch(|scratch| {
                        collect(reader, planned, (columns, with_ages), scratch, stats)
                    })?;
                    Ok::<_, Error>(by_row(&cells, planned.task.n_rows()))
                };
                // Nearly always every place has one cell, so that no times are needed to select.
                let rows = read(false)?;
                if rows.has_repeats && reader.keeps_latest() { read(true) } else { Ok(rows) }
            })
        })
        .collect();
    let mut stats = ReadStats::nothing();
    let done: Vec<_> = done?
        .into_iter()
        .map(|(rows, one)| {
            stats += one;
            rows
        })
        .collect();
    let ((), put) = Reader::timed(|_| {
        if !put(rows, planned, &done, &mut out) {
            reader.store_floats(&mut out);
            put(rows, planned, &done, &mut out);
        }
        Ok(())
    })?;
    stats += put;
    Ok(stats)
}

/// Merges the rows of all tasks. Returns false if a value does not fit the buffers' type.
fn put(rows: &Rows, planned: &[Planned], done: &[TaskRows], out: &mut Output<'_>) -> bool {
    out.begin(rows.total, |row_offsets| {
        for (planned, done) in planned.iter().zip(done) {
            super::put_counts(&planned.task, &done.counts, row_offsets);
        }
    });
    let mut fits = true;
    for (planned, done) in planned.iter().zip(done) {
        let mut from = 0;
        for (pair, &out_row) in planned.task.bases.windows(2).zip(&planned.task.out_rows) {
            let row_offsets = out.row_offsets();
            let at = row_offsets[out_row]..row_offsets[out_row + pair[1] - pair[0]];
            let end = from + at.len();
            fits &= out.put(at, &done.columns[from..end], &done.values[from..end]);
            from = end;
        }
    }
    fits
}

/// The cells of a task that count; with their ages if the latest of several in one place must be
/// selected.
fn collect(
    reader: &Reader,
    planned: &Planned,
    (columns, with_ages): (&Columns, bool),
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<Cells, Error> {
    let mut cells = Cells::default();
    let mut rest = planned.works.as_slice();
    let mut n_before = 0;
    while !rest.is_empty() {
        let (works, after) =
            rest.split_at(chunks::batch_len(reader, rest, &[Field::Columns, Field::Values])?);
        let offsets = offsets(works);
        let n_cells = offsets[works.len()];
        scratch.columns.clear();
        scratch.columns.resize(n_cells, 0);
        load(reader, works, &offsets, &[Field::Columns], scratch, stats)?;
        // The values of tiles without wanted columns are not even fetched.
        let chosen = |idx: usize| {
            let row_columns = &scratch.columns[offsets[idx]..offsets[idx + 1]];
            columns.is_all() || row_columns.iter().any(|&column| columns.position(column).is_some())
        };
        let chosen: Vec<bool> = (0..works.len()).map(chosen).collect();
        scratch.values.clear();
        scratch.values.resize(n_cells, 0.0);
        let deletes_cells = reader.deletes_cells();
        if with_ages || reader.is_by_time() || deletes_cells {
            scratch.times.clear();
            scratch.times.resize(n_cells, 0);
        }
        if deletes_cells {
            scratch.delete_times.clear();
            scratch.delete_times.resize(n_cells, 0);
            scratch.stored.clear();
            scratch.stored.resize(n_cells * reader.layout.values.number.size(), 0);
        }
        for (idx, work) in works.iter().enumerate().filter(|(idx, _)| chosen[*idx]) {
            let fragment = &reader.fragments[work.fragment];
            let mut fields = vec![Field::Values];
            let is_bounded = fragment.is_partly_after(reader.timestamp);
            if with_ages || is_bounded || fragment.deletes.needs_times() {
                fields.push(Field::Times);
            }
            if fragment.deletes.has_delete_times() {
                fields.push(Field::DeleteTimes);
            }
            load(reader, &works[idx..=idx], &offsets[idx..], &fields, scratch, stats)?;
            let number = with_ages.then_some((n_before + idx) as u32);
            choose(reader, work, (columns, number), (scratch, offsets[idx]), &mut cells);
        }
        n_before += works.len();
        rest = after;
    }
    Ok(cells)
}

/// The offset of each tile's wanted cells among all wanted cells, followed by their number.
fn offsets(works: &[TileWork]) -> Vec<usize> {
    let mut offsets = vec![0];
    let mut n_cells = 0;
    for work in works {
        n_cells +=
            work.parts.iter().map(|part| (part.cells.1 - part.cells.0) as usize).sum::<usize>();
        offsets.push(n_cells);
    }
    offsets
}

/// Decodes `fields` of the wanted cells of `works` into the scratch buffers; those of each tile
/// begin at `offsets`.
fn load(
    reader: &Reader,
    works: &[TileWork],
    offsets: &[usize],
    fields: &[Field],
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<(), Error> {
    let Scratch { bytes, decoding, columns, values, times, delete_times, stored, .. } = scratch;
    let mut next_part = vec![[0; Field::N]; works.len()];
    let mut filled: Vec<_> = (0..works.len()).map(|idx| [offsets[idx]; Field::N]).collect();
    chunks::for_each(reader, works, fields, (bytes, decoding), stats, |chunk| {
        let work = &works[chunk.work];
        let field = chunk.field.idx();
        let part = &mut next_part[chunk.work][field];
        chunks::overlaps(&work.parts, part, &chunk.cells, |_, cells| {
            let range = chunk.place(&cells);
            let at = &mut filled[chunk.work][field];
            let to = *at..*at + range.len();
            *at = to.end;
            match chunk.field {
                Field::Columns => {
                    let found = chunk.columns(reader, work)?;
                    found.check(&range)?;
                    found.copy(range, 0, &mut columns[to]);
                }
                Field::Values => {
                    if reader.fragments[work.fragment].deletes.fields().contains(&VALUES) {
                        let size = reader.layout.values.number.size();
                        let to = &mut stored[to.start * size..to.end * size];
                        chunk.copy_bytes(reader, work, range.clone(), to)?;
                    }
                    chunk.values(reader, work)?.copy(range, &mut values[to]);
                }
                Field::Times => chunk.copy_times(range, &mut times[to])?,
                Field::DeleteTimes => chunk.copy_times(range, &mut delete_times[to])?,
                Field::Rows => {}
            }
            Ok(())
        })
    })
}

/// Whether each wanted cell of a tile was not deleted; the cells begin at `scratch.1` in the
/// scratch buffers. `None` if none can have been.
fn kept(reader: &Reader, work: &TileWork, (scratch, at): (&Scratch, usize)) -> Option<Vec<bool>> {
    let fragment = &reader.fragments[work.fragment];
    let concerning = &fragment.deletes;
    if !concerning.is_any() || !reader.deletes_cells() {
        return None;
    }
    let n_cells = work.parts.iter().map(|part| (part.cells.1 - part.cells.0) as usize).sum();
    let (layout, compares) = (&fragment.layout, |field| concerning.fields().contains(&field));
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    let [row_bytes, column_bytes, value_bytes] =
        [&layout.rows, &layout.columns, &layout.values].map(|stored| stored.number.size());
    if compares(ROWS) {
        for part in &work.parts {
            let starts = work.index.starts(part.found);
            for (row, pair) in (part.found.first_row..).zip(starts.windows(2)) {
                let row = row.to_le_bytes();
                (pair[0]..pair[1]).for_each(|_| rows.extend_from_slice(&row[..row_bytes]));
            }
        }
    }
    if compares(COLUMNS) {
        for column in &scratch.columns[at..at + n_cells] {
            columns.extend_from_slice(&u64::from(*column).to_le_bytes()[..column_bytes]);
        }
    }
    let values = at * value_bytes..(at + n_cells) * value_bytes;
    let field = |idx, bytes, size| compares(idx).then(|| FieldCells::fixed(bytes, size));
    let fields = [
        field(ROWS, rows.as_slice(), row_bytes),
        field(COLUMNS, columns.as_slice(), column_bytes),
        field(VALUES, scratch.stored.get(values).unwrap_or_default(), value_bytes),
    ];
    let cells = DeletableCells {
        n_cells,
        fields: &fields,
        times: &scratch.times[at..at + n_cells],
        delete_times: &scratch.delete_times[at..at + n_cells],
    };
    Some(reader.deletes.kept(concerning, reader.timestamp, cells))
}

/// Appends to `cells` the wanted cells of a tile, which begin at `scratch.1` in the scratch
/// buffers, with their ages if the tile has a number.
fn choose(
    reader: &Reader,
    work: &TileWork,
    (columns, number): (&Columns, Option<u32>),
    scratch: (&Scratch, usize),
    cells: &mut Cells,
) {
    let kept = kept(reader, work, scratch);
    let (scratch, first) = scratch;
    let mut at = first;
    let fragment = &reader.fragments[work.fragment];
    let bounded = fragment.is_partly_after(reader.timestamp);
    // Otherwise cell times were not read and are not needed.
    let by_cell = fragment.footer.has_timestamps && (number.is_some() || bounded);
    let is_cropped = |row: u64, column: u32| {
        reader
            .crop
            .as_ref()
            .is_some_and(|[rows, of]| !rows.contains(&row) || !of.contains(&u64::from(column)))
    };
    for part in &work.parts {
        for (row, pair) in work.index.starts(part.found).windows(2).enumerate() {
            for _ in pair[0]..pair[1] {
                let here = at;
                at += 1;
                let Some(column) = columns.position(scratch.columns[here]) else { continue };
                if is_cropped(part.found.first_row + row as u64, scratch.columns[here]) {
                    continue;
                }
                let time = if by_cell { scratch.times[here] } else { fragment.folder.times.start };
                if bounded && time > reader.timestamp {
                    continue;
                }
                cells.rows.push((part.task_row + row) as u32);
                cells.columns.push(column);
                cells.values.push(scratch.values[here]);
                if let Some(number) = number {
                    cells.ages.push((time, number));
                }
                if reader.deletes_cells() {
                    cells.deleted.push(kept.as_ref().is_some_and(|kept| !kept[here - first]));
                }
            }
        }
    }
}

/// Sorts cells by row, then by column, without deleted ones. If ages are known, only the latest
/// cell of each place stays: of equal times the last fragment wins, in it the last tile, and in the
/// tile the first cell, as in libtiledb.
fn by_row(cells: &Cells, n_rows: usize) -> TaskRows {
    let mut starts = vec![0_usize; n_rows + 1];
    for &row in &cells.rows {
        starts[row as usize + 1] += 1;
    }
    for row in 0..n_rows {
        starts[row + 1] += starts[row];
    }
    let mut next = starts.clone();
    let mut order = vec![0_u32; cells.rows.len()];
    for (cell, &row) in cells.rows.iter().enumerate() {
        order[next[row as usize]] = cell as u32;
        next[row as usize] += 1;
    }
    let mut out = TaskRows {
        counts: Vec::with_capacity(n_rows),
        columns: Vec::with_capacity(order.len()),
        values: Vec::with_capacity(order.len()),
        has_repeats: false,
    };
    for pair in starts.windows(2) {
        let row = &mut order[pair[0]..pair[1]];
        let column = |cell: u32| cells.columns[cell as usize];
        let before = out.columns.len();
        if cells.ages.is_empty() {
            if !row.is_sorted_by_key(|&cell| column(cell)) {
                row.sort_by_key(|&cell| column(cell));
            }
        } else {
            row.sort_by_key(|&cell| (column(cell), Reverse(cells.ages[cell as usize])));
        }
        for (idx, &cell) in row.iter().enumerate() {
            let repeated = idx > 0 && column(row[idx - 1]) == column(cell);
            out.has_repeats |= repeated;
            let is_deleted = cells.deleted.get(cell as usize).is_some_and(|deleted| *deleted);
            if (cells.ages.is_empty() || !repeated) && !is_deleted {
                out.columns.push(column(cell));
                out.values.push(cells.values[cell as usize]);
            }
        }
        out.counts.push((out.columns.len() - before) as u32);
    }
    out
}
