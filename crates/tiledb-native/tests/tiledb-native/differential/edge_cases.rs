//! Arrays that provoke special cases.

use tiledb::{CellOrder, Comparison, Condition, Datatype, Filter};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions};

use crate::differential::check;
use crate::differential::written::{Cell, Spec, Upkeep, context, plain};

#[track_caller]
fn check_all(spec: &Spec, timestamps: &[Option<u64>]) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    spec.write(&at);
    let (n_rows, n_columns) = spec.shape;
    let rows =
        [n_rows / 2..n_rows, 0..n_rows / 3, 0..0, n_rows - 1..n_rows, n_rows / 4..n_rows / 2 + 1];
    let list = (0..n_columns).rev().step_by(3).collect();
    let columns = [
        ColumnSelection::All,
        ColumnSelection::Range(n_columns / 3..n_columns),
        ColumnSelection::List(list),
        ColumnSelection::List(vec![]),
    ];
    for &timestamp in timestamps {
        check(spec, &at, timestamp, &rows, &columns);
    }
}

fn grid(n_rows: u64, n_columns: u64, step: usize) -> Vec<Cell> {
    (0..n_rows)
        .flat_map(|row| {
            (row % step as u64..n_columns)
                .step_by(step)
                .map(move |column| (row, column, ((row * 7 + column) % 100) as i32))
        })
        .collect()
}

#[test]
fn an_empty_array() {
    check_all(&plain((20, 10), vec![]), &[None, Some(0)]);
}

#[test]
fn a_single_cell() {
    check_all(&plain((20, 10), vec![vec![(13, 7, 5)]]), &[None, Some(0), Some(1)]);
    check_all(&plain((1, 1), vec![vec![(0, 0, 5)]]), &[None]);
}

/// Counting goes through the cells, not through the rows between them.
#[test]
fn deleted_cells_of_rows_far_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (at, far) = (folder.path().join("array"), 1 << 59);
    // Values are written as quarters.
    plain((1 << 60, 10), vec![vec![(0, 1, 1), (5, 2, 2), (far, 3, 3)]]).write(&at);
    let delete = |time, condition: &Condition| {
        tiledb::Array::delete(&context(), at.to_str().unwrap(), Some(time), condition).unwrap();
    };
    let count = |time| {
        let options = OpenOptions { timestamp: Some(time), ..OpenOptions::new(1) };
        let array = Array::open_local(&at, &options).unwrap();
        let mut out = CsrBuffers::new();
        array.read_csr(&[0..9, far..far + 1], &ColumnSelection::All, &mut out).unwrap();
        assert_eq!(array.n_values().unwrap(), out.nnz() as u64);
        out.nnz()
    };
    delete(2, &Condition::new("row", Comparison::GreaterOrEqual, far as i64));
    delete(3, &Condition::new("value", Comparison::Equal, 0.5_f32));
    assert_eq!([1, 2, 3].map(count), [3, 2, 1]);
}

/// Several filter chunks in a tile, split at other cells for coordinates than for values, and rows
/// across them.
#[test]
fn tiles_of_many_chunks() {
    for attribute_type in [Datatype::Float32, Datatype::UInt8, Datatype::Float64] {
        let spec = Spec {
            extents: (64, 100),
            capacity: 40_000,
            attribute_type,
            ..plain((500, 400), vec![grid(500, 400, 2)])
        };
        check_all(&spec, &[None]);
    }
}

#[test]
fn rows_ascending_through_the_whole_array() {
    let filters = (
        vec![Filter::PositiveDelta, Filter::Zstd(3)],
        vec![Filter::PositiveDelta, Filter::BitWidthReduction],
    );
    let cells = (0..300).map(|row| (row, row % 50, 1)).collect();
    // Columns ascend within a fragment only while it has one row.
    let columns = (0..50).map(|column| (7, column, column as i32)).collect();
    let with = |filters, cells| Spec {
        extents: (300, 50),
        dimension_filters: filters,
        ..plain((300, 50), vec![cells])
    };
    check_all(&with((filters.0.clone(), vec![]), cells), &[None]);
    check_all(&with(filters, columns), &[None]);
}

/// Fragments consolidated with the time of each cell, opened before, within and after those times.
#[test]
fn cells_of_several_times() {
    for allows_duplicates in [true, false] {
        for upkeep in
            [Upkeep::Nothing, Upkeep::Consolidated, Upkeep::Vacuumed, Upkeep::CommitsVacuumed]
        {
            let again = |by: i32, step| {
                grid(60, 40, step).into_iter().map(|cell| (cell.0, cell.1, cell.2 + by)).collect()
            };
            let fragments = vec![grid(60, 40, 3), again(1, 2), again(2, 5)];
            let spec = Spec { allows_duplicates, upkeep, ..plain((60, 40), fragments) };
            check_all(&spec, &[None, Some(0), Some(1), Some(2), Some(3)]);
        }
    }
}

/// In an array without duplicates whose fragments only touch, nothing has to be merged.
#[test]
fn fragments_that_touch() {
    let part = |rows: std::ops::Range<u64>| {
        grid(90, 40, 3).into_iter().filter(|cell| rows.contains(&cell.0)).collect()
    };
    for upkeep in [Upkeep::Nothing, Upkeep::Vacuumed] {
        let fragments = vec![part(0..30), part(60..90), part(30..60)];
        check_all(
            &Spec { allows_duplicates: false, upkeep, ..plain((90, 40), fragments) },
            &[None, Some(2)],
        );
    }
}

#[test]
fn orders_in_which_rows_do_not_ascend() {
    for orders in [
        (CellOrder::ColumnMajor, CellOrder::RowMajor),
        (CellOrder::RowMajor, CellOrder::ColumnMajor),
        (CellOrder::ColumnMajor, CellOrder::ColumnMajor),
        (CellOrder::RowMajor, CellOrder::Hilbert),
    ] {
        check_all(
            &Spec {
                orders,
                capacity: 3000,
                ..plain((100, 60), vec![grid(100, 60, 2), grid(100, 60, 7)])
            },
            &[None],
        );
    }
}

/// Columns that take one, two and three bytes.
#[test]
fn wide_arrays() {
    for n_columns in [256, 257, 65_536, 65_537, 20_000_000] {
        let cells = (0..40)
            .flat_map(|row| [(row, 0, 1), (row, n_columns / 2 + row, 2), (row, n_columns - 1, 3)])
            .collect();
        check_all(&Spec { extents: (16, 2048), ..plain((40, n_columns), vec![cells]) }, &[None]);
    }
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    plain((20, 10), vec![grid(20, 10, 2)]).write(&at);
    let array = Array::open_local(&at, &OpenOptions::new(1)).unwrap();
    let mut out = CsrBuffers::new();
    let beyond = array.read_csr(&[19..21], &ColumnSelection::All, &mut out);
    assert!(matches!(beyond, Err(Error::RowsOutOfBounds { start: 19, end: 21, n_rows: 20 })));
    let beyond = array.read_csr(&[0..1], &ColumnSelection::Range(3..11), &mut out);
    let outside = csr::Error::NoColumn { column: 10, n_columns: 10 };
    assert!(matches!(beyond, Err(Error::Selection(error)) if error == outside));
    let nothing = Array::open_local(folder.path().join("nothing"), &OpenOptions::new(1));
    assert!(matches!(nothing, Err(Error::NotAnArray { .. })));
}
