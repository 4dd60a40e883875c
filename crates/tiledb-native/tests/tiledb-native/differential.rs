//! Random arrays, written by libtiledb and read by libtiledb and by this crate: equal cell for
//! cell.
#![expect(clippy::cast_lossless, reason = "small numbers made for tests")]

mod conditions;
mod created;
mod edge_cases;
mod fragments;
mod groups;
mod histories;
pub(crate) mod metadata;
mod random;
mod tables;
mod times;
mod written;
mod written_tables;

use std::ops::Range;
use std::path::Path;

use tiledb_native::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions, PackedCsr};
use written::Spec;

/// The expected result of reading `rows` and `columns`, given the cells of the whole array.
fn expected(
    cells: &[(u64, u64, f32)],
    rows: &[Range<u64>],
    columns: &ColumnSelection,
) -> Vec<Vec<(u32, u32)>> {
    let position = |column: u64| match columns {
        ColumnSelection::All => Some(column as u32),
        ColumnSelection::Range(range) => {
            range.contains(&column).then(|| (column - range.start) as u32)
        }
        ColumnSelection::List(list) => {
            list.iter().position(|&one| one == column).map(|at| at as u32)
        }
    };
    let row = |row: u64| {
        let first = cells.partition_point(|cell| cell.0 < row);
        let mut found: Vec<(u32, u32)> = cells[first..]
            .iter()
            .take_while(|cell| cell.0 == row)
            .filter_map(|cell| Some((position(cell.1)?, cell.2.to_bits())))
            .collect();
        found.sort_unstable();
        found
    };
    rows.iter().flat_map(Clone::clone).map(row).collect()
}

/// Reads `rows` and `columns` and compares with libtiledb's read, except for the order of values in
/// one place.
#[track_caller]
fn check_read(
    array: &Array,
    cells: &[(u64, u64, f32)],
    rows: &[Range<u64>],
    columns: &ColumnSelection,
    (out, packed): (&mut CsrBuffers, &mut PackedCsr),
) {
    let stats = array.read_csr(rows, columns, out).unwrap();
    assert_eq!(stats.values as usize, out.nnz());
    check_packed(array, rows, columns, (out, packed));
    let found: Vec<Vec<(u32, u32)>> = (0..out.n_rows())
        .map(|row| {
            let (columns, values) = out.row(row);
            assert!(columns.is_sorted(), "columns ascend in row {row}");
            let mut cells: Vec<_> =
                columns.iter().copied().zip(values.iter().map(|value| value.to_bits())).collect();
            cells.sort_unstable();
            cells
        })
        .collect();
    assert!(found == expected(cells, rows, columns), "rows {rows:?}, {columns:?}");
}

/// Compares packed rows with `out`.
#[track_caller]
fn check_packed(
    array: &Array,
    rows: &[Range<u64>],
    columns: &ColumnSelection,
    (out, packed): (&CsrBuffers, &mut PackedCsr),
) {
    if out.n_columns > PackedCsr::MAX_COLUMNS {
        let refused = array.read_packed(rows, columns, packed);
        assert!(matches!(refused, Err(Error::TooManyToPack { .. })), "{refused:?}");
        return;
    }
    array.read_packed(rows, columns, packed).unwrap();
    let unpacked = packed.unpack();
    let bits =
        |csr: &CsrBuffers| csr.values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert!(bits(&unpacked) == bits(out), "packed values of rows {rows:?}, {columns:?}");
    assert!(
        (&unpacked.row_offsets, &unpacked.columns) == (&out.row_offsets, &out.columns)
            && unpacked.n_columns == out.n_columns,
        "packed columns of rows {rows:?}, {columns:?}"
    );
}

/// Writes `spec` and compares several reads at `timestamp`.
#[track_caller]
fn check(
    spec: &Spec,
    at: &Path,
    timestamp: Option<u64>,
    rows: &[Range<u64>],
    columns: &[ColumnSelection],
) {
    let cells = spec.read_with_libtiledb(at, timestamp);
    for (n_threads, index_bytes, decoded_bytes) in
        [(2, 1 << 20, 0), (1, 3000, 1 << 20), (2, 1 << 20, 3000)]
    {
        let options = OpenOptions { timestamp, index_bytes, ..OpenOptions::new(n_threads) };
        let array = Array::open_local(at, &options).unwrap();
        array.keep_decoded(decoded_bytes);
        let (mut out, mut packed) = (CsrBuffers::new(), PackedCsr::default());
        for columns in columns {
            let all_rows = 0..spec.shape.0;
            check_read(&array, &cells, &[all_rows], columns, (&mut out, &mut packed));
            check_read(&array, &cells, rows, columns, (&mut out, &mut packed));
        }
        assert!(array.index_bytes() <= index_bytes);
        assert!(array.decoded_bytes() <= decoded_bytes);
        array.keep_decoded(0);
        assert_eq!(array.decoded_bytes(), 0);
    }
}
