//! Writes generic tiles: content in chunks of 64 KiB, each compressed with gzip, after a header.
//!
//! Specification: `format_spec/generic_tile.md`; filters and level as libtiledb chooses them.

use std::io::Write as _;

use crate::generic_tile::MAX_BYTES;

/// Bytes per chunk.
const CHUNK_BYTES: usize = 1 << 16;
/// The number of the gzip filter, and libtiledb's level for metadata.
const GZIP: (u8, i32) = (1, 1);
/// The number of the datatype char.
const CHAR: u8 = 4;

/// The bytes of a file that is one generic tile.
///
/// # Errors
/// `content` is larger than the largest tile that is read.
pub(super) fn file(version: u32, content: &[u8]) -> Result<Vec<u8>, String> {
    check_size(content.len() as u64)?;
    let mut out = Vec::new();
    append(version, content, &mut out);
    Ok(out)
}

/// Fails if a generic tile of `n_bytes` bytes, once unfiltered, is larger than the largest that is
/// read.
pub(super) fn check_size(n_bytes: u64) -> Result<(), String> {
    if n_bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(format!("it takes {n_bytes} bytes, more than the {MAX_BYTES} that are read"))
}

/// Appends a generic tile to a file, and returns its place there.
pub(super) fn append(version: u32, content: &[u8], out: &mut Vec<u8>) -> u64 {
    let at = out.len() as u64;
    let mut tile = (content.len().div_ceil(CHUNK_BYTES) as u64).to_le_bytes().to_vec();
    for chunk in content.chunks(CHUNK_BYTES) {
        let data = deflate(chunk);
        // For the chunk: its length before and after, and that of the filter's metadata. For
        // the filter: no metadata part, one data part.
        let lengths = [chunk.len(), data.len(), 16, 0, 1, chunk.len(), data.len()];
        for len in lengths {
            tile.extend_from_slice(&(len as u32).to_le_bytes());
        }
        tile.extend_from_slice(&data);
    }
    let pipeline = gzip_pipeline();
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&(tile.len() as u64).to_le_bytes());
    out.extend_from_slice(&(content.len() as u64).to_le_bytes());
    out.push(CHAR);
    // Bytes per cell.
    out.extend_from_slice(&1_u64.to_le_bytes());
    // Not encrypted.
    out.push(0);
    out.extend_from_slice(&(pipeline.len() as u32).to_le_bytes());
    out.extend_from_slice(&pipeline);
    out.extend_from_slice(&tile);
    at
}

/// The largest chunk, the number of filters, then the filter's number, the length of its options,
/// the compressor and its level.
fn gzip_pipeline() -> Vec<u8> {
    let (gzip, level) = GZIP;
    let mut out = (CHUNK_BYTES as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&1_u32.to_le_bytes());
    out.push(gzip);
    out.extend_from_slice(&5_u32.to_le_bytes());
    out.push(gzip);
    out.extend_from_slice(&level.to_le_bytes());
    out
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::new(GZIP.1.unsigned_abs());
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), level);
    // Writing to memory cannot fail.
    drop(out.write_all(bytes));
    out.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_that_is_too_large_to_be_read() {
        assert_eq!(check_size(MAX_BYTES), Ok(()));
        assert!(check_size(MAX_BYTES + 1).is_err_and(|problem| problem.contains("1073741825")));
    }
}
