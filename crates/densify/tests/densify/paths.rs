//! Every path against a naive oracle, and against sprs and ndarray.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use csr::{CsrBuffers, CsrView};
use densify::{
    AxisIndex, CooToCsr, CooView, Error, OwnedCoo, csr_gather_rows, csr_rows_to_dense, scatter_coo,
};
use ndarray::ArrayView2;
use proptest::collection::vec;
use proptest::prelude::*;

/// Cells by joinid, the joinids of the axes, and an order of rows to deliver.
#[derive(Debug, Clone)]
struct Case {
    cells: Vec<(i64, i64, f32)>,
    rows: Vec<u64>,
    columns: Vec<u64>,
    order: Vec<u32>,
}

/// Axes with gaps, cells at random places in them (repetitions included), rows to deliver in any
/// order (repeated or left out).
fn case() -> impl Strategy<Value = Case> {
    // A step of a million makes lists that are stored in another way.
    let column_step = prop_oneof![1_u64..4, Just(1_000_000)];
    (0_usize..9, 0_usize..9, 1_u64..4, column_step)
        .prop_flat_map(|(n_rows, n_columns, row_step, column_step)| {
            let n_cells = if n_rows * n_columns == 0 { 0 } else { 60 };
            let n_order = if n_rows == 0 { 0 } else { 12 };
            (
                vec((0..n_rows.max(1), 0..n_columns.max(1), 1_u8..200), 0..=n_cells),
                vec(0..n_rows.max(1) as u32, 0..=n_order),
                Just((n_rows as u64, n_columns as u64, row_step, column_step)),
            )
        })
        .prop_map(|(cells, order, (n_rows, n_columns, row_step, column_step))| {
            let rows: Vec<u64> = (0..n_rows).map(|row| 5 + row * row_step).collect();
            // Columns descend, which only a list can do.
            let columns: Vec<u64> =
                (0..n_columns).rev().map(|column| 3 + column * column_step).collect();
            let cells = cells
                .into_iter()
                .map(|(row, column, value)| {
                    (rows[row] as i64, columns[column] as i64, f32::from(value))
                })
                .collect();
            Case { cells, rows, columns, order }
        })
}

impl Case {
    fn parts(&self) -> (Vec<i64>, Vec<i64>, Vec<f32>) {
        let rows = self.cells.iter().map(|cell| cell.0).collect();
        let columns = self.cells.iter().map(|cell| cell.1).collect();
        (rows, columns, self.cells.iter().map(|cell| cell.2).collect())
    }

    fn indices(&self) -> (AxisIndex, AxisIndex) {
        let rows = AxisIndex::ranges("cell", self.rows.iter().map(|row| *row..*row + 1)).unwrap();
        (rows, AxisIndex::list("gene", &self.columns).unwrap())
    }

    /// The dense rows to deliver, looked up value by value; of repeated cells, the last counts.
    fn oracle(&self) -> Vec<f32> {
        let values: BTreeMap<(u64, u64), f32> = self
            .cells
            .iter()
            .map(|(row, column, value)| ((*row as u64, *column as u64), *value))
            .collect();
        let value = |row: u64, column: u64| values.get(&(row, column)).copied().unwrap_or(0.0);
        self.order
            .iter()
            .flat_map(|row| {
                self.columns.iter().map(move |column| (self.rows[*row as usize], *column))
            })
            .map(|(row, column)| value(row, column))
            .collect()
    }

    fn csr(&self, n_pieces: usize) -> CsrBuffers {
        let (rows, columns, values) = self.parts();
        let (row_index, column_index) = self.indices();
        let mut counter = CooToCsr::new();
        let piece = values.len().div_ceil(n_pieces).max(1);
        for ((rows, columns), values) in
            rows.chunks(piece).zip(columns.chunks(piece)).zip(values.chunks(piece))
        {
            counter.add(CooView { rows, columns, values }, &row_index, &column_index).unwrap();
        }
        let mut csr = CsrBuffers::empty(0);
        counter.finish(self.rows.len(), self.columns.len(), &mut csr).unwrap();
        csr
    }
}

proptest! {
    #[test]
    fn np_array_path_equals_the_oracle(case in case()) {
        let (rows, columns, values) = case.parts();
        let (row_index, column_index) = case.indices();
        let n_columns = case.columns.len();
        let mut block = vec![0.0; case.rows.len() * n_columns];
        scatter_coo(CooView { rows: &rows, columns: &columns, values: &values }, &row_index, &column_index, &mut block).unwrap();
        let delivered: Vec<f32> =
            case.order.iter().flat_map(|row| block[*row as usize * n_columns..][..n_columns].to_vec()).collect();
        prop_assert_eq!(delivered, case.oracle());
    }

    #[test]
    fn csr_paths_equal_the_oracle(case in case(), n_pieces in 1_usize..4) {
        let csr = case.csr(n_pieces);
        prop_assert_eq!(csr.nnz(), case.cells.len());
        prop_assert!(csr.row_offsets.windows(2).all(|pair| csr.columns[pair[0]..pair[1]].is_sorted()));
        // The buffer has leftovers.
        let mut out = vec![7.0; case.order.len() * case.columns.len()];
        csr_rows_to_dense(csr.view(), &case.order, None, &mut out).unwrap();
        prop_assert_eq!(&out, &case.oracle());

        let mut gathered = CsrBuffers::empty(case.columns.len());
        let (first, second) = case.order.split_at(case.order.len() / 2);
        csr_gather_rows(csr.view(), first, None, &mut gathered).unwrap();
        csr_gather_rows(csr.view(), second, None, &mut gathered).unwrap();
        let all: Vec<u32> = (0..case.order.len() as u32).collect();
        let mut again = vec![9.0; out.len()];
        csr_rows_to_dense(gathered.view(), &all, None, &mut again).unwrap();
        prop_assert_eq!(again, out);
    }

    #[test]
    fn sprs_and_ndarray_agree(case in case()) {
        // sprs adds up repeated cells, so each is given once.
        let mut once = case;
        once.cells.sort_by_key(|cell| (cell.0, cell.1));
        once.cells.dedup_by_key(|cell| (cell.0, cell.1));
        let csr = once.csr(1);
        let matrix = sprs::CsMatViewI::<f32, u32, usize>::try_new(
            (csr.n_rows(), csr.n_columns), &csr.row_offsets, &csr.columns, &csr.values,
        ).unwrap();
        let dense = matrix.to_dense();
        let all: Vec<u32> = (0..csr.n_rows() as u32).collect();
        let mut out = vec![0.0; csr.n_rows() * csr.n_columns];
        csr_rows_to_dense(csr.view(), &all, None, &mut out).unwrap();
        prop_assert_eq!(ArrayView2::from_shape((csr.n_rows(), csr.n_columns), &out).unwrap(), dense);
    }

    #[test]
    fn broken_csr_is_an_error_and_no_panic(
        row_offsets in vec(0_usize..12, 0..6), columns in vec(0_u32..6, 0..10), n_values in 0_usize..10,
        rows in vec(0_u32..6, 0..5), n_columns in 0_usize..6, n_out in 0_usize..30,
    ) {
        let values = vec![1.0; n_values];
        let csr = CsrView { row_offsets: &row_offsets, columns: &columns, values: &values, n_columns };
        let mut out = vec![0.0; n_out];
        let dense = csr_rows_to_dense(csr, &rows, None, &mut out);
        let fits = rows.iter().all(|row| {
            let bounds = (row_offsets.get(*row as usize), row_offsets.get(*row as usize + 1));
            let (Some(start), Some(end)) = bounds else { return false };
            values.get(*start..*end).is_some() && columns.get(*start..*end).is_some_and(|columns| {
                columns.iter().all(|column| (*column as usize) < n_columns)
            })
        });
        prop_assert_eq!(dense.is_ok(), fits && n_out == rows.len() * n_columns);
        csr_gather_rows(csr, &rows, None, &mut CsrBuffers::empty(n_columns)).ok();
    }
}

#[test]
fn empty_shapes() {
    let rows = AxisIndex::ranges("cell", []).unwrap();
    let columns = AxisIndex::list("gene", &[]).unwrap();
    assert!(rows.is_empty() && columns.is_empty());
    let nothing = CooView { rows: &[], columns: &[], values: &[] };
    scatter_coo(nothing, &rows, &columns, &mut []).unwrap();
    let mut csr = CsrBuffers::empty(3);
    CooToCsr::new().finish(2, 0, &mut csr).unwrap();
    assert_eq!((csr.n_rows(), csr.n_columns, csr.nnz()), (2, 0, 0));
    csr_rows_to_dense::<f32>(csr.view(), &[1, 0, 1], None, &mut []).unwrap();
    let row =
        CsrBuffers { row_offsets: vec![0, 1], columns: vec![0], values: vec![2.0], n_columns: 1 };
    let mut out = [0.0];
    csr_rows_to_dense(row.view(), &[0], None, &mut out).unwrap();
    assert_eq!(out, [2.0]);
}

#[test]
fn what_does_not_fit_is_named() {
    let rows = AxisIndex::ranges("cell", [3..5, 5..6, 9..10]).unwrap();
    let columns = AxisIndex::list("gene", &[7, 2]).unwrap();
    assert_eq!((rows.len(), columns.len()), (4, 2));
    let scatter = |cell, gene, out: &mut [f32]| {
        scatter_coo(
            CooView { rows: &[cell], columns: &[gene], values: &[1.0] },
            &rows,
            &columns,
            out,
        )
    };
    let mut out = [0.0; 8];
    scatter(9, 2, &mut out).unwrap();
    assert_eq!(out[7], 1.0);
    assert_eq!(scatter(8, 2, &mut out), Err(Error::UnknownJoinid { axis: "cell", joinid: 8 }));
    assert_eq!(scatter(3, 3, &mut out), Err(Error::UnknownJoinid { axis: "gene", joinid: 3 }));
    assert!(matches!(
        scatter(3, 2, &mut out[..7]),
        Err(Error::Length { found: 7, expected: 8, .. })
    ));
    let uneven = CooView { rows: &[3], columns: &[2, 2], values: &[1.0] };
    assert!(matches!(scatter_coo(uneven, &rows, &columns, &mut out), Err(Error::Length { .. })));
    assert_eq!(AxisIndex::list("gene", &[1, 1]).unwrap_err(), Error::Joinids { joinid: 1 });
    assert_eq!(AxisIndex::ranges("cell", [3..5, 4..6]).unwrap_err(), Error::Joinids { joinid: 4 });
}

#[test]
fn arrow_values_of_any_number_type_become_f32() {
    let joinids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 3.0]));
    let truths: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    assert_eq!(
        OwnedCoo::from_arrow(&joinids, &joinids, &doubles).unwrap().view().values,
        [0.5, 3.0]
    );
    assert_eq!(
        OwnedCoo::from_arrow(&joinids, &joinids, &joinids).unwrap().view().values,
        [1.0, 2.0]
    );
    assert_eq!(
        OwnedCoo::from_arrow(&joinids, &joinids, &truths).unwrap().view().values,
        [1.0, 0.0]
    );
    let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    assert!(matches!(
        OwnedCoo::from_arrow(&joinids, &joinids, &words),
        Err(Error::ArrowType { .. })
    ));
    assert!(matches!(
        OwnedCoo::from_arrow(&doubles, &joinids, &doubles),
        Err(Error::ArrowType { .. })
    ));
}
