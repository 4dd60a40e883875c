//! Rows of data sets that follow each other.

use std::ops::Range;

/// The parts of ranges of rows within each of several data sets, with its number. `starts` are the
/// first rows of the data sets, and the number of all rows.
pub(crate) fn of_parts(starts: &[u64], rows: &[Range<u64>]) -> Vec<(usize, Vec<Range<u64>>)> {
    let mut parts: Vec<(usize, Vec<Range<u64>>)> = Vec::new();
    for range in rows {
        let mut at = range.start;
        while at < range.end {
            let part = starts.partition_point(|start| *start <= at).saturating_sub(1);
            let end = starts.get(part + 1).map_or(range.end, |next| range.end.min(*next));
            let (first, of_part) = (starts[part], at..end);
            let of_part = of_part.start - first..of_part.end - first;
            match parts.last_mut() {
                Some((last, ranges)) if *last == part => ranges.push(of_part),
                _ => parts.push((part, vec![of_part])),
            }
            at = end.max(at + 1);
        }
    }
    parts
}

/// The first rows of data sets with these numbers of rows, and the number of all rows.
pub(crate) fn starts(n_rows: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut starts = vec![0];
    starts.extend(n_rows.scan(0_u64, |end, n| {
        *end = end.saturating_add(n);
        Some(*end)
    }));
    starts
}
