//! Decoding straight into the caller's buffers, where the row indices say how many values each row has.
//!
//! Columns and values of a task are two *jobs*, which any two threads may do: more and smaller pieces of work than tasks are, so that
//! threads end at about the same time.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::chunks::{self, Chunk};
use super::plan::{Planned, Task, TileWork};
use super::{ReadStats, Reader, Scratch};
use crate::csr::CsrBuffers;
use crate::error::{Error, Fault};
use crate::fragment::Field;
use crate::request::Rows;

/// One field of the cells of a task.
struct Job<'a> {
    planned: &'a Planned,
    target: Target<'a>,
}

/// Where a job writes: for each of its task's row ranges the columns or the values of its rows.
enum Target<'a> {
    Columns(Vec<&'a mut [u32]>),
    Values(Vec<&'a mut [f32]>),
}

impl Job<'_> {
    fn field(&self) -> Field {
        match self.target {
            Target::Columns(_) => Field::Columns,
            Target::Values(_) => Field::Values,
        }
    }
}

/// Reads what was planned. Gives the plan back, with the buffers in any state, when a cell was found twice in an array that has no
/// duplicates.
pub(super) fn read(
    reader: &Reader,
    rows: &Rows,
    planned: Vec<Planned>,
    out: &mut CsrBuffers,
) -> Result<(Option<Vec<Planned>>, ReadStats), Error> {
    let ((), mut total) = reader.timed(|_| {
        set_offsets(rows.total, &planned, out);
        out.set_nnz(out.row_offsets.last().copied().unwrap_or(0));
        Ok(())
    })?;
    let (jobs, row_offsets) = jobs(reader, &planned, out);
    chunks::announce_all(reader, jobs.iter().map(|job| (job.planned, job.field())))?;
    let is_strict = reader.keeps_latest();
    let unordered = AtomicBool::new(false);
    // Unlike a parallel iterator over a slice, a bridge hands the jobs out in their order.
    let done: Result<Vec<ReadStats>, Error> = jobs
        .into_iter()
        .par_bridge()
        .map(|mut job| {
            let ((), stats) = reader.timed(|stats| {
                reader
                    .with_scratch(|scratch| fill(reader, &mut job, row_offsets, scratch, stats))?;
                if !is_ordered(&job, row_offsets, is_strict) {
                    unordered.store(true, Ordering::Relaxed);
                }
                Ok(())
            })?;
            Ok(stats)
        })
        .collect();
    done?.into_iter().for_each(|one| total.add(one));
    let is_done = !unordered.into_inner() || sort(&planned, out, is_strict);
    Ok(((!is_done).then_some(planned), total))
}

fn set_offsets(n_rows: usize, planned: &[Planned], out: &mut CsrBuffers) {
    out.row_offsets.clear();
    out.row_offsets.resize(n_rows + 1, 0);
    for planned in planned {
        super::put_counts(&planned.task, &planned.counts, &mut out.row_offsets);
    }
    let mut offset = 0;
    for next in &mut out.row_offsets {
        offset += *next;
        *next = offset;
    }
}

/// All that has to be done, and where rows begin in the buffers.
fn jobs<'a>(
    reader: &Reader,
    planned: &'a [Planned],
    out: &'a mut CsrBuffers,
) -> (Vec<Job<'a>>, &'a [usize]) {
    let CsrBuffers { row_offsets, columns, values, .. } = out;
    let columns = split(planned, row_offsets, columns).into_iter().map(Target::Columns);
    let values = split(planned, row_offsets, values).into_iter().map(Target::Values);
    let targets = planned.iter().zip(columns.zip(values));
    let mut jobs: Vec<_> = targets
        .flat_map(|(planned, (columns, values))| {
            [columns, values].map(|target| Job { planned, target })
        })
        .collect();
    // What takes longest first, for all threads to end together. But a storage far away has more to do with what lies side by side.
    if !reader.files.storage().coalesce().prefetch {
        jobs.sort_by_cached_key(|job| {
            Reverse((job.field() == Field::Values, job.planned.n_cells()))
        });
    }
    (jobs, row_offsets)
}

/// Cuts a buffer into the rows of each range of each task.
fn split<'a, T>(
    planned: &[Planned],
    row_offsets: &[usize],
    buffer: &'a mut [T],
) -> Vec<Vec<&'a mut [T]>> {
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (task_idx, planned) in planned.iter().enumerate() {
        let ranges = planned.task.out_rows.iter().enumerate();
        order.extend(ranges.map(|(idx, &out_row)| (out_row, task_idx, idx)));
    }
    order.sort_unstable();
    let mut slices: Vec<Vec<&mut [T]>> = Vec::new();
    for planned in planned {
        slices.push(planned.task.wanted.iter().map(|_| Default::default()).collect());
    }
    let mut rest = buffer;
    for (out_row, task, idx) in order {
        let n_rows = planned[task].task.bases[idx + 1] - planned[task].task.bases[idx];
        let len = row_offsets[out_row + n_rows] - row_offsets[out_row];
        (slices[task][idx], rest) = rest.split_at_mut(len);
    }
    slices
}

/// For each range of a task where its rows begin in the buffers, with the end of the last.
fn offsets_of<'a>(task: &'a Task, row_offsets: &'a [usize]) -> impl Iterator<Item = &'a [usize]> {
    let n_rows = task.bases.windows(2).map(|pair| pair[1] - pair[0]);
    task.out_rows.iter().zip(n_rows).map(|(&first, n_rows)| &row_offsets[first..=first + n_rows])
}

/// Fills a job's part of the buffers.
fn fill(
    reader: &Reader,
    job: &mut Job<'_>,
    row_offsets: &[usize],
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<(), Error> {
    let field = job.field();
    let Job { planned, target } = job;
    // Where the next cell of each row goes, in the slice of the row's range.
    let mut next: Vec<usize> = Vec::with_capacity(planned.task.n_rows());
    for offsets in offsets_of(&planned.task, row_offsets) {
        next.extend(offsets[..offsets.len() - 1].iter().map(|offset| offset - offsets[0]));
    }
    let mut next_part = vec![0; planned.works.len()];
    let buffers = (&mut scratch.bytes, &mut scratch.decoder);
    chunks::for_each(reader, &planned.works, &[field], buffers, stats, |chunk| {
        let work = &planned.works[chunk.work];
        let part = &mut next_part[chunk.work];
        let cursor = Cursor { planned, work, next: &mut next, part };
        match target {
            Target::Columns(out) => {
                let columns = chunk.columns(reader, work)?;
                chunks::overlaps(
                    &work.parts,
                    &mut cursor.part.clone(),
                    &chunk.cells,
                    |_, cells| columns.check(&chunk.place(&cells)),
                )?;
                cursor.rows(&chunk, |from, range, to| columns.copy(from, &mut out[range][to]))
            }
            Target::Values(out) => {
                let values = chunk.values(reader, work);
                cursor.rows(&chunk, |from, range, to| values.copy(from, &mut out[range][to]))
            }
        }
    })
}

/// Where the cells of a tile go.
struct Cursor<'a> {
    planned: &'a Planned,
    work: &'a TileWork,
    next: &'a mut [usize],
    part: &'a mut usize,
}

impl Cursor<'_> {
    /// Calls `each` for the wanted cells of `chunk` row by row: which of the chunk's they are, of which of the task's ranges, and
    /// which of the range's they become.
    fn rows(
        self,
        chunk: &Chunk<'_>,
        mut each: impl FnMut(Range<usize>, usize, Range<usize>),
    ) -> Result<(), Fault> {
        let Self { planned, work, next, part } = self;
        chunks::overlaps(&work.parts, part, &chunk.cells, |idx, cells| {
            let part = &work.parts[idx];
            let range = planned.task.bases.partition_point(|&base| base <= part.task_row) - 1;
            let starts = work.index.starts(part.found);
            let mut row = starts.partition_point(|&start| start <= cells.start) - 1;
            let mut cell = cells.start;
            while cell < cells.end {
                let end = starts[row + 1].min(cells.end);
                let at = &mut next[part.task_row + row];
                let to = *at..*at + (end - cell) as usize;
                *at = to.end;
                each(chunk.place(&(cell..end)), range, to);
                (cell, row) = (end, row + 1);
            }
            Ok(())
        })
    }
}

/// Whether the columns of each row ascend, strictly if `is_strict`; of values that is true.
fn is_ordered(job: &Job<'_>, row_offsets: &[usize], is_strict: bool) -> bool {
    let Target::Columns(ranges) = &job.target else { return true };
    offsets_of(&job.planned.task, row_offsets).zip(ranges).all(|(offsets, columns)| {
        offsets.windows(2).all(|pair| {
            let row = &columns[pair[0] - offsets[0]..pair[1] - offsets[0]];
            if is_strict { row.is_sorted_by(|a, b| a < b) } else { row.is_sorted() }
        })
    })
}

/// Puts the columns of each row into ascending order. Returns whether none is there twice; unless `is_strict`, that is not asked.
fn sort(planned: &[Planned], out: &mut CsrBuffers, is_strict: bool) -> bool {
    let CsrBuffers { row_offsets, columns, values, .. } = out;
    let columns = split(planned, row_offsets, columns);
    let values = split(planned, row_offsets, values);
    let tasks = planned.par_iter().zip(columns).zip(values).with_max_len(1);
    let is_distinct = tasks
        .map(|((planned, mut columns), mut values)| {
            sort_task(&planned.task, row_offsets, &mut columns, &mut values)
        })
        .reduce(|| true, |a, b| a && b);
    is_distinct || !is_strict
}

fn sort_task(
    task: &Task,
    row_offsets: &[usize],
    columns: &mut [&mut [u32]],
    values: &mut [&mut [f32]],
) -> bool {
    let mut is_distinct = true;
    for (offsets, (columns, values)) in
        offsets_of(task, row_offsets).zip(columns.iter_mut().zip(values))
    {
        for pair in offsets.windows(2) {
            let row = pair[0] - offsets[0]..pair[1] - offsets[0];
            let columns = &mut columns[row.clone()];
            if !columns.is_sorted() {
                super::sort_row(columns, &mut values[row]);
            }
            is_distinct = is_distinct && columns.is_sorted_by(|a, b| a < b);
        }
    }
    is_distinct
}
