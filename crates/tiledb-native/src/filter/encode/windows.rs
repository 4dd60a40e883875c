//! Bit-width reduction: windows of values, each minus its window's offset, in 8, 16 or 32 bits.
//!
//! The writer chooses the length of windows. A window continues while its values fit the same
//! number of bits. So a long run of small numbers is one window, which decodes in one loop, and a
//! distant number affects only its neighbours.

use super::{Filtered, put_u32};
use crate::datatype::Number;

/// Values examined together.
const STEP: usize = 32;
/// Bytes of a window's metadata in addition to its offset: bits and length.
const BITS_AND_LENGTH: usize = 1 + 4;

/// A growing window: values from `start` to `end`, with the least and the greatest as ordered
/// integers.
#[derive(Debug, Clone, Copy)]
struct Window {
    start: usize,
    end: usize,
    least: i64,
    greatest: i64,
}

impl Window {
    /// Bits for each value minus the offset; `full` are the bits of a value.
    fn bits(&self, full: usize) -> usize {
        let range = self.greatest.wrapping_sub(self.least).cast_unsigned();
        let fits = |bits: &usize| *bits < full && range >> bits == 0;
        [8, 16, 32].into_iter().find(fits).unwrap_or(full)
    }

    fn with(&self, next: &Self) -> Self {
        Self {
            start: self.start,
            end: next.end,
            least: self.least.min(next.least),
            greatest: self.greatest.max(next.greatest),
        }
    }
}

/// An integer type as stored.
trait Word: Copy {
    const BYTES: usize;
    /// Whether narrow values are decoded as signed.
    const SIGNED: bool;
    /// A number with the same order as this one.
    fn ordered(self) -> i64;
    fn from_ordered(ordered: i64) -> u64;
    fn bits(self) -> u64;
}

macro_rules! word {
    ($type:ty, signed) => {
        impl Word for $type {
            const BYTES: usize = size_of::<$type>();
            const SIGNED: bool = true;
            fn ordered(self) -> i64 {
                self.into()
            }
            fn from_ordered(ordered: i64) -> u64 {
                ordered.cast_unsigned()
            }
            fn bits(self) -> u64 {
                i64::from(self).cast_unsigned()
            }
        }
    };
    ($type:ty, unsigned) => {
        impl Word for $type {
            const BYTES: usize = size_of::<$type>();
            const SIGNED: bool = false;
            fn ordered(self) -> i64 {
                // As i64, u64 numbers order like the numbers minus half their range.
                (u64::from(self) ^ (1 << 63)).cast_signed()
            }
            fn from_ordered(ordered: i64) -> u64 {
                ordered.cast_unsigned() ^ (1 << 63)
            }
            fn bits(self) -> u64 {
                self.into()
            }
        }
    };
}
word!(i16, signed);
word!(i32, signed);
word!(i64, signed);
word!(u16, unsigned);
word!(u32, unsigned);
word!(u64, unsigned);

/// Reduces `data`, values of type `number`; values must have 2, 4 or 8 bytes. Bytes after the last
/// whole value stay as they are.
pub(super) fn reduce(data: &[u8], number: Number, out: &mut Filtered) {
    macro_rules! of {
        ($type:ty) => {
            reduce_words(data.as_chunks().0, <$type>::from_le_bytes, data, out)
        };
    }
    match number {
        Number::I16 => of!(i16),
        Number::U16 => of!(u16),
        Number::I32 => of!(i32),
        Number::U32 => of!(u32),
        Number::U64 => of!(u64),
        _ => of!(i64),
    }
}

fn reduce_words<const N: usize, W: Word>(
    words: &[[u8; N]],
    word: impl Fn([u8; N]) -> W + Copy,
    data: &[u8],
    out: &mut Filtered,
) {
    put_u32(data.len(), &mut out.metadata);
    let n_windows_at = out.metadata.len();
    put_u32(0, &mut out.metadata);
    let mut n_windows = 0_u32;
    let mut write = |window: &Window| {
        write_window(&words[window.start..window.end], word, window, out);
        n_windows += 1;
    };
    let cost = W::BYTES + BITS_AND_LENGTH;
    let mut current: Option<Window> = None;
    for next in (0..words.len()).step_by(STEP).flat_map(|start| pieces(words, start, word)) {
        let Some(window) = current else {
            current = Some(next);
            continue;
        };
        let full = 8 * W::BYTES;
        let both = window.with(&next);
        let bits = both.bits(full);
        let wider = |one: &Window| (one.end - one.start) * (bits - one.bits(full)) / 8;
        if wider(&window) + wider(&next) <= cost {
            current = Some(both);
        } else {
            write(&window);
            current = Some(next);
        }
    }
    if let Some(window) = &current {
        write(window);
    }
    // Double deltas are not whole values. What is left is a window that stays as it is.
    let left = &data[words.len() * N..];
    if !left.is_empty() {
        out.metadata.resize(out.metadata.len() + W::BYTES, 0);
        out.metadata.push(8 * W::BYTES as u8);
        put_u32(left.len(), &mut out.metadata);
        out.data.extend_from_slice(left);
        n_windows += 1;
    }
    out.metadata[n_windows_at..n_windows_at + 4].copy_from_slice(&n_windows.to_le_bytes());
}

/// Splits the next values from `start` on: one piece, or, if a single value makes it wide, the part
/// before it, the value, and the part after it.
fn pieces<const N: usize, W: Word>(
    words: &[[u8; N]],
    start: usize,
    word: impl Fn([u8; N]) -> W + Copy,
) -> impl Iterator<Item = Window> {
    let end = words.len().min(start + STEP);
    let bounds = |start: usize, end: usize| {
        let ordered = words[start..end].iter().map(|bytes| word(*bytes).ordered());
        let (least, greatest) = ordered.fold((i64::MAX, i64::MIN), |(least, greatest), value| {
            (least.min(value), greatest.max(value))
        });
        Window { start, end, least, greatest }
    };
    let whole = bounds(start, end);
    let full = 8 * W::BYTES;
    let mut cut = [Some(whole), None, None];
    if whole.bits(full) > 8 {
        let is_extreme = |at: &usize| {
            let value = word(words[*at]).ordered();
            value == whole.least || value == whole.greatest
        };
        // The least or the greatest value, whichever leaves the rest narrower.
        let cuts = (start..end).filter(is_extreme).take(2).map(|at| {
            let part = |start, end| (start < end).then(|| bounds(start, end));
            [part(start, at), part(at, at + 1), part(at + 1, end)]
        });
        let bytes = |cut: &[Option<Window>; 3]| -> usize {
            let each = cut.iter().flatten();
            each.map(|window| (window.end - window.start) * window.bits(full) / 8 + W::BYTES + 5)
                .sum()
        };
        cut = cuts.chain([cut]).min_by_key(bytes).unwrap_or(cut);
    }
    cut.into_iter().flatten()
}

fn write_window<const N: usize, W: Word>(
    words: &[[u8; N]],
    word: impl Fn([u8; N]) -> W,
    window: &Window,
    out: &mut Filtered,
) {
    let bits = window.bits(8 * W::BYTES);
    // Narrow signed values lie around zero, so the offset is in the middle.
    let middle = if W::SIGNED && bits < 64 { 1_i64 << (bits - 1) } else { 0 };
    let offset = W::from_ordered(window.least).wrapping_add(middle.cast_unsigned());
    out.metadata.extend_from_slice(&offset.to_le_bytes()[..W::BYTES]);
    out.metadata.push(bits as u8);
    put_u32(words.len() * W::BYTES, &mut out.metadata);
    let relative = |bytes: &[u8; N]| word(*bytes).bits().wrapping_sub(offset);
    let start = out.data.len();
    out.data.resize(start + words.len() * bits / 8, 0);
    let to = &mut out.data[start..];
    macro_rules! store {
        ($narrow:ty) => {{
            let (to, _) = to.as_chunks_mut();
            to.iter_mut().zip(words).for_each(|(to, bytes)| {
                *to = (relative(bytes) as $narrow).to_le_bytes();
            });
        }};
    }
    match bits {
        _ if bits == 8 * W::BYTES => to.copy_from_slice(words.as_flattened()),
        8 => store!(u8),
        16 => store!(u16),
        _ => store!(u32),
    }
}
