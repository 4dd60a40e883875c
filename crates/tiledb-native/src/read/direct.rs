//! Decoding straight into the caller's buffers, where the row indices say how many values each row has.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::chunks::{self, Chunk};
use super::plan::{Planned, TileWork};
use super::{ReadStats, Reader, Scratch};
use crate::csr::CsrBuffers;
use crate::datatype::Number;
use crate::error::{Error, Fault};
use crate::fragment::Field;
use crate::request::Rows;
use crate::values::{copy_columns, copy_values};

/// Where a task writes: for each of its row ranges the columns and the values of its rows.
struct Target<'a> {
    columns: Vec<&'a mut [u32]>,
    values: Vec<&'a mut [f32]>,
}

/// Columns and values of the rows of one range.
type Slices<'a> = (&'a mut [u32], &'a mut [f32]);

/// Reads what was planned. Gives the plan back, with the buffers in any state, when a cell was found twice in an array that has no
/// duplicates.
pub(super) fn read(
    reader: &Reader,
    rows: &Rows,
    planned: Vec<Planned>,
    out: &mut CsrBuffers,
) -> Result<(Option<Vec<Planned>>, ReadStats), Error> {
    let counts: Vec<Vec<u32>> = planned.par_iter().with_max_len(1).map(count).collect();
    set_offsets(rows.total, &planned, &counts, out);
    let nnz = out.row_offsets.last().copied().unwrap_or(0);
    out.set_nnz(nnz);
    chunks::announce_all(reader, &planned, &[Field::Columns, Field::Values])?;
    let targets = split(&planned, out);
    let merge = AtomicBool::new(false);
    let must_merge = reader.keeps_latest().then_some(&merge);
    let stats: Result<Vec<ReadStats>, Error> = planned
        .par_iter()
        .zip(counts)
        .zip(targets)
        .with_max_len(1)
        .map(|((planned, counts), target)| {
            reader
                .with_scratch(|scratch| fill(reader, planned, &counts, target, scratch, must_merge))
        })
        .collect();
    let mut total = ReadStats::default();
    stats?.into_iter().for_each(|one| total.add(one));
    let again = merge.load(Ordering::Relaxed).then_some(planned);
    Ok((again, total))
}

/// Values of each of a task's rows.
fn count(planned: &Planned) -> Vec<u32> {
    let mut counts = vec![0; planned.task.n_rows()];
    for work in &planned.works {
        for part in &work.parts {
            let starts = work.index.starts(part.found);
            counts[part.task_row..]
                .iter_mut()
                .zip(starts.windows(2))
                .for_each(|(count, pair)| *count += pair[1] - pair[0]);
        }
    }
    counts
}

fn set_offsets(n_rows: usize, planned: &[Planned], counts: &[Vec<u32>], out: &mut CsrBuffers) {
    out.row_offsets.clear();
    out.row_offsets.resize(n_rows + 1, 0);
    for (planned, counts) in planned.iter().zip(counts) {
        super::put_counts(&planned.task, counts, &mut out.row_offsets);
    }
    let mut offset = 0;
    for next in &mut out.row_offsets {
        offset += *next;
        *next = offset;
    }
}

/// Cuts the buffers into what each task writes.
fn split<'a>(planned: &[Planned], out: &'a mut CsrBuffers) -> Vec<Target<'a>> {
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (task_idx, planned) in planned.iter().enumerate() {
        let ranges = planned.task.out_rows.iter().enumerate();
        order.extend(ranges.map(|(idx, &out_row)| (out_row, task_idx, idx)));
    }
    order.sort_unstable();
    let mut slices: Vec<Vec<Option<Slices<'_>>>> =
        planned.iter().map(|planned| planned.task.wanted.iter().map(|_| None).collect()).collect();
    let mut columns = out.columns.as_mut_slice();
    let mut values = out.values.as_mut_slice();
    for (out_row, task, idx) in order {
        let n_rows = planned[task].task.bases[idx + 1] - planned[task].task.bases[idx];
        let len = out.row_offsets[out_row + n_rows] - out.row_offsets[out_row];
        let (head, tail) = columns.split_at_mut(len);
        let (value_head, value_tail) = values.split_at_mut(len);
        slices[task][idx] = Some((head, value_head));
        (columns, values) = (tail, value_tail);
    }
    let target = |slices: Vec<Option<Slices<'a>>>| {
        let (columns, values) = slices.into_iter().flatten().unzip();
        Target { columns, values }
    };
    slices.into_iter().map(target).collect()
}

/// Fills a task's part of the buffers.
fn fill(
    reader: &Reader,
    planned: &Planned,
    counts: &[u32],
    mut target: Target<'_>,
    scratch: &mut Scratch,
    must_merge: Option<&AtomicBool>,
) -> Result<ReadStats, Error> {
    let mut stats = ReadStats::default();
    // Where the next value of each row goes, in the slice of the row's range.
    let starts = row_starts(planned, counts);
    let mut next = [starts.clone(), starts.clone()];
    let mut rest = planned.works.as_slice();
    while !rest.is_empty() {
        let (works, after) =
            rest.split_at(chunks::batch_len(reader, rest, &[Field::Columns, Field::Values])?);
        let Scratch { bytes, decoder, columns, values, .. } = scratch;
        let mut next_part = [vec![0; works.len()], vec![0; works.len()]];
        chunks::for_each(
            reader,
            works,
            &[Field::Columns, Field::Values],
            (bytes, decoder),
            &mut stats,
            |chunk| {
                let of = usize::from(chunk.field == Field::Values);
                let work = &works[chunk.work];
                let cursor = Cursor {
                    planned,
                    work,
                    next: &mut next[of],
                    part: &mut next_part[of][chunk.work],
                };
                if chunk.field == Field::Columns {
                    cursor.columns(reader, &chunk, columns, &mut target.columns)
                } else {
                    let number = reader.fragments[work.fragment].layout.values.number;
                    cursor.values(&chunk, number, values, &mut target.values);
                    Ok(())
                }
            },
        )?;
        rest = after;
    }
    if !in_order(planned, counts, &starts, &mut target, must_merge.is_some())
        && let Some(merge) = must_merge
    {
        merge.store(true, Ordering::Relaxed);
    }
    Ok(stats)
}

fn row_starts(planned: &Planned, counts: &[u32]) -> Vec<usize> {
    let mut starts = Vec::with_capacity(counts.len());
    for pair in planned.task.bases.windows(2) {
        let mut at = 0;
        for &count in &counts[pair[0]..pair[1]] {
            starts.push(at);
            at += count as usize;
        }
    }
    starts
}

/// Where the cells of a tile go.
struct Cursor<'a> {
    planned: &'a Planned,
    work: &'a TileWork,
    next: &'a mut [usize],
    part: &'a mut usize,
}

impl Cursor<'_> {
    fn columns(
        self,
        reader: &Reader,
        chunk: &Chunk<'_>,
        buffer: &mut Vec<u32>,
        out: &mut [&mut [u32]],
    ) -> Result<(), Fault> {
        let fragment = &reader.fragments[self.work.fragment];
        let last = fragment
            .tiles(&reader.files)
            .map_err(|error| Fault::new(error.to_string()))?
            .bounds(self.work.tile)
            .columns
            .1;
        let number = fragment.layout.columns.number;
        self.copy(chunk, buffer, out, |range, to| {
            copy_columns(
                chunk.decoded,
                (chunk.cells.end - chunk.cells.start) as usize,
                number,
                range,
                last,
                to,
            )
        })
    }

    fn values(
        self,
        chunk: &Chunk<'_>,
        number: Number,
        buffer: &mut Vec<f32>,
        out: &mut [&mut [f32]],
    ) {
        let copied = self.copy(chunk, buffer, out, |range, to| {
            copy_values(
                chunk.decoded,
                (chunk.cells.end - chunk.cells.start) as usize,
                number,
                range,
                to,
            );
            Ok(())
        });
        debug_assert!(copied.is_ok(), "values of any bits are values");
    }

    /// Takes the wanted cells of `chunk` out by `take(range of the chunk, to)` and gives each row its own.
    fn copy<T: Copy + Default>(
        self,
        chunk: &Chunk<'_>,
        buffer: &mut Vec<T>,
        out: &mut [&mut [T]],
        mut take: impl FnMut(std::ops::Range<usize>, &mut [T]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Self { planned, work, next, part } = self;
        let mut fault = None;
        chunks::overlaps(&work.parts, part, &chunk.cells, |idx, cells| {
            let part = &work.parts[idx];
            let n_cells = (cells.end - cells.start) as usize;
            if buffer.len() < n_cells {
                buffer.resize(n_cells, T::default());
            }
            let first = (cells.start - chunk.cells.start) as usize;
            if let Err(error) = take(first..first + n_cells, &mut buffer[..n_cells]) {
                fault.get_or_insert(error);
                return;
            }
            let range = planned.task.bases.partition_point(|&base| base <= part.task_row) - 1;
            let starts = work.index.starts(part.found);
            let mut row = starts.partition_point(|&start| start <= cells.start) - 1;
            let mut from = &buffer[..n_cells];
            let mut cell = cells.start;
            while cell < cells.end {
                let end = starts[row + 1].min(cells.end);
                let (these, rest) = from.split_at((end - cell) as usize);
                let at = &mut next[part.task_row + row];
                out[range][*at..*at + these.len()].copy_from_slice(these);
                *at += these.len();
                (from, cell, row) = (rest, end, row + 1);
            }
        });
        fault.map_or(Ok(()), Err)
    }
}

/// Puts the columns of each row into ascending order where they are not. Returns whether none is there twice; unless `strict`,
/// that is not looked at.
fn in_order(
    planned: &Planned,
    counts: &[u32],
    starts: &[usize],
    target: &mut Target<'_>,
    strict: bool,
) -> bool {
    let mut distinct = true;
    for (range, pair) in planned.task.bases.windows(2).enumerate() {
        for row in pair[0]..pair[1] {
            let at = starts[row]..starts[row] + counts[row] as usize;
            let columns = &mut target.columns[range][at.clone()];
            if !columns.is_sorted() {
                super::sort_row(columns, &mut target.values[range][at]);
            }
            if strict && distinct {
                distinct = columns.windows(2).all(|pair| pair[0] != pair[1]);
            }
        }
    }
    distinct
}
