//! Arrays written by many versions of libtiledb (`tests/data/write.py`), intact and damaged.

mod cache;
mod concurrent;
mod damage;
mod extremes;
mod formats;
mod kept;
mod limits;
mod object;
mod packed;
mod prefetch;
mod replaced;
mod tables;
mod times;

use std::fs;
use std::path::{Path, PathBuf};

use packed::MemoryStorage;

/// The array packed in `tests/data/<name>.files`.
#[track_caller]
pub(crate) fn stored(name: &str) -> MemoryStorage {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format!("{name}.files"));
    MemoryStorage::unpack(&fs::read(&path).unwrap())
}

/// Writes the files of a stored array to a folder.
#[track_caller]
pub(crate) fn write_stored(name: &str, folder: &Path) {
    for (path, bytes) in stored(name).files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
