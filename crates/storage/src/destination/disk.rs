//! File system operations of a destination.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::error::{DestinationError, file_error};

/// Whether anything has this name, including a broken link.
pub(super) fn is_there(path: &Path) -> Result<bool, DestinationError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error("inspect", path)(error)),
    }
}

/// Removes a file, or a folder with all its contents. Removes a link, never its target.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits until a file, or a folder's list of names, is on disk.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Like [`sync`], for a folder, with a typed error.
pub(super) fn sync_folder(path: &Path) -> Result<(), DestinationError> {
    sync(path).map_err(file_error("sync", path))
}

/// Creates a folder and its missing parents, and calls `sync` with each folder in which one was
/// created. `path` is absolute.
pub(super) fn create_folders(
    path: &Path,
    sync: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<(), DestinationError> {
    let missing = path.ancestors().take_while(|folder| !folder.exists()).count();
    fs::create_dir_all(path).map_err(file_error("create the folder", path))?;
    for parent in path.ancestors().skip(1).take(missing) {
        sync(parent).map_err(file_error("sync", parent))?;
    }
    Ok(())
}

/// Calls `sync` with each file and folder below a folder, and with the folder itself, a folder
/// after its contents; of a file, with the file. Returns the bytes of all files.
pub(super) fn sync_below(
    folder: &Path,
    sync: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Result<u64, DestinationError> {
    let found = fs::symlink_metadata(folder).map_err(file_error("inspect", folder))?;
    if found.is_file() {
        sync(folder).map_err(file_error("sync", folder))?;
        return Ok(found.len());
    }
    let failed = |source| file_error("list", folder)(source);
    let mut n_bytes = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, found) = (entry.path(), entry.metadata().map_err(failed)?);
        if found.is_dir() {
            n_bytes += sync_below(&path, sync)?;
        } else {
            n_bytes += found.len();
            sync(&path).map_err(file_error("sync", &path))?;
        }
    }
    sync(folder).map_err(file_error("sync", folder))?;
    Ok(n_bytes)
}
