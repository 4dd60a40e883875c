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
