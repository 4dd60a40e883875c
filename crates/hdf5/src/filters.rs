//! The filters of a dataset: as codecs of Zarr, where it has them, and undone here otherwise.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdf5_reader::error::Error;
use hdf5_reader::filters::apply_pipeline_with_limit;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use serde_json::{Value, json};

use crate::unreadable::Unreadable;
use crate::{blosc, lz};

/// Identifiers of filters, from the registry of the HDF Group
/// (<https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md>).
const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const SZIP: u16 = 4;
const NBIT: u16 = 5;
const SCALE_OFFSET: u16 = 6;
const LZF: u16 = 32_000;
const BLOSC: u16 = 32_001;
const LZ4: u16 = 32_004;
const ZSTD: u16 = 32_015;

/// The most bytes that deflate makes of one byte, that zstd does, and that the other filters do.
/// Only scaleoffset, which can say that all numbers are equal, could make more.
const MOST_OF_DEFLATE: u64 = 1032;
const MOST_OF_ZSTD: u64 = 1 << 17;
const MOST_OF_OTHERS: u64 = 1 << 12;
/// Bytes of a chunk that any number of stored bytes may be.
const ANY_BYTES: u64 = 4 << 20;

/// The most bytes of a chunk that is stored in `n_bytes`.
pub(crate) fn most_decoded(filters: &[FilterDescription], n_bytes: u64) -> u64 {
    let most = |n_bytes: u64, filter: &FilterDescription| {
        n_bytes.saturating_mul(match filter.id {
            SHUFFLE | FLETCHER32 => 1,
            DEFLATE => MOST_OF_DEFLATE,
            ZSTD | BLOSC | SCALE_OFFSET => MOST_OF_ZSTD,
            _ => MOST_OF_OTHERS,
        })
    };
    filters.iter().fold(n_bytes, most).max(ANY_BYTES)
}

/// Returns the codecs that undo filters, in the order of encoding; `None` if Zarr does not have all
/// of them.
pub(crate) fn codecs(filters: &[FilterDescription], element_bytes: usize) -> Option<Vec<Value>> {
    let is_shuffle = |filter: &FilterDescription| filter.id == SHUFFLE;
    if filters.iter().skip(1).any(is_shuffle) {
        // The codec refuses bytes that are no whole elements, as compressed ones are.
        return None;
    }
    filters.iter().map(|filter| codec(filter, element_bytes)).collect()
}

fn codec(filter: &FilterDescription, element_bytes: usize) -> Option<Value> {
    let client = |place: usize| filter.client_data.get(place).copied();
    Some(match filter.id {
        DEFLATE => json!({
            "name": "numcodecs.zlib",
            "configuration": { "level": client(0).unwrap_or(1).min(9) },
        }),
        SHUFFLE => json!({
            "name": "numcodecs.shuffle",
            "configuration": { "elementsize": element_bytes },
        }),
        ZSTD => json!({
            "name": "zstd",
            "configuration": { "level": client(0).unwrap_or(3).min(22), "checksum": false },
        }),
        // A chunk carries all that decoding needs, so these settings stand for any.
        BLOSC => json!({
            "name": "blosc",
            "configuration": {
                "cname": "zstd",
                "clevel": 1,
                "shuffle": "noshuffle",
                "typesize": element_bytes,
                "blocksize": 0,
            },
        }),
        _ => return None,
    })
}

/// The first filter that cannot be undone.
pub(crate) fn unreadable(filters: &[FilterDescription]) -> Option<Unreadable> {
    let known = [DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALE_OFFSET, LZF, BLOSC, LZ4, ZSTD];
    let filter = filters.iter().find(|filter| !known.contains(&filter.id))?;
    let name = filter.name.as_deref().map(|name| name.trim_end_matches('\0')).unwrap_or_default();
    let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let what = format!("its chunks are compressed with the HDF5 filter {}{name}", filter.id);
    Some(Unreadable::new(&format!("filter {}{name}", filter.id), &what))
}

/// The size of a decoded chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSize {
    pub(crate) element_bytes: usize,
    /// Bytes of all elements.
    pub(crate) n_bytes: usize,
}

/// Undoes the filters of a chunk, but for those that were skipped, one bit each.
pub(crate) fn decoded(
    filters: &[FilterDescription],
    stored: Vec<u8>,
    skipped: u32,
    ChunkSize { element_bytes, n_bytes }: ChunkSize,
) -> Result<Vec<u8>, Error> {
    // Filters make incompressible bytes a little longer.
    let most = n_bytes.saturating_add(n_bytes / 8).saturating_add(1 << 12);
    let mut bytes = stored;
    for (_, filter) in used(filters, skipped).rev() {
        bytes = undone(filter, &bytes, element_bytes, most)?;
    }
    if bytes.len() != n_bytes {
        let what = format!("a chunk has {} bytes, {n_bytes} are needed", bytes.len());
        return Err(Error::InvalidData(what));
    }
    Ok(bytes)
}

/// A chunk of which some filters were skipped, as it would be with all of them, which are those
/// that Zarr undoes. Blosc skips itself where a chunk does not shrink.
pub(crate) fn with_all(
    filters: &[FilterDescription],
    stored: Vec<u8>,
    skipped: u32,
    size: ChunkSize,
) -> Result<Vec<u8>, Error> {
    let mut bytes = decoded(filters, stored, skipped, size)?;
    let ChunkSize { element_bytes, n_bytes } = size;
    for filter in filters {
        bytes = match filter.id {
            SHUFFLE => shuffled(&bytes, element_bytes),
            DEFLATE => {
                let mut stream = ZlibEncoder::new(Vec::new(), Compression::none());
                stream.write_all(&bytes)?;
                stream.finish()?
            }
            ZSTD => zstd::bulk::compress(&bytes, 1)?,
            BLOSC => blosc::stored(&bytes, element_bytes).ok_or_else(|| {
                Error::InvalidData(format!("a chunk of {n_bytes} bytes is too long for Blosc"))
            })?,
            other => {
                let what = format!("filter {other}, which a chunk skips (mask {skipped:#x})");
                return Err(Error::UnsupportedFilter(what));
            }
        };
    }
    Ok(bytes)
}

/// The filters that a chunk has passed, and their places.
fn used(
    filters: &[FilterDescription],
    skipped: u32,
) -> impl DoubleEndedIterator<Item = (usize, &FilterDescription)> {
    let is_used = move |place: usize| 32 <= place || skipped >> place & 1 == 0;
    filters.iter().enumerate().filter(move |(place, _)| is_used(*place))
}

fn undone(
    filter: &FilterDescription,
    bytes: &[u8],
    element_bytes: usize,
    most: usize,
) -> Result<Vec<u8>, Error> {
    let undone = match filter.id {
        LZF => lz::lzf(bytes, most),
        LZ4 => lz::lz4(bytes, most),
        ZSTD => lz::zstd(bytes, most),
        BLOSC => blosc::decoded(bytes, most),
        _ => {
            let alone = std::slice::from_ref(filter);
            return apply_pipeline_with_limit(bytes, alone, 0, element_bytes, None, Some(most));
        }
    };
    undone.ok_or_else(|| {
        Error::DecompressionError(format!("a chunk is not what filter {} writes", filter.id))
    })
}

/// The first bytes of all elements, then the second ones, and so on; the rest stays.
fn shuffled(bytes: &[u8], element_bytes: usize) -> Vec<u8> {
    let whole = bytes.len() / element_bytes.max(1) * element_bytes.max(1);
    let (elements, rest) = bytes.split_at(whole);
    let column = |at: usize| elements.iter().skip(at).step_by(element_bytes.max(1));
    (0..element_bytes).flat_map(column).chain(rest).copied().collect()
}
