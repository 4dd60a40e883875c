//! Compressed sparse rows: `indptr` in memory, ranges of `indices` and `data`.

use std::ops::Range;

use arrays::{ElementType, StoredArray};
use csr::{CsrBuffers, Narrowing};
use rayon::prelude::*;
use serde_json::Value;
use worktime::ReadStats;

use super::{OpenPart, exact};
use crate::elements::{Elements, Node};
use crate::error::Error;
use crate::parts::{of_parts, starts};

/// The most rows: their places must fit memory.
const MAX_ROWS: u64 = 1 << 36;

/// Rows that a thread checks at once.
const CHECKED_ROWS: usize = 256;

/// The CSR matrices of all data sets.
#[derive(Debug)]
pub(super) struct Sparse {
    parts: Vec<SparsePart>,
    /// The first row of each, and the number of all rows.
    starts: Vec<u64>,
    n_columns: u64,
}

/// The CSR matrix of one data set.
#[derive(Debug)]
pub(super) struct SparsePart {
    path: String,
    /// Where each row begins, and where the last ends: ascends from 0 to the number of values.
    indptr: Vec<u64>,
    indices: StoredArray,
    data: StoredArray,
}

impl SparsePart {
    /// Opens a group with `indptr`, `indices` and `data`, and reads `indptr`.
    pub(super) fn open(
        elements: &Elements,
        path: &str,
        node: &Node,
    ) -> Result<OpenPart<Self>, Error> {
        let shape = node.attributes.get("shape").and_then(Value::as_array);
        let lens: Option<Vec<u64>> =
            shape.and_then(|lens| lens.iter().map(Value::as_u64).collect());
        let Some([n_rows, n_columns]) = lens.as_deref() else {
            return Err(elements.damaged(path, "the attribute `shape` is not two lengths"));
        };
        let (n_rows, n_columns) = (*n_rows, *n_columns);
        let paths = ["indptr", "indices", "data"].map(|name| format!("{path}/{name}"));
        elements.gather(&paths)?;
        let [indptr, indices, data] = paths.each_ref().map(|path| elements.array(path));
        let (starts, indices, data) = (indptr?, indices?, data?);
        for array in [&starts, &indices, &data] {
            if array.shape().len() != 1 {
                return Err(elements.damaged(array.path(), "it is not a list of numbers"));
            }
        }
        let Some(element) = data.element() else {
            let reason = format!("its values are of type {}", data.type_name());
            return Err(elements.unsupported(data.path(), reason));
        };
        let nnz = data.n_rows();
        if indices.n_rows() != nnz {
            let what = format!("it has {} columns for {nnz} values", indices.n_rows());
            return Err(elements.damaged(indices.path(), what));
        }
        if MAX_ROWS < n_rows || starts.n_rows() != n_rows + 1 {
            let what = format!("it has {} numbers for {n_rows} rows", starts.n_rows());
            return Err(elements.damaged(starts.path(), what));
        }
        let mut indptr = zeroed(starts.n_rows())
            .ok_or_else(|| elements.damaged(starts.path(), "it does not fit memory"))?;
        let whole = 0..starts.n_rows();
        let request = starts.request(std::slice::from_ref(&whole), &mut indptr)?;
        // A lost file would be read as rows without values, whose values another row then has.
        elements.read(vec![request.stored_only(nnz > 0)])?;
        if let Err(what) = check_indptr(&indptr, nnz, n_columns) {
            return Err(elements.damaged(starts.path(), what));
        }
        let part = Self { path: path.to_owned(), indptr, indices, data };
        Ok(OpenPart { part, n_rows, n_columns, element })
    }

    /// The lengths of rows; of those that do not exist none.
    fn row_lengths(&self, rows: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let end = rows.end.saturating_add(1).min(self.indptr.len() as u64);
        let range = rows.start.min(end) as usize..end as usize;
        let starts = self.indptr.get(range).unwrap_or_default();
        starts.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// The ranges of values of rows, which exist.
    fn values_of(&self, rows: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut wanted: Vec<Range<u64>> = Vec::new();
        for range in rows {
            let (start, end) = (self.indptr[range.start as usize], self.indptr[range.end as usize]);
            match wanted.last_mut() {
                _ if start == end => {}
                Some(last) if last.end == start => last.end = end,
                _ => wanted.push(start..end),
            }
        }
        wanted
    }
}

impl Sparse {
    pub(super) fn new(parts: Vec<SparsePart>, n_columns: u64) -> Self {
        let starts = starts(parts.iter().map(|part| part.indptr.len() as u64 - 1));
        Self { parts, starts, n_columns }
    }

    pub(super) fn nnz(&self) -> u64 {
        self.parts.iter().map(|part| part.data.n_rows()).sum()
    }

    pub(super) fn index_bytes(&self) -> u64 {
        self.parts.iter().map(|part| size_of_val(&part.indptr[..]) as u64).sum()
    }

    /// Bytes of memory of a thread that reads chunks of any array.
    pub(super) fn working_bytes(&self) -> u64 {
        let arrays = self.parts.iter().flat_map(|part| [&part.indices, &part.data]);
        arrays.map(StoredArray::working_bytes).max().unwrap_or(0)
    }

    /// The lengths of rows; of those that do not exist none.
    pub(super) fn row_lengths(&self, rows: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let n_rows = self.starts.last().copied().unwrap_or(0);
        let rows = rows.start.min(n_rows)..rows.end.min(n_rows);
        of_parts(&self.starts, &[rows]).into_iter().flat_map(|(part, ranges)| {
            let part = &self.parts[part];
            ranges.into_iter().flat_map(|range| part.row_lengths(range))
        })
    }

    /// Reads rows, which exist.
    pub(super) fn read(
        &self,
        elements: &Elements,
        rows: &[Range<u64>],
        narrowing: Narrowing,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        let n_rows: u64 = rows.iter().map(|range| range.end - range.start).sum();
        out.begin(n_rows as usize, |lengths| {
            let all = rows.iter().flat_map(|range| self.row_lengths(range.clone()));
            // The place behind the first offset is that of the first row.
            lengths.iter_mut().skip(1).zip(all).for_each(|(to, len)| *to = len as usize);
        });
        let (mut columns, mut values) = (&mut out.columns[..], &mut out.values[..]);
        let (mut requests, mut unrounded) = (Vec::new(), Vec::new());
        for (part, rows) in of_parts(&self.starts, rows) {
            let part = &self.parts[part];
            let wanted = part.values_of(&rows);
            let n_values: u64 = wanted.iter().map(|range| range.end - range.start).sum();
            let (columns_of, columns_after) = columns.split_at_mut(n_values as usize);
            let (values_of, values_after) = values.split_at_mut(n_values as usize);
            (columns, values) = (columns_after, values_after);
            // A lost file would be read as the first column, or as zeros: only a matrix of a single
            // column may be without files of columns.
            let columns_of = part.indices.request(&wanted, columns_of)?;
            requests.push(columns_of.stored_only(self.n_columns > 1));
            if narrowing == Narrowing::Exact && exact::may_round(&part.data) {
                unrounded.push((part, wanted, values_of));
            } else {
                requests.push(part.data.request(&wanted, values_of)?.stored_only(true));
            }
        }
        let mut stats = elements.read(requests)?;
        for (part, wanted, values) in unrounded {
            stats += exact::read(elements, &part.data, &wanted, values)?;
        }
        let checked = elements.pool().install(|| self.order(rows, out));
        checked.map_err(|(row, what)| {
            let part = self.starts.partition_point(|start| *start <= row).saturating_sub(1);
            let row = row - self.starts[part];
            let path = format!("{}/indices", self.parts[part].path);
            elements.damaged(&path, format!("row {row} has {what}"))
        })?;
        let bytes_of = |array: &StoredArray| array.element().map_or(0, ElementType::n_bytes);
        let first = self.parts.first();
        let stored = first.map_or(0, |part| bytes_of(&part.indices) + bytes_of(&part.data));
        // A value has been counted twice, with its column.
        let values_decoded = stats.bytes_decoded.map(|bytes| bytes / stored.max(1) as u64);
        Ok(ReadStats { values_decoded, ..stats })
    }

    /// Checks the columns of rows, and sorts rows whose columns do not ascend. An error comes with
    /// its row. A duplicate column is an error: we neither sum the values nor pick one.
    fn order(&self, rows: &[Range<u64>], out: &mut CsrBuffers) -> Result<(), (u64, String)> {
        let n_columns = self.n_columns as u32;
        let (offsets, columns) = (&out.row_offsets, &out.columns);
        // Most matrices are sorted, so rows are first looked at without being changed.
        let unsorted: Vec<usize> = (0..offsets.len().saturating_sub(1))
            .into_par_iter()
            .with_min_len(CHECKED_ROWS)
            .map(|row| {
                let of_row = &columns[offsets[row]..offsets[row + 1]];
                let Some((&first, others)) = of_row.split_first() else { return Ok(None) };
                let (mut largest, mut ascends, mut last) = (first, true, first);
                for &column in others {
                    largest = largest.max(column);
                    ascends &= last < column;
                    last = column;
                }
                if n_columns <= largest {
                    return Err((row, largest));
                }
                Ok((!ascends).then_some(row))
            })
            .collect::<Result<Vec<Option<usize>>, (usize, u32)>>()
            .map_err(|(row, column)| {
                // Large numbers stand for negative ones and those that do not fit.
                let column = if i32::try_from(column).is_ok() {
                    format!("column {column}")
                } else {
                    "a column that is negative or too large".to_owned()
                };
                (nth(rows, row), format!("{column}, but there are {n_columns} columns"))
            })?
            .into_iter()
            .flatten()
            .collect();
        if unsorted.is_empty() {
            return Ok(());
        }
        let CsrBuffers { row_offsets, columns, values, .. } = out;
        let (mut columns, mut values) = (&mut columns[..], &mut values[..]);
        let mut at = 0;
        let mut parts = Vec::with_capacity(unsorted.len());
        for row in unsorted {
            let (start, end) = (row_offsets[row], row_offsets[row + 1]);
            let (of_row, rest) = columns.split_at_mut(end - at);
            let (values_of_row, values_after) = values.split_at_mut(end - at);
            parts.push((row, &mut of_row[start - at..], &mut values_of_row[start - at..]));
            (columns, values, at) = (rest, values_after, end);
        }
        let sorted = parts.into_par_iter().with_min_len(CHECKED_ROWS / 16).map_init(
            Vec::new,
            |cells: &mut Vec<(u32, f32)>, (row, columns, values)| {
                cells.clear();
                cells.extend(columns.iter().copied().zip(values.iter().copied()));
                cells.sort_unstable_by_key(|(column, _)| *column);
                for ((to, value), cell) in columns.iter_mut().zip(values).zip(cells) {
                    (*to, *value) = *cell;
                }
                let twice = columns.array_windows().find(|[one, next]| one == next);
                twice.map_or(Ok(()), |[column, _]| Err((row, *column)))
            },
        );
        sorted.collect::<Result<(), (usize, u32)>>().map_err(|(row, column)| {
            let what = format!(
                "column {column} more than once; add such values up where they were written: \
                 matrix.sum_duplicates() of scipy"
            );
            (nth(rows, row), what)
        })
    }
}

/// The number of a row that is at a place among those wanted.
fn nth(rows: &[Range<u64>], place: usize) -> u64 {
    rows.iter().cloned().flatten().nth(place).unwrap_or_default()
}

/// Memory for numbers; `None` if there is too little.
fn zeroed(len: u64) -> Option<Vec<u64>> {
    let len = usize::try_from(len).ok()?;
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(len).ok()?;
    numbers.resize(len, 0);
    Some(numbers)
}

/// Says what is wrong if `indptr` does not describe rows of `n_columns` with `nnz` values.
fn check_indptr(indptr: &[u64], nnz: u64, n_columns: u64) -> Result<(), String> {
    if indptr.first() != Some(&0) {
        return Err("it does not begin at 0".to_owned());
    }
    if indptr.last() != Some(&nnz) {
        let last = indptr.last().copied().unwrap_or_default();
        return Err(format!("it ends at {last}, but there are {nnz} values"));
    }
    if let Some(at) = indptr.iter().position(|end| nnz < *end) {
        // Numbers below 0 were read as if they had no sign.
        let end = indptr[at].cast_signed();
        return Err(format!("its number at {at} is {end}, outside of 0 to {nnz}"));
    }
    for (row, ends) in indptr.windows(2).enumerate() {
        if ends[1] < ends[0] {
            return Err(format!("it does not ascend at row {row}"));
        }
        let len = ends[1] - ends[0];
        // Also what a missing chunk of zeros looks like.
        if n_columns < len {
            return Err(format!("row {row} has {len} values, but there are {n_columns} columns"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_indptr;

    #[test]
    fn starts_that_describe_no_rows_are_named() {
        for (indptr, reason) in [
            (&[1, 3][..], "does not begin at 0"),
            (&[0, 2], "it ends at 2, but there are 3 values"),
            (&[0, u64::MAX, 3], "its number at 1 is -1, outside of 0 to 3"),
            (&[0, 4, 3], "its number at 1 is 4, outside of 0 to 3"),
            (&[0, 2, 1, 3], "does not ascend at row 1"),
            (&[0, 3], "row 0 has 3 values, but there are 2 columns"),
        ] {
            let error = check_indptr(indptr, 3, 2).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(check_indptr(&[0, 2, 3], 3, 2), Ok(()));
    }
}
