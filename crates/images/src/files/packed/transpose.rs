//! From rows of channels to pixels.
//!
//! Four channels at a time become one word of 8 bytes per pixel, and then the words of each pixel
//! are put one after another: the destination is written from its start to its end, as memory
//! likes it.

use bytemuck::{must_cast_mut, must_cast_ref};
use wide::i16x8;

use super::predict::{Pairs, interleave};
use super::tile::{PIXELS, ordered_vector};

/// Channels of a word.
pub(super) const WORD_CHANNELS: usize = 4;
/// Vectors of the words of a tile.
const WORD_VECTORS: usize = PIXELS * WORD_CHANNELS / 8;

/// The values of four channels at the pixels of a tile, and 64 bytes that keep the words of one
/// pixel in different sets of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    vectors: [i16x8; WORD_VECTORS],
    _apart: [i16x8; 4],
}

impl Words {
    pub(super) const ZEROS: Self =
        Self { vectors: [i16x8::ZERO; WORD_VECTORS], _apart: [i16x8::ZERO; 4] };

    /// Interleaves the pairs of four channels, and makes bits of their values.
    #[inline]
    pub(super) fn fill(&mut self, first: &Pairs, second: &Pairs, reference: i16x8) {
        let first: &[i32; PIXELS] = must_cast_ref(first);
        let second: &[i32; PIXELS] = must_cast_ref(second);
        let words: &mut [[i32; 2]; PIXELS] = must_cast_mut(&mut self.vectors);
        interleave(first, second, words);
        for vector in &mut self.vectors {
            *vector = ordered_vector(*vector + reference);
        }
    }
}

/// Writes the words of each pixel to its place: `into` has pixels of `n_channels` values each, in
/// native byte order.
#[inline]
pub(super) fn write_pixels(words: &[Words], n_channels: usize, into: &mut [u8]) {
    let n_whole = n_channels / WORD_CHANNELS;
    let whole = &words[..n_whole];
    for (at, pixel) in into.chunks_exact_mut(2 * n_channels).enumerate().take(PIXELS) {
        let (places, rest) = pixel.as_chunks_mut::<8>();
        for (place, words) in places.iter_mut().zip(whole) {
            *place = word(words, at);
        }
        if let Some(words) = words.get(n_whole) {
            rest.copy_from_slice(&word(words, at)[..rest.len()]);
        }
    }
}

/// The four values of a pixel.
#[inline]
fn word(words: &Words, pixel: usize) -> [u8; 8] {
    let words: &[[u8; 8]; PIXELS] = must_cast_ref(&words.vectors);
    words[pixel]
}
