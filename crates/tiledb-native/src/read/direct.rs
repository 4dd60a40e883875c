//! Decodes straight into the caller's buffers, using the number of values of each row from the row
//! indices.
//!
//! Columns and values of a task are two *jobs*, which may run on different threads. Jobs are
//! smaller than tasks, so that threads end at about the same time.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use csr::CsrBuffers;
use rayon::prelude::*;

use super::chunks::{self, Chunk};
use super::target::{self, Target};
use super::task::Task;
use super::work::{Planned, TileWork};
use super::{Output, ReadStats, Reader, Scratch};
use crate::error::{Error, Fault};
use crate::fragment::Field;
use crate::request::{self, Rows};
use crate::values::{Columns, Position};

/// One field of the cells of a task.
struct Job<'a> {
    planned: &'a Planned,
    target: Target<'a>,
}

/// How a read ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// A cell occurred twice in an array without duplicates, or rows to be packed were unordered.
    Unordered,
    /// A value does not fit the buffers' type.
    Unfit,
}

/// Reads the planned rows; a range of columns as distances from its first. The buffers are in an
/// undefined state unless the outcome is `Done`.
pub(super) fn read(
    reader: &Reader,
    rows: &Rows,
    planned: &[Planned],
    columns: &request::Columns,
    mut out: Output<'_>,
) -> Result<(Outcome, ReadStats), Error> {
    let ((), mut total) = Reader::timed(|_| {
        out.begin(rows.total, |row_offsets| {
            for planned in planned {
                super::put_counts(&planned.task, &planned.counts, row_offsets);
            }
        });
        Ok(())
    })?;
    let is_strict = reader.keeps_latest();
    let (unordered, unfit) = (AtomicBool::new(false), AtomicBool::new(false));
    let (jobs, row_offsets) = jobs(reader, planned, &mut out);
    let first_column = columns.range().map_or(0, |range| range.start);
    // Unlike a parallel iterator over a slice, a bridge hands out the jobs in order.
    let done: Result<Vec<ReadStats>, Error> = jobs
        .into_iter()
        .par_bridge()
        .map(|mut job| {
            if unfit.load(Ordering::Relaxed) {
                return Ok(ReadStats::nothing());
            }
            let ((), stats) = Reader::timed(|stats| {
                let rows_and_first = (row_offsets, first_column);
                reader.with_scratch(|scratch| {
                    fill(reader, &mut job, rows_and_first, scratch, stats)
                })?;
                let Job { planned, target } = &job;
                if !target.is_ordered(&planned.task, row_offsets, is_strict) {
                    unordered.store(true, Ordering::Relaxed);
                }
                if !target.fits() {
                    unfit.store(true, Ordering::Relaxed);
                }
                Ok(())
            })?;
            Ok(stats)
        })
        .collect();
    done?.into_iter().for_each(|one| total += one);
    let outcome = match (unfit.into_inner(), unordered.into_inner(), out) {
        (true, ..) => Outcome::Unfit,
        (false, false, _) => Outcome::Done,
        (false, true, Output::Packed(_)) => Outcome::Unordered,
        (false, true, Output::Wide(out)) => {
            if sort(planned, out, is_strict) {
                Outcome::Done
            } else {
                Outcome::Unordered
            }
        }
    };
    Ok((outcome, total))
}

/// All jobs, with the offsets of their rows in the buffers.
fn jobs<'a>(
    reader: &Reader,
    planned: &'a [Planned],
    out: &'a mut Output<'_>,
) -> (Vec<Job<'a>>, &'a [usize]) {
    let (targets, row_offsets) = target::targets(planned, out);
    let targets = planned.iter().zip(targets);
    let mut jobs: Vec<_> = targets
        .flat_map(|(planned, targets)| targets.map(|target| Job { planned, target }))
        .collect();
    // The longest jobs come first, so that all threads end together. A remote storage is faster if
    // neighbouring jobs run together.
    if !reader.files.storage().coalesce().prefetches() {
        jobs.sort_by_cached_key(|job| {
            Reverse((job.target.field() == Field::Values, job.planned.n_cells()))
        });
    }
    (jobs, row_offsets)
}

/// Fills a job's part of the buffers, columns as distances from the first wanted one.
fn fill(
    reader: &Reader,
    job: &mut Job<'_>,
    (row_offsets, first_column): (&[usize], u32),
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<(), Error> {
    let field = job.target.field();
    let Job { planned, target } = job;
    // Where the next cell of each row goes, in the slice of the row's range.
    let mut next: Vec<usize> = Vec::with_capacity(planned.task.n_rows());
    for offsets in target::offsets_of(&planned.task, row_offsets) {
        next.extend(offsets[..offsets.len() - 1].iter().map(|offset| offset - offsets[0]));
    }
    let mut next_part = vec![0; planned.works.len()];
    let Scratch { bytes, decoding, columns: wide, narrow, values: floats, .. } = scratch;
    chunks::for_each(reader, &planned.works, &[field], (bytes, decoding), stats, |chunk| {
        let work = &planned.works[chunk.work];
        let part = &mut next_part[chunk.work];
        let cursor = Cursor { planned, work, next: &mut next, part };
        match target {
            Target::Columns(out) => {
                cursor.columns(&chunk, wide, out, (chunk.columns(reader, work)?, first_column))
            }
            Target::NarrowColumns(out) => {
                cursor.columns(&chunk, narrow, out, (chunk.columns(reader, work)?, first_column))
            }
            Target::Values(out) => {
                let values = chunk.values(reader, work)?;
                cursor.scatter(&chunk, floats, out, |from, to| {
                    values.copy(from, to);
                    Ok(())
                })
            }
            Target::Counts { values: out, fits } => {
                let values = chunk.values(reader, work)?;
                cursor.scatter(&chunk, narrow, out, |from, to| {
                    *fits &= values.copy_counts(from, to);
                    Ok(())
                })
            }
        }
    })
}

/// The destinations of a tile's cells.
struct Cursor<'a> {
    planned: &'a Planned,
    work: &'a TileWork,
    next: &'a mut [usize],
    part: &'a mut usize,
}

impl Cursor<'_> {
    /// Copies the wanted columns of `chunk`, each as its distance from `first`.
    fn columns<T: Position + Default>(
        self,
        chunk: &Chunk<'_>,
        buffer: &mut Vec<T>,
        out: &mut [&mut [T]],
        (columns, first): (Columns<'_>, u32),
    ) -> Result<(), Fault> {
        self.scatter(chunk, buffer, out, |from, to| {
            columns.check(&from)?;
            columns.copy(from, first, to);
            Ok(())
        })
    }

    /// Copies the wanted cells of `chunk` to the slices of the task's ranges. `convert` converts
    /// the cells of many rows at once: single rows are too short.
    fn scatter<T: Copy + Default>(
        self,
        chunk: &Chunk<'_>,
        buffer: &mut Vec<T>,
        out: &mut [&mut [T]],
        mut convert: impl FnMut(Range<usize>, &mut [T]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Self { planned, work, next, part } = self;
        chunks::overlaps(&work.parts, part, &chunk.cells, |idx, cells| {
            let part = &work.parts[idx];
            if buffer.len() < cells.len() {
                buffer.resize(cells.len(), T::default());
            }
            convert(chunk.place(&cells), &mut buffer[..cells.len()])?;
            let range = planned.task.bases.partition_point(|&base| base <= part.task_row) - 1;
            let first_cell = cells.start;
            work.rows(part, cells, |row, cells| {
                let at = &mut next[part.task_row + row];
                let to = *at..*at + cells.len();
                *at = to.end;
                let from = (cells.start - first_cell) as usize..(cells.end - first_cell) as usize;
                out[range][to].copy_from_slice(&buffer[from]);
            });
            Ok(())
        })
    }
}

/// Sorts the columns of each row. Returns whether all are distinct, which is checked only if
/// `is_strict`.
fn sort(planned: &[Planned], out: &mut CsrBuffers, is_strict: bool) -> bool {
    let CsrBuffers { row_offsets, columns, values, .. } = out;
    let columns = target::split(planned, row_offsets, columns);
    let values = target::split(planned, row_offsets, values);
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
        target::offsets_of(task, row_offsets).zip(columns.iter_mut().zip(values))
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
