//! Where the elements of a dataset lie.

use std::collections::HashMap;
use std::sync::OnceLock;

use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::layout::{self, ChunkIndexing, DataLayout};
use hdf5_reader::messages::{MSG_DATA_LAYOUT, MSG_EXTERNAL_FILES};

use crate::chunks::{self, Grid, StoredChunk, product};
use crate::file::{File, Widths};
use crate::header::{Header, invalid};
use crate::unreadable::Unreadable;

/// Bytes of a chunk of a contiguous dataset, if a row is not longer.
const CONTIGUOUS_CHUNK_BYTES: u64 = 128 << 10;
/// The same of strings, which are decoded a chunk at a time.
const CONTIGUOUS_STRING_BYTES: u64 = 1 << 20;

/// The class of a layout of a virtual dataset.
const VIRTUAL: u8 = 3;
/// A flag of chunks: those at the edge are not filtered.
const EDGES_NOT_FILTERED: u8 = 1;

/// Where chunks are.
#[derive(Debug)]
pub(crate) enum Layout {
    /// One chunk, in the header.
    Compact(Vec<u8>),
    /// Whole rows, which follow each other.
    Contiguous { address: u64, n_bytes: u64, chunk_bytes: u64 },
    /// In an index.
    Indexed {
        grid: Grid,
        address: u64,
        indexing: Option<ChunkIndexing>,
        found: OnceLock<HashMap<Vec<u64>, StoredChunk>>,
    },
    /// No chunk was ever written.
    Absent,
}

/// The elements of a dataset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elements<'a> {
    pub(crate) shape: &'a [u64],
    pub(crate) most: Option<&'a [u64]>,
    pub(crate) n_bytes: usize,
    pub(crate) are_strings: bool,
    pub(crate) are_filtered: bool,
}

/// A stored chunk: its bytes, if the header has them, or where they are.
#[derive(Debug)]
pub(crate) enum Stored<'a> {
    Inline(&'a [u8]),
    At(StoredChunk),
}

impl Stored<'_> {
    /// Bytes as stored.
    pub(crate) fn n_bytes(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::At(chunk) => chunk.n_bytes,
        }
    }
}

/// The layout of a dataset and the shape of its chunks, or why it is not read.
pub(crate) type Found = Result<(Layout, Vec<u64>), Unreadable>;

impl Layout {
    /// Reads the layout in a dataset's header.
    pub(crate) fn read(
        file: &File,
        header: &Header,
        elements: Elements<'_>,
    ) -> Result<Found, Error> {
        let message = header.first(file, MSG_DATA_LAYOUT)?;
        let message = message.ok_or_else(|| invalid("it has no data layout"))?;
        if header.has(MSG_EXTERNAL_FILES) {
            let what = "its elements lie in other files (external storage)";
            return Ok(Err(Unreadable::new("external", what)));
        }
        if let [3..=u8::MAX, VIRTUAL, ..] = message[..] {
            let what = "it is a virtual dataset, whose elements lie in other datasets";
            return Ok(Err(Unreadable::new("virtual", what)));
        }
        if let [4..=u8::MAX, 2, flags, ..] = message[..]
            && elements.are_filtered
            && flags & EDGES_NOT_FILTERED != 0
        {
            let what = "its chunks at the edge are not filtered (a chunk option)";
            return Ok(Err(Unreadable::new("chunk option", what)));
        }
        let Widths { offsets, lengths } = file.widths();
        let cursor = &mut Cursor::new(&message);
        let mut layout = layout::parse(cursor, offsets, lengths, message.len())?.layout;
        if let ([1 | 2, ..], DataLayout::Contiguous { size, .. }) = (&message[..], &mut layout) {
            // These versions do not say how many bytes there are.
            *size = product(elements.n_bytes as u64, elements.shape.iter().copied())?;
        }
        Self::resolve(file, layout, elements).map(Ok)
    }

    fn resolve(
        file: &File,
        layout: DataLayout,
        elements: Elements<'_>,
    ) -> Result<(Self, Vec<u64>), Error> {
        let shape = elements.shape;
        match layout {
            DataLayout::Compact { data } => {
                let needed = product(elements.n_bytes as u64, shape.iter().copied())?;
                if (data.len() as u64) < needed {
                    return Err(too_short(data.len() as u64, needed));
                }
                Ok((Self::Compact(data), shape.to_vec()))
            }
            DataLayout::Contiguous { address, size } => {
                let size = if file.is_address(address) { size } else { 0 };
                contiguous(elements, address, size)
            }
            DataLayout::Chunked { address, dims, chunk_indexing, .. } => {
                // The last one may be the bytes of an element.
                let chunk = dims.get(..shape.len()).unwrap_or_default().to_vec();
                if chunk.len() < shape.len() || chunk.contains(&0) || shape.is_empty() {
                    let what = format!("it has chunks of shape {dims:?}, and shape {shape:?}");
                    return Err(Error::InvalidData(what));
                }
                let lens: Vec<u64> = chunk.iter().map(|len| u64::from(*len)).collect();
                let chunk_bytes = product(elements.n_bytes as u64, lens.iter().copied())?;
                if !file.is_address(address) {
                    return Ok((Self::Absent, lens));
                }
                let grid = Grid {
                    shape: shape.to_vec(),
                    most: elements.most.map(<[u64]>::to_vec),
                    chunk,
                    element_bytes: elements.n_bytes,
                    chunk_bytes: (!elements.are_filtered).then_some(chunk_bytes),
                };
                let (indexing, found) = (chunk_indexing, OnceLock::new());
                Ok((Self::Indexed { grid, address, indexing, found }, lens))
            }
        }
    }

    /// The chunk at a place in the grid; `None` if it is not stored.
    pub(crate) fn stored(&self, file: &File, place: &[u64]) -> Result<Option<Stored<'_>>, Error> {
        match self {
            Self::Compact(bytes) => {
                let is_first = place.iter().all(|index| *index == 0);
                Ok(is_first.then_some(Stored::Inline(bytes)))
            }
            Self::Contiguous { address, n_bytes, chunk_bytes } => {
                let first = place.first().copied().unwrap_or(0);
                let is_first = place.iter().skip(1).all(|index| *index == 0);
                let start = first.checked_mul(*chunk_bytes).filter(|start| start < n_bytes);
                Ok(start.filter(|_| is_first).map(|start| {
                    let n_bytes = (n_bytes - start).min(*chunk_bytes);
                    Stored::At(StoredChunk { address: address + start, n_bytes, skipped: 0 })
                }))
            }
            Self::Indexed { grid, address, indexing, found } => {
                let found = if let Some(found) = found.get() {
                    found
                } else {
                    let read = chunks::read(file, grid, *address, indexing.as_ref())?;
                    found.get_or_init(|| read)
                };
                Ok(found.get(place).copied().map(Stored::At))
            }
            Self::Absent => Ok(None),
        }
    }
}

/// The chunks of a contiguous dataset, and their shape.
fn contiguous(
    elements: Elements<'_>,
    address: u64,
    n_bytes: u64,
) -> Result<(Layout, Vec<u64>), Error> {
    let mut chunk_shape = elements.shape.to_vec();
    let rows = elements.shape.iter().skip(1).copied();
    let row_bytes = product(elements.n_bytes as u64, rows)?;
    let of_chunk =
        if elements.are_strings { CONTIGUOUS_STRING_BYTES } else { CONTIGUOUS_CHUNK_BYTES };
    if let Some(rows) = chunk_shape.first_mut() {
        *rows = (*rows).min(of_chunk / row_bytes.max(1)).max(1);
    }
    let chunk_bytes = product(row_bytes, chunk_shape.first().copied())?;
    let needed = product(row_bytes, elements.shape.first().copied())?;
    // Space that was never written has no address, and reads as the fill value.
    if address.checked_add(n_bytes).is_none() || n_bytes == 0 {
        return Ok((Layout::Absent, chunk_shape));
    }
    if n_bytes < needed {
        return Err(too_short(n_bytes, needed));
    }
    Ok((Layout::Contiguous { address, n_bytes: needed, chunk_bytes }, chunk_shape))
}

fn too_short(n_bytes: u64, needed: u64) -> Error {
    Error::InvalidData(format!("it has {n_bytes} bytes, and needs {needed}"))
}
