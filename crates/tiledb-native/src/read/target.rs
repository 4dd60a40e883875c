//! The caller's buffers, cut into the parts that each piece of work writes.

use csr::PackedValuesMut;

use super::Output;
use super::plan::{Planned, Task};
use crate::fragment::Field;

/// The place that a piece of work writes to: for each row range of its task the columns or the
/// values of the rows.
pub(super) enum Target<'a> {
    Columns(Vec<&'a mut [u32]>),
    NarrowColumns(Vec<&'a mut [u16]>),
    Values(Vec<&'a mut [f32]>),
    Counts {
        values: Vec<&'a mut [u16]>,
        /// Whether all values so far are counts.
        fits: bool,
    },
}

impl Target<'_> {
    pub(super) fn field(&self) -> Field {
        match self {
            Self::Columns(_) | Self::NarrowColumns(_) => Field::Columns,
            Self::Values(_) | Self::Counts { .. } => Field::Values,
        }
    }

    /// Whether everything was written without loss.
    pub(super) fn fits(&self) -> bool {
        !matches!(self, Self::Counts { fits: false, .. })
    }

    /// Whether the columns of each row ascend, strictly if `is_strict`; true for values.
    pub(super) fn is_ordered(&self, task: &Task, row_offsets: &[usize], is_strict: bool) -> bool {
        match self {
            Self::Columns(ranges) => ascend(ranges, task, row_offsets, is_strict),
            Self::NarrowColumns(ranges) => ascend(ranges, task, row_offsets, is_strict),
            Self::Values(_) | Self::Counts { .. } => true,
        }
    }
}

fn ascend<T: Ord>(
    ranges: &[&mut [T]],
    task: &Task,
    row_offsets: &[usize],
    is_strict: bool,
) -> bool {
    offsets_of(task, row_offsets).zip(ranges).all(|(offsets, columns)| {
        offsets.windows(2).all(|pair| {
            let row = &columns[pair[0] - offsets[0]..pair[1] - offsets[0]];
            if is_strict { row.is_sorted_by(|a, b| a < b) } else { row.is_sorted() }
        })
    })
}

/// For each task the places of its columns and values, and the row offsets of the buffers.
pub(super) fn targets<'a>(
    planned: &[Planned],
    out: &'a mut Output<'_>,
) -> (Vec<[Target<'a>; 2]>, &'a [usize]) {
    match out {
        Output::Wide(csr) => {
            let columns = split(planned, &csr.row_offsets, &mut csr.columns);
            let values = split(planned, &csr.row_offsets, &mut csr.values);
            let both = columns.into_iter().zip(values);
            let both =
                both.map(|(columns, values)| [Target::Columns(columns), Target::Values(values)]);
            (both.collect(), &csr.row_offsets)
        }
        Output::Packed(csr) => {
            let (row_offsets, columns, values) = csr.parts_mut();
            let columns = split(planned, row_offsets, columns);
            let columns = columns.into_iter().map(Target::NarrowColumns);
            let values: Vec<_> = match values {
                PackedValuesMut::Counts(values) => split(planned, row_offsets, values)
                    .into_iter()
                    .map(|values| Target::Counts { values, fits: true })
                    .collect(),
                PackedValuesMut::Floats(values) => {
                    split(planned, row_offsets, values).into_iter().map(Target::Values).collect()
                }
            };
            let both = columns.zip(values).map(|(columns, values)| [columns, values]);
            (both.collect(), row_offsets)
        }
    }
}

/// Cuts a buffer into the rows of each range of each task.
pub(super) fn split<'a, T>(
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

/// For each range of a task the offsets of its rows, with the end of the last.
pub(super) fn offsets_of<'a>(
    task: &'a Task,
    row_offsets: &'a [usize],
) -> impl Iterator<Item = &'a [usize]> {
    let n_rows = task.bases.windows(2).map(|pair| pair[1] - pair[0]);
    task.out_rows.iter().zip(n_rows).map(|(&first, n_rows)| &row_offsets[first..=first + n_rows])
}
