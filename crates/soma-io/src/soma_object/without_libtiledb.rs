//! In place of libtiledb, if its Cargo feature is off: an error that says why it would be needed.

use tiledb::ObjectType;

use super::{GroupParts, Place, StoredArray, StoredTable};
use crate::Error;

fn needed<T>(place: &Place, reason: String) -> Result<T, Error> {
    Err(Error::NeedsLibtiledb { uri: place.uri.clone(), reason })
}

pub(super) fn object_type(place: &Place, why: String) -> Result<Option<ObjectType>, Error> {
    needed(place, why)
}

pub(super) fn group(place: &Place, why: String) -> Result<GroupParts, Error> {
    needed(place, why)
}

pub(super) fn array(place: &Place, why: String) -> Result<Box<dyn StoredArray>, Error> {
    needed(place, why)
}

pub(super) fn table(place: &Place, why: String) -> Result<Box<dyn StoredTable>, Error> {
    needed(place, why)
}

pub(super) fn exists(place: &Place, why: String) -> Result<bool, Error> {
    needed(place, why)
}
