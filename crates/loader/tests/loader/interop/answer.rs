//! What tiledbsoma gave for a selection, as `python/query_experiment.py` writes it down.

use std::path::Path;

use half::f16;
use serde_json::Value;

/// Cells, obs, var and values of a selection.
pub(crate) struct Answer {
    /// Of the cells, ascending.
    pub(crate) joinids: Vec<i64>,
    /// `obs` and `var` as they are described.
    pub(crate) frames: Value,
    /// Where each cell's values begin, and at last their number.
    pub(crate) row_offsets: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) halves: Vec<f16>,
    /// The values as each transform makes them.
    pub(crate) transformed: Vec<Vec<f32>>,
}

/// The first numbers of four bytes each, which `bytes` is left without.
fn numbers<T>(bytes: &mut &[u8], nnz: usize, number: impl Fn([u8; 4]) -> T) -> Vec<T> {
    let (head, tail) = bytes.split_at(4 * nnz);
    *bytes = tail;
    head.as_chunks().0.iter().map(|chunk| number(*chunk)).collect()
}

impl Answer {
    pub(crate) fn read(value: &Value, path: &Path, n_transforms: usize) -> Self {
        let joinids: Vec<i64> =
            value["joinids"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
        let nnz = value["nnz"].as_u64().unwrap() as usize;
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len(), nnz * (4 + 4 + 4 + 2 + 4 * n_transforms));
        let mut bytes = &bytes[..];
        let rows = numbers(&mut bytes, nnz, u32::from_le_bytes);
        let columns = numbers(&mut bytes, nnz, u32::from_le_bytes);
        let values = numbers(&mut bytes, nnz, f32::from_le_bytes);
        let (halves, mut bytes) = bytes.split_at(2 * nnz);
        let halves = halves.as_chunks().0.iter().map(|half| f16::from_le_bytes(*half)).collect();
        let transformed =
            (0..n_transforms).map(|_| numbers(&mut bytes, nnz, f32::from_le_bytes)).collect();
        assert!(rows.is_sorted());
        let row_offsets =
            (0..=joinids.len()).map(|row| rows.partition_point(|r| (*r as usize) < row)).collect();
        Self { joinids, frames: value.clone(), row_offsets, columns, values, halves, transformed }
    }
}
