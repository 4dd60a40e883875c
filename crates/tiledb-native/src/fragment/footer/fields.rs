//! The fields of a footer, for any number of dimensions and attributes.

use super::N_DIMENSIONS;
use crate::cursor::Cursor;
use crate::error::Fault;
use crate::fragment::Field;
use crate::schema::{self, Schema, Span};

const TIMESTAMPS: u32 = 14;
const DELETE_METADATA: u32 = 15;
const CONSIDERED_DELETES: u32 = 16;
pub(super) const VALIDITY: u32 = 7;

/// All that a reader needs of a footer. Lists have one entry per file number: attributes, one for
/// the zipped coordinates of old formats, dimensions, then times and times of deletion if there are
/// any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FooterFields {
    pub(crate) version: u32,
    pub(crate) is_dense: bool,
    /// Bounds of each dimension, both included, `None` for other types than integers; `None` as a
    /// whole if the fragment is empty.
    pub(crate) bounds: Option<Vec<Option<Span>>>,
    pub(crate) n_tiles: u64,
    pub(crate) last_tile_cells: u64,
    pub(crate) has_timestamps: bool,
    pub(crate) has_delete_metadata: bool,
    /// Sizes of the files of values, or of offsets for var-sized fields, in bytes.
    pub(crate) file_bytes: Vec<u64>,
    /// Sizes of the files of var-sized values.
    pub(crate) var_bytes: Vec<u64>,
    /// Sizes of the files of validity; empty in formats that know no nulls.
    pub(crate) validity_bytes: Vec<u64>,
    /// Place of the bounding rectangles in the metadata file.
    pub(crate) rtree_at: u64,
    /// Places of the lists of tiles' offsets in the files of values or of offsets.
    pub(crate) tile_offsets_at: Vec<u64>,
    /// Places of the lists of tiles' offsets in the files of var-sized values.
    pub(crate) var_offsets_at: Vec<u64>,
    /// Places of the lists of unfiltered sizes of var-sized tiles.
    pub(crate) var_sizes_at: Vec<u64>,
    /// Places of the lists of tiles' offsets in the files of validity.
    pub(crate) validity_offsets_at: Vec<u64>,
    /// Place of the names of the deletes that were considered when the fragment was consolidated;
    /// `None` if no cell has a time at which it was deleted.
    pub(crate) considered_deletes_at: Option<u64>,
    /// Number of attributes in the fragment's schema.
    pub(crate) n_attributes: usize,
    /// Number of dimensions.
    pub(crate) n_dimensions: usize,
    /// Size of the metadata file in bytes.
    pub(crate) metadata_bytes: u64,
}

impl FooterFields {
    /// Parses the fields after the schema's name in a footer of format `version`.
    pub(super) fn parse(
        cursor: &mut Cursor<'_>,
        (version, metadata_bytes): (u32, u64),
        schema: &Schema,
    ) -> Result<Self, Fault> {
        let is_dense = cursor.flag("whether a fragment is dense")?;
        let bounds = bounds(cursor, schema)?;
        let n_tiles = cursor.u64("the number of tiles")?;
        let last_tile_cells = cursor.u64("the cells of the last tile")?;
        if n_tiles > 0
            && (last_tile_cells == 0 || last_tile_cells > schema.capacity || bounds.is_none())
        {
            return Err(Fault::at(
                cursor.at(),
                format!("{last_tile_cells} cells in the last of {n_tiles} tiles"),
            ));
        }
        let has_timestamps =
            version >= TIMESTAMPS && cursor.flag("whether there are timestamps")?;
        let has_delete_metadata =
            version >= DELETE_METADATA && cursor.flag("whether there is delete metadata")?;
        let (n_attributes, n_dimensions) = (schema.attributes.len(), schema.dimensions.len());
        let n_files = n_attributes
            + 1
            + n_dimensions
            + usize::from(has_timestamps)
            + 2 * usize::from(has_delete_metadata);
        let n_files = n_files as u64;
        let file_bytes = cursor.u64s(n_files, "sizes of files")?;
        let var_bytes = cursor.u64s(n_files, "sizes of files of variable length")?;
        let n_validity = if version >= VALIDITY { n_files } else { 0 };
        let validity_bytes = cursor.u64s(n_validity, "sizes of validity files")?;
        let rtree_at = cursor.u64("the place of the bounding rectangles")?;
        let tile_offsets_at = cursor.u64s(n_files, "places of tile offsets")?;
        let var_offsets_at = cursor.u64s(n_files, "places of var-sized tiles' offsets")?;
        let var_sizes_at = cursor.u64s(n_files, "places of var-sized tiles' sizes")?;
        let validity_offsets_at = cursor.u64s(n_validity, "places of validity tiles' offsets")?;
        let mut considered_deletes_at = None;
        if has_delete_metadata && version >= CONSIDERED_DELETES {
            // Places of the least and greatest values, sums, and numbers of nulls of tiles, and of
            // those of the fragment.
            cursor.u64s(4 * n_files + 1, "places of statistics")?;
            considered_deletes_at = Some(cursor.u64("the place of considered deletes")?);
        }
        // The remaining fields are not needed.
        let fields = Self {
            version,
            is_dense,
            bounds,
            n_tiles,
            last_tile_cells,
            has_timestamps,
            has_delete_metadata,
            file_bytes,
            var_bytes,
            validity_bytes,
            rtree_at,
            tile_offsets_at,
            var_offsets_at,
            var_sizes_at,
            validity_offsets_at,
            considered_deletes_at,
            n_attributes,
            n_dimensions,
            metadata_bytes,
        };
        if n_cells(n_tiles, last_tile_cells, schema.capacity).is_none() {
            let what = format!("{n_tiles} tiles of {} cells are impossibly many", schema.capacity);
            return Err(Fault::at(cursor.at(), what));
        }
        Ok(fields)
    }

    /// File number of a dimension.
    pub(crate) fn dimension_file(&self, dimension: usize) -> usize {
        // The place after the attributes is for the zipped coordinates of old formats, and stays
        // empty.
        self.n_attributes + 1 + dimension
    }

    /// File number of the times of cells; meaningful if there are any.
    pub(crate) fn times_file(&self) -> usize {
        self.dimension_file(self.n_dimensions)
    }

    /// File number of the times at which cells were deleted; meaningful if there are any.
    pub(crate) fn delete_times_file(&self) -> usize {
        self.times_file() + usize::from(self.has_timestamps)
    }
}

/// Number of cells in `n_tiles` tiles, with `capacity` in each but the last; `None` if it
/// overflows.
pub(crate) fn n_cells(n_tiles: u64, last_tile_cells: u64, capacity: u64) -> Option<u64> {
    match n_tiles.checked_sub(1) {
        Some(n_full) => n_full.checked_mul(capacity)?.checked_add(last_tile_cells),
        None => Some(0),
    }
}

fn bounds(cursor: &mut Cursor<'_>, schema: &Schema) -> Result<Option<Vec<Option<Span>>>, Fault> {
    if cursor.flag("whether a non-empty domain is missing")? {
        return Ok(None);
    }
    let bounds = schema.dimensions.iter().map(|dimension| schema::range(cursor, dimension));
    bounds.collect::<Result<_, _>>().map(Some)
}

/// The length of a footer of formats 5 to 9, of an array with `schema`.
pub(super) fn unwritten_length(version: u32, schema: &Schema) -> u64 {
    let sizes = schema.dimensions.iter().map(|dimension| dimension.datatype.size().unwrap_or(0));
    let bounds_bytes = 2 * sizes.sum::<usize>();
    let n_files = (schema.attributes.len() + 1 + schema.dimensions.len()) as u64;
    let with_validity = if version >= VALIDITY { 2 } else { 0 };
    let per_file = 5 + with_validity;
    4 + 1 + 1 + bounds_bytes as u64 + 8 + 8 + 8 + per_file * n_files * 8
}

/// The parts of a footer for an array of two dimensions, and one attribute.
pub(super) fn of_matrix<T: Copy + Default>(
    fields: &FooterFields,
    attribute: usize,
    list: &[T],
) -> [T; Field::N] {
    let present = |is_present: bool, file: usize| if is_present { file } else { usize::MAX };
    let files = [
        fields.dimension_file(0),
        fields.dimension_file(N_DIMENSIONS - 1),
        attribute,
        present(fields.has_timestamps, fields.times_file()),
        present(fields.has_delete_metadata, fields.delete_times_file()),
    ];
    files.map(|file| list.get(file).copied().unwrap_or_default())
}
