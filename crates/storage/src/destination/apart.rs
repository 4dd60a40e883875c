//! Checks that the places to read and the places to write do not overlap.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::error::{DestinationError, file_error};
use crate::address::local_path;

/// Fails if one of `sources` equals, contains or lies in one of `places`, which need not exist yet.
/// All are local paths or addresses.
///
/// Local paths are compared by the folders that they lead to, not by their text, so links, `..` and
/// repeated mounts of a folder are resolved. A source within a file, as a group of an HDF5 file is,
/// counts as that file.
///
/// # Errors
/// [`DestinationError::SourceAtRisk`]; [`DestinationError::File`] if a source cannot be inspected.
pub fn check_apart(sources: &[&str], places: &[&str]) -> Result<(), DestinationError> {
    for source in sources {
        for place in places {
            let relation = match (local_path(source), local_path(place)) {
                (Some(source), Some(place)) => local_relation(source, place)?,
                (None, None) => remote_relation(source, place),
                _ => None,
            };
            if let Some(relation) = relation {
                return Err(DestinationError::SourceAtRisk {
                    place: (*place).to_owned(),
                    relation,
                    read: (*source).to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Identifies a file or folder, whichever path leads to it.
type Identity = (u64, u64);

fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Identities of an existing file or folder and of all its parents; of the file if the path leads
/// on within it.
fn identities(path: &Path) -> io::Result<Vec<Identity>> {
    let found = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let file = path.ancestors().find(|part| part.is_file());
            fs::canonicalize(file.ok_or(error)?)?
        }
        found => found?,
    };
    found.ancestors().map(identity).collect()
}

fn local_relation(source: &Path, place: &Path) -> Result<Option<&'static str>, DestinationError> {
    let source_chain = match identities(source) {
        // Reading the source will report this.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(file_error("inspect", source))?,
    };
    let absolute =
        std::path::absolute(place).map_err(file_error("make an absolute path of", place))?;
    let place_identity = identity(&absolute).ok();
    let there = absolute.ancestors().find(|folder| folder.exists());
    let place_chain = there.map_or_else(|| Ok(Vec::new()), identities);
    let place_chain = place_chain.map_err(file_error("inspect", place))?;
    let of_source = source_chain.first().copied();
    Ok(if place_identity.is_some() && place_identity == of_source {
        Some("is")
    } else if place_identity.is_some_and(|place| source_chain.contains(&place)) {
        Some("holds")
    } else if of_source.is_some_and(|source| place_chain.contains(&source)) {
        Some("lies in")
    } else {
        None
    })
}

fn remote_relation(source: &str, place: &str) -> Option<&'static str> {
    let names = |uri: &str| -> Vec<String> {
        let names = uri.split('/').filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        // Google Cloud Storage has two scheme names.
        if let Some(scheme) = names.first_mut().filter(|scheme| *scheme == "gs:") {
            "gcs:".clone_into(scheme);
        }
        names
    };
    let (source, place) = (names(source), names(place));
    if source == place {
        Some("is")
    } else if source.starts_with(&place) {
        Some("holds")
    } else if place.starts_with(&source) {
        Some("lies in")
    } else {
        None
    }
}
