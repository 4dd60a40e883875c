//! Objects that are read natively.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use storage::{Files, Storage};
use tiledb::{Enumeration, ObjectType, Schema};
use tiledb_native::{ArrayDescription, Group, Table};

use super::{
    GroupParts, Metadata, Place, StoredArray, StoredColumn, StoredTable, TableIndex,
    through_libtiledb,
};
use crate::Error;
use crate::native::NotNative;

/// The kind of object at the root of `storage`, which is at `place`.
pub(super) fn object_type(
    storage: &Arc<dyn Storage>,
    place: &Place,
) -> Result<Option<ObjectType>, NotNative> {
    // What is below a file cannot be listed, unless it is an archive.
    let is_file = storage::local_path(&place.uri).is_some_and(std::path::Path::is_file)
        && !storage::names_archive(&place.uri);
    if is_file { Ok(None) } else { Ok(tiledb_native::object_type(storage)?) }
}

/// Whether a file or a folder is there.
pub(super) fn exists(storage: &Arc<dyn Storage>, place: &Place) -> Result<bool, NotNative> {
    if let Some(path) = storage::local_path(&place.uri) {
        return Ok(path.exists());
    }
    let listed = Files::new(Arc::clone(storage)).list("")?;
    Ok(!listed.is_empty())
}

pub(super) fn group(storage: Arc<dyn Storage>, place: &Place) -> Result<GroupParts, NotNative> {
    let group = Group::open(storage, place.timestamp)?;
    let members = group.members().iter();
    let members = members
        .map(|member| (member.name.clone(), place.uri_of_member(&member.uri, member.is_relative)))
        .collect();
    Ok((members, group.metadata().to_vec()))
}

fn options(place: &Place) -> Result<tiledb_native::OpenOptions, Error> {
    let options = tiledb_native::OpenOptions::new(1);
    let (timestamp, threads) = (place.timestamp, place.threads()?);
    Ok(tiledb_native::OpenOptions { timestamp, threads, ..options })
}

/// An array whose schema the native reader supports. Other parts of it that the native reader does
/// not support are read through libtiledb, and the first is noted.
#[derive(Debug)]
struct Partly {
    place: Place,
    /// The first part that libtiledb read, and why.
    why_not_native: OnceLock<String>,
}

impl Partly {
    fn new(place: &Place) -> Self {
        Self { place: place.clone(), why_not_native: OnceLock::new() }
    }

    /// What `native` reads of the array, or `other` of the same array through libtiledb. `what` is
    /// read.
    fn read<T>(
        &self,
        what: &str,
        native: impl FnOnce(Arc<dyn Storage>) -> Result<T, NotNative>,
        other: impl FnOnce(&dyn StoredArray) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.place.open(native, |place, why| {
            let noted = format!("{what}: {why}");
            let read = other(&*through_libtiledb::array(place, why)?)?;
            self.why_not_native.get_or_init(|| noted);
            Ok(read)
        })
    }

    fn metadata(&self, description: &ArrayDescription) -> Result<Metadata, Error> {
        self.read("its metadata", |_| Ok(description.metadata()?), |array| array.metadata())
    }

    fn enumeration(
        &self,
        description: &ArrayDescription,
        name: &str,
    ) -> Result<Enumeration, Error> {
        let what = format!("its enumeration {name}");
        self.read(&what, |_| Ok(description.enumeration(name)?), |array| array.enumeration(name))
    }

    fn non_empty_domain(
        &self,
        description: &ArrayDescription,
    ) -> Result<Option<Vec<(i128, i128)>>, Error> {
        let native = |_| Ok(description.non_empty_domain()?);
        self.read("its extent", native, |array| array.non_empty_domain())
    }

    fn why_not_native(&self) -> Option<&str> {
        self.why_not_native.get().map(String::as_str)
    }
}

/// A sparse or dense array of any dimensions, of which no cell is read through this.
#[derive(Debug)]
pub(super) struct NativeArray {
    description: ArrayDescription,
    partly: Partly,
}

impl NativeArray {
    pub(super) fn open(storage: Arc<dyn Storage>, place: &Place) -> Result<Self, NotNative> {
        let description = ArrayDescription::open(storage, place.timestamp)?;
        Ok(Self { description, partly: Partly::new(place) })
    }
}

impl StoredArray for NativeArray {
    fn schema(&self) -> &Schema {
        self.description.schema()
    }

    fn metadata(&self) -> Result<Metadata, Error> {
        self.partly.metadata(&self.description)
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        self.partly.enumeration(&self.description, name)
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        self.partly.non_empty_domain(&self.description)
    }

    fn n_cells(&self) -> Result<u64, Error> {
        // The cells of an array whose schema is known may be beyond the native reader.
        let count = |files| {
            let array = tiledb_native::Array::open(files, &options(&self.partly.place)?)?;
            Ok(array.n_values()?)
        };
        self.partly.read("the number of its cells", count, |array| array.n_cells())
    }

    fn why_not_native(&self) -> Option<&str> {
        self.partly.why_not_native()
    }
}

/// A table.
#[derive(Debug)]
pub(super) struct NativeTable {
    table: Table,
    partly: Partly,
}

impl NativeTable {
    /// Opens the table at `place`, of which libtiledb read a part if `why_not_native` says so.
    pub(super) fn open(
        storage: Arc<dyn Storage>,
        place: &Place,
        (why_not_native, index): (Option<String>, TableIndex),
    ) -> Result<Self, NotNative> {
        let partly = Partly {
            why_not_native: why_not_native.map(OnceLock::from).unwrap_or_default(),
            ..Partly::new(place)
        };
        let open = match index {
            TableIndex::Joinid => Table::open,
            TableIndex::Other => Table::open_as_stored,
        };
        Ok(Self { table: open(storage, &options(place)?)?, partly })
    }
}

impl StoredArray for NativeTable {
    fn schema(&self) -> &Schema {
        self.table.description().schema()
    }

    fn metadata(&self) -> Result<Metadata, Error> {
        self.partly.metadata(self.table.description())
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        self.partly.enumeration(self.table.description(), name)
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        self.partly.non_empty_domain(self.table.description())
    }

    fn n_cells(&self) -> Result<u64, Error> {
        Ok(self.table.n_rows()?)
    }

    fn why_not_native(&self) -> Option<&str> {
        self.partly.why_not_native()
    }
}

impl StoredTable for NativeTable {
    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(Vec<StoredColumn>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let ranges: Vec<Range<u64>> =
            ranges.iter().map(|(first, last)| *first as u64..*last as u64 + 1).collect();
        let ranges = (!ranges.is_empty()).then_some(ranges.as_slice());
        self.table.read_each(names, ranges, |columns| {
            let columns = columns.into_iter().map(|column| StoredColumn {
                bytes: column.bytes,
                offsets: column.offsets,
                validity: column.validity,
            });
            each(columns.collect())
        })
    }
}
