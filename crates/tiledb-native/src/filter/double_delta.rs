//! Double delta: differences of differences, as a sign and a magnitude of a fixed number of bits.
//!
//! Specification: `format_spec/filters/double_delta.md`. The bits fill little-endian u64s from the
//! highest bit down.

use super::integers::{is_signed, load, store};
use crate::cursor::Cursor;
use crate::datatype::Number;
use crate::error::Fault;

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
    to.reserve(len);
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
