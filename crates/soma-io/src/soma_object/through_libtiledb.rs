//! Objects that libtiledb reads, because the native reader does not support them.

use tiledb::{
    Array, Enumeration, Fragment, FragmentInfo, Group, Layout, MetadataValue, ObjectType,
    ReadQuery, Schema,
};

use super::{GroupParts, Place, StoredArray, StoredColumn, StoredTable};
use crate::Error;

/// The initial buffer of each column of a read, in bytes.
const BUFFER_BYTES: usize = 1 << 22;
/// Buffer for counting cells, in bytes.
const COUNT_BYTES: usize = 1 << 22;

pub(super) fn object_type(place: &Place, _: String) -> Result<Option<ObjectType>, Error> {
    Ok(place.context()?.object_type(&place.uri)?)
}

pub(super) fn group(place: &Place, _: String) -> Result<GroupParts, Error> {
    let group = Group::open(place.context()?, &place.uri, place.timestamp)?;
    let members = group.members()?.into_iter();
    // As the native reader names the places of this machine.
    let place = |uri: String| uri.strip_prefix("file://").map(str::to_owned).unwrap_or(uri);
    let members = members.map(|member| (member.name, place(member.uri))).collect();
    Ok((members, group.metadata()?))
}

pub(super) fn array(place: &Place, why: String) -> Result<Box<dyn StoredArray>, Error> {
    Ok(Box::new(LibtiledbArray::open(place, why)?))
}

pub(super) fn table(place: &Place, why: String) -> Result<Box<dyn StoredTable>, Error> {
    Ok(Box::new(LibtiledbArray::open(place, why)?))
}

/// Whether a file or a folder is there.
pub(super) fn exists(place: &Place, _: String) -> Result<bool, Error> {
    let vfs = tiledb::Vfs::new(place.context()?)?;
    Ok(vfs.is_dir(&place.uri)? || vfs.is_file(&place.uri)?)
}

/// An open array.
#[derive(Debug)]
struct LibtiledbArray {
    array: Array,
    place: Place,
    why_not_native: String,
}

impl LibtiledbArray {
    fn open(place: &Place, why_not_native: String) -> Result<Self, Error> {
        let array = Array::open(place.context()?, &place.uri, place.timestamp)?;
        Ok(Self { array, place: place.clone(), why_not_native })
    }
}

impl StoredArray for LibtiledbArray {
    fn schema(&self) -> &Schema {
        self.array.schema()
    }

    fn metadata(&self) -> Result<Vec<(String, MetadataValue)>, Error> {
        Ok(self.array.metadata()?)
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        Ok(self.array.enumeration(name)?)
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        Ok(self.array.non_empty_domain()?)
    }

    fn n_cells(&self) -> Result<u64, Error> {
        n_cells(&self.place, &self.array)
    }

    fn why_not_native(&self) -> Option<&str> {
        Some(&self.why_not_native)
    }
}

impl StoredTable for LibtiledbArray {
    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(Vec<StoredColumn>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut query =
            ReadQuery::new(&self.array, Layout::RowMajor, &[ranges], names, BUFFER_BYTES)?;
        while let Some(piece) = query.next_piece()? {
            each((0..names.len()).map(|idx| stored(piece.column(idx))).collect())?;
        }
        Ok(())
    }
}

/// A copy of a column of a piece.
fn stored(column: tiledb::Column<'_>) -> StoredColumn {
    let n_bytes = column.bytes().len() as u64;
    StoredColumn {
        bytes: column.bytes().to_vec(),
        offsets: column.offsets().map(|starts| {
            starts.iter().copied().chain([n_bytes]).map(|start| start as i64).collect()
        }),
        validity: column.validity().map(|valid| valid.iter().map(|valid| *valid != 0).collect()),
    }
}

/// Estimates the number of cells of an array, for the sizes of buffers and batches: the sum over
/// its fragments, in which a cell that was written again counts again. If cells were deleted by
/// condition, possibly nearly all, they are read and counted instead.
pub(crate) fn approximate_cells(place: &Place, array: &Array) -> Result<u64, Error> {
    if has_conditions(place)? {
        return count_cells(array);
    }
    let fragments = FragmentInfo::load(place.context()?, array.uri())?;
    let fragments = fragments.fragments(&array.schema().dimensions)?;
    Ok(fragments.iter().map(|fragment| fragment.n_cells).sum())
}

/// Number of cells of an array as of the time at which it was opened: the sum over its fragments if
/// that is exact, otherwise counted by reading coordinates.
fn n_cells(place: &Place, array: &Array) -> Result<u64, Error> {
    let dimensions = &array.schema().dimensions;
    let until = place.timestamp.unwrap_or(u64::MAX);
    let mut fragments = FragmentInfo::load(place.context()?, array.uri())?.fragments(dimensions)?;
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
    match place.open_x() {
        Ok(opened) => Ok(tiledb_native::has_conditions(opened.storage, place.timestamp)?),
        // Only libtiledb reads this place, and it lists no more than the names of commits.
        // Consolidated commits may contain conditions.
        Err(storage::Error::Unsupported { .. }) => {
            let vfs = tiledb::Vfs::new(place.context()?)?;
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
