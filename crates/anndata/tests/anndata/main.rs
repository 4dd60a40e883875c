//! Stores written by Python's anndata, random stores against a naive reader, and damaged stores.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod categories;
mod collection;
mod damaged;
mod lists;
mod python_written;
mod random;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anndata::{AnnData, Error, Matrix};
use csr::{CsrBuffers, Narrowing};
use storage::LocalStorage;

fn open(folder: &Path) -> Result<AnnData, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    AnnData::open(Arc::new(LocalStorage::new(folder)), Arc::new(pool))
}

fn rows(matrix: &Matrix, rows: &[Range<u64>]) -> Result<CsrBuffers, Error> {
    let mut out = CsrBuffers::new();
    matrix.read_rows(rows, Narrowing::Nearest, &mut out)?;
    out.check().unwrap();
    Ok(out)
}

/// The rows with all their values.
fn dense(csr: &CsrBuffers) -> Vec<Vec<f32>> {
    let of_row = |row| {
        let mut values = vec![0.0; csr.n_columns];
        let (columns, stored) = csr.row(row);
        columns.iter().zip(stored).for_each(|(column, value)| values[*column as usize] = *value);
        values
    };
    (0..csr.n_rows()).map(of_row).collect()
}

/// The folder with the stores that Python wrote.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A copy of a store that Python wrote.
fn copied(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixtures().join(name), folder.path());
    folder
}

/// Removes consolidated metadata.
fn forget_consolidated(folder: &Path) {
    drop(fs::remove_file(folder.join(".zmetadata")));
    let root = folder.join("zarr.json");
    if root.exists() {
        edit_json(&root, |json| {
            drop(json.as_object_mut().unwrap().remove("consolidated_metadata"));
        });
    }
}

fn edit_json(path: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let mut json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    edit(&mut json);
    fs::write(path, json.to_string()).unwrap();
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
