//! The footer of a fragment's metadata.

use storage::Files;
use storage::Piece;

use super::field::Field;
use crate::cursor::Cursor;
use crate::directory::FragmentFolder;
use crate::error::{Error, Fault};
use crate::schema::{self, Schema};
use crate::unsupported::Unsupported;

const FOOTER_LENGTH_WRITTEN: u32 = 10;
const SCHEMA_NAMED: u32 = 10;
const TIMESTAMPS: u32 = 14;
const DELETE_METADATA: u32 = 15;
const VALIDITY: u32 = 7;
/// The longest footer accepted: file sizes and offsets of about 10,000 attributes.
const MAX_FOOTER_BYTES: u64 = 1 << 20;
const N_DIMENSIONS: usize = 2;
/// Bytes to read at the end of each metadata file, together with the footer's length; most footers
/// are shorter.
const TAIL_BYTES: u64 = 4096;
/// Fragments whose footers are read together.
const AT_ONCE: usize = 512;

/// The contents of a footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) version: u32,
    /// Bounds of rows and columns, both included; `None` if the fragment is empty.
    pub(crate) bounds: Option<[(u64, u64); 2]>,
    pub(crate) n_tiles: u64,
    pub(crate) last_tile_cells: u64,
    pub(crate) has_timestamps: bool,
    /// Sizes of the files of [`Field::ALL`] in bytes; 0 if there are no timestamps.
    pub(crate) file_bytes: [u64; 4],
    /// Places of the tile offsets in the metadata file, for [`Field::ALL`].
    pub(crate) tile_offsets_at: [u64; 4],
    /// Place of the bounding rectangles.
    pub(crate) rtree_at: u64,
    /// Size of the metadata file in bytes.
    pub(crate) metadata_bytes: u64,
}

impl Footer {
    /// Number of cells in the fragment, with `capacity` in each tile but the last; `None` if it
    /// overflows.
    pub(crate) fn n_cells(&self, capacity: u64) -> Option<u64> {
        match self.n_tiles.checked_sub(1) {
            Some(n_full) => n_full.checked_mul(capacity)?.checked_add(self.last_tile_cells),
            None => Some(0),
        }
    }
}

/// The bytes of a footer, with the schema that it names.
pub(crate) struct RawFooter {
    pub(crate) version: u32,
    /// The last part of the schema's path; `None` before format 10, when there was only one.
    pub(crate) schema_name: Option<String>,
    bytes: Vec<u8>,
    fields_at: usize,
    footer_at: u64,
    metadata_bytes: u64,
}

/// The format version in a fragment's name.
fn named_version(folder: &FragmentFolder) -> u32 {
    folder.times.version.unwrap_or(0)
}

pub(crate) fn metadata_file(folder: &FragmentFolder) -> String {
    format!("{}/__fragment_metadata.tdb", folder.path)
}

impl RawFooter {
    /// Reads the footers of the fragments in `folders`, many with one call of the storage;
    /// `old_schema` is the schema from before format 10, whose footers do not store their length.
    pub(crate) fn load_all(
        files: &Files,
        folders: &[FragmentFolder],
        old_schema: Option<&Schema>,
    ) -> Result<Vec<Self>, Error> {
        let unknown = folders.iter().map(named_version).find(|v| !schema::VERSIONS.contains(v));
        if let Some(version) = unknown {
            let reason = Unsupported::FormatVersion { version };
            return Err(Error::Unsupported { place: files.place(), reason });
        }
        let mut out = Vec::with_capacity(folders.len());
        for folders in folders.chunks(AT_ONCE) {
            let names: Vec<String> = folders.iter().map(metadata_file).collect();
            let sizes = files.sizes(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
            let ends: Vec<_> = names
                .iter()
                .zip(&sizes)
                .map(|(file, &size)| Piece { file, range: size.saturating_sub(TAIL_BYTES)..size })
                .collect();
            for ((folder, tail), size) in folders.iter().zip(files.read_each(&ends)?).zip(sizes) {
                out.push(Self::load(files, folder, old_schema, (size, tail))?);
            }
        }
        Ok(out)
    }

    /// Reads the footer of a metadata file of `size` bytes that ends in `tail`.
    fn load(
        files: &Files,
        folder: &FragmentFolder,
        old_schema: Option<&Schema>,
        (size, tail): (u64, Vec<u8>),
    ) -> Result<Self, Error> {
        let file = metadata_file(folder);
        let damaged = |what: String| Fault::new(what).in_file(files.name(&file), size);
        let named = named_version(folder);
        let (len, after) = if named >= FOOTER_LENGTH_WRITTEN {
            let at = size
                .checked_sub(8)
                .ok_or_else(|| damaged(format!("{size} bytes are too few for a footer")))?;
            let len = Cursor::new(&tail[tail.len() - 8..])
                .u64("the length of the footer")
                .map_err(|fault| fault.in_file(files.name(&file), at))?;
            (len, 8)
        } else {
            let schema = old_schema
                .ok_or_else(|| damaged("the schema of its time is missing".to_owned()))?;
            let bounds_bytes = schema
                .dimensions
                .iter()
                .map(|dimension| 2 * dimension.datatype.size().unwrap_or(0))
                .sum();
            (unwritten_length(named, schema.attributes.len(), bounds_bytes), 0)
        };
        let footer_at = size
            .checked_sub(len)
            .and_then(|at| at.checked_sub(after))
            .filter(|_| len <= MAX_FOOTER_BYTES);
        let footer_at = footer_at
            .ok_or_else(|| damaged(format!("a footer of {len} bytes in a file of {size}")))?;
        let tail_at = size - tail.len() as u64;
        let bytes = match footer_at.checked_sub(tail_at) {
            Some(skip) => tail[skip as usize..skip as usize + len as usize].to_vec(),
            None => files.read(&file, footer_at, len as usize)?,
        };
        let mut cursor = Cursor::new(&bytes);
        let mut start = || {
            let version = cursor.u32("a format version")?;
            if version != named {
                return Err(Fault::new(format!(
                    "a footer of format {version} in a fragment named as of format {named}"
                )));
            }
            if version < SCHEMA_NAMED {
                return Ok((version, None));
            }
            let len = cursor.u64("the length of a schema's name")?;
            let name =
                cursor.text(usize::try_from(len).unwrap_or(usize::MAX), "a schema's name")?;
            Ok((version, Some(name)))
        };
        let (version, schema_name) =
            start().map_err(|fault| fault.in_file(files.name(&file), footer_at))?;
        let fields_at = cursor.at();
        Ok(Self { version, schema_name, bytes, fields_at, footer_at, metadata_bytes: size })
    }

    /// Parses the fields, which need the fragment's schema; `attribute_idx` is the attribute's
    /// index in it.
    pub(crate) fn parse(
        &self,
        files: &Files,
        folder: &FragmentFolder,
        schema: &Schema,
        attribute_idx: usize,
    ) -> Result<Footer, Error> {
        let mut cursor = Cursor::new(&self.bytes[self.fields_at..]);
        let parsed = self.fields(&mut cursor, schema, attribute_idx);
        let at = self.footer_at + self.fields_at as u64;
        let (footer, has_delete_metadata) =
            parsed.map_err(|fault| fault.in_file(files.name(&metadata_file(folder)), at))?;
        if has_delete_metadata {
            let reason = Unsupported::DeleteMetadata { fragment: folder.name.clone() };
            return Err(Error::Unsupported { place: files.place(), reason });
        }
        Ok(footer)
    }

    fn fields(
        &self,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
        attribute_idx: usize,
    ) -> Result<(Footer, bool), Fault> {
        let version = self.version;
        if cursor.flag("whether a fragment is dense")? {
            return Err(Fault::at(cursor.at(), "a dense fragment in a sparse array"));
        }
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
        let n_attributes = schema.attributes.len();
        let n_files = n_attributes
            + 1
            + N_DIMENSIONS
            + usize::from(has_timestamps)
            + 2 * usize::from(has_delete_metadata);
        // The place after the attributes is for the zipped coordinates of old formats, and stays
        // empty.
        let first_dimension = n_attributes + 1;
        let places =
            [first_dimension, first_dimension + 1, attribute_idx, first_dimension + N_DIMENSIONS];
        let per_file = |cursor: &mut Cursor<'_>, what: &str| -> Result<[u64; 4], Fault> {
            let all = cursor.u64s(n_files as u64, what)?;
            let of = |field: Field| all.get(places[field.idx()]).copied().unwrap_or(0);
            Ok(Field::ALL
                .map(|field| if field == Field::Times && !has_timestamps { 0 } else { of(field) }))
        };
        let file_bytes = per_file(cursor, "sizes of files")?;
        per_file(cursor, "sizes of files of variable length")?;
        if version >= VALIDITY {
            per_file(cursor, "sizes of validity files")?;
        }
        let rtree_at = cursor.u64("the place of the bounding rectangles")?;
        let tile_offsets_at = per_file(cursor, "places of tile offsets")?;
        // The remaining fields, places of variable tiles, validity tiles and statistics, are not
        // needed.
        let footer = Footer {
            version,
            bounds,
            n_tiles,
            last_tile_cells,
            has_timestamps,
            file_bytes,
            tile_offsets_at,
            rtree_at,
            metadata_bytes: self.metadata_bytes,
        };
        if footer.n_cells(schema.capacity).is_none() {
            let what = format!("{n_tiles} tiles of {} cells are impossibly many", schema.capacity);
            return Err(Fault::at(cursor.at(), what));
        }
        Ok((footer, has_delete_metadata))
    }
}

/// The length of a footer of formats 5 to 9, of an array with two dimensions of 8 or 4 bytes.
fn unwritten_length(version: u32, n_attributes: usize, bounds_bytes: usize) -> u64 {
    let n_files = (n_attributes + 1 + N_DIMENSIONS) as u64;
    let with_validity = if version >= VALIDITY { 2 } else { 0 };
    let per_file = 5 + with_validity;
    4 + 1 + 1 + bounds_bytes as u64 + 8 + 8 + 8 + per_file * n_files * 8
}

fn bounds(cursor: &mut Cursor<'_>, schema: &Schema) -> Result<Option<[(u64, u64); 2]>, Fault> {
    if cursor.flag("whether a non-empty domain is missing")? {
        return Ok(None);
    }
    let [row, column] = schema.dimensions.as_slice() else {
        return Err(Fault::new("not two dimensions"));
    };
    Ok(Some([range(cursor, row)?, range(cursor, column)?]))
}

/// Reads a range of coordinates that are not negative.
pub(super) fn range(
    cursor: &mut Cursor<'_>,
    dimension: &schema::Dimension,
) -> Result<(u64, u64), Fault> {
    let at = cursor.at();
    let found = schema::range(cursor, dimension)?;
    let range =
        found.and_then(|(low, high)| Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?)));
    range
        .filter(|(low, high)| low <= high)
        .ok_or_else(|| Fault::at(at, format!("bounds {found:?} of dimension `{}`", dimension.name)))
}
