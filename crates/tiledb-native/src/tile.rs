//! Tiles: the number of chunks, then each chunk, filtered separately.
//!
//! Specification: `format_spec/tile.md`. A chunk consists of its unfiltered length, its filtered
//! length, the length of its metadata (u32 each), the metadata, the data.

use crate::cursor::Cursor;
use crate::error::Fault;
use crate::filter::filtered::Filtered;
use crate::filter::texts::{TextPipeline, Texts};
use crate::filter::{Decoded, Decoder, Pipeline};
use crate::memory::reserve;

/// Bytes of a chunk before its metadata.
const HEADER_BYTES: usize = 12;
/// The largest plausible expansion of filtered data, and the size that any chunk may have. zstd
/// writes 128 KiB of one repeated byte in four.
const MAX_EXPANSION: usize = 1 << 17;
const ALWAYS_FINE_BYTES: usize = 1 << 20;
/// The largest unfiltered chunk that is read, 64 times the size that libtiledb and this crate
/// write. Decoding takes about three times as much memory, which must fit into the memory estimate
/// of a thread.
const MAX_CHUNK_BYTES: usize = 4 << 20;

/// The beginnings of a tile's chunks, in the tile's bytes and in its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Offsets of the chunks' headers from the start of the tile, and the end of the last chunk.
    offsets: Box<[u32]>,
    /// Indices of the chunks' first values, and the number of all values.
    values: Box<[u32]>,
}

/// Lengths in the header of a chunk, in bytes.
struct Header {
    original: usize,
    data: usize,
    metadata: usize,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Fault> {
        Ok(Self {
            original: cursor.u32("a chunk's length")? as usize,
            data: cursor.u32("a chunk's filtered length")? as usize,
            metadata: cursor.u32("the length of a chunk's metadata")? as usize,
        })
    }

    /// Takes what follows the header.
    fn take<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Filtered<'a>, Fault> {
        let metadata = cursor.take(self.metadata, "a chunk's metadata")?;
        let data = cursor.take(self.data, "a chunk's data")?;
        Ok(Filtered { original_len: self.original, metadata, data })
    }
}

fn take_chunk<'a>(cursor: &mut Cursor<'a>) -> Result<Filtered<'a>, Fault> {
    take_chunk_within(cursor, MAX_CHUNK_BYTES)
}

/// Takes the chunk at the front of `cursor`, which may have `max_bytes` at most once unfiltered.
fn take_chunk_within<'a>(cursor: &mut Cursor<'a>, max_bytes: usize) -> Result<Filtered<'a>, Fault> {
    let header = Header::read(cursor)?;
    let original_len = header.original;
    let filtered = header.data.saturating_add(header.metadata);
    if original_len > ALWAYS_FINE_BYTES.max(filtered.saturating_mul(MAX_EXPANSION)) {
        return Err(Fault::at(
            cursor.at(),
            format!("a chunk of {filtered} bytes claims to have been {original_len}"),
        ));
    }
    if original_len > max_bytes {
        return Err(Fault::at(
            cursor.at(),
            format!("a chunk of {original_len} bytes is larger than {max_bytes}"),
        ));
    }
    header.take(cursor)
}

impl Chunks {
    /// Finds the chunks of `tile`, which has `n_values` values of `value_bytes` bytes.
    pub(crate) fn find(tile: &[u8], n_values: usize, value_bytes: usize) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(tile);
        let n_chunks = cursor.u64("the number of chunks")?;
        if n_chunks > (tile.len() / HEADER_BYTES) as u64 || tile.len() > u32::MAX as usize {
            return Err(Fault::new(format!("{n_chunks} chunks in a tile of {} bytes", tile.len())));
        }
        let mut offsets = Vec::with_capacity(n_chunks as usize + 1);
        let mut values = Vec::with_capacity(n_chunks as usize + 1);
        let mut value = 0_usize;
        for _ in 0..n_chunks {
            offsets.push(cursor.at() as u32);
            values.push(value as u32);
            let at = cursor.at();
            let chunk = take_chunk(&mut cursor)?;
            if !chunk.original_len.is_multiple_of(value_bytes) {
                return Err(Fault::at(
                    at,
                    format!(
                        "a chunk of {} bytes splits a value of {value_bytes}",
                        chunk.original_len
                    ),
                ));
            }
            value = value.saturating_add(chunk.original_len / value_bytes);
            if value > n_values {
                return Err(Fault::at(at, format!("a tile of {n_values} cells contains more")));
            }
        }
        if value != n_values {
            return Err(Fault::at(
                cursor.at(),
                format!("a tile of {n_values} cells contains {value}"),
            ));
        }
        offsets.push(cursor.at() as u32);
        values.push(value as u32);
        Ok(Self { offsets: offsets.into(), values: values.into() })
    }

    pub(crate) fn n_chunks(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The chunk that contains value `value`, which must be one of the tile's.
    pub(crate) fn holding(&self, value: u32) -> usize {
        self.values
            .partition_point(|&first| first <= value)
            .saturating_sub(1)
            .min(self.n_chunks().saturating_sub(1))
    }

    /// The values of chunk `chunk`.
    pub(crate) fn values(&self, chunk: usize) -> std::ops::Range<u32> {
        self.values[chunk]..self.values[chunk + 1]
    }

    /// The bytes of chunk `chunk`, relative to the start of the tile.
    pub(crate) fn bytes(&self, chunk: usize) -> std::ops::Range<u32> {
        self.offsets[chunk]..self.offsets[chunk + 1]
    }
}

/// Decodes the chunk in `bytes`, including its header.
pub(crate) fn decode_chunk<'a>(
    bytes: &'a [u8],
    pipeline: &Pipeline,
    value_bytes: usize,
    decoder: &'a mut Decoder,
) -> Result<Decoded<'a>, Fault> {
    let chunk = take_chunk(&mut Cursor::new(bytes))?;
    pipeline.decode(chunk, value_bytes, decoder)
}

/// Checks that a chunk has as many values as when its tile was indexed.
pub(crate) fn whole<'a>(
    decoded: Decoded<'a>,
    cells: &std::ops::Range<u32>,
    size: usize,
) -> Result<Decoded<'a>, Fault> {
    let (bytes, size) = match decoded {
        Decoded::Plain(bytes) | Decoded::Planes(bytes) => (bytes, size),
        Decoded::LowFour(bytes) => (bytes, 4),
    };
    let n_cells = (cells.end - cells.start) as usize;
    if bytes.len() == n_cells * size {
        Ok(decoded)
    } else {
        Err(Fault::new(format!("a chunk of {n_cells} cells is {} bytes", bytes.len())))
    }
}

/// Calls `each` with the runs of the chunk in `bytes`, including its header, if run lengths are its
/// only encoding. Returns whether they are.
pub(crate) fn runs_of_chunk(
    bytes: &[u8],
    pipeline: &Pipeline,
    value_bytes: usize,
    each: impl FnMut(&[u8], u16) -> Result<(), Fault>,
) -> Result<bool, Fault> {
    pipeline.runs(take_chunk(&mut Cursor::new(bytes))?, value_bytes, each)
}

/// Unfilters a whole tile of `len` bytes into one buffer.
pub(crate) fn decode_whole(
    tile: &[u8],
    pipeline: &Pipeline,
    value_bytes: usize,
    len: usize,
) -> Result<Vec<u8>, Fault> {
    decode_within(tile, pipeline, (value_bytes, MAX_CHUNK_BYTES), len)
}

/// Unfilters a whole tile of var-sized values, `len` bytes in all. libtiledb does not split a
/// value: a long text is one chunk.
pub(crate) fn decode_var_sized(
    tile: &[u8],
    pipeline: &Pipeline,
    value_bytes: usize,
    len: usize,
) -> Result<Vec<u8>, Fault> {
    decode_within(tile, pipeline, (value_bytes, len.max(MAX_CHUNK_BYTES)), len)
}

/// Unfilters a whole tile of `n_texts` texts that were encoded whole, `len` bytes in all. Unlike
/// other filters, a dictionary and run lengths may expand their bytes without limit.
pub(crate) fn decode_texts(
    tile: &[u8],
    pipeline: &TextPipeline,
    n_texts: usize,
    len: usize,
) -> Result<Texts, Fault> {
    let mut cursor = Cursor::new(tile);
    let n_chunks = cursor.u64("the number of chunks")?;
    if n_chunks != 1 {
        return Err(Fault::new(format!("texts encoded whole in {n_chunks} chunks")));
    }
    let header = Header::read(&mut cursor)?;
    if header.original != len {
        let found = header.original;
        return Err(Fault::at(cursor.at(), format!("a tile of {len} bytes contains {found}")));
    }
    pipeline.decode(header.take(&mut cursor)?, n_texts)
}

fn decode_within(
    tile: &[u8],
    pipeline: &Pipeline,
    (value_bytes, max_chunk_bytes): (usize, usize),
    len: usize,
) -> Result<Vec<u8>, Fault> {
    let mut cursor = Cursor::new(tile);
    let n_chunks = cursor.u64("the number of chunks")?;
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for _ in 0..n_chunks {
        let chunk = take_chunk_within(&mut cursor, max_chunk_bytes)?;
        if out.len().saturating_add(chunk.original_len) > len {
            return Err(Fault::at(cursor.at(), format!("a tile of {len} bytes contains more")));
        }
        reserve(&mut out, chunk.original_len)?;
        match pipeline.decode(chunk, value_bytes, &mut decoder)? {
            Decoded::Plain(bytes) => out.extend_from_slice(bytes),
            Decoded::LowFour(words) => {
                for word in words.as_chunks::<4>().0 {
                    out.extend_from_slice(word);
                    out.resize(out.len() + value_bytes - 4, 0);
                }
            }
            Decoded::Planes(planes) => {
                let n_values = planes.len() / value_bytes;
                for value in 0..n_values {
                    out.extend((0..value_bytes).map(|byte| planes[byte * n_values + value]));
                }
            }
        }
    }
    if out.len() == len {
        Ok(out)
    } else {
        Err(Fault::at(cursor.at(), format!("a tile of {len} bytes contains {}", out.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;
    use crate::filter;

    /// A tile of one chunk that claims `original_len` bytes, with just enough filtered bytes to
    /// make that plausible.
    fn tile(original_len: u32) -> Vec<u8> {
        let mut tile = 1_u64.to_le_bytes().to_vec();
        let data = vec![0; original_len as usize / MAX_EXPANSION + 1];
        for len in [original_len, data.len() as u32, 0] {
            tile.extend(len.to_le_bytes());
        }
        tile.extend(data);
        tile
    }

    #[test]
    fn no_memory_is_taken_for_chunks_that_nobody_writes() {
        let largest = MAX_CHUNK_BYTES as u32;
        let cells = |len: u32| len as usize / 8;
        assert!(Chunks::find(&tile(largest), cells(largest), 8).is_ok());
        for len in [largest + 8, 512 << 20] {
            let tile = tile(len);
            let found = Chunks::find(&tile, cells(len), 8);
            assert!(found.is_err_and(|fault| fault.what.contains("larger than")), "{len}");
            let pipeline = filter::bind(&[], Datatype::INT64, 22).unwrap();
            let mut decoder = Decoder::default();
            let decoded = decode_chunk(&tile[8..], &pipeline, 8, &mut decoder);
            assert!(decoded.is_err_and(|fault| fault.what.contains("larger than")), "{len}");
        }
    }
}
