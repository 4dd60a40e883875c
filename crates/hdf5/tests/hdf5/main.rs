//! Reads what h5py wrote, through the reader of Zarr (see `tests/make_fixtures.py`).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod anndata;
mod damaged;
mod extremes;
mod matrix;
#[path = "../../../soma-io/tests/support/python.rs"]
mod python;
mod requests;
mod written;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrays::{DecodeMemory, ElementType, StoredArray};
use hdf5::Hdf5Storage;
use serde_json::{Value, json};
use storage::{LocalStorage, Storage};

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn open(folder: &Path, name: &str) -> Result<Arc<dyn Storage>, hdf5::Error> {
    let files: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder));
    Ok(Arc::new(Hdf5Storage::open(files, name)?))
}

/// The elements of an array, row by row.
fn elements(storage: &Arc<dyn Storage>, path: &str) -> Result<Vec<Value>, arrays::Error> {
    let array = StoredArray::open(storage, path)?;
    if array.is_strings() {
        let strings = array.read_strings(0..array.n_rows())?;
        return Ok(strings.into_iter().map(Value::from).collect());
    }
    let n_elements: u64 = array.shape().iter().fold(1, |n, len| n.saturating_mul(*len));
    let n_bytes = array.element().map_or(0, ElementType::n_bytes);
    // A damaged shape may ask for more than there is; a request for another number is an error.
    let mut bytes = vec![0; n_elements.min(1 << 20) as usize * n_bytes];
    let request = array.request_bytes(&[0..array.n_rows()], &mut bytes)?;
    arrays::read_requests(&**storage, &DecodeMemory::default(), vec![request])?;
    let number = |bytes: &[u8]| number(array.element(), bytes);
    Ok(bytes.chunks_exact(n_bytes.max(1)).map(number).collect())
}

fn number(element: Option<ElementType>, bytes: &[u8]) -> Value {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    let unused = 64 - 8 * bytes.len() as u32;
    match element {
        Some(ElementType::Bool) => json!(bits == 1),
        Some(ElementType::F32) => json!(f32::from_bits(bits as u32)),
        Some(ElementType::F64) => json!(f64::from_bits(bits)),
        Some(ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64) => {
            json!((bits << unused).cast_signed() >> unused)
        }
        _ => json!(bits),
    }
}
