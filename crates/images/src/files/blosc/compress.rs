//! Compression into a buffer of c-blosc 1: zstd after a byte shuffle.

use arrays::blosc::{
    CODEC_VERSION, Header, MAX_BYTES, MIN_PART_BYTES, VERSION, ZSTD, flags, shuffle_bytes,
};

use crate::files::FileError;

/// Levels of c-blosc.
const MAX_LEVEL: u8 = 9;
/// Bytes of a block at level 2, from which the other levels' are computed.
const BLOCK_BYTES: usize = 1 << 16;

/// The buffer of values whose elements have `element_bytes`, at level `clevel` of c-blosc.
pub(super) fn compress(
    values: &[u8],
    element_bytes: usize,
    clevel: u8,
) -> Result<Vec<u8>, FileError> {
    if clevel > MAX_LEVEL {
        return Err(FileError::write(format!("level {clevel} of c-blosc: the highest is 9")));
    }
    if values.len() > MAX_BYTES {
        let reason = format!("{} bytes of values: c-blosc takes {MAX_BYTES}", values.len());
        return Err(FileError::write(reason));
    }
    let block_bytes = block_bytes(values.len(), element_bytes, clevel);
    if clevel > 0 && values.len() >= MIN_PART_BYTES {
        let buffer = compress_blocks(values, element_bytes, block_bytes, zstd_level(clevel));
        // As c-blosc does, values are copied if that takes less.
        let buffer = buffer.map_err(|error| FileError::write(format!("zstd: {error}")))?;
        if buffer.len() <= Header::BYTES + values.len() {
            return Ok(buffer);
        }
    }
    let mut buffer = header(values.len(), element_bytes, block_bytes, flags::COPIED);
    buffer.extend_from_slice(values);
    set_length(&mut buffer);
    Ok(buffer)
}

/// The level of zstd that c-blosc uses.
fn zstd_level(clevel: u8) -> i32 {
    if clevel < MAX_LEVEL { 2 * i32::from(clevel) - 1 } else { 22 }
}

/// The length of blocks that c-blosc chooses for zstd: longer ones at higher levels.
fn block_bytes(n_bytes: usize, element_bytes: usize, clevel: u8) -> usize {
    if n_bytes < element_bytes {
        return 1;
    }
    let block_bytes = match clevel {
        0 => BLOCK_BYTES / 4,
        1 => BLOCK_BYTES / 2,
        2 => BLOCK_BYTES,
        3 => BLOCK_BYTES * 2,
        4 | 5 => BLOCK_BYTES * 4,
        6..=8 => BLOCK_BYTES * 8,
        _ => BLOCK_BYTES * 16,
    };
    let block_bytes = block_bytes.min(n_bytes);
    block_bytes - block_bytes % element_bytes
}

fn compress_blocks(
    values: &[u8],
    element_bytes: usize,
    block_bytes: usize,
    level: i32,
) -> std::io::Result<Vec<u8>> {
    let mut buffer = header(values.len(), element_bytes, block_bytes, 0);
    let n_blocks = values.len().div_ceil(block_bytes);
    buffer.resize(Header::BYTES + 4 * n_blocks, 0);
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    let mut shuffled = vec![0; block_bytes];
    let mut compressed = vec![0; zstd::zstd_safe::compress_bound(block_bytes)];
    for (idx, block) in values.chunks(block_bytes).enumerate() {
        let start = buffer.len() as u32;
        buffer[Header::BYTES + 4 * idx..][..4].copy_from_slice(&start.to_le_bytes());
        let shuffled = &mut shuffled[..block.len()];
        shuffle_bytes(element_bytes, block, shuffled);
        let n_bytes = compressor.compress_to_buffer(shuffled, &mut compressed)?;
        // A part as long as the block says that it is a copy.
        let part = if n_bytes < block.len() { &compressed[..n_bytes] } else { shuffled };
        buffer.extend_from_slice(&(part.len() as u32).to_le_bytes());
        buffer.extend_from_slice(part);
        if buffer.len() > Header::BYTES + values.len() {
            // It will be copied instead.
            break;
        }
    }
    set_length(&mut buffer);
    Ok(buffer)
}

fn header(n_bytes: usize, element_bytes: usize, block_bytes: usize, more: u8) -> Vec<u8> {
    let flags = more | flags::BYTE_SHUFFLE | flags::NOT_SPLIT | ZSTD << flags::CODEC_SHIFT;
    let mut header = vec![VERSION, CODEC_VERSION, flags, element_bytes as u8];
    for length in [n_bytes, block_bytes, 0] {
        header.extend_from_slice(&(length as u32).to_le_bytes());
    }
    header
}

/// Writes the buffer's own length into its header.
fn set_length(buffer: &mut [u8]) {
    let length = buffer.len() as u32;
    buffer[Header::BYTES - 4..Header::BYTES].copy_from_slice(&length.to_le_bytes());
}
