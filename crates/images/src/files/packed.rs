//! Our own format of cubes of `f16` and `f32`, smaller than blosc with zstd.
//!
//! Values are predicted along the last dimension (the spectrum of a pixel), and only the residuals
//! are stored: their low bits as they are, because those are noise, and the bits above compressed
//! by Huffman codes (zstd without matches). Every pattern of bits is restored exactly, NaN, signed
//! zeros and negative numbers too.
//!
//! # The file
//!
//! All numbers are little-endian. An array of any shape is a list of pixels of `C` channels each: C
//! is the length of the last dimension, or 1 if that exceeds 1024.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `89 50 4B 43 42 0D 0A 1A` |
//! | 2 | version, `u16`: 1 |
//! | 1 | element: 1 is `f16`, 2 is `f32` |
//! | 1 | number of dimensions D, at most 8 |
//! | 4 | C, `u32`, from 1 to 1024 |
//! | 4 | pixels of each block but the last, `u32` |
//! | 8 D | length of each dimension, `u64` |
//! | 8 per block | length in bytes, `u32`; CRC-32 of the stored bytes (that of zlib), `u32` |
//! | 4 | CRC-32 of all bytes of the file before it |
//! | | the blocks, one after another |
//!
//! The blocks are the pixels in C order, and each is decoded without the others. The first byte of
//! a block is its kind. After kind 0 are the values as they are. After kind 1 is a section (below);
//! in a file of `f16` it has the values. In a file of `f32` it has the upper 16 bits of each value,
//! and the lower 16 bits follow: one byte is 0, and they are stored as they are; or it is 1, and
//! the rest of the block is a zstd frame with first the low byte of each, then the high byte of
//! each.
//!
//! # A section
//!
//! A section has 16 bits for each value of N pixels. The pixels are cut into tiles of 64; the last
//! tile is filled up with anything.
//!
//! | bytes | content |
//! |---|---|
//! | 2 | reference R, `i16` |
//! | 4 | number of patches P, `u32` |
//! | 4 | length H of the high bits, `u32` |
//! | 15 C | per channel: weights w1 to w6 and a bias, `i16`; number of low bits K, `u8`, 0 to 8 |
//! | 6 P | per patch: index `u32`, increasing; addend `i16` |
//! | H | zstd frame: for each channel, for each tile, 64 bytes |
//! | 8 K each | for each tile, for each channel: low bits |
//!
//! No weight is -32768. The residual of a value is `(high << K) | low`, where `high` is its byte of
//! the frame as `i8`, plus the addend of its patch, if it has one. The index of value `i` of a tile
//! is `(tile * C + channel) * 64 + i`.
//!
//! The low bits of 64 values are in up to four parts, whose widths W are the powers of 2 that K is
//! the sum of, the greatest first and with the highest bits. Byte `b` of a part, which has
//! `n = 8 W` bytes, has from its lowest bits up W bits each of the values `b`, `b + n`, `b + 2 n`
//! and so on.
//!
//! In each pixel, channel by channel, with `v` of a channel before the first being 0:
//!
//! ```text
//! sum  = w1 * v[c - 1] + w2 * v[c - 2] + ... + w6 * v[c - 6] + (bias << 12) + 2048
//! v[c] = residual + limited(sum >> 12)
//! s    = v[c] + R
//! ```
//!
//! `sum` is an `i32` that wraps, and is shifted with its sign; `limited` is the nearest `i16`; the
//! other sums are `i16` that wrap. The 16 bits of the value are `s` if it is not negative, and else
//! `s ^ 0x7FFF`: so greater numbers are greater integers.
//!
//! # Why so
//!
//! `docs/cubes.md` has the measurements. Where a cube is as noisy as its published compressibility
//! allows, little of a value can be predicted, and residuals are bell-shaped: packing them in a
//! fixed number of bits costs 0.6 bits more than their entropy, Huffman codes of the bits above the
//! noise 0.05 bits. Predicting from six channels by least squares saves 0.6 to 1.7 bits against the
//! difference to the channel before, because it averages the noise of the channels.

mod encode;
mod fit;
mod header;
mod predict;
mod section;
mod tile;
mod transpose;

use super::{DecodeScratch, FileError, StoredArray};

pub use encode::write;
use header::{Entry, Layout};
use section::{Section, Unread};

/// Kinds of blocks.
const PLAIN: u8 = 0;
const PREDICTED: u8 = 1;

/// A parsed packed file over borrowed bytes.
#[derive(Debug)]
pub(super) struct Packed<'a> {
    bytes: &'a [u8],
    layout: Layout,
    blocks: Vec<Entry>,
}

/// Parses a packed file: its array and where its blocks are.
pub(super) fn parse(bytes: &[u8]) -> Result<(Vec<StoredArray>, Packed<'_>), FileError> {
    let (array, layout, blocks) = header::parse(bytes)?;
    Ok((vec![array], Packed { bytes, layout, blocks }))
}

impl Packed<'_> {
    /// Bytes of each piece of the array but the last, which may be shorter: a piece is a block.
    pub(super) fn piece_bytes(&self) -> usize {
        self.layout.block_bytes()
    }

    /// Decodes a piece of the array into `into`, whose length is that of the piece.
    pub(super) fn decode_piece(
        &self,
        piece: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let absent = FileError::Absent { what: "block", index: piece, count: self.blocks.len() };
        let Some(&Entry { offset, length, checksum }) = self.blocks.get(piece) else {
            return Err(absent);
        };
        let bytes = self.bytes.get(offset..offset + length).ok_or(absent)?;
        if crc32fast::hash(bytes) != checksum {
            return Err(FileError::damaged(offset, "the block has another checksum"));
        }
        let mut unread = Unread { bytes, offset };
        let [kind] = unread.array("the kind of the block")?;
        match kind {
            PLAIN => copy_plain(&mut unread, self.layout.value_bytes, into)?,
            PREDICTED if self.layout.value_bytes == 2 => {
                let n_pixels = into.len() / 2 / self.layout.n_channels;
                let section = Section::take(&mut unread, n_pixels, self.layout.n_channels)?;
                section.decode(into, scratch)?;
            }
            PREDICTED => decode_halves(&mut unread, self.layout.n_channels, into, scratch)?,
            kind => return Err(FileError::damaged(offset, format!("a block of kind {kind}"))),
        }
        if unread.bytes.is_empty() {
            return Ok(());
        }
        Err(FileError::damaged(unread.offset, "bytes follow the parts of the block"))
    }
}

/// Copies values that are stored as they are.
fn copy_plain(
    unread: &mut Unread<'_>,
    value_bytes: usize,
    into: &mut [u8],
) -> Result<(), FileError> {
    into.copy_from_slice(unread.take(into.len(), "the values")?);
    if cfg!(target_endian = "big") {
        into.chunks_exact_mut(value_bytes).for_each(<[u8]>::reverse);
    }
    Ok(())
}

/// Decodes `f32` values: a section of their upper halves, and the lower halves.
fn decode_halves(
    unread: &mut Unread<'_>,
    n_channels: usize,
    into: &mut [u8],
    scratch: &mut DecodeScratch,
) -> Result<(), FileError> {
    let n_values = into.len() / 4;
    let section = Section::take(unread, n_values / n_channels, n_channels)?;
    let mut upper = vec![0; 2 * n_values];
    section.decode(&mut upper, scratch)?;
    let (upper, _) = upper.as_chunks();
    let (into, _) = into.as_chunks_mut::<4>();
    let joined = |upper: &[u8; 2], lower: [u8; 2]| {
        let upper = u32::from(u16::from_ne_bytes(*upper));
        (upper << 16 | u32::from(u16::from_le_bytes(lower))).to_ne_bytes()
    };
    let [is_compressed] = unread.array("the kind of the lower halves")?;
    match is_compressed {
        0 => {
            let lower = unread.take(2 * n_values, "the lower halves")?;
            for ((into, upper), lower) in into.iter_mut().zip(upper).zip(lower.as_chunks().0) {
                *into = joined(upper, *lower);
            }
        }
        1 => {
            let offset = unread.offset;
            let frame = unread.take(unread.bytes.len(), "the lower halves")?;
            scratch.block.resize(scratch.block.len().max(2 * n_values), 0);
            let lower = &mut scratch.block[..2 * n_values];
            let decompressed = scratch.zstd.decompress(frame, lower, offset)?;
            if decompressed != lower.len() {
                let reason = format!("{decompressed} bytes of lower halves of {n_values} values");
                return Err(FileError::damaged(offset, reason));
            }
            let (low, high) = lower.split_at(n_values);
            let lower = low.iter().zip(high).map(|(&low, &high)| [low, high]);
            for ((into, upper), lower) in into.iter_mut().zip(upper).zip(lower) {
                *into = joined(upper, lower);
            }
        }
        kind => {
            let reason = format!("lower halves of kind {kind}: known are 0 and 1");
            return Err(FileError::damaged(unread.offset - 1, reason));
        }
    }
    Ok(())
}
