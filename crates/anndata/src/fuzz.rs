//! A target for fuzzing: stores that Python wrote, with overwritten bytes, opened and read.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg somafeed_fuzz`, for
//! the package in `fuzz/` that runs it under libFuzzer. A damaged store may end in an error or in
//! other values, never in a panic.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use csr::{CsrBuffers, Narrowing};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Map, Value};
use storage::MemoryStorage;
use storage::Storage;

use crate::{AnnData, Error, Frame, Matrix, TenX};

/// A target's name, which is also that of its corpus, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("anndata", anndata)];

/// An AnnData in HDF5 as Python writes it.
const H5AD: &[u8] = include_bytes!("../tests/data/x.h5ad");

/// Rows that are read at the beginning and at the end of an element.
const FEW_ROWS: u64 = 3;

/// Input: which store (1 byte), then changes to its files, as [`MemoryStorage::changed`] takes
/// them.
fn anndata(input: &[u8]) {
    let (choice, changes) = input.split_first().map_or((0, input), |(of, rest)| (*of, rest));
    let stores = stores();
    read(Arc::new(stores[usize::from(choice) % stores.len()].changed(changes)));
}

/// An AnnData in HDF5, for crates that read such files. Input: changes to the first 64 KiB of its
/// file, as [`MemoryStorage::changed`] takes them.
pub fn h5ad(file: &str, changes: &[u8]) -> MemoryStorage {
    MemoryStorage::one(file, H5AD).changed(changes)
}

/// Opens the AnnData of a storage, or the matrix of 10x Genomics, and reads some rows of each
/// element. Errors are acceptable results, of one element and not of the others.
///
/// # Panics
/// A promise is broken.
pub fn read(storage: Arc<dyn Storage>) {
    if let Ok(Some(ten_x)) = TenX::find(Arc::clone(&storage), pool(), None) {
        read_elements(Arc::new(ten_x).anndata(Arc::clone(&storage)));
    }
    read_elements(storage);
}

fn read_elements(storage: Arc<dyn Storage>) {
    let Ok(anndata) = AnnData::open(storage, pool()) else { return };
    for frame in [anndata.obs(), anndata.var()].into_iter().flatten() {
        read_frame(&frame);
    }
    let mut matrices = vec![anndata.x()];
    for name in anndata.layers().unwrap_or_default() {
        matrices.push(anndata.layer(&name));
    }
    for name in anndata.obsm_names().unwrap_or_default() {
        matrices.push(anndata.obsm(&name));
    }
    if let Ok(Some(raw)) = anndata.raw() {
        matrices.push(raw.x());
        if let Ok(frame) = raw.var() {
            read_frame(&frame);
        }
    }
    for matrix in matrices.into_iter().flatten() {
        drop(read_matrix(&matrix));
    }
    drop(anndata.uns());
    drop(anndata.version());
}

fn read_frame(frame: &Frame) {
    let schema = frame.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    for rows in ends(frame.n_rows()) {
        for name in &names {
            if let Ok(batch) = frame.read(&[name], rows.clone()) {
                assert_eq!(batch.num_rows() as u64, rows.end - rows.start);
            }
        }
    }
}

fn read_matrix(matrix: &Matrix) -> Result<(), Error> {
    let mut out = CsrBuffers::new();
    for rows in ends(matrix.shape().0) {
        let of_rows = std::slice::from_ref(&rows);
        matrix.read_rows(of_rows, Narrowing::Nearest, &mut out)?;
        let checked = out.check();
        assert!(checked.is_ok(), "{checked:?}");
        assert_eq!(out.n_rows() as u64, rows.end - rows.start);
    }
    Ok(())
}

/// The first rows, and the last ones.
fn ends(n_rows: u64) -> [Range<u64>; 2] {
    [0..n_rows.min(FEW_ROWS), n_rows.saturating_sub(FEW_ROWS)..n_rows]
}

/// The stores, each with and without consolidated metadata.
fn stores() -> &'static [MemoryStorage] {
    static STORES: OnceLock<Vec<MemoryStorage>> = OnceLock::new();
    STORES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let read = |name: &str| {
            let served = MemoryStorage::of_folder(&folder.join(name));
            served.unwrap_or_else(|error| panic!("cannot read {name}: {error}"))
        };
        let whole = ["v2", "v3"].map(read);
        let plain = whole.clone().map(forget_consolidated);
        whole.into_iter().chain(plain).collect()
    })
}

fn forget_consolidated(mut served: MemoryStorage) -> MemoryStorage {
    served.files.remove(".zmetadata");
    if let Some(root) = served.files.get_mut("zarr.json") {
        let mut json: Map<String, Value> = serde_json::from_slice(root).unwrap_or_default();
        json.remove("consolidated_metadata");
        *root = Arc::new(Value::Object(json).to_string().into_bytes());
    }
    served
}

/// A pool of only the calling thread: handing each run to another one would take most of the time.
fn pool() -> Arc<ThreadPool> {
    thread_local! {
        static POOL: Arc<ThreadPool> = {
            let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            Arc::new(pool.unwrap_or_else(|error| panic!("there is no pool: {error}")))
        };
    }
    POOL.with(Arc::clone)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hdf5::Hdf5Storage;

    /// As the target of `fuzz/`, which knows both crates.
    fn h5ad(changes: &[u8]) {
        let file = super::h5ad("x.h5", changes);
        if let Ok(storage) = Hdf5Storage::open(Arc::new(file), "x.h5") {
            super::read(Arc::new(storage));
        }
    }

    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
        fuzz_corpus::run_kept_inputs(&[("h5ad", h5ad)]);
    }
}
