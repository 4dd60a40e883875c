//! The cells and values that tiledbsoma returned for a selection, written by
//! `python/query_experiment.py`.

use std::path::Path;

use half::f16;
use serde_json::Value;

/// Cells, obs, var and values of a selection.
pub(crate) struct Answer {
    /// The joinids of the cells, ascending.
    pub(crate) joinids: Vec<i64>,
    /// Descriptions of `obs` and `var`.
    pub(crate) frames: Value,
    /// The offset of each cell's first value, then the number of values.
    pub(crate) row_offsets: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) halves: Vec<f16>,
    /// The values after each transform.
    pub(crate) transformed: Vec<Vec<f32>>,
}

/// Splits off the first 4-byte numbers of `bytes`.
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
