//! The footer of a fragment's metadata.

mod fields;

use storage::Files;
use storage::Piece;

use crate::cursor::Cursor;
use crate::directory::FragmentFolder;
use crate::error::{Error, Fault};
use crate::fragment::Field;
use crate::schema::{self, Schema};
use crate::unsupported::Unsupported;
pub(crate) use fields::{FooterFields, n_cells};

const FOOTER_LENGTH_WRITTEN: u32 = 10;
const SCHEMA_NAMED: u32 = 10;
/// The longest footer accepted: file sizes and offsets of about 10,000 attributes.
const MAX_FOOTER_BYTES: u64 = 1 << 20;
const N_DIMENSIONS: usize = 2;
/// Bytes to read at the end of each metadata file, together with the footer's length; most footers
/// are shorter.
const TAIL_BYTES: u64 = 4096;
/// Fragments whose footers are read together.
const AT_ONCE: usize = 512;

/// The parts of a footer that a reader of an array of two dimensions and one attribute needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) version: u32,
    /// Bounds of rows and columns, both included; `None` if the fragment is empty.
    pub(crate) bounds: Option<[(u64, u64); 2]>,
    pub(crate) n_tiles: u64,
    pub(crate) last_tile_cells: u64,
    pub(crate) has_timestamps: bool,
    /// Whether cells have a time at which they were deleted.
    pub(crate) has_delete_times: bool,
    /// Sizes of the files of [`Field::ALL`] in bytes; 0 for times that cells do not have.
    pub(crate) file_bytes: [u64; Field::N],
    /// Places of the tile offsets in the metadata file, for [`Field::ALL`].
    pub(crate) tile_offsets_at: [u64; Field::N],
    /// Place of the bounding rectangles.
    pub(crate) rtree_at: u64,
    /// Size of the metadata file in bytes.
    pub(crate) metadata_bytes: u64,
}

impl Footer {
    /// The footer of a fragment of an array of two dimensions, with the attribute of this index.
    pub(crate) fn from_fields(fields: &FooterFields, attribute_idx: usize) -> Result<Self, Fault> {
        if fields.is_dense {
            return Err(Fault::new("a dense fragment in a sparse array"));
        }
        let mut bounds = None;
        if let Some(found) = &fields.bounds {
            let [rows, columns] = found.as_slice() else {
                return Err(Fault::new("not two dimensions"));
            };
            bounds = Some([position_range(*rows, "rows")?, position_range(*columns, "columns")?]);
        }
        Ok(Self {
            version: fields.version,
            bounds,
            n_tiles: fields.n_tiles,
            last_tile_cells: fields.last_tile_cells,
            has_timestamps: fields.has_timestamps,
            has_delete_times: fields.has_delete_metadata,
            file_bytes: fields::of_matrix(fields, attribute_idx, &fields.file_bytes),
            tile_offsets_at: fields::of_matrix(fields, attribute_idx, &fields.tile_offsets_at),
            rtree_at: fields.rtree_at,
            metadata_bytes: fields.metadata_bytes,
        })
    }

    /// Number of cells in the fragment, with `capacity` in each tile but the last; `None` if it
    /// overflows.
    pub(crate) fn n_cells(&self, capacity: u64) -> Option<u64> {
        n_cells(self.n_tiles, self.last_tile_cells, capacity)
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
                out.push(Self::load(files, folder, old_schema, (size, &tail))?);
            }
        }
        Ok(out)
    }

    /// Reads the footer of a metadata file of `size` bytes that ends in `tail`.
    fn load(
        files: &Files,
        folder: &FragmentFolder,
        old_schema: Option<&Schema>,
        (size, tail): (u64, &[u8]),
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
            (fields::unwritten_length(named, schema), 0)
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

    /// Parses the fields, which need the fragment's schema.
    pub(crate) fn parse(
        &self,
        files: &Files,
        folder: &FragmentFolder,
        schema: &Schema,
    ) -> Result<FooterFields, Error> {
        let mut cursor = Cursor::new(&self.bytes[self.fields_at..]);
        FooterFields::parse(&mut cursor, (self.version, self.metadata_bytes), schema)
            .map_err(|fault| self.damaged(files, folder, fault))
    }

    /// The fields that the reader of a matrix needs, with the attribute of this index in the
    /// fragment's schema.
    pub(crate) fn matrix(
        &self,
        files: &Files,
        folder: &FragmentFolder,
        fields: &FooterFields,
        attribute_idx: usize,
    ) -> Result<Footer, Error> {
        Footer::from_fields(fields, attribute_idx)
            .map_err(|fault| self.damaged(files, folder, fault))
    }

    fn damaged(&self, files: &Files, folder: &FragmentFolder, fault: Fault) -> Error {
        let at = self.footer_at + self.fields_at as u64;
        fault.in_file(files.name(&metadata_file(folder)), at)
    }
}

/// Reads a range of coordinates that are not negative.
pub(super) fn range(
    cursor: &mut Cursor<'_>,
    dimension: &schema::Dimension,
) -> Result<(u64, u64), Fault> {
    let at = cursor.at();
    let found = schema::range(cursor, dimension)?;
    position_range(found, &dimension.name).map_err(|fault| Fault::at(at, fault.what))
}

/// The range as positions, which are not negative and ascend.
pub(crate) fn position_range(
    found: Option<schema::Span>,
    dimension: &str,
) -> Result<(u64, u64), Fault> {
    let range =
        found.and_then(|(low, high)| Some((u64::try_from(low).ok()?, u64::try_from(high).ok()?)));
    range
        .filter(|(low, high)| low <= high)
        .ok_or_else(|| Fault::new(format!("bounds {found:?} of dimension `{dimension}`")))
}
