//! Strings, encoded as chunks of Zarr's codec `vlen-utf8`.

/// Most strings of a chunk.
const MAX_CHUNK_ROWS: u64 = 1 << 16;

/// The number of strings in each chunk of an array of `n_strings`.
pub(crate) fn chunk_rows(n_strings: u64) -> u64 {
    n_strings.clamp(1, MAX_CHUNK_ROWS)
}

/// Encodes strings as chunks: the number of strings, then each one's length and its bytes, numbers
/// as 32 bits, little-endian
/// (<https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8>). `None` if a
/// string is too long.
pub(crate) fn encoded(strings: &[String]) -> Option<Vec<Vec<u8>>> {
    let rows = chunk_rows(strings.len() as u64) as usize;
    strings.chunks(rows).map(|strings| chunk(strings, rows)).collect()
}

fn chunk(strings: &[String], rows: usize) -> Option<Vec<u8>> {
    let n_bytes: usize = strings.iter().map(String::len).sum();
    let mut bytes = Vec::with_capacity(n_bytes + rows * 4 + 4);
    bytes.extend(u32::try_from(rows).ok()?.to_le_bytes());
    for text in strings {
        bytes.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    // The last chunk has as many strings as the others.
    bytes.resize(bytes.len() + (rows - strings.len()) * 4, 0);
    Some(bytes)
}
