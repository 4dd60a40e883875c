//! Double delta: differences of differences, as a sign and a magnitude of a fixed number of bits.
//!
//! Specification: `format_spec/filters/double_delta.md`. The bits fill little-endian u64s from the
//! highest bit down.

use super::integers::{is_signed, load, store};
use crate::cursor::Cursor;
use crate::datatype::Number;
use crate::error::Fault;
use crate::memory::reserve;

pub(super) fn undo(number: Number, from: &[u8], to: &mut Vec<u8>, len: usize) -> Result<(), Fault> {
    let (size, signed) = (number.size(), is_signed(number));
    let mut from = Cursor::new(from);
    let bits = usize::from(from.u8("the bits of a double delta")?);
    let n_values = from.u64("the number of values")?;
    if n_values.checked_mul(size as u64) != Some(len as u64) {
        return Err(Fault::new(format!(
            "{n_values} values of {size} bytes do not make {len} bytes"
        )));
    }
    reserve(to, len)?;
    if bits >= size * 8 - 1 {
        // Incompressible values follow unchanged.
        to.extend_from_slice(from.take(len, "values")?);
        return Ok(());
    }
    let n_first = n_values.min(2) as usize;
    let first = from.take(n_first * size, "the first values")?;
    to.extend_from_slice(first);
    if n_values <= 2 {
        return Ok(());
    }
    let mut before = load(&first[..size], signed);
    let mut last = load(&first[size..], signed);
    let mut words = Bits { words: from.remaining(), word: 0, left: 0 };
    for _ in 2..n_values {
        let negative = words.take(1)? == 1;
        let magnitude = words.take(bits)?;
        let double_delta = if negative { magnitude.wrapping_neg() } else { magnitude };
        let value = double_delta.wrapping_add(last.wrapping_mul(2)).wrapping_sub(before);
        store(value, size, to);
        before = last;
        last = if size == 8 { value } else { load(&value.to_le_bytes()[..size], signed) };
    }
    Ok(())
}

/// Appends the double deltas of `values`, at least one.
///
/// # Errors
/// A difference, or a difference of differences, does not fit 64 bits.
pub(super) fn apply(values: &[u8], number: Number, out: &mut Vec<u8>) -> Result<(), String> {
    let (size, signed) = (number.size(), is_signed(number));
    let widened = |value: &[u8]| {
        let bits = load(value, signed);
        if signed { i128::from(bits.cast_signed()) } else { i128::from(bits) }
    };
    let n_values = (values.len() / size) as u64;
    let mut largest = 0;
    let mut deltas = Vec::with_capacity(values.len() / size);
    let mut before: Option<(i128, Option<i64>)> = None;
    for value in values.chunks_exact(size).map(widened) {
        let delta = before.map(|(last, _)| i64::try_from(value - last)).transpose();
        let delta = delta.map_err(|_| "a difference does not fit 64 bits")?;
        if let (Some(delta), Some((_, Some(last)))) = (delta, before) {
            let double = delta.checked_sub(last).filter(|double| *double != i64::MIN);
            let double = double.ok_or("a difference of differences does not fit 64 bits")?;
            largest = largest.max(double.unsigned_abs());
            deltas.push(double);
        } else if let Some(delta) = delta {
            // libtiledb counts the first difference, too.
            largest = largest.max(delta.unsigned_abs());
        }
        before = Some((value, delta));
    }
    let bits = if n_values <= 2 { 0 } else { (64 - largest.leading_zeros()).max(1) as usize };
    out.push(bits as u8);
    out.extend_from_slice(&n_values.to_le_bytes());
    if bits >= size * 8 - 1 {
        out.extend_from_slice(values);
        return Ok(());
    }
    out.extend_from_slice(&values[..values.len().min(2 * size)]);
    let mut words = BitWriter { word: 0, left: 64, out };
    for double in deltas {
        words.put(u64::from(double < 0), 1);
        words.put(double.unsigned_abs(), bits);
    }
    words.finish();
    Ok(())
}

/// Fills little-endian u64s from the highest bit down.
struct BitWriter<'a> {
    word: u64,
    /// Free bits of the word.
    left: usize,
    out: &'a mut Vec<u8>,
}

impl BitWriter<'_> {
    /// Appends the low `n` bits of `value`, 1 to 63, whose other bits are 0.
    fn put(&mut self, value: u64, n: usize) {
        if n <= self.left {
            self.left -= n;
            self.word |= value << self.left;
        } else {
            let after = n - self.left;
            self.word |= value >> after;
            self.flush();
            self.left = 64 - after;
            self.word = value << self.left;
        }
        if self.left == 0 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.out.extend_from_slice(&self.word.to_le_bytes());
        (self.word, self.left) = (0, 64);
    }

    fn finish(mut self) {
        if self.left < 64 {
            self.flush();
        }
    }
}

struct Bits<'a> {
    words: &'a [u8],
    word: u64,
    left: usize,
}

impl Bits<'_> {
    /// The next `n` bits, at most 64, the first of them highest.
    fn take(&mut self, n: usize) -> Result<u64, Fault> {
        let mut out = 0;
        let mut wanted = n;
        while wanted > 0 {
            if self.left == 0 {
                let (word, rest) = self
                    .words
                    .split_first_chunk::<8>()
                    .ok_or_else(|| Fault::new("double deltas are truncated"))?;
                self.word = u64::from_le_bytes(*word);
                self.words = rest;
                self.left = 64;
            }
            let taken = wanted.min(self.left);
            let bits = self.word >> (64 - taken);
            out = if taken == 64 { bits } else { (out << taken) | bits };
            self.word = if taken == 64 { 0 } else { self.word << taken };
            self.left -= taken;
            wanted -= taken;
        }
        Ok(out)
    }
}
