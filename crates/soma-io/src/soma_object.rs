//! SOMA objects: TileDB objects with SOMA's metadata.

use std::sync::Arc;

use storage::{OpenedStorage, ReadLimit};
use tiledb::{
    Array, Context, Fragment, FragmentInfo, Group, Layout, Member, MetadataValue, ObjectType,
    ReadQuery,
};

use crate::Error;

pub(crate) const OBJECT_TYPE: &str = "soma_object_type";
pub(crate) const ENCODING_VERSION: &str = "soma_encoding_version";
pub(crate) const CURRENT_ENCODING: &str = "1.1.0";

/// The supported encoding versions. Names of types and versions are the same in both; only in the
/// newer one, arrays have a current domain.
const KNOWN_ENCODINGS: [&str; 2] = ["1", CURRENT_ENCODING];

/// Buffer for counting cells, in bytes.
const COUNT_BYTES: usize = 1 << 22;

/// The place of an object, and the time as of which to read it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) context: Context,
    pub(crate) timestamp: Option<u64>,
    pub(crate) uri: String,
    /// The rate limit of reads of X.
    pub(crate) read_limit: Option<Arc<ReadLimit>>,
}

impl Place {
    /// Opens the files at the place, for the native reader.
    pub(crate) fn storage(&self) -> Result<OpenedStorage, storage::Error> {
        let options = storage::OpenOptions {
            config: self.context.config(),
            read_limit: self.read_limit.clone(),
            never_changes: Some(tiledb_native::is_in_fragment),
        };
        storage::open(&self.uri, &options)
    }
}

/// A SOMA collection: a group with members.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) place: Place,
    members: Vec<Member>,
}

impl Collection {
    /// Opens a group and checks that its SOMA type is one of `wanted`. Errors name the first of
    /// these.
    pub(crate) fn open(place: Place, wanted: &[&'static str]) -> Result<Self, Error> {
        let named = wanted.first().copied().unwrap_or("SOMACollection");
        match place.context.object_type(&place.uri)? {
            Some(ObjectType::Group) => {}
            Some(ObjectType::Array) => {
                let array = Array::open(&place.context, &place.uri, place.timestamp)?;
                let found =
                    text(&array.metadata()?, OBJECT_TYPE).unwrap_or("a TileDB array").to_owned();
                return Err(Error::NotA { uri: place.uri, wanted: named, found });
            }
            None => return Err(nothing_at(&place, named)),
        }
        let group = Group::open(&place.context, &place.uri, place.timestamp)?;
        check(&place.uri, &group.metadata()?, wanted, "a TileDB group that is not of SOMA")?;
        let members = group.members()?;
        Ok(Self { place, members })
    }

    /// The names of the members, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.members.iter().map(|member| member.name.clone()).collect();
        names.sort();
        names
    }

    /// The place of a member.
    pub(crate) fn member(&self, kind: &'static str, name: &str) -> Result<Place, Error> {
        let member = self.members.iter().find(|member| member.name == name).ok_or_else(|| {
            Error::NoMember {
                uri: self.place.uri.clone(),
                kind,
                name: name.to_owned(),
                existing: self.names(),
            }
        })?;
        Ok(Place { uri: member.uri.clone(), ..self.place.clone() })
    }
}

/// Opens an array, and checks that its SOMA type is `wanted`.
pub(crate) fn open_array(
    place: &Place,
    wanted: &'static str,
) -> Result<(Array, Vec<(String, MetadataValue)>), Error> {
    match place.context.object_type(&place.uri)? {
        Some(ObjectType::Array) => {}
        Some(ObjectType::Group) => {
            let found = "a group".to_owned();
            return Err(Error::NotA { uri: place.uri.clone(), wanted, found });
        }
        None => return Err(nothing_at(place, wanted)),
    }
    let array = Array::open(&place.context, &place.uri, place.timestamp)?;
    let metadata = array.metadata()?;
    check(&place.uri, &metadata, &[wanted], "a TileDB array that is not of SOMA")?;
    Ok((array, metadata))
}

/// Estimates the number of cells of an array, for the sizes of buffers and batches: the sum over
/// its fragments, in which a cell that was written again counts again. If cells were deleted by
/// condition, possibly nearly all, they are read and counted instead.
pub(crate) fn approximate_cells(place: &Place, array: &Array) -> Result<u64, Error> {
    if has_conditions(place)? {
        return count_cells(array);
    }
    let fragments = FragmentInfo::load(&place.context, array.uri())?;
    let fragments = fragments.fragments(&array.schema().dimensions)?;
    Ok(fragments.iter().map(|fragment| fragment.n_cells).sum())
}

/// Number of cells of an array as of the time at which it was opened: the sum over its fragments if
/// that is exact, otherwise counted by reading coordinates.
pub(crate) fn n_cells(place: &Place, array: &Array) -> Result<u64, Error> {
    let dimensions = &array.schema().dimensions;
    let until = place.timestamp.unwrap_or(u64::MAX);
    let mut fragments = FragmentInfo::load(&place.context, array.uri())?.fragments(dimensions)?;
    fragments.retain(|fragment| fragment.timestamps.0 <= until);
    // Merged fragments can contain cells from before and after that time, and cells that later ones
    // replace.
    let is_cut = fragments.iter().any(|fragment| until < fragment.timestamps.1);
    let is_merged = fragments.iter().any(|fragment| fragment.timestamps.0 < fragment.timestamps.1);
    let is_exact = array.schema().allows_duplicates || !(is_merged || overlap(&fragments));
    if is_exact && !is_cut && !has_conditions(place)? {
        return Ok(fragments.iter().map(|fragment| fragment.n_cells).sum());
    }
    count_cells(array)
}

/// Counts the cells that a read of the array returns.
fn count_cells(array: &Array) -> Result<u64, Error> {
    let names = [array.schema().dimensions[0].name.as_str()];
    let mut query = ReadQuery::new(array, Layout::Unordered, &[], &names, COUNT_BYTES)?;
    let mut n_cells = 0;
    while let Some(piece) = query.next_piece()? {
        n_cells += piece.n_cells() as u64;
    }
    Ok(n_cells)
}

/// Whether cells were deleted by condition, which fragments do not record.
fn has_conditions(place: &Place) -> Result<bool, Error> {
    match place.storage() {
        Ok(opened) => Ok(tiledb_native::has_conditions(opened.storage, place.timestamp)?),
        // Only libtiledb reads this place, and it lists no more than the names of commits.
        // Consolidated commits may contain conditions.
        Err(storage::Error::Unsupported { .. }) => {
            let vfs = tiledb::Vfs::new(&place.context)?;
            let commits = format!("{}/__commits", place.uri);
            let may_have =
                |name: &String| matches!(name.rsplit_once('.'), Some((_, "del" | "con" | "upd")));
            Ok(vfs.is_dir(&commits)? && vfs.ls(&commits)?.iter().any(may_have))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a cell may be in several of the fragments.
fn overlap(fragments: &[Fragment]) -> bool {
    let meet = |a: &Fragment, b: &Fragment| {
        let mut bounds = a.non_empty_domain.iter().zip(&b.non_empty_domain);
        bounds.all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    };
    fragments.iter().enumerate().any(|(idx, a)| fragments[..idx].iter().any(|b| meet(a, b)))
}

/// Removes slashes from the end of a URI.
pub(crate) fn trimmed(uri: &str) -> Result<String, Error> {
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
    let exists = tiledb::Vfs::new(&place.context)
        .and_then(|vfs| Ok(vfs.is_dir(&place.uri)? || vfs.is_file(&place.uri)?))
        .unwrap_or(false);
    if exists {
        Error::NotA {
            uri: place.uri.clone(),
            wanted,
            found: "neither a TileDB group nor an array".into(),
        }
    } else {
        Error::Missing { uri: place.uri.clone() }
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
