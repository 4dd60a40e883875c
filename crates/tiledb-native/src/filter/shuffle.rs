//! Byteshuffle and bitshuffle: the bytes, or bits, of all values grouped by their significance.
//!
//! Metadata of both: the number of parts, then the length of each; every part was shuffled
//! separately.

use crate::cursor::Cursor;
use crate::error::Fault;

/// Bitshuffle works on blocks of this size.
const BIT_BLOCK_BYTES: usize = 8192;

/// Whether all of `data` was byteshuffled as one part of whole values, so that its planes can be
/// used directly.
pub(super) fn is_one_part(metadata: &[u8], data: &[u8], value_bytes: usize) -> bool {
    let mut metadata = Cursor::new(metadata);
    let one = matches!(metadata.u32("the number of shuffled parts"), Ok(1));
    one && matches!(metadata.u32("the length of a shuffled part"), Ok(len) if len as usize == data.len())
        && data.len().is_multiple_of(value_bytes)
}

/// Decodes a byteshuffle of values of `value_bytes` bytes; with `keep_planes`, into planes over all
/// parts.
pub(super) fn undo_bytes(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    value_bytes: usize,
    keep_planes: bool,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    each_part(metadata, data, |part| planes_to_values(part, value_bytes, out))?;
    if keep_planes {
        // Several parts have separate planes: merge them.
        let values = std::mem::take(out);
        values_to_planes(&values, value_bytes, out);
    }
    Ok(())
}

/// Takes data apart.
fn each_part(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    mut undo: impl FnMut(&[u8]),
) -> Result<(), Fault> {
    let n_parts = metadata.u32("the number of shuffled parts")?;
    let mut data = Cursor::new(data);
    for _ in 0..n_parts {
        let len = metadata.u32("the length of a shuffled part")? as usize;
        let part = data.take(len, "a shuffled part")?;
        undo(part);
    }
    if data.remaining().is_empty() {
        Ok(())
    } else {
        Err(Fault::new("bytes are left over after the last shuffled part"))
    }
}

fn planes_to_values(part: &[u8], value_bytes: usize, out: &mut Vec<u8>) {
    let n_values = part.len() / value_bytes;
    let (planes, rest) = part.split_at(n_values * value_bytes);
    let start = out.len();
    out.resize(start + planes.len(), 0);
    for (byte, plane) in planes.chunks_exact(n_values.max(1)).enumerate() {
        for (value, &from) in out[start..].chunks_exact_mut(value_bytes).zip(plane) {
            value[byte] = from;
        }
    }
    out.extend_from_slice(rest);
}

pub(super) fn values_to_planes(values: &[u8], value_bytes: usize, out: &mut Vec<u8>) {
    out.clear();
    for byte in 0..value_bytes {
        out.extend(values.chunks_exact(value_bytes).map(|value| value[byte]));
    }
    out.extend_from_slice(&values[values.len() / value_bytes * value_bytes..]);
}

/// Decodes a bitshuffle of values of `value_bytes` bytes.
pub(super) fn undo_bits(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    value_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    each_part(metadata, data, |part| {
        if !part.len().is_multiple_of(value_bytes) || !part.len().is_multiple_of(8) {
            return out.extend_from_slice(part);
        }
        for block in part.chunks(BIT_BLOCK_BYTES) {
            bits_to_values(block, value_bytes, out);
        }
    })
}

/// Decodes one block: for each bit of a value, lowest first, that bit of all values, eight to a
/// byte. Values beyond a multiple of eight follow unchanged.
fn bits_to_values(block: &[u8], value_bytes: usize, out: &mut Vec<u8>) {
    let n_values = block.len() / value_bytes / 8 * 8;
    let start = out.len();
    out.resize(start + n_values * value_bytes, 0);
    let row_bytes = n_values / 8;
    let values = &mut out[start..];
    for (eight, values) in values.chunks_exact_mut(8 * value_bytes).enumerate() {
        for byte in 0..value_bytes {
            // An 8 x 8 matrix of bits: bit `bit` of the eight values is in `rows[bit]`.
            let mut rows = [0; 8];
            for (bit, row) in rows.iter_mut().enumerate() {
                *row = block[(byte * 8 + bit) * row_bytes + eight];
            }
            let transposed = transpose(u64::from_le_bytes(rows)).to_le_bytes();
            for (idx, &value) in transposed.iter().enumerate() {
                values[idx * value_bytes + byte] = value;
            }
        }
    }
    out.extend_from_slice(&block[n_values * value_bytes..]);
}

/// Transposes an 8 x 8 matrix of bits whose rows are the bytes of `x`.
fn transpose(mut x: u64) -> u64 {
    let mut swap = |mask: u64, shift: u32| {
        let t = (x ^ (x >> shift)) & mask;
        x ^= t ^ (t << shift);
    };
    swap(0x00aa_00aa_00aa_00aa, 7);
    swap(0x0000_cccc_0000_cccc, 14);
    swap(0x0000_0000_f0f0_f0f0, 28);
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_bit_by_bit() {
        let x = 0x0123_4567_89ab_cdef_u64;
        let mut naive = 0_u64;
        for row in 0..8 {
            for column in 0..8 {
                naive |= (x >> (8 * row + column) & 1) << (8 * column + row);
            }
        }
        assert_eq!(transpose(x), naive);
    }

    #[test]
    fn planes_and_back() {
        let values: Vec<u8> = (0..43).collect();
        let mut planes = Vec::new();
        values_to_planes(&values, 4, &mut planes);
        let mut back = Vec::new();
        planes_to_values(&planes, 4, &mut back);
        assert_eq!(back, values);
    }
}
