//! Tasks: runs of wanted rows, each read by one thread.

use std::ops::Range;

use crate::request::Rows;
use crate::schema::Layout;

/// Approximate rows of a task; the border of a row of space tiles is preferred if it is near.
pub(super) const TASK_ROWS: u64 = 2048;
/// Tasks are not split below this size to occupy every thread.
const SMALLEST_TASK_ROWS: usize = 128;

/// Wanted rows that one thread reads.
#[derive(Debug)]
pub(super) struct Task {
    /// Sorted and disjoint row ranges.
    pub(super) wanted: Vec<Range<u64>>,
    /// For each range, the index in [`Rows::wanted`] of the range that it comes from, and its
    /// offset in that range, in rows.
    pub(super) out_rows: Vec<usize>,
    /// For each range the index of its first row among the task's rows, followed by the number of
    /// all rows.
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

    /// Splits the task into two halves of about equal size.
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

/// Splits the wanted rows at the borders of space tiles, and further if there are fewer tasks than
/// threads.
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
            let stretch = start.saturating_sub(layout.first_row) / unit;
            let border = (stretch + 1).saturating_mul(unit).saturating_add(layout.first_row);
            let end = wanted.rows.end.min(border);
            if stretch != current && !parts.is_empty() {
                tasks.push(Task::new(std::mem::take(&mut parts)));
            }
            current = stretch;
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
