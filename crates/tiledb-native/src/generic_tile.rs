//! Generic tiles: tiles with a header that describes how they were filtered. Schemas and parts of
//! fragment metadata are generic tiles.
//!
//! Specification: `format_spec/generic_tile.md`.

use std::borrow::Cow;

use storage::Files;

use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::filter;
use crate::tile;
use crate::unsupported::Unsupported;

const HEADER_BYTES: u64 = 4 + 8 + 8 + 1 + 8 + 1 + 4;
/// The largest unfiltered generic tile that is read and written: the bounding rectangles of about
/// 30 million tiles.
pub(crate) const MAX_BYTES: u64 = 1 << 30;
/// The largest filtered generic tile: filters add some bytes where they cannot save any.
const MAX_FILTERED_BYTES: u64 = 2 * MAX_BYTES;
/// Files that are read together.
const AT_ONCE: usize = 64;
/// The largest pipeline in a header; a filter takes about ten bytes.
const MAX_PIPELINE_BYTES: u32 = 1 << 16;

/// A file with generic tiles.
pub(crate) struct Source<'a> {
    files: &'a Files,
    file: &'a str,
    file_bytes: u64,
    /// The bytes read so far, and their offset.
    loaded: (u64, &'a [u8]),
}

impl<'a> Source<'a> {
    /// A file of `file_bytes` bytes.
    pub(crate) fn new(files: &'a Files, file: &'a str, file_bytes: u64) -> Self {
        Self { files, file, file_bytes, loaded: (0, &[]) }
    }

    /// Adds `bytes`, which were read at offset `at`.
    pub(crate) fn with_loaded(self, at: u64, bytes: &'a [u8]) -> Self {
        Self { loaded: (at, bytes), ..self }
    }

    /// Reads the generic tile at `offset` and unfilters it.
    pub(crate) fn read(&self, offset: u64) -> Result<Vec<u8>, Error> {
        read(self, offset)
    }

    /// Bytes of the file.
    fn bytes(&self, offset: u64, len: usize) -> Result<Cow<'a, [u8]>, Error> {
        let (at, loaded) = self.loaded;
        let start = offset.checked_sub(at).and_then(|start| usize::try_from(start).ok());
        let here = start.and_then(|start| loaded.get(start..start.checked_add(len)?));
        match here {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => Ok(Cow::Owned(self.files.read(self.file, offset, len)?)),
        }
    }
}

/// Reads and unfilters the only generic tile of `file`, which is fetched at once.
pub(crate) fn read_file(files: &Files, file: &str) -> Result<Vec<u8>, Error> {
    Ok(read_files(files, &[file])?.pop().unwrap_or_default())
}

/// Reads and unfilters the only generic tile of each of `names`, many with one call of the storage.
pub(crate) fn read_files(files: &Files, names: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
    let mut tiles = Vec::with_capacity(names.len());
    for names in names.chunks(AT_ONCE) {
        for (file, size) in names.iter().zip(files.sizes(names)?) {
            if size > MAX_FILTERED_BYTES + HEADER_BYTES + u64::from(MAX_PIPELINE_BYTES) {
                let fault = crate::error::Fault::new(format!(
                    "the file has {size} bytes, more than the largest tile that is read"
                ));
                return Err(fault.in_file(files.name(file), 0));
            }
        }
        for (file, stored) in names.iter().zip(files.read_files(names)?) {
            let source = Source::new(files, file, stored.len() as u64);
            tiles.push(source.with_loaded(0, &stored).read(0)?);
        }
    }
    Ok(tiles)
}

fn read(source: &Source<'_>, offset: u64) -> Result<Vec<u8>, Error> {
    let Source { files, file, file_bytes, .. } = *source;
    let damaged = |fault: crate::error::Fault| fault.in_file(files.name(file), offset);
    let beyond = |what: &str| {
        damaged(crate::error::Fault::new(format!(
            "{what} reaches beyond the {file_bytes} bytes of the file"
        )))
    };
    let available = file_bytes.checked_sub(offset).ok_or_else(|| beyond("a tile"))?;
    if available < HEADER_BYTES {
        return Err(beyond("the header of a tile"));
    }
    let header = source.bytes(offset, HEADER_BYTES as usize)?;
    let mut cursor = Cursor::new(&header);
    let mut fields = || {
        Ok((
            cursor.u32("a format version")?,
            cursor.u64("a tile's filtered length")?,
            cursor.u64("a tile's length")?,
            Datatype(cursor.u8("a tile's type")?),
            cursor.u64("the length of a cell")?,
            cursor.u8("an encryption type")?,
            cursor.u32("the length of a pipeline")?,
        ))
    };
    let (version, filtered_len, len, datatype, cell_bytes, encryption, pipeline_len) =
        fields().map_err(damaged)?;
    if encryption != 0 {
        return Err(Error::Unsupported { place: files.place(), reason: Unsupported::Encrypted });
    }
    if len > MAX_BYTES || filtered_len > MAX_FILTERED_BYTES || pipeline_len > MAX_PIPELINE_BYTES {
        return Err(damaged(crate::error::Fault::new(format!(
            "a tile of {filtered_len} bytes, {len} once unfiltered, after {pipeline_len} bytes of filters"
        ))));
    }
    if filtered_len.saturating_add(pipeline_len.into()).saturating_add(HEADER_BYTES) > available {
        return Err(beyond(&format!("a tile of {filtered_len} bytes, {len} once unfiltered,")));
    }
    let rest_len = filtered_len as usize + pipeline_len as usize;
    let rest = source.bytes(offset + HEADER_BYTES, rest_len)?;
    let (pipeline, tile) = rest.split_at(pipeline_len as usize);
    let filters = filter::parse(&mut Cursor::new(pipeline), version).map_err(damaged)?;
    let pipeline =
        filter::bind(&filters, datatype, version).map_err(|name| Error::Unsupported {
            place: files.place(),
            reason: Unsupported::Filter { name, of: file.to_owned() },
        })?;
    let value_bytes = usize::try_from(cell_bytes).unwrap_or(0);
    if value_bytes == 0 || value_bytes as u64 > len.max(1) {
        return Err(damaged(crate::error::Fault::new(format!(
            "cells of {cell_bytes} bytes in a tile of {len}"
        ))));
    }
    tile::decode_whole(tile, &pipeline, value_bytes, len as usize).map_err(|fault| {
        fault.in_file(files.name(file), offset + HEADER_BYTES + u64::from(pipeline_len))
    })
}
