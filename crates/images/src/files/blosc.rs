//! Arrays compressed by c-blosc after a pickle of their shapes and types, as htc writes them.
//!
//! A file of one array is a pickle of `(shape, numpy.dtype)` and a buffer of c-blosc 1. A file of
//! several is a pickle of `{name: (shape, numpy.dtype, compressed size)}` and their buffers in the
//! same order. Source: `htc/utils/blosc_compression.py` of IMSY-DKFZ/htc. The values are in C
//! order: the format has no other.
//!
//! Buffers may be compressed by zstd, lz4, zlib or blosclz, after a byte shuffle, a bit shuffle, or
//! neither. We write zstd after a byte shuffle, as htc does.

mod compress;
mod header;
mod pickle;

use std::collections::HashSet;

use arrays::blosc::Buffer;

use super::{DecodeScratch, FileError, StoredArray};
use header::{Description, Header, Named};

/// A compressed array over borrowed bytes.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    buffer: Buffer<'a>,
    /// Bytes of an element if they must be reversed, else 1.
    reversed_bytes: usize,
}

/// Parses a file: its arrays, and the header of each one's buffer.
pub(super) fn parse(bytes: &[u8]) -> Result<(Vec<StoredArray>, Vec<Stored<'_>>), FileError> {
    let (header, mut at) = header::parse(bytes)?;
    let described = match header {
        Header::One(description) => {
            vec![Named { name: "", description, n_bytes: bytes.len() - at }]
        }
        Header::Several(arrays) => arrays,
    };
    let mut names = HashSet::new();
    let mut arrays = Vec::with_capacity(described.len());
    let mut stored = Vec::with_capacity(described.len());
    for Named { name, description, n_bytes } in described {
        if !names.insert(name) {
            return Err(FileError::damaged(0, format!("two arrays are called `{name}`")));
        }
        let end = at.saturating_add(n_bytes);
        let Some(buffer) = bytes.get(at..end) else {
            let part = "a compressed array";
            return Err(FileError::Truncated { part, length: bytes.len(), end });
        };
        let (array, compressed) = parse_one(name, description, buffer, at)?;
        arrays.push(array);
        stored.push(compressed);
        at = end;
    }
    if at != bytes.len() {
        let reason = format!("{} bytes follow the last array", bytes.len() - at);
        return Err(FileError::damaged(at, reason));
    }
    Ok((arrays, stored))
}

fn parse_one<'a>(
    name: &str,
    Description { shape, element, is_reversed }: Description,
    buffer: &'a [u8],
    offset: usize,
) -> Result<(StoredArray, Stored<'a>), FileError> {
    let array = StoredArray { name: name.to_owned(), shape, element };
    let Some(n_bytes) = array.n_bytes() else {
        let reason = format!("an array of shape {:?} exceeds the memory", array.shape);
        return Err(FileError::damaged(0, reason));
    };
    let buffer = Buffer::parse(buffer, offset, n_bytes)?;
    let reversed_bytes = if is_reversed { array.element.n_bytes() } else { 1 };
    Ok((array, Stored { buffer, reversed_bytes }))
}

impl Stored<'_> {
    /// Bytes of a piece: a block, if elements do not straddle blocks.
    pub(super) fn piece_bytes(&self) -> usize {
        let header = self.buffer.header();
        if header.block_bytes().is_multiple_of(self.reversed_bytes) {
            header.block_bytes()
        } else {
            header.n_bytes()
        }
    }

    /// Decodes a piece into `into`, which has its length.
    pub(super) fn decode_piece(
        &self,
        piece: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let block_bytes = self.buffer.header().block_bytes();
        let first = piece * self.piece_bytes().div_ceil(block_bytes);
        self.buffer.decode(first, into, scratch)?;
        if self.reversed_bytes > 1 {
            into.chunks_exact_mut(self.reversed_bytes).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// The file of one array. Its name is not stored.
///
/// `values` are in native byte order and C order. `clevel` is a level of c-blosc from 0, which only
/// copies, to 9, which htc uses.
///
/// # Errors
/// If `values` are not those of `array`'s shape, its type is `bfloat16`, which numpy does not have,
/// it has 2 GiB or more, which c-blosc 1 does not take, or `clevel` exceeds 9.
pub fn write_array(array: &StoredArray, values: &[u8], clevel: u8) -> Result<Vec<u8>, FileError> {
    let mut file = header::write_one(array)?;
    file.append(&mut compress_values(array, values, clevel)?);
    Ok(file)
}

/// The file of several arrays under their names; see [`write_array`].
///
/// # Errors
/// As [`write_array`], and if two arrays have the same name.
pub fn write_dictionary(
    arrays: &[(&StoredArray, &[u8])],
    clevel: u8,
) -> Result<Vec<u8>, FileError> {
    let mut names = HashSet::new();
    if let Some((twice, _)) = arrays.iter().find(|(array, _)| !names.insert(&array.name)) {
        return Err(FileError::write(format!("two arrays are called `{}`", twice.name)));
    }
    let compressed = arrays
        .iter()
        .map(|(array, values)| compress_values(array, values, clevel))
        .collect::<Result<Vec<_>, _>>()?;
    let sizes: Vec<_> =
        arrays.iter().zip(&compressed).map(|((array, _), buffer)| (*array, buffer.len())).collect();
    let mut file = header::write_several(&sizes)?;
    for buffer in compressed {
        file.extend_from_slice(&buffer);
    }
    Ok(file)
}

fn compress_values(array: &StoredArray, values: &[u8], clevel: u8) -> Result<Vec<u8>, FileError> {
    if array.n_bytes() != Some(values.len()) {
        let StoredArray { name, shape, element } = array;
        let found = values.len();
        let reason = format!("{found} bytes for `{name}` of shape {shape:?} and type {element}");
        return Err(FileError::write(reason));
    }
    compress::compress(values, array.element.n_bytes(), clevel)
}
