//! Every format version from 6 to 22 reads as written.

use std::sync::Arc;

use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions};

use crate::stored::stored;

/// The fragments of `write.py`: rows, step between columns, offset of the values; fragment `n` at
/// time `n + 1`.
const FRAGMENTS: [(std::ops::Range<u64>, u64, u64); 4] =
    [(0..40, 7, 0), (30..60, 11, 100), (70..100, 13, 200), (50..70, 9, 300)];

/// The rows of the array with `fragments`.
fn expected(fragments: &[(std::ops::Range<u64>, u64, u64)]) -> Vec<Vec<(u32, f32)>> {
    let row = |row: u64| {
        let mut cells: Vec<(u32, f32)> = fragments
            .iter()
            .filter(|(rows, ..)| rows.contains(&row))
            .flat_map(|&(_, step, by)| {
                (row % step..300)
                    .step_by(step as usize)
                    .map(move |column| (column as u32, ((row * 7 + column) % 50 + by) as f32))
            })
            .collect();
        cells.sort_by(|a, b| a.partial_cmp(b).unwrap());
        cells
    };
    (0..100).map(row).collect()
}

#[track_caller]
fn check(name: &str, timestamp: Option<u64>, fragments: &[(std::ops::Range<u64>, u64, u64)]) {
    let options = OpenOptions { timestamp, ..OpenOptions::new(2) };
    let array = Array::open(Arc::new(stored(name)), &options)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut out = CsrBuffers::new();
    for repetition in 0..2 {
        array
            .read_csr(&[0..100], &ColumnSelection::All, &mut out)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let expect = expected(fragments);
        for (row, expect) in expect.iter().enumerate() {
            let (columns, values) = out.row(row);
            let mut found: Vec<(u32, f32)> =
                columns.iter().copied().zip(values.iter().copied()).collect();
            found.sort_by(|a, b| a.partial_cmp(b).unwrap());
            assert_eq!(&found, expect, "{name} at {timestamp:?}, row {row}, read {repetition}");
        }
    }
}

#[test]
fn fragments_of_every_format() {
    for format in 6..=22 {
        let name = format!("format-{format:02}");
        for timestamp in 0..3 {
            check(&name, Some(timestamp), &FRAGMENTS[..timestamp as usize]);
        }
        check(&name, None, &FRAGMENTS[..3]);
    }
}

/// Before format 15 consolidated cells lost their times: opened before the last of them the array
/// is empty, as libtiledb reads it.
#[test]
fn consolidated_fragments_of_every_format() {
    for format in 6..=22 {
        let name = format!("format-{format:02}-consolidated");
        check(&name, None, &FRAGMENTS[..3]);
        check(&name, Some(0), &[]);
        for time in 1..3 {
            check(&name, Some(time), if format < 15 { &[] } else { &FRAGMENTS[..time as usize] });
        }
    }
}

/// A fragment that libtiledb 2.30 added to an array of an old layout.
#[test]
fn old_arrays_that_were_added_to() {
    for format in [6, 9, 11] {
        let name = format!("format-{format:02}-appended");
        check(&name, None, &FRAGMENTS);
        check(&name, Some(3), &FRAGMENTS[..3]);
    }
}
