//! A buffer of c-blosc 1: blocks that are decompressed one by one.
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

use crate::files::{DecodeScratch, FileError};

use super::{blosclz, shuffle};

/// Bytes before the first block's start.
pub(super) const HEADER_BYTES: usize = 16;
/// Largest uncompressed length, as c-blosc keeps it in an `i32`.
pub(super) const MAX_BYTES: usize = i32::MAX as usize - HEADER_BYTES;
/// Version of the format.
pub(super) const VERSION: u8 = 2;
/// Versions of the format that Blosc2 writes.
const BLOSC2: std::ops::RangeInclusive<u8> = 3..=5;
/// Version of the format of each codec.
pub(super) const CODEC_VERSION: u8 = 1;
/// Fewest bytes of a part, and of a buffer that is not only copied.
pub(super) const MIN_PART_BYTES: usize = 128;
/// Largest element whose bytes may be parts of their own.
const MAX_PARTS: usize = 16;

/// Bits of the flags.
pub(super) mod flags {
    pub(in crate::files::blosc) const BYTE_SHUFFLE: u8 = 0x01;
    pub(in crate::files::blosc) const COPIED: u8 = 0x02;
    pub(in crate::files::blosc) const BIT_SHUFFLE: u8 = 0x04;
    pub(in crate::files::blosc) const RESERVED: u8 = 0x08;
    pub(in crate::files::blosc) const NOT_SPLIT: u8 = 0x10;
    /// The codec is above these bits.
    pub(in crate::files::blosc) const CODEC_SHIFT: u8 = 5;
}

/// The codec's number for zstd.
pub(super) const ZSTD: u8 = 4;

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

/// A parsed buffer over borrowed bytes.
#[derive(Debug)]
pub(super) struct Buffer<'a> {
    bytes: &'a [u8],
    /// Where the buffer begins in the file.
    offset: usize,
    /// `None` if the values are only copied.
    codec: Option<Codec>,
    filter: Filter,
    may_split: bool,
    element_bytes: usize,
    n_bytes: usize,
    block_bytes: usize,
}

impl<'a> Buffer<'a> {
    /// Parses the header of a buffer that begins at `offset` of the file and must have `n_bytes`
    /// uncompressed.
    pub(super) fn parse(bytes: &'a [u8], offset: usize, n_bytes: usize) -> Result<Self, FileError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            let part = "the header of a c-blosc buffer";
            let [length, end] = [bytes.len(), HEADER_BYTES].map(|length| offset + length);
            return Err(FileError::Truncated { part, length, end });
        };
        let (words, _) = header.as_chunks::<4>();
        let [version, codec_version, flags, element_bytes] = words[0];
        let [stored_bytes, block_bytes, length] =
            [1, 2, 3].map(|idx| u32::from_le_bytes(words[idx]) as usize);
        let damaged = |at: usize, reason| Err(FileError::damaged(offset + at, reason));
        if BLOSC2.contains(&version) {
            let reason = "it was compressed by Blosc2; the format is c-blosc 1: write it again with \
                          Python's package `blosc`";
            return Err(FileError::unsupported(offset, reason));
        }
        if version != VERSION || flags & flags::RESERVED != 0 {
            let reason =
                format!("format {version} of c-blosc with flags {flags:#x}: format {VERSION} is");
            return Err(FileError::unsupported(offset, reason));
        }
        if length != bytes.len() {
            return damaged(
                12,
                format!("a buffer of {length} bytes, and there are {}", bytes.len()),
            );
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
        if length - HEADER_BYTES < content || (is_copied && length - HEADER_BYTES > content) {
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
        Ok(Self { bytes, offset, codec, filter, may_split, element_bytes, n_bytes, block_bytes })
    }

    /// Bytes uncompressed.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Bytes of each block but the last, which may be shorter; at least 1.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Decodes a block into `into`, which has its length.
    pub(super) fn decode_block(
        &self,
        block: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let Some(codec) = self.codec else {
            let at = HEADER_BYTES + block * self.block_bytes;
            into.copy_from_slice(self.part(at, into.len(), "the copied values")?);
            return Ok(());
        };
        if self.filter == Filter::None {
            return self.decompress_block(codec, block, into, scratch);
        }
        // Taken out so that the decompressors are free to be used; it is put back below.
        let mut memory = std::mem::take(&mut scratch.block);
        if memory.len() < into.len() {
            memory.resize(into.len(), 0);
        }
        let shuffled = &mut memory[..into.len()];
        let decompressed = self.decompress_block(codec, block, shuffled, scratch);
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
    fn decompress_block(
        &self,
        codec: Codec,
        block: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let mut at = self.number(HEADER_BYTES + 4 * block, "the start of a block")?;
        let part_bytes = into.len() / self.n_parts(into.len());
        for part in into.chunks_exact_mut(part_bytes.max(1)) {
            let length = self.number(at, "the length of compressed data")?;
            at += 4;
            let compressed = self.part(at, length, "compressed data")?;
            if length == part.len() {
                part.copy_from_slice(compressed);
            } else {
                let offset = self.offset + at;
                let n_bytes = codec.decompress(compressed, part, offset, scratch)?;
                if n_bytes != part.len() {
                    let reason = format!("{n_bytes} bytes decompressed instead of {}", part.len());
                    return Err(FileError::damaged(offset, reason));
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

    fn number(&self, at: usize, part: &'static str) -> Result<usize, FileError> {
        let bytes = self.part(at, 4, part)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    fn part(&self, at: usize, length: usize, part: &'static str) -> Result<&'a [u8], FileError> {
        let end = at.saturating_add(length);
        self.bytes.get(at..end).ok_or(FileError::Truncated {
            part,
            length: self.offset + self.bytes.len(),
            end: self.offset.saturating_add(end),
        })
    }
}

impl Codec {
    fn parse(flags: u8, version: u8, offset: usize) -> Result<Self, FileError> {
        let unsupported = |reason| Err(FileError::unsupported(offset + 2, reason));
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
            return Err(FileError::unsupported(offset + 1, reason));
        }
        Ok(codec)
    }

    /// Decompresses data at `offset` of the file and returns its number of bytes.
    fn decompress(
        self,
        compressed: &[u8],
        into: &mut [u8],
        offset: usize,
        scratch: &mut DecodeScratch,
    ) -> Result<usize, FileError> {
        match self {
            Self::Zstd => scratch.zstd.decompress(compressed, into, offset),
            Self::Zlib => scratch.zlib.decompress(compressed, into, offset),
            Self::Lz4 => lz4_flex::block::decompress_into(compressed, into).map_err(|error| {
                FileError::Decompress { offset, codec: "lz4", source: Box::new(error) }
            }),
            Self::Blosclz => blosclz::decompress(compressed, into).map_err(|error| {
                FileError::Decompress { offset, codec: "blosclz", source: error.into() }
            }),
        }
    }
}
