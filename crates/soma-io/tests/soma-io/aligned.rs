//! Rows by the joinids of cells, in another order or not all there.

use std::sync::Arc;

use proptest::prelude::*;
use soma_io::{AlignedReader, CsrBuffers, MemoryReader, contract};

fn csr(rows: &[Vec<f32>], n_columns: usize) -> CsrBuffers {
    let mut csr = CsrBuffers { row_offsets: vec![0], n_columns, ..CsrBuffers::default() };
    for row in rows {
        for (column, value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            csr.columns.push(column);
            csr.values.push(*value);
        }
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn it_keeps_the_contract_for_any_rows(
        order in proptest::sample::subsequence((0..12_u32).collect::<Vec<_>>(), 0..12)
            .prop_shuffle(),
        gaps in proptest::collection::vec(0..3_usize, 12),
        values in proptest::collection::vec(proptest::collection::vec(0..4_u8, 5), 12),
    ) {
        let stored: Vec<Vec<f32>> =
            values.iter().map(|row| row.iter().map(|value| f32::from(*value)).collect()).collect();
        let rows: Vec<u32> = order
            .iter()
            .zip(&gaps)
            .flat_map(|(row, gap)| std::iter::repeat_n(0, *gap).chain([row + 1]))
            .collect();
        let of_row = |row: &u32| match row {
            0 => vec![0.0; 5],
            row => stored[*row as usize - 1].clone(),
        };
        let expected: Vec<Vec<f32>> = rows.iter().map(of_row).collect();
        let inner = Arc::new(MemoryReader::new(csr(&stored, 5)).unwrap());
        let aligned = AlignedReader::new(inner, "X", rows.into()).unwrap();
        contract::check(&aligned, &csr(&expected, 5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_columns_of_a_graph_are_cells(
        order in Just((0..7_u32).collect::<Vec<_>>()).prop_shuffle(),
        gaps in proptest::collection::vec(0..2_usize, 7),
        values in proptest::collection::vec(proptest::collection::vec(0..4_u8, 7), 7),
    ) {
        let stored: Vec<Vec<f32>> =
            values.iter().map(|row| row.iter().map(|value| f32::from(*value)).collect()).collect();
        let rows: Vec<u32> = order
            .iter()
            .zip(&gaps)
            .flat_map(|(row, gap)| std::iter::repeat_n(0, *gap).chain([row + 1]))
            .collect();
        let value = |row: &u32, column: &u32| match (row, column) {
            (0, _) | (_, 0) => 0.0,
            (row, column) => stored[*row as usize - 1][*column as usize - 1],
        };
        let row = |row| rows.iter().map(|column| value(row, column)).collect();
        let expected: Vec<Vec<f32>> = rows.iter().map(row).collect();
        let inner = Arc::new(MemoryReader::new(csr(&stored, 7)).unwrap());
        let n_cells = rows.len();
        let aligned = AlignedReader::graph(inner, "obsp", rows.into()).unwrap();
        contract::check(&aligned, &csr(&expected, n_cells));
    }
}

#[test]
fn a_graph_of_other_cells_is_an_error() {
    for (rows, n_columns, expected) in [
        (vec![1, 2], 3, "2 rows, but 3 columns"),
        (vec![2, 0], 2, "row 0 belongs to no cell"),
        (vec![1, 3], 2, "there are 2"),
    ] {
        let inner = MemoryReader::new(csr(&[vec![1.0], vec![2.0]], n_columns)).unwrap();
        let error = AlignedReader::graph(Arc::new(inner), "obsp", rows.into()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn rows_that_cannot_be_are_an_error() {
    let inner = || Arc::new(MemoryReader::new(csr(&[vec![1.0], vec![2.0]], 1)).unwrap());
    for (rows, expected) in [
        (vec![1, 3], "cell 1 has row 2, but there are 2"),
        (vec![2, 0, 2], "row 1 belongs to cell 2 and another"),
    ] {
        let error = AlignedReader::new(inner(), "prot", rows.into()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("prot"), "{error}");
    }
}
