//! The filters of a dataset, as codecs of Zarr.

use hdf5_reader::messages::filter_pipeline::FilterDescription;
use serde_json::{Value, json};

/// Identifiers of filters, from the registry of the HDF Group
/// (<https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md>).
const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const LZF: u16 = 32_000;
const BLOSC: u16 = 32_001;
const ZSTD: u16 = 32_015;

/// Bytes of a checksum at the end of a chunk.
pub(crate) const CHECKSUM_BYTES: u64 = 4;

/// Splits off the checksum, if it is the last filter. It is only cut off: codec
/// `numcodecs.fletcher32` of zarrs (0.23.14) refuses chunks of an odd number of bytes.
pub(crate) fn without_checksum(filters: &[FilterDescription]) -> (&[FilterDescription], bool) {
    match filters {
        [others @ .., last] if last.id == FLETCHER32 => (others, true),
        all => (all, false),
    }
}

/// Returns the codecs that undo filters, in the order of encoding.
pub(crate) fn codecs(filters: &[FilterDescription], element_bytes: usize) -> Vec<Value> {
    filters.iter().map(|filter| codec(filter, element_bytes)).collect()
}

/// Whether a filter compresses by zlib.
pub(crate) fn is_deflate(filter: &FilterDescription) -> bool {
    filter.id == DEFLATE
}

fn codec(filter: &FilterDescription, element_bytes: usize) -> Value {
    let client = |place: usize| filter.client_data.get(place).copied();
    match filter.id {
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
        LZF => json!({ "name": "hdf5.lzf", "configuration": {} }),
        other => {
            let name = filter.name.as_deref().filter(|name| !name.is_empty());
            let name = name.map_or_else(|| other.to_string(), |name| format!("{other} ({name})"));
            json!({ "name": format!("hdf5.filter {name}"), "configuration": {} })
        }
    }
}
