//! The arrays of a group.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use storage::Storage;

use crate::chunked_array::ChunkedArray;
use crate::error::Error;
use crate::metadata::{self, Unopened};

/// The group at the root of a storage.
#[derive(Debug)]
pub struct Group {
    /// Its attributes.
    pub attributes: Map<String, Value>,
    /// Its arrays by name, each opened, or the reason why it was not.
    pub arrays: Vec<(String, Result<ChunkedArray, Error>)>,
    /// The names of groups in it.
    pub groups: Vec<String>,
}

impl Group {
    /// Opens all arrays of the group at the root of `storage`. Names come from a list of its
    /// folders, or, where nothing can be listed, from consolidated metadata.
    ///
    /// # Errors
    /// [`Error::Open`] if the root is an array, if its metadata cannot be read, or if nothing tells
    /// the names.
    pub fn open(storage: &Arc<dyn Storage>) -> Result<Self, Error> {
        match metadata::open(storage, "") {
            Err(Unopened::Missing | Unopened::IsGroup) => {}
            Err(unopened) => return Err(unopened.error("", &**storage)),
            Ok(_) => {
                let text = "it is an array, not a group of arrays: name the folder above it";
                return Err(Unopened::Unsupported(text.into()).error("", &**storage));
            }
        }
        let attributes = metadata::group_attributes(&**storage, "")
            .map_err(|unopened| unopened.error("", &**storage))?;
        let (mut arrays, mut groups) = (Vec::new(), Vec::new());
        for name in names(&**storage)? {
            match metadata::open(storage, &name) {
                Ok(opened) => {
                    let array = ChunkedArray::new(storage, &name, opened);
                    arrays.push((name, array));
                }
                // A folder that is nothing of Zarr's, or a group of v2.
                Err(Unopened::Missing) => {
                    if storage.size(&format!("{name}/.zgroup")).is_ok() {
                        groups.push(name);
                    }
                }
                Err(Unopened::IsGroup) => groups.push(name),
                Err(unopened) => {
                    let error = unopened.error(&name, &**storage);
                    arrays.push((name, Err(error)));
                }
            }
        }
        Ok(Self { attributes, arrays, groups })
    }
}

/// The names of folders that may be arrays or groups, in order.
fn names(storage: &dyn Storage) -> Result<BTreeSet<String>, Error> {
    let listed = storage.list("");
    if let Ok(entries) = &listed {
        let folders = entries.iter().filter(|entry| entry.is_folder);
        let names: BTreeSet<String> = folders.map(|entry| entry.name.clone()).collect();
        if !names.is_empty() {
            return Ok(names);
        }
    }
    let consolidated =
        metadata::consolidated_names(storage).map_err(|unopened| unopened.error("", storage))?;
    match (consolidated, listed) {
        (Some(names), _) => Ok(names),
        (None, Ok(_)) => Ok(BTreeSet::new()),
        (None, Err(error)) => {
            let text =
                format!("its arrays cannot be listed, and have no consolidated metadata: {error}");
            Err(Unopened::Unread(text.into()).error("", storage))
        }
    }
}
