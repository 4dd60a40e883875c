//! SOMA objects: TileDB objects with SOMA's metadata.
//!
//! Groups, metadata and data frames are read natively. What the native reader does not support is
//! read through libtiledb (`through_libtiledb`), or is an error in a build without it
//! (`without_libtiledb`).

pub(crate) mod gather;
mod native;
mod place;
mod stored;
#[cfg(feature = "libtiledb")]
mod through_libtiledb;
#[cfg(not(feature = "libtiledb"))]
#[path = "soma_object/without_libtiledb.rs"]
mod through_libtiledb;

use std::path::Path;

use tiledb::{MetadataValue, ObjectType};

use crate::Error;
use crate::file_kind::file_kind;
use crate::native::NotNative;
pub(crate) use place::{Place, THREADS_PARAMETER};
pub(crate) use stored::{StoredArray, StoredColumn, StoredTable};
#[cfg(feature = "libtiledb")]
pub(crate) use through_libtiledb::approximate_cells;

pub(crate) const OBJECT_TYPE: &str = "soma_object_type";
pub(crate) const ENCODING_VERSION: &str = "soma_encoding_version";
pub(crate) const CURRENT_ENCODING: &str = "1.1.0";

/// The supported encoding versions. Names of types and versions are the same in both; only in the
/// newer one, arrays have a current domain.
const KNOWN_ENCODINGS: [&str; 2] = ["1", CURRENT_ENCODING];

type Metadata = Vec<(String, MetadataValue)>;
/// The members of a group, each with its name and its URI, and the group's metadata.
type GroupParts = (Vec<(String, String)>, Metadata);

/// A SOMA collection: a group with members.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) place: Place,
    /// The name and the URI of each.
    members: Vec<(String, String)>,
}

impl Collection {
    /// Opens a group and checks that its SOMA type is one of `wanted`. Errors name the first of
    /// these.
    pub(crate) fn open(place: Place, wanted: &[&'static str]) -> Result<Self, Error> {
        let named = wanted.first().copied().unwrap_or("SOMACollection");
        gather::object(&place)?;
        match object_type(&place)? {
            Some(ObjectType::Group) => {}
            Some(ObjectType::Array) => {
                let array = open_any_array(&place)?;
                let found =
                    text(&array.metadata()?, OBJECT_TYPE).unwrap_or("a TileDB array").to_owned();
                return Err(Error::NotA { uri: place.uri, wanted: named, found });
            }
            None => return Err(nothing_at(&place, named)),
        }
        let (members, metadata) =
            place.open(|files| native::group(files, &place), through_libtiledb::group)?;
        check(&place.uri, &metadata, wanted, "a TileDB group that is not of SOMA")?;
        gather::members(&place, &members)?;
        Ok(Self { place, members })
    }

    /// The names of the members, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.members.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// Opens a member that is a collection itself.
    pub(crate) fn collection(&self, name: &str) -> Result<Self, Error> {
        Self::open(self.member("collection", name)?, &["SOMACollection"])
    }

    /// The place of a member.
    pub(crate) fn member(&self, kind: &'static str, name: &str) -> Result<Place, Error> {
        let member = self.members.iter().find(|(found, _)| found == name);
        let (_, uri) = member.ok_or_else(|| Error::NoMember {
            uri: self.place.uri.clone(),
            kind,
            name: name.to_owned(),
            existing: self.names(),
        })?;
        Ok(self.place.at(uri))
    }
}

/// Opens an array, and checks that its SOMA type is one of `wanted`. Errors name the first of
/// these. Also returns its metadata.
pub(crate) fn open_array(
    place: &Place,
    wanted: &[&'static str],
) -> Result<(Box<dyn StoredArray>, Metadata), Error> {
    gather::object(place)?;
    check_is_array(place, wanted.first().copied().unwrap_or("SOMASparseNDArray"))?;
    let array = open_any_array(place)?;
    let metadata = array.metadata()?;
    check(&place.uri, &metadata, wanted, "a TileDB array that is not of SOMA")?;
    Ok((array, metadata))
}

/// How the rows of a table are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableIndex {
    /// By joinid, which is the only dimension.
    Joinid,
    /// Not at all: reads return all rows, in any order.
    Other,
}

/// Opens a table, and checks that its SOMA type is `wanted`. `check_schema` says how its rows are
/// found, before the table is opened.
pub(crate) fn open_table(
    place: &Place,
    wanted: &'static str,
    check_schema: impl FnOnce(&tiledb::Schema) -> Result<TableIndex, Error>,
) -> Result<Box<dyn StoredTable>, Error> {
    let (array, _) = open_array(place, &[wanted])?;
    let index = check_schema(array.schema())?;
    let why_not_native = array.why_not_native().map(str::to_owned);
    drop(array);
    let native = |files| {
        let table = native::NativeTable::open(files, place, (why_not_native, index))?;
        Ok(Box::new(table) as Box<dyn StoredTable>)
    };
    place.open(native, through_libtiledb::table)
}

fn open_any_array(place: &Place) -> Result<Box<dyn StoredArray>, Error> {
    place.open(
        |files| Ok(Box::new(native::NativeArray::open(files, place)?) as Box<dyn StoredArray>),
        through_libtiledb::array,
    )
}

fn object_type(place: &Place) -> Result<Option<ObjectType>, Error> {
    place.open(|files| native::object_type(&files, place), through_libtiledb::object_type)
}

fn check_is_array(place: &Place, wanted: &'static str) -> Result<(), Error> {
    match object_type(place)? {
        Some(ObjectType::Array) => Ok(()),
        Some(ObjectType::Group) => {
            let found = "a group".to_owned();
            Err(Error::NotA { uri: place.uri.clone(), wanted, found })
        }
        None => Err(nothing_at(place, wanted)),
    }
}

/// Removes slashes from the end of a URI.
pub(crate) fn trimmed(uri: &str) -> Result<String, Error> {
    if uri.contains('\0') {
        let problem = "it contains a zero byte".to_owned();
        return Err(Error::Address { uri: uri.escape_default().to_string(), problem });
    }
    match uri.trim_end_matches('/') {
        "" if uri.is_empty() => Err(Error::Missing { uri: "the empty path".into() }),
        "" => Ok("/".into()),
        trimmed => Ok(trimmed.to_owned()),
    }
}

/// The text value of a metadata key.
pub(crate) fn text<'a>(metadata: &'a [(String, MetadataValue)], key: &str) -> Option<&'a str> {
    metadata.iter().find(|(found, _)| found == key)?.1.as_text()
}

/// The error if TileDB finds no object: nothing exists there, or something that is not TileDB's.
fn nothing_at(place: &Place, wanted: &'static str) -> Error {
    let exists = place.open(|files| native::exists(&files, place), through_libtiledb::exists);
    match exists {
        Ok(true) => Error::NotA {
            uri: place.uri.clone(),
            wanted,
            found: if storage::local_path(&place.uri).is_some_and(Path::is_file) {
                file_kind(&place.uri).to_owned()
            } else {
                "neither a TileDB group nor an array".to_owned()
            },
        },
        Ok(false) => Error::Missing { uri: place.uri.clone() },
        Err(error) => error,
    }
}

fn check(
    uri: &str,
    metadata: &[(String, MetadataValue)],
    wanted: &[&'static str],
    other: &str,
) -> Result<(), Error> {
    let found = text(metadata, OBJECT_TYPE);
    if !found.is_some_and(|found| wanted.contains(&found)) {
        let wanted = wanted.first().copied().unwrap_or("SOMACollection");
        return Err(Error::NotA {
            uri: uri.to_owned(),
            wanted,
            found: found.unwrap_or(other).to_owned(),
        });
    }
    match text(metadata, ENCODING_VERSION) {
        Some(version) if KNOWN_ENCODINGS.contains(&version) => Ok(()),
        version => Err(Error::EncodingVersion {
            uri: uri.to_owned(),
            found: version.unwrap_or("").to_owned(),
        }),
    }
}

impl From<tiledb_native::Error> for NotNative {
    fn from(error: tiledb_native::Error) -> Self {
        match error {
            tiledb_native::Error::Unsupported { reason, .. } => {
                Self::Unsupported(reason.to_string())
            }
            other => Self::Failed(other.into()),
        }
    }
}
