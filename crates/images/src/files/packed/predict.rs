//! The prediction of a channel from the channels before it.

use bytemuck::{must_cast, must_cast_mut};
use wide::{i16x8, i32x4, i32x8};

use super::tile::{PIXELS, Row, VECTORS, ZEROS, values};

/// Channels that a prediction uses.
pub(super) const ORDER: usize = 6;
/// Bits of the fraction of a weight.
const FRACTION_BITS: u32 = 12;
/// A weight of 1.
pub(super) const ONE: f64 = (1 << FRACTION_BITS) as f64;

/// How the values of a channel are predicted in a block, and how many low bits their residuals
/// have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Channel {
    /// Weights of the channel before, the one before that, and so on.
    pub(super) weights: [i16; ORDER],
    /// Added to the weighted sum.
    pub(super) bias: i16,
    /// Bits of a residual that are stored as they are; the rest is compressed.
    pub(super) low_bits: u8,
}

impl Channel {
    /// The bias and a half, for rounding, as a weighted sum.
    fn start(&self) -> i32 {
        (i32::from(self.bias) << FRACTION_BITS) + (1 << (FRACTION_BITS - 1))
    }
}

/// The values of two neighbouring channels in turn, pixel by pixel.
pub(super) type Pairs = [i16x8; 2 * VECTORS];

/// Pairs of zeros.
pub(super) const ZERO_PAIRS: Pairs = [i16x8::ZERO; 2 * VECTORS];

/// Decodes a row, which has the values of the channel before and gets those of this channel: its
/// `residuals` and their predictions. `pairs` gets both in turn.
///
/// `before` are the pairs of the channels 1 and 2 before, 3 and 4 before, and 5 and 6 before.
#[inline]
pub(super) fn predict(
    channel: &Channel,
    before: [&Pairs; ORDER / 2],
    residuals: &Row,
    row: &mut Row,
    pairs: &mut Pairs,
) {
    let start = i32x4::splat(channel.start());
    let [w1, w2, w3, w4, w5, w6] = channel.weights;
    let [near, middle, far] = before;
    let (w21, w43, w65) = (both(w2, w1), both(w4, w3), both(w6, w5));
    let sum = |at: usize| {
        let sum = near[at].dot(w21) + middle[at].dot(w43) + far[at].dot(w65) + start;
        sum >> FRACTION_BITS
    };
    let mut predicted = ZEROS;
    for at in 0..VECTORS {
        let sums: i32x8 = must_cast([sum(2 * at), sum(2 * at + 1)]);
        predicted[at] = residuals[at] + i16x8::from_i32x8_saturate(sums);
    }
    interleave(values(row), values(&predicted), must_cast_mut(pairs));
    *row = predicted;
}

/// Puts values in turn. On values in memory the compiler makes vectors of this; of vectors in
/// registers it would take every value by itself.
#[inline]
pub(super) fn interleave<T: Copy>(a: &[T; PIXELS], b: &[T; PIXELS], into: &mut [[T; 2]; PIXELS]) {
    for at in 0..PIXELS {
        into[at] = [a[at], b[at]];
    }
}

/// A vector of two weights in turn.
#[inline]
fn both(first: i16, second: i16) -> i16x8 {
    i16x8::new([first, second, first, second, first, second, first, second])
}

/// The predictions of a row from those of the channels before it, the nearest last: the
/// same as `predict`, one value at a time.
pub(super) fn predictions(channel: &Channel, before: [&Row; ORDER]) -> [i16; PIXELS] {
    let before = before.map(values);
    std::array::from_fn(|pixel| {
        let weighted = before.iter().rev().zip(channel.weights);
        let products = weighted.map(|(row, weight)| i32::from(row[pixel]) * i32::from(weight));
        let sum = products.fold(channel.start(), i32::wrapping_add) >> FRACTION_BITS;
        sum.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
    })
}
