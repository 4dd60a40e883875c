//! Files of the data on a local disk, with their sizes and times of change.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file of the data.
#[derive(Debug)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub changed: i128,
}

impl DataFile {
    /// What a digest of the data takes of the file.
    pub fn identity(&self) -> (String, u64, String) {
        (self.path.display().to_string(), self.bytes, self.changed.to_string())
    }
}

/// Lists all files below `folders`, by path. Folders that do not exist have none.
pub fn data_files(folders: &[PathBuf]) -> io::Result<Vec<DataFile>> {
    let mut files = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        list(folder, &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Adds up the sizes of all files below `folder`, which must exist.
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
