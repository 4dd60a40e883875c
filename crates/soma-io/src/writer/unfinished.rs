//! What an unfinished writer left in a folder: only arrays with rows are of use to the next.
//!
//! A fragment counts from the moment at which its commit file is there, and all of it is on the
//! disk then. Everything else is written again: arrays without rows, groups, and fragments that
//! were begun.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use storage::LocalStorage;
use tiledb_native::{Array, ArrayDescription, OpenOptions};

use super::store::file_error;
use crate::Error;

/// The folders of an array: of its schemas, its fragments, and the files that make these count.
const SCHEMAS: &str = "__schema";
const FRAGMENTS: &str = "__fragments";
const COMMITS: &str = "__commits";

/// Removes what is of no use from an unfinished experiment in `folder`.
pub(super) fn keep_rows(folder: &Path) -> Result<(), Error> {
    for (path, is_folder) in entries(folder)? {
        if !is_folder || is_internal(&path) {
            remove(&path, is_folder)?;
        } else if !path.join(SCHEMAS).is_dir() {
            keep_rows(&path)?;
        } else if end_of_rows(&path)? == 0 {
            remove(&path, true)?;
        } else {
            remove_begun_fragments(&path)?;
        }
    }
    Ok(())
}

/// The row after the last one that is stored in an array; 0 if there is no array or no row.
pub(super) fn end_of_rows(folder: &Path) -> Result<u64, Error> {
    let array = match ArrayDescription::open(Arc::new(LocalStorage::new(folder)), None) {
        Ok(array) => array,
        Err(tiledb_native::Error::NotAnArray { .. }) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    let domain = array.non_empty_domain()?;
    let last = domain.and_then(|bounds| bounds.first().copied()).map(|(_, last)| last);
    Ok(last.map_or(0, |last| u64::try_from(last).unwrap_or(0) + 1))
}

/// The number of values that are stored in a matrix.
pub(super) fn n_values(folder: &Path) -> Result<u64, Error> {
    Ok(Array::open_local(folder, &OpenOptions::new(1))?.n_cells())
}

fn remove_begun_fragments(array: &Path) -> Result<(), Error> {
    for (path, _) in entries(&array.join(FRAGMENTS))? {
        let name = path.file_name().unwrap_or_default();
        let mut commit = name.to_owned();
        commit.push(".wrt");
        if !array.join(COMMITS).join(commit).is_file() {
            remove(&path, true)?;
        }
    }
    Ok(())
}

/// Whether TileDB has this name for parts of a group.
fn is_internal(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("__"))
}

/// The entries of a folder, and whether each is a folder.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let read = || {
        let entries = fs::read_dir(folder)?;
        entries
            .map(|entry| {
                let entry = entry?;
                Ok((entry.path(), entry.file_type()?.is_dir()))
            })
            .collect::<std::io::Result<_>>()
    };
    read().map_err(file_error("list", folder))
}

fn remove(path: &Path, is_folder: bool) -> Result<(), Error> {
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(file_error("remove what an unfinished run left at", path))
}
