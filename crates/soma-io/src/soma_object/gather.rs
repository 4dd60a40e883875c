//! Reads ahead what opening the objects of an experiment needs, if it is remote.
//!
//! A small experiment is listed as a whole, and the objects on the way to X are read at once, by
//! the names that SOMA gives them. In a large one each collection's members are read together. The
//! groups alone decide what the members are: what was read in vain costs a request and no more.

use std::io;

use storage::{GatheredStorage, Storage as _};

use super::Place;
use crate::Error;

/// An experiment with more files is listed folder by folder. One answer of a store has a file more.
const MOST_FILES: usize = 999;
/// Most members of a collection to read ahead.
const MOST_MEMBERS: usize = 16;

/// Reads ahead what lies on the way to obs, var and X of the experiment at `place`.
///
/// # Errors
/// If the store cannot be reached.
pub(crate) fn experiment(place: &Place) -> Result<(), Error> {
    let Some((gathered, "")) = place.gathered() else { return Ok(()) };
    match gathered.gather_all_names(MOST_FILES) {
        Ok(true) => {
            let folders = way_to_x(gathered).map_err(|error| unreachable(place, error))?;
            ahead(place, gathered, &folders)?;
        }
        Ok(false) => {}
        // Whoever may not list everything, or has objects beside it with other keys, may still list
        // the folders.
        Err(error) if is_refused(&error) => {}
        Err(error) => return Err(unreachable(place, error)),
    }
    Ok(())
}

/// Reads ahead what the object at `place` needs.
///
/// # Errors
/// If the store cannot be reached.
pub(crate) fn object(place: &Place) -> Result<(), Error> {
    objects(place, std::slice::from_ref(&place.uri))
}

/// Reads ahead what the members of the collection at `place` need, by their names and URIs. In a
/// small experiment, members off the way to X wait until they are opened.
///
/// # Errors
/// If the store cannot be reached.
pub(crate) fn members(place: &Place, members: &[(String, String)]) -> Result<(), Error> {
    let is_small = place.gathered().is_some_and(|(gathered, _)| gathered.knows_all_names());
    if MOST_MEMBERS < members.len() || is_small {
        return Ok(());
    }
    let uris: Vec<String> = members.iter().map(|(_, uri)| uri.clone()).collect();
    objects(place, &uris)
}

fn objects(place: &Place, uris: &[String]) -> Result<(), Error> {
    let Some((gathered, _)) = place.gathered() else { return Ok(()) };
    let places: Vec<Place> = uris.iter().map(|uri| place.at(uri)).collect();
    let folders = places.iter().filter_map(|place| Some(place.gathered()?.1.to_owned()));
    ahead(place, gathered, &folders.collect::<Vec<_>>())
}

/// Gathers `folders`. What is missing or refused is left to the reads that need it.
fn ahead(place: &Place, gathered: &GatheredStorage, folders: &[String]) -> Result<(), Error> {
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let failed = |source| {
        let (action, file) = ("read what opens".to_owned(), place.uri.clone());
        storage::Error::File { action, file, source }.into()
    };
    tiledb_native::gather(gathered, &folders).map_err(failed)
}

/// The folders of the experiment, of obs, and for each measurement of var, X and its layers, if all
/// names are known.
fn way_to_x(gathered: &GatheredStorage) -> io::Result<Vec<String>> {
    let mut folders = ["", "obs", "ms"].map(str::to_owned).to_vec();
    for measurement in below(gathered, "ms")? {
        let x = format!("{measurement}/X");
        folders.extend(below(gathered, &x)?);
        folders.extend([format!("{measurement}/var"), x, measurement]);
    }
    Ok(folders)
}

/// The folders in `folder` that are not TileDB's own.
fn below(gathered: &GatheredStorage, folder: &str) -> io::Result<Vec<String>> {
    let entries = gathered.list(folder)?.into_iter();
    let entries = entries.filter(|entry| entry.is_folder && !entry.name.starts_with("__"));
    Ok(entries.map(|entry| format!("{folder}/{}", entry.name)).take(MOST_MEMBERS).collect())
}

fn is_refused(error: &io::Error) -> bool {
    let kinds =
        [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported];
    kinds.contains(&error.kind())
}

fn unreachable(place: &Place, source: io::Error) -> Error {
    let (action, file) = ("list".to_owned(), format!("{}/", place.uri));
    storage::Error::File { action, file, source }.into()
}
