//! Groups: what lies at a place, a group's members and its metadata.
//!
//! Specification: `format_spec/group.md`. A group has a file `__tiledb_group.tdb`, details of its
//! members in `__group`, and metadata in `__meta`.

mod details;

use std::sync::Arc;

use storage::{Files, Storage};
use tiledb::{MetadataValue, ObjectType};

use crate::error::Error;
use crate::metadata;

const GROUP_FILE: &str = "__tiledb_group.tdb";
const GROUP_FOLDER: &str = "__group";
const SCHEMA_FILE: &str = "__array_schema.tdb";
const SCHEMA_FOLDER: &str = "__schema";

/// The kind of object at the root of `storage`: an array if there is a schema, otherwise a group if
/// there is a list of members or the file that older groups have; `None` if it is neither. Lists
/// the root, and nothing else.
///
/// # Errors
/// [`Error::Storage`] if the root cannot be listed.
pub fn object_type(storage: &Arc<dyn Storage>) -> Result<Option<ObjectType>, Error> {
    let entries = Files::new(Arc::clone(storage)).list("")?;
    let has = |names: [&str; 2]| entries.iter().any(|entry| names.contains(&entry.name.as_str()));
    // libtiledb, too, looks for an array first.
    Ok(if has([SCHEMA_FOLDER, SCHEMA_FILE]) {
        Some(ObjectType::Array)
    } else {
        has([GROUP_FOLDER, GROUP_FILE]).then_some(ObjectType::Group)
    })
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupMember {
    /// Its name; its URI if it was added without a name.
    pub name: String,
    /// Its URI as stored: below the group's if it is relative.
    pub uri: String,
    /// Whether the URI is relative to the group's.
    pub is_relative: bool,
    /// Whether it is a group or an array; `None` if nothing was there when it was added.
    pub kind: Option<ObjectType>,
}

impl GroupMember {
    /// Makes a member that lies in the group's own folder, under its name.
    pub fn inside(name: &str, kind: ObjectType) -> Self {
        Self { name: name.to_owned(), uri: name.to_owned(), is_relative: true, kind: Some(kind) }
    }
}

/// The members and the metadata of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    members: Vec<GroupMember>,
    metadata: Vec<(String, MetadataValue)>,
}

impl Group {
    /// Reads the group at the root of `storage` as of `timestamp`, in milliseconds since 1970;
    /// `None` for its latest state.
    ///
    /// # Errors
    /// [`Error::NotAGroup`] if there is none; [`Error::Unsupported`] for a version of its format
    /// that this crate does not know, or encryption; [`Error::Storage`], [`Error::Damaged`].
    pub fn open(storage: Arc<dyn Storage>, timestamp: Option<u64>) -> Result<Self, Error> {
        if object_type(&storage)? != Some(ObjectType::Group) {
            return Err(Error::NotAGroup { place: storage.place() });
        }
        let files = Files::new(storage);
        let timestamp = timestamp.unwrap_or(u64::MAX);
        let members = details::load(&files, timestamp)?;
        Ok(Self { members, metadata: metadata::load(&files, timestamp)? })
    }

    /// The members, sorted by name.
    pub fn members(&self) -> &[GroupMember] {
        &self.members
    }

    /// The metadata, sorted by key.
    pub fn metadata(&self) -> &[(String, MetadataValue)] {
        &self.metadata
    }
}

pub(crate) use details::UNKNOWN_KIND;
#[cfg(any(test, somafeed_fuzz))]
pub(crate) use details::parse;
