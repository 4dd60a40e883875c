//! Objects that are read natively.

use std::ops::Range;
use std::sync::Arc;

use storage::{Files, Storage};
use tiledb_native::{ArrayDescription, Group, Table};
use tiledb_schema::{Enumeration, ObjectType, Schema};

use super::{
    GroupParts, Metadata, Place, StoredArray, StoredColumn, StoredTable, through_libtiledb,
};
use crate::Error;
use crate::native::NotNative;

/// The kind of object at the root of `storage`, which is at `place`.
pub(super) fn object_type(
    storage: &Arc<dyn Storage>,
    place: &Place,
) -> Result<Option<ObjectType>, NotNative> {
    // What is below a file cannot be listed.
    let is_file = storage::local_path(&place.uri).is_some_and(std::path::Path::is_file);
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

/// A sparse or dense array of any dimensions, of which no cell is read through this.
#[derive(Debug)]
pub(super) struct NativeArray {
    description: ArrayDescription,
    place: Place,
}

impl NativeArray {
    pub(super) fn open(storage: Arc<dyn Storage>, place: &Place) -> Result<Self, NotNative> {
        let description = ArrayDescription::open(storage, place.timestamp)?;
        Ok(Self { description, place: place.clone() })
    }
}

/// What `native` reads of the array at `place`, or `other` of the same array through libtiledb, if
/// this part of it is beyond the native reader although its schema is not.
fn read_or<T>(
    place: &Place,
    native: impl FnOnce() -> Result<T, NotNative>,
    other: impl FnOnce(&dyn StoredArray) -> Result<T, Error>,
) -> Result<T, Error> {
    place.open(|_| native(), |place, why| other(&*through_libtiledb::array(place, why)?))
}

fn metadata(place: &Place, description: &ArrayDescription) -> Result<Metadata, Error> {
    read_or(place, || Ok(description.metadata()?), |array| array.metadata())
}

fn enumeration(
    place: &Place,
    description: &ArrayDescription,
    name: &str,
) -> Result<Enumeration, Error> {
    read_or(place, || Ok(description.enumeration(name)?), |array| array.enumeration(name))
}

fn non_empty_domain(
    place: &Place,
    description: &ArrayDescription,
) -> Result<Option<Vec<(i128, i128)>>, Error> {
    read_or(place, || Ok(description.non_empty_domain()?), |array| array.non_empty_domain())
}

impl StoredArray for NativeArray {
    fn schema(&self) -> &Schema {
        self.description.schema()
    }

    fn metadata(&self) -> Result<Metadata, Error> {
        metadata(&self.place, &self.description)
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        enumeration(&self.place, &self.description, name)
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        non_empty_domain(&self.place, &self.description)
    }

    fn n_cells(&self) -> Result<u64, Error> {
        // The cells of an array whose schema is known may be beyond the native reader.
        let count = |files| {
            let array = tiledb_native::Array::open(files, &options(&self.place)?)?;
            Ok(array.n_values()?)
        };
        self.place.open(count, |place, why| through_libtiledb::array(place, why)?.n_cells())
    }

    fn why_not_native(&self) -> Option<&str> {
        None
    }
}

/// A table.
#[derive(Debug)]
pub(super) struct NativeTable {
    table: Table,
    place: Place,
}

impl NativeTable {
    pub(super) fn open(storage: Arc<dyn Storage>, place: &Place) -> Result<Self, NotNative> {
        Ok(Self { table: Table::open(storage, &options(place)?)?, place: place.clone() })
    }
}

impl StoredArray for NativeTable {
    fn schema(&self) -> &Schema {
        self.table.description().schema()
    }

    fn metadata(&self) -> Result<Metadata, Error> {
        metadata(&self.place, self.table.description())
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        enumeration(&self.place, self.table.description(), name)
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        non_empty_domain(&self.place, self.table.description())
    }

    fn n_cells(&self) -> Result<u64, Error> {
        Ok(self.table.n_rows()?)
    }

    fn why_not_native(&self) -> Option<&str> {
        None
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
