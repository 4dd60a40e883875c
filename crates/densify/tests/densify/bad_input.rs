//! Inconsistent input is an error that names the problem and its place; it never panics, and leaves
//! nothing broken behind.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, StringArray};
use csr::{CsrBuffers, CsrView};
use densify::{
    AxisIndex, CooToCsr, CooView, Error, OwnedCoo, csr_gather_counts_into, csr_gather_rows,
    csr_rows_to_dense, scatter_coo,
};

fn axes() -> (AxisIndex, AxisIndex) {
    (
        AxisIndex::ranges("cell", [0..2]).unwrap(),
        AxisIndex::list("gene", &[1_u64 << 40, 7]).unwrap(),
    )
}

#[test]
fn a_piece_that_fails_leaves_no_part_of_itself() {
    let (rows, columns) = axes();
    let mut counter = CooToCsr::new();
    let good = CooView { rows: &[0, 1], columns: &[7, 7], values: &[1.0, 2.0] };
    counter.add(good, &rows, &columns).unwrap();
    // The first value of each is good; the second has an unknown cell or gene.
    for (cell, gene, axis, joinid) in [(5, 7, "cell", 5), (1, 8, "gene", 8)] {
        let bad = CooView { rows: &[0, cell], columns: &[7, gene], values: &[3.0, 4.0] };
        assert_eq!(counter.add(bad, &rows, &columns), Err(Error::UnknownJoinid { axis, joinid }));
    }
    let mut csr = CsrBuffers::empty(0);
    counter.finish(2, 2, &mut csr).unwrap();
    let expected = CsrBuffers {
        row_offsets: vec![0, 1, 2],
        columns: vec![1, 1],
        values: vec![1.0, 2.0],
        n_columns: 2,
    };
    assert_eq!(csr, expected);
}

#[test]
fn counted_cells_past_the_shape_are_refused() {
    let (rows, columns) = axes();
    let mut counter = CooToCsr::new();
    let cell = CooView { rows: &[1], columns: &[7], values: &[1.0] };
    counter.add(cell, &rows, &columns).unwrap();
    let mut csr = CsrBuffers::empty(0);
    assert_eq!(counter.finish(1, 2, &mut csr), Err(csr::Error::Row { row: 1, n_rows: 1 }.into()));
    assert_eq!(
        counter.finish(2, 1, &mut csr),
        Err(csr::Error::Column { row: 1, column: 1, n_columns: 1 }.into())
    );
    assert_eq!(csr, CsrBuffers::empty(0));
}

#[test]
fn gathered_columns_past_the_last_are_refused() {
    let csr = CsrView {
        row_offsets: &[0, 1, 3],
        columns: &[0, 1, 2],
        values: &[1.0, 2.0, 3.0],
        n_columns: 2,
    };
    let mut out = CsrBuffers::empty(2);
    let refused = Error::Column { row_idx: 1, column: 2, n_columns: 2 };
    assert_eq!(csr_gather_rows(csr, &[0, 1], None, &mut out), Err(refused));
    assert_eq!(out, CsrBuffers::empty(2));
}

#[test]
fn narrow_columns_and_values_are_no_others() {
    // As 16 bits 65,541 would be 5, and as 8 bits 256 would be 0.
    let csr = |n_columns| CsrView {
        row_offsets: &[0, 1, 2],
        columns: &[7, 65_541],
        values: &[256.0, 1.0],
        n_columns,
    };
    for n_columns in [1 << 16, 1 << 17] {
        let (mut offsets, mut columns, mut values) = (vec![0], [0_u16; 2], [0_u16; 2]);
        let out = (&mut columns[..], &mut values[..]);
        let found = csr_gather_counts_into(csr(n_columns), &[0, 1], &mut offsets, out);
        let refused = Error::Column { row_idx: 1, column: 65_541, n_columns: 1 << 16 };
        assert_eq!(found, Err(refused));
    }
    let (mut offsets, mut columns, mut values) = (vec![0], [0_u32; 2], [0_u8; 2]);
    let out = (&mut columns[..], &mut values[..]);
    let found = csr_gather_counts_into(csr(1 << 17), &[1, 0], &mut offsets, out);
    assert_eq!((found, offsets), (Ok(false), vec![0]));
}

#[test]
fn a_shape_too_large_for_any_buffer_is_refused() {
    // Both products wrap to 0, the length of the buffer.
    let huge = 1 << (usize::BITS - 1);
    let csr = CsrView { row_offsets: &[0, 0], columns: &[], values: &[], n_columns: huge };
    assert_eq!(
        csr_rows_to_dense::<f32>(csr, &[0, 0], None, &mut []),
        Err(Error::Length { what: "the dense buffer", found: 0, expected: usize::MAX })
    );
    let rows = AxisIndex::ranges("cell", [0..1_u64 << 62]).unwrap();
    let columns = AxisIndex::ranges("gene", [0..4]).unwrap();
    let nothing = CooView { rows: &[], columns: &[], values: &[] };
    assert_eq!(
        scatter_coo(nothing, &rows, &columns, &mut []),
        Err(Error::Length { what: "the dense buffer", found: 0, expected: usize::MAX })
    );
}

#[test]
fn nulls_and_words_are_no_values() {
    let joinids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let no_joinids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let singles: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.0), None]));
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    let words: ArrayRef = Arc::new(StringArray::from(vec!["1", "2"]));
    let failure = |rows, columns, values| OwnedCoo::from_arrow(rows, columns, values).unwrap_err();
    for values in [&singles, &doubles] {
        assert_eq!(
            failure(&joinids, &joinids, values),
            Error::Nulls { what: "the array of values", n_nulls: 1 }
        );
    }
    assert_eq!(
        failure(&no_joinids, &joinids, &joinids),
        Error::Nulls { what: "the array of cells", n_nulls: 1 }
    );
    assert_eq!(
        failure(&joinids, &no_joinids, &joinids),
        Error::Nulls { what: "the array of genes", n_nulls: 1 }
    );
    assert!(matches!(
        failure(&joinids, &joinids, &words),
        Error::ArrowType { what: "the array of values", .. }
    ));
}

#[test]
fn joinids_that_no_axis_can_have_are_refused() {
    for joinids in [&[3, u64::MAX][..], &[1 << 63], &[u64::MAX - 1, u64::MAX]] {
        assert!(matches!(AxisIndex::list("gene", joinids), Err(Error::Joinids { .. })));
    }
    // Lists of distant and of close joinids are stored in different ways.
    for joinids in [[2, 1 << 50, 2], [4, 9, 4]] {
        let twice = Error::Joinids { joinid: joinids[0] as i64 };
        assert_eq!(AxisIndex::list("gene", &joinids).unwrap_err(), twice);
    }
    for range in [1 << 63..(1 << 63) + 1, 5..1 << 63, u64::MAX - 1..u64::MAX] {
        assert!(matches!(AxisIndex::ranges("cell", [range]), Err(Error::Joinids { .. })));
    }
}
