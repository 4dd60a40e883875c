//! The header of a buffer, and the decoding of its blocks.
//!
//! Source: `blosc/blosc.h` and `blosc/blosc.c` of Blosc/c-blosc 1.21. All numbers are
//! little-endian.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0 | version of the format, 2 |
//! | 1 | version of the codec's format, 1 |
//! | 2 | 0x01 byte shuffle, 0x02 only copied, 0x04 bit shuffle, 0x10 not split; bits 5 to 7: codec |
//! | 3 | bytes of an element |
//! | 4 to 7, 8 to 11, 12 to 15 | bytes uncompressed, of a block, and of this buffer |
//! | from 16 | where each block begins, counted from byte 0; or the copied bytes |
//!
//! A block is one part, or one for each byte of an element. A part is its compressed length, 4
//! bytes, and its data; if that is as long as the part uncompressed, it is a copy.

use std::ops::Range;

use super::{DecodeScratch, Error, blosclz, shuffle};

/// Largest uncompressed length, as c-blosc keeps it in an `i32`.
pub const MAX_BYTES: usize = i32::MAX as usize - Header::BYTES;
/// Version of the format.
pub const VERSION: u8 = 2;
/// Versions of the format that Blosc2 writes.
const BLOSC2: std::ops::RangeInclusive<u8> = 3..=5;
/// Version of the format of each codec.
pub const CODEC_VERSION: u8 = 1;
/// Fewest bytes of a part, and of a buffer that is not only copied.
pub const MIN_PART_BYTES: usize = 128;
/// Largest element whose bytes may be parts of their own.
const MAX_PARTS: usize = 16;

/// Bits of the flags.
pub mod flags {
    /// Bytes of equal significance lie together.
    pub const BYTE_SHUFFLE: u8 = 0x01;
    /// The values are only copied.
    pub const COPIED: u8 = 0x02;
    /// Bits of equal significance lie together.
    pub const BIT_SHUFFLE: u8 = 0x04;
    /// Not used by the format.
    pub const RESERVED: u8 = 0x08;
    /// A block is one part.
    pub const NOT_SPLIT: u8 = 0x10;
    /// The codec is above these bits.
    pub const CODEC_SHIFT: u8 = 5;
}

/// The codec's number for zstd.
pub const ZSTD: u8 = 4;

#[derive(Clone, Copy, Debug)]
enum Codec {
    Blosclz,
    Lz4,
    Zlib,
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Filter {
    None,
    Byte,
    Bit,
}

/// What a buffer says of itself before its blocks.
#[derive(Debug, Clone)]
pub struct Header {
    /// `None` if the values are only copied.
    codec: Option<Codec>,
    filter: Filter,
    may_split: bool,
    element_bytes: usize,
    n_bytes: usize,
    block_bytes: usize,
    length: usize,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = 16;

    /// Parses the header of a buffer of `length` bytes that begins at `offset`, and must have
    /// `n_bytes` uncompressed.
    ///
    /// # Errors
    /// The header is not one of c-blosc 1, contradicts these numbers, or names a codec that is not
    /// supported: snappy.
    pub fn parse(
        bytes: &[u8],
        offset: usize,
        (length, n_bytes): (usize, usize),
    ) -> Result<Self, Error> {
        let Some(header) = bytes.first_chunk::<{ Self::BYTES }>() else {
            let part = "the header of a c-blosc buffer";
            let [length, end] = [bytes.len(), Self::BYTES].map(|length| offset + length);
            return Err(Error::Truncated { part, length, end });
        };
        let (words, _) = header.as_chunks::<4>();
        let [version, codec_version, flags, element_bytes] = words[0];
        let [stored_bytes, block_bytes, stated] =
            [1, 2, 3].map(|idx| u32::from_le_bytes(words[idx]) as usize);
        let damaged = |at: usize, reason| Err(Error::damaged(offset + at, reason));
        if BLOSC2.contains(&version) {
            let reason = "it was compressed by Blosc2; the format is c-blosc 1: write it again with \
                          Python's package `blosc`";
            return Err(Error::unsupported(offset, reason));
        }
        if version != VERSION || flags & flags::RESERVED != 0 {
            let reason =
                format!("format {version} of c-blosc with flags {flags:#x}: format {VERSION} is");
            return Err(Error::unsupported(offset, reason));
        }
        if stated != length {
            return damaged(12, format!("a buffer of {stated} bytes, and there are {length}"));
        }
        if stored_bytes != n_bytes {
            return damaged(
                4,
                format!("{stored_bytes} bytes of values, and the shape has {n_bytes}"),
            );
        }
        if element_bytes == 0 {
            return damaged(3, "elements of 0 bytes".to_owned());
        }
        if n_bytes > 0 && (block_bytes == 0 || block_bytes > n_bytes) {
            return damaged(8, format!("blocks of {block_bytes} bytes for {n_bytes} bytes"));
        }
        let is_copied = flags & flags::COPIED != 0 || n_bytes == 0;
        let codec =
            if is_copied { None } else { Some(Codec::parse(flags, codec_version, offset)?) };
        let block_bytes = block_bytes.max(1);
        let content = if is_copied { n_bytes } else { 4 * n_bytes.div_ceil(block_bytes) };
        if length - Self::BYTES < content || (is_copied && length - Self::BYTES > content) {
            return damaged(12, format!("{length} bytes for a header and {content} bytes"));
        }
        let filter = if flags & flags::BYTE_SHUFFLE != 0 && element_bytes > 1 {
            Filter::Byte
        } else if flags & flags::BIT_SHUFFLE != 0 {
            Filter::Bit
        } else {
            Filter::None
        };
        let may_split = flags & flags::NOT_SPLIT == 0;
        let element_bytes = element_bytes.into();
        Ok(Self { codec, filter, may_split, element_bytes, n_bytes, block_bytes, length })
    }

    /// Bytes uncompressed.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Bytes of each block but the last, which may be shorter; at least 1.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// The number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.n_bytes.div_ceil(self.block_bytes)
    }

    /// Where the header and the list of blocks end.
    pub fn list_end(&self) -> usize {
        Self::BYTES + if self.codec.is_some() { 4 * self.n_blocks() } else { 0 }
    }

    /// Where a block begins in the buffer, which begins with `bytes`.
    ///
    /// # Errors
    /// It begins beyond the buffer, or within the list.
    pub(super) fn start(&self, block: usize, bytes: &[u8], offset: usize) -> Result<usize, Error> {
        if self.codec.is_none() {
            return Ok(Self::BYTES + block * self.block_bytes);
        }
        let at = Self::BYTES + 4 * block;
        let start = number(part((bytes, offset), at, 4, "the start of a block")?);
        if !(self.list_end()..self.length).contains(&start) {
            let reason = format!("block {block} begins at byte {start} of the buffer");
            return Err(Error::damaged(offset + at, reason));
        }
        Ok(start)
    }

    /// Where the stored bytes of each block lie in the buffer, which begins with `bytes`, up to
    /// [`list_end`](Self::list_end) at least. They may reach beyond what the block has, never into
    /// the next one that is stored.
    ///
    /// # Errors
    /// A block begins beyond the buffer, or within its list.
    pub fn places(&self, bytes: &[u8], offset: usize) -> Result<Vec<Range<usize>>, Error> {
        let starts = (0..self.n_blocks()).map(|block| self.start(block, bytes, offset));
        let starts: Vec<usize> = starts.collect::<Result<_, _>>()?;
        // Threads of c-blosc write blocks in the order in which they are done.
        let mut ascending = starts.clone();
        ascending.push(self.length);
        ascending.sort_unstable();
        let end = |start: usize| {
            let after = ascending.partition_point(|other| *other <= start);
            ascending.get(after).copied().unwrap_or(self.length)
        };
        Ok(starts.into_iter().map(|start| start..end(start)).collect())
    }

    /// Decodes a block into `into`, which has its length. `stored` begins where the block does, at
    /// `offset`, and has all of it.
    ///
    /// # Errors
    /// The block is damaged.
    pub fn decode(
        &self,
        (stored, offset): (&[u8], usize),
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), Error> {
        let Some(codec) = self.codec else {
            into.copy_from_slice(part((stored, offset), 0, into.len(), "the copied values")?);
            return Ok(());
        };
        if self.filter == Filter::None {
            return self.decompress(codec, (stored, offset), into, scratch);
        }
        // Taken out so that the decompressors are free to be used; it is put back below.
        let mut memory = std::mem::take(&mut scratch.block);
        if memory.len() < into.len() {
            memory.resize(into.len(), 0);
        }
        let shuffled = &mut memory[..into.len()];
        let decompressed = self.decompress(codec, (stored, offset), shuffled, scratch);
        if decompressed.is_ok() {
            match self.filter {
                Filter::Bit => shuffle::unshuffle_bits(self.element_bytes, shuffled, into),
                _ => shuffle::unshuffle_bytes(self.element_bytes, shuffled, into),
            }
        }
        scratch.block = memory;
        decompressed
    }

    /// Decompresses the parts of a block one after another.
    fn decompress(
        &self,
        codec: Codec,
        (stored, offset): (&[u8], usize),
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), Error> {
        let mut at = 0;
        let part_bytes = into.len() / self.n_parts(into.len());
        for values in into.chunks_exact_mut(part_bytes.max(1)) {
            let length = number(part((stored, offset), at, 4, "the length of compressed data")?);
            at += 4;
            let compressed = part((stored, offset), at, length, "compressed data")?;
            if length == values.len() {
                values.copy_from_slice(compressed);
            } else {
                let offset = offset + at;
                let n_bytes = codec.decompress(compressed, values, offset, scratch)?;
                if n_bytes != values.len() {
                    let reason =
                        format!("{n_bytes} bytes decompressed instead of {}", values.len());
                    return Err(Error::damaged(offset, reason));
                }
            }
            at += length;
        }
        Ok(())
    }

    /// Parts of a block of `n_bytes`. A shorter last block is never split.
    fn n_parts(&self, n_bytes: usize) -> usize {
        let is_split = self.may_split
            && n_bytes == self.block_bytes
            && self.element_bytes <= MAX_PARTS
            && n_bytes / self.element_bytes >= MIN_PART_BYTES
            && n_bytes.is_multiple_of(self.element_bytes);
        if is_split { self.element_bytes } else { 1 }
    }
}

/// A number of four bytes.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// A part of bytes that begin at `offset`.
fn part<'a>(
    (bytes, offset): (&'a [u8], usize),
    at: usize,
    length: usize,
    part: &'static str,
) -> Result<&'a [u8], Error> {
    let end = at.saturating_add(length);
    bytes.get(at..end).ok_or(Error::Truncated {
        part,
        length: offset + bytes.len(),
        end: offset.saturating_add(end),
    })
}

impl Codec {
    fn parse(flags: u8, version: u8, offset: usize) -> Result<Self, Error> {
        let unsupported = |reason| Err(Error::unsupported(offset + 2, reason));
        let codec = match flags >> flags::CODEC_SHIFT {
            0 => Self::Blosclz,
            1 => Self::Lz4,
            3 => Self::Zlib,
            ZSTD => Self::Zstd,
            2 => return unsupported("snappy: zstd, lz4, zlib and blosclz are".to_owned()),
            other => return unsupported(format!("codec {other} of c-blosc: 0, 1, 3 and 4 are")),
        };
        if version != CODEC_VERSION {
            let reason = format!("version {version} of {codec:?}: version {CODEC_VERSION} is");
            return Err(Error::unsupported(offset + 1, reason));
        }
        Ok(codec)
    }

    /// Decompresses data at `offset` and returns its number of bytes.
    fn decompress(
        self,
        compressed: &[u8],
        into: &mut [u8],
        offset: usize,
        scratch: &mut DecodeScratch,
    ) -> Result<usize, Error> {
        match self {
            Self::Zstd => scratch.zstd.decompress(compressed, into, offset),
            Self::Zlib => scratch.zlib.decompress(compressed, into, offset),
            Self::Lz4 => {
                // No block of the format has more bytes.
                let most = i32::try_from(into.len()).unwrap_or(i32::MAX);
                lz4::block::decompress_to_buffer(compressed, Some(most), into).map_err(|error| {
                    Error::Decompress { offset, codec: "lz4", source: Box::new(error) }
                })
            }
            Self::Blosclz => blosclz::decompress(compressed, into).map_err(|error| {
                Error::Decompress { offset, codec: "blosclz", source: error.into() }
            }),
        }
    }
}
