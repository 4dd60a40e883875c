//! Rows: the values of one channel at the pixels of a tile, and how their low bits are stored.
//!
//! The kernels work on vectors of 8 `i16` of crate `wide`, which are SSE2 registers on x86-64 and
//! NEON registers on ARM. The compiler's own vectors of the same arithmetic on slices take several
//! times as long, because it widens the factors of each product.

use bytemuck::{must_cast, must_cast_ref};
use wide::{i16x8, u8x16};

/// Pixels of a tile: its rows and its part of the destination fit a processor's first cache.
pub(super) const PIXELS: usize = 64;
/// Values of a vector.
pub(super) const LANES: usize = 8;
/// Vectors of a row.
pub(super) const VECTORS: usize = PIXELS / LANES;
/// The most low bits that a value has.
pub(super) const MAX_LOW_BITS: u8 = 8;

/// The values of one channel at the pixels of a tile.
pub(super) type Row = [i16x8; VECTORS];

/// A row of zeros.
pub(super) const ZEROS: Row = [i16x8::ZERO; VECTORS];

/// Bytes that the low bits of a tile take.
pub(super) fn low_bytes(low_bits: u8) -> usize {
    usize::from(low_bits) * PIXELS / 8
}

/// The values of a row.
pub(super) fn values(row: &Row) -> &[i16; PIXELS] {
    must_cast_ref(row)
}

/// A row of values.
pub(super) fn row(values: [i16; PIXELS]) -> Row {
    must_cast(values)
}

/// Maps the bits of a floating-point number of 16 bits to an integer so that greater numbers are
/// greater integers. It is its own inverse. Every pattern of bits has its integer.
pub(super) fn ordered(bits: i16) -> i16 {
    bits ^ ((bits >> 15) & i16::MAX)
}

/// As [`ordered`], for a vector.
#[inline]
pub(super) fn ordered_vector(bits: i16x8) -> i16x8 {
    bits ^ ((bits >> 15) & i16x8::splat(i16::MAX))
}

/// The low bits of a tile, one byte per value, in words of 8 bytes.
type LowWords = [u64; PIXELS / 8];

/// Puts together residuals of a tile: `high` has their bits above the low ones with the sign, and
/// `low` the `low_bits` low ones in [`low_bytes`] bytes.
#[inline]
pub(super) fn join(low_bits: u8, low: &[u8], high: &[u8; PIXELS], joined: &mut Row) {
    let mut words = [0; PIXELS / 8];
    let mut low = low;
    if low_bits & 8 != 0 {
        add_part::<8>(&mut low, &mut words);
    }
    if low_bits & 4 != 0 {
        add_part::<4>(&mut low, &mut words);
    }
    if low_bits & 2 != 0 {
        add_part::<2>(&mut low, &mut words);
    }
    if low_bits & 1 != 0 {
        add_part::<1>(&mut low, &mut words);
    }
    for word in &mut words {
        *word = word.to_le();
    }
    let low: [u8x16; VECTORS / 2] = must_cast(words);
    let (high, _) = high.as_chunks::<16>();
    let unused = u32::from(MAX_LOW_BITS - low_bits.min(MAX_LOW_BITS));
    let (pairs, _) = joined.as_chunks_mut::<2>();
    for ((pair, low), high) in pairs.iter_mut().zip(low).zip(high) {
        let high = u8x16::new(*high);
        // First as the upper byte, whose highest bit is the sign, and then in its place.
        let high = [i16x8::from_u8x16_low(high), i16x8::from_u8x16_high(high)];
        let high = [(high[0] << 8_u32) >> unused, (high[1] << 8_u32) >> unused];
        *pair = [high[0] | i16x8::from_u8x16_low(low), high[1] | i16x8::from_u8x16_high(low)];
    }
}

/// Appends `WIDTH` bits to each value of `words`. Byte `b` of the part has, from its lowest bits
/// up, the bits of the values `b`, `b + n`, `b + 2 n` and so on, where `n` is the part's length.
#[inline]
fn add_part<const WIDTH: usize>(low: &mut &[u8], words: &mut LowWords) {
    let n = low_bytes(WIDTH as u8);
    let n_words = n / 8;
    let Some((part, rest)) = low.split_at_checked(n) else { return };
    *low = rest;
    let mask = u64::MAX / 255 * ((1 << WIDTH) - 1);
    let (part, _) = part.as_chunks::<8>();
    let mut stored = [0; PIXELS / 8];
    for (stored, part) in stored.iter_mut().zip(part) {
        *stored = u64::from_le_bytes(*part);
    }
    for at in 0..8 / WIDTH {
        for byte in 0..n_words {
            let bits = (stored[byte] >> (WIDTH * at)) & mask;
            let word = &mut words[n_words * at + byte];
            *word = (*word << (WIDTH % 8)) | bits;
        }
    }
}

/// Splits residuals: their `low_bits` low bits go to `low`, and the lowest 8 bits above them are
/// returned.
pub(super) fn split(low_bits: u8, residuals: &[i16; PIXELS], low: &mut Vec<u8>) -> [u8; PIXELS] {
    let mut above = low_bits;
    for width in [8, 4, 2, 1] {
        if low_bits & width != 0 {
            above -= width;
            let start = low.len();
            low.resize(start + low_bytes(width), 0);
            let part = &mut low[start..];
            let n = part.len();
            for (idx, value) in residuals.iter().enumerate() {
                let bits = (value >> above) & ((1 << width) - 1);
                part[idx % n] |= (bits << (usize::from(width) * (idx / n))) as u8;
            }
        }
    }
    residuals.map(|value| (value >> low_bits) as u8)
}
