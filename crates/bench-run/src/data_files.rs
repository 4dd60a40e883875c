//! Data files on a local disk, with their sizes and modification times.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A data file.
#[derive(Debug)]
pub struct DataFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time, in nanoseconds since 1970.
    pub changed: i128,
}

impl DataFile {
    /// Returns path, size and modification time, for a digest of the data.
    pub fn identity(&self) -> (String, u64, String) {
        (self.path.display().to_string(), self.bytes, self.changed.to_string())
    }
}

/// Lists all files below `folders`, sorted by path. Skips folders that do not exist. Fails if a
/// folder or a file's metadata cannot be read.
pub fn data_files(folders: &[PathBuf]) -> io::Result<Vec<DataFile>> {
    let mut files = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        list(folder, &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Adds up the sizes of all files below `folder`, in bytes. Fails if `folder` does not exist.
pub fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    Ok(files.iter().map(|file| file.bytes).sum())
}

fn list(folder: &Path, into: &mut Vec<DataFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = fs::metadata(&path)?;
        if metadata.is_dir() {
            list(&path, into)?;
        } else {
            let changed =
                i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
            into.push(DataFile { path, bytes: metadata.len(), changed });
        }
    }
    Ok(())
}
