//! Metadata of arrays and groups: named values in a file.
//!
//! Specification: `format_spec/metadata.md`.

use std::fs;
use std::path::Path;

use super::new_file::{absolute, create_folders, failed, sync_folder, timestamped, write_new};
use super::{generic_tile, schema};
use crate::error::Error;
use crate::timestamped_name;
use tiledb::MetadataValue;

/// The folder of the files, in that of the array or group.
const FOLDER: &str = "__meta";

/// Adds metadata to the array in `folder`, as of `timestamp`, in milliseconds since 1970. A value
/// replaces an older one of the same name.
///
/// # Errors
/// [`Error::Metadata`] for a value that cannot be stored, or a name that comes twice;
/// [`Error::Storage`].
pub fn write_array_metadata(
    folder: impl AsRef<Path>,
    values: &[(&str, MetadataValue)],
    timestamp: u64,
) -> Result<(), Error> {
    write(&absolute(folder.as_ref()), values, timestamp)
}

/// Writes the metadata of the array or group at `root`; without values it writes no file.
pub(super) fn write(
    root: &Path,
    values: &[(&str, MetadataValue)],
    timestamp: u64,
) -> Result<(), Error> {
    let place = || root.display().to_string();
    let content = content(values).map_err(|(name, problem)| Error::Metadata {
        place: place(),
        name,
        problem,
    })?;
    create_folders(root, &[FOLDER])?;
    let folder = root.join(FOLDER);
    if !values.is_empty() {
        let path = folder.join(timestamped(root, (timestamp, timestamp)));
        let mut bytes = Vec::new();
        generic_tile::append(schema::VERSION, &content, &mut bytes);
        write_new(&path, &bytes)?;
    }
    sync_folder(&folder)?;
    sync_folder(root)
}

/// Removes the metadata that an incomplete group left in `root`, and nothing that has another name
/// than files of metadata have.
pub(super) fn remove_leftover(root: &Path) -> Result<(), Error> {
    let folder = root.join(FOLDER);
    if !folder.is_dir() {
        return Ok(());
    }
    let listing = |source| failed("list", &folder)(source);
    for entry in fs::read_dir(&folder).map_err(listing)? {
        let entry = entry.map_err(listing)?;
        let is_ours = entry.file_type().map_err(listing)?.is_file()
            && entry.file_name().to_str().and_then(timestamped_name::parse).is_some();
        if is_ours {
            fs::remove_file(entry.path()).map_err(failed("remove", &entry.path()))?;
        }
    }
    // Fails if anything else is in it.
    fs::remove_dir(&folder).map_err(failed("remove", &folder))
}

/// The values by name: the length of the name, the name, whether it was deleted, the type, the
/// number of values, and these.
///
/// # Errors
/// A name, and what is wrong with its value.
fn content(values: &[(&str, MetadataValue)]) -> Result<Vec<u8>, (String, String)> {
    let mut sorted: Vec<_> = values.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    if let Some([(name, _), _]) = sorted.array_windows().find(|[(a, _), (b, _)]| a == b) {
        return Err(((*name).to_owned(), "it comes twice".to_owned()));
    }
    let mut out = Vec::new();
    for (name, value) in sorted {
        let failed = |problem| ((*name).to_owned(), problem);
        let (datatype, n_values, bytes) = value.to_stored().map_err(failed)?;
        out.extend_from_slice(&(name.len() as u32).to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.push(schema::number(datatype).map_err(failed)?);
        out.extend_from_slice(&n_values.to_le_bytes());
        out.extend_from_slice(&bytes);
        generic_tile::check_size(out.len() as u64).map_err(failed)?;
    }
    Ok(out)
}
