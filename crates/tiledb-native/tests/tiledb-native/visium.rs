//! The counts of a real experiment, written by Python tiledbsoma in format 22.

use std::path::PathBuf;
use std::sync::Arc;

use storage::LocalStorage;
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions, Unsupported};

/// X of the Visium experiment.
fn x() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/visium-2898x19465/soma/ms/RNA/X/raw")
}

#[test]
fn all_counts_come_through() {
    let path = x();
    let array = Array::open_local(path, &OpenOptions::new(2)).unwrap();
    assert_eq!((array.n_rows(), array.n_columns(), array.n_cells()), (2898, 19465, 1_069_459));
    assert_eq!((array.n_fragments(), array.attribute().0), (1, "soma_data"));
    let mut out = CsrBuffers::new();
    let stats = array.read_csr(&[0..2898], &ColumnSelection::All, &mut out).unwrap();
    assert_eq!(
        (stats.values, out.nnz(), out.n_rows(), out.n_columns),
        (1_069_459, 1_069_459, 2898, 19465)
    );
    assert_eq!(out.values.iter().map(|&value| f64::from(value)).sum::<f64>(), 3_085_005.0);
    assert!((0..2898).all(|row| out.row(row).0.is_sorted_by(|a, b| a < b)));
}

#[test]
fn parts_are_the_same_as_in_the_whole() {
    let path = x();
    let array = Array::open_local(path, &OpenOptions::new(2)).unwrap();
    let mut whole = CsrBuffers::new();
    array.read_csr(&[0..2898], &ColumnSelection::All, &mut whole).unwrap();
    let rows = [2000..2064, 5..6, 100..164, 2890..2898, 64..64, 1000..1500];
    let mut part = CsrBuffers::new();
    for selection in [
        ColumnSelection::All,
        ColumnSelection::Range(3000..9000),
        ColumnSelection::List(vec![19_000, 7, 2047, 2048, 400]),
    ] {
        let stats = array.read_csr(&rows, &selection, &mut part).unwrap();
        let asked: Vec<u64> = rows.iter().flat_map(Clone::clone).collect();
        assert_eq!((part.n_rows(), stats.values as usize), (asked.len(), part.nnz()));
        for (idx, &row) in asked.iter().enumerate() {
            let (columns, values) = whole.row(row as usize);
            let mut expect: Vec<(u32, f32)> = columns
                .iter()
                .zip(values)
                .filter_map(|(&column, &value)| {
                    let position = match &selection {
                        ColumnSelection::All => Some(column),
                        ColumnSelection::Range(range) => {
                            range.contains(&column.into()).then(|| column - range.start as u32)
                        }
                        ColumnSelection::List(list) => list
                            .iter()
                            .position(|&one| one == u64::from(column))
                            .map(|at| at as u32),
                    };
                    position.map(|position| (position, value))
                })
                .collect();
            expect.sort_by_key(|pair| pair.0);
            let (columns, values) = part.row(idx);
            let found: Vec<_> = columns.iter().copied().zip(values.iter().copied()).collect();
            assert_eq!(found, expect, "row {row} with {selection:?}");
        }
    }
}

/// The experiment's other arrays, obs and var, have one dimension: they are rejected before
/// anything is read.
#[test]
fn data_frames_are_declined() {
    let x = x();
    let measurement = x.parent().and_then(|folder| folder.parent()).unwrap();
    let experiment = measurement.parent().and_then(|folder| folder.parent()).unwrap();
    for frame in [experiment.join("obs"), measurement.join("var")] {
        let storage = Arc::new(LocalStorage::new(&frame));
        let reason = Array::supports(storage, None).unwrap();
        let expected = Unsupported::DimensionCount { n_dimensions: 1 };
        assert_eq!(reason, Some(expected), "{}", frame.display());
    }
}
