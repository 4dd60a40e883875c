//! The predicted section of a block: parts, and decoding them.

use super::super::{DecodeScratch, FileError};
use wide::i16x8;

use super::predict::{Channel, ORDER, Pairs, ZERO_PAIRS, predict};
use super::tile::{self, MAX_LOW_BITS, PIXELS, Row, ZEROS, join, low_bytes, values};
use super::transpose::{WORD_CHANNELS, Words, write_pixels};

/// Bytes of a channel: weights, bias, low bits.
pub(super) const CHANNEL_BYTES: usize = 2 * ORDER + 2 + 1;
/// Bytes of a patch: the value's index, and what is added to its residual.
pub(super) const PATCH_BYTES: usize = 4 + 2;

/// Channels whose pairs are kept: at least the order and one more, and a multiple of those of a
/// word.
const HISTORY: usize = 8;

/// Bytes of a line of a processor's cache, on most.
const LINE_BYTES: usize = 64;

/// The bytes of a block from a place on; every reading is checked against their end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread<'a> {
    pub(super) bytes: &'a [u8],
    /// Where they start in the file.
    pub(super) offset: usize,
}

impl<'a> Unread<'a> {
    /// The next `n_bytes`, which are `part`.
    pub(super) fn take(
        &mut self,
        n_bytes: usize,
        part: &'static str,
    ) -> Result<&'a [u8], FileError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(n_bytes) else {
            let reason = format!("{part}: {n_bytes} bytes, and {} are left", self.bytes.len());
            return Err(FileError::damaged(self.offset, reason));
        };
        *self = Self { bytes: rest, offset: self.offset + n_bytes };
        Ok(taken)
    }

    /// The next bytes as an array.
    pub(super) fn array<const N: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<[u8; N], FileError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, part)?);
        Ok(array)
    }

    /// The next length.
    pub(super) fn length(&mut self, part: &'static str) -> Result<usize, FileError> {
        Ok(u32::from_le_bytes(self.array(part)?) as usize)
    }
}

/// A predicted section whose parts are found and have their lengths.
#[derive(Debug)]
pub(super) struct Section<'a> {
    reference: i16,
    channels: Vec<Channel>,
    patches: Patches<'a>,
    high: &'a [u8],
    high_offset: usize,
    low: &'a [u8],
}

impl<'a> Section<'a> {
    /// Takes the section of `n_pixels` pixels from `unread`.
    pub(super) fn take(
        unread: &mut Unread<'a>,
        n_pixels: usize,
        n_channels: usize,
    ) -> Result<Self, FileError> {
        let reference = i16::from_le_bytes(unread.array("the reference")?);
        let n_patches = unread.length("the number of patches")?;
        let high_length = unread.length("the length of the high bits")?;
        let channels = take_channels(unread, n_channels)?;
        let n_patch_bytes = n_patches.saturating_mul(PATCH_BYTES);
        let patches = Patches::new(unread.take(n_patch_bytes, "the patches")?);
        let high_offset = unread.offset;
        let high = unread.take(high_length, "the high bits")?;
        let tile_bytes: usize = channels.iter().map(|channel| low_bytes(channel.low_bits)).sum();
        let n_low_bytes = tile_bytes * n_pixels.div_ceil(PIXELS);
        let low = unread.take(n_low_bytes, "the low bits")?;
        Ok(Self { reference, channels, patches, high, high_offset, low })
    }

    /// Decodes the section into `into`: 16-bit values in native byte order, for each pixel all its
    /// channels.
    pub(super) fn decode(
        mut self,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        let n_channels = self.channels.len();
        let n_tiles = into.len().div_ceil(2 * n_channels * PIXELS);
        let n_high = n_tiles * n_channels * PIXELS;
        if scratch.block.len() < n_high {
            scratch.block.resize(n_high, 0);
        }
        let high = &mut scratch.block[..n_high];
        let decompressed = scratch.zstd.decompress(self.high, high, self.high_offset)?;
        if decompressed != n_high {
            let reason = format!("{decompressed} high bytes are stored, and {n_high} are needed");
            return Err(FileError::damaged(self.high_offset, reason));
        }
        let (high, _) = high.as_chunks::<PIXELS>();
        let mut words = vec![Words::ZEROS; n_channels.div_ceil(WORD_CHANNELS)];
        for (tile, pixels) in into.chunks_mut(2 * n_channels * PIXELS).enumerate() {
            let high = high[tile..].iter().step_by(n_tiles);
            self.decode_tile(tile, high, &mut words, pixels);
        }
        Ok(())
    }

    /// Decodes a tile: `high` has the high bits of each channel.
    fn decode_tile<'b>(
        &mut self,
        tile_index: usize,
        high: impl Iterator<Item = &'b [u8; PIXELS]>,
        words: &mut [Words],
        pixels: &mut [u8],
    ) {
        let n_channels = self.channels.len();
        let reference = i16x8::splat(self.reference);
        let mut tile = Tile::new(reference);
        for (at, (channel, high)) in self.channels.iter().zip(high).enumerate() {
            let n_low = low_bytes(channel.low_bits).min(self.low.len());
            let (low, rest) = self.low.split_at(n_low);
            self.low = rest;
            join(channel.low_bits, low, high, &mut tile.residuals);
            self.patches.apply((tile_index * n_channels + at) * PIXELS, &mut tile.residuals);
            tile.add(at, channel, words);
            ask_for(pixels, at);
        }
        // The last word is filled up.
        tile.residuals = ZEROS;
        for at in n_channels..n_channels.next_multiple_of(WORD_CHANNELS) {
            tile.add(at, &Channel::default(), words);
        }
        write_pixels(words, n_channels, pixels);
    }
}

/// Writes to each cache line of part `at` of a tile's destination, which is overwritten later: the
/// lines come from memory while the next channels are decoded.
#[inline]
fn ask_for(pixels: &mut [u8], at: usize) {
    for line in (2 * PIXELS * at..2 * PIXELS * (at + 1)).step_by(LINE_BYTES) {
        if let Some(byte) = pixels.get_mut(line) {
            *byte = 0;
        }
    }
}

/// The state of decoding a tile.
#[derive(Debug)]
struct Tile {
    reference: i16x8,
    /// The pairs of the last channels: those of channel `c` are at `c % HISTORY`.
    history: [Pairs; HISTORY],
    /// The values of the last channel.
    row: Row,
    /// The residuals of the next channel.
    residuals: Row,
}

impl Tile {
    #[inline]
    fn new(reference: i16x8) -> Self {
        Self { reference, history: [ZERO_PAIRS; HISTORY], row: ZEROS, residuals: ZEROS }
    }

    /// Decodes channel `at` from its residuals; the last one of a word also fills the word.
    #[inline]
    fn add(&mut self, at: usize, channel: &Channel, words: &mut [Words]) {
        let before = [1, 3, 5].map(|before| (at + HISTORY - before) % HISTORY);
        let places = [at % HISTORY, before[0], before[1], before[2]];
        let Ok([own, near, middle, far]) = self.history.get_disjoint_mut(places) else { return };
        predict(channel, [near, middle, far], &self.residuals, &mut self.row, own);
        if at % WORD_CHANNELS == WORD_CHANNELS - 1
            && let Some(words) = words.get_mut(at / WORD_CHANNELS)
        {
            words.fill(&self.history[(at - 2) % HISTORY], &self.history[places[0]], self.reference);
        }
    }
}

fn take_channels(unread: &mut Unread<'_>, n_channels: usize) -> Result<Vec<Channel>, FileError> {
    let start = unread.offset;
    let stored = unread.take(n_channels * CHANNEL_BYTES, "the channels")?;
    let mut channels = Vec::with_capacity(n_channels);
    for (at, stored) in stored.as_chunks::<CHANNEL_BYTES>().0.iter().enumerate() {
        let number = |idx: usize| i16::from_le_bytes([stored[2 * idx], stored[2 * idx + 1]]);
        let low_bits = stored[CHANNEL_BYTES - 1];
        if low_bits > MAX_LOW_BITS {
            let reason = format!("a channel with {low_bits} low bits: at most {MAX_LOW_BITS}");
            return Err(FileError::damaged(start + (at + 1) * CHANNEL_BYTES - 1, reason));
        }
        let weights: [i16; ORDER] = std::array::from_fn(number);
        if weights.contains(&i16::MIN) {
            let reason = "a channel with weight -32768, whose products are not defined";
            return Err(FileError::damaged(start + at * CHANNEL_BYTES, reason));
        }
        channels.push(Channel { weights, bias: number(ORDER), low_bits });
    }
    Ok(channels)
}

/// Additions to residuals whose high bits exceed a byte, by increasing index of the value.
#[derive(Debug)]
struct Patches<'a> {
    rest: &'a [[u8; PATCH_BYTES]],
    /// The index of the first one; `usize::MAX` after the last.
    next: usize,
}

impl<'a> Patches<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let (rest, _) = bytes.as_chunks();
        Self { rest, next: next_index(rest) }
    }

    /// Applies the patches of the tile whose first value has index `first`. Those before it, which
    /// only a damaged file has, are left out.
    #[inline]
    fn apply(&mut self, first: usize, residuals: &mut Row) {
        if self.next < first + PIXELS {
            self.apply_some(first, residuals);
        }
    }

    #[cold]
    fn apply_some(&mut self, first: usize, residuals: &mut Row) {
        let mut patched = *values(residuals);
        while self.next < first + PIXELS {
            let Some((patch, rest)) = self.rest.split_first() else { break };
            let added = i16::from_le_bytes([patch[4], patch[5]]);
            if let Some(value) = self.next.checked_sub(first).and_then(|at| patched.get_mut(at)) {
                *value = value.wrapping_add(added);
            }
            self.rest = rest;
            self.next = next_index(rest);
        }
        *residuals = tile::row(patched);
    }
}

fn next_index(patches: &[[u8; PATCH_BYTES]]) -> usize {
    let index = patches.first().and_then(|patch| patch.first_chunk());
    index.map_or(usize::MAX, |index| u32::from_le_bytes(*index) as usize)
}
