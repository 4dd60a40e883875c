//! Chunks of Blosc (<https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst>).

use crate::lz;

/// Bits of the flags in a chunk's head.
const BYTES_SHUFFLED: u8 = 1;
const NOT_COMPRESSED: u8 = 2;
const BITS_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;
/// The longest elements whose bytes are compressed apart, and the fewest elements of a block.
const MAX_SPLITS: usize = 16;
const MIN_ELEMENTS: usize = 128;

/// The head of a chunk.
#[derive(Debug, Clone, Copy)]
struct Head {
    flags: u8,
    element_bytes: usize,
    n_bytes: usize,
    block_bytes: usize,
}

/// Decompresses a chunk; `None` if it is damaged, has more than `most` bytes, or is compressed by
/// snappy or with shuffled bits.
pub(crate) fn decoded(chunk: &[u8], most: usize) -> Option<Vec<u8>> {
    let head = Head::parse(chunk)?;
    if most < head.n_bytes || head.flags & BITS_SHUFFLED != 0 {
        return None;
    }
    if head.flags & NOT_COMPRESSED != 0 {
        return chunk.get(16..16 + head.n_bytes).map(<[u8]>::to_vec);
    }
    let mut out = Vec::new();
    for block in 0..head.n_bytes.div_ceil(head.block_bytes) {
        let start = number(chunk, 16 + 4 * block)?;
        let n_bytes = head.block_bytes.min(head.n_bytes - out.len());
        out.extend(head.block(chunk.get(start..)?, n_bytes)?);
    }
    Some(out)
}

/// A chunk that holds these bytes as they are; `None` if they are more than its head can count.
pub(crate) fn stored(bytes: &[u8], element_bytes: usize) -> Option<Vec<u8>> {
    let n_bytes = u32::try_from(bytes.len()).ok()?;
    let most = n_bytes.checked_add(16)?;
    // The version of the format, and that of the codec, which is not used.
    let mut chunk = vec![2, 1, NOT_COMPRESSED, u8::try_from(element_bytes).unwrap_or(1)];
    for number in [n_bytes, n_bytes.max(1), most] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend_from_slice(bytes);
    Some(chunk)
}

/// The number at a place, in 4 bytes.
fn number(bytes: &[u8], place: usize) -> Option<usize> {
    let bytes = bytes.get(place..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}

impl Head {
    fn parse(chunk: &[u8]) -> Option<Self> {
        let (flags, element_bytes) = (*chunk.get(2)?, usize::from(*chunk.get(3)?).max(1));
        let (n_bytes, block_bytes) = (number(chunk, 4)?, number(chunk, 8)?);
        let block_bytes = Some(block_bytes).filter(|n_bytes| 0 < *n_bytes)?;
        Some(Self { flags, element_bytes, n_bytes, block_bytes })
    }

    /// Decompresses a block of `n_bytes`.
    fn block(&self, mut stored: &[u8], n_bytes: usize) -> Option<Vec<u8>> {
        let is_split = self.flags & NOT_SPLIT == 0
            && n_bytes == self.block_bytes
            && self.element_bytes <= MAX_SPLITS
            && MIN_ELEMENTS <= n_bytes / self.element_bytes;
        let n_parts = if is_split { self.element_bytes } else { 1 };
        let part_bytes = n_bytes / n_parts;
        let mut out = Vec::new();
        for _ in 0..n_parts {
            let stored_bytes = number(stored.split_off(..4)?, 0)?;
            let part = stored.split_off(..stored_bytes)?;
            if part.len() == part_bytes {
                out.extend_from_slice(part);
            } else {
                out.extend(self.part(part, part_bytes)?);
            }
        }
        let is_shuffled = self.flags & BYTES_SHUFFLED != 0 && 1 < self.element_bytes;
        Some(if is_shuffled { self.ordered(&out) } else { out })
    }

    fn part(&self, stored: &[u8], n_bytes: usize) -> Option<Vec<u8>> {
        let part = match self.flags >> 5 {
            0 => lz::blosclz(stored, n_bytes),
            1 => lz::lz4_block(stored, n_bytes),
            3 => lz::zlib(stored, n_bytes),
            4 => lz::zstd(stored, n_bytes),
            _ => None,
        };
        part.filter(|part| part.len() == n_bytes)
    }

    /// The bytes of a block in the order of its elements.
    fn ordered(&self, shuffled: &[u8]) -> Vec<u8> {
        let n_elements = shuffled.len() / self.element_bytes;
        let (columns, rest) = shuffled.split_at(n_elements * self.element_bytes);
        let element = |at| columns.iter().skip(at).step_by(n_elements.max(1));
        (0..n_elements).flat_map(element).chain(rest).copied().collect()
    }
}
