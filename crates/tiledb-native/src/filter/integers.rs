//! Filters that make integers smaller: bit-width reduction, positive delta, delta, exclusive or.
//!
//! Arithmetic wraps, as in the writer: damaged data may give wrong numbers, but never a panic.

use crate::cursor::Cursor;
use crate::datatype::Number;
use crate::error::Fault;
use crate::memory::reserve;

/// An integer of `bytes.len()` bytes, sign-extended if `signed`.
pub(super) fn load(bytes: &[u8], signed: bool) -> u64 {
    let mut wide =
        [if signed && bytes.last().is_some_and(|&high| high >= 0x80) { 0xff } else { 0 }; 8];
    for (to, &from) in wide.iter_mut().zip(bytes) {
        *to = from;
    }
    u64::from_le_bytes(wide)
}

pub(super) fn store(value: u64, value_bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_le_bytes()[..value_bytes]);
}

pub(super) fn is_signed(number: Number) -> bool {
    matches!(number, Number::I8 | Number::I16 | Number::I32 | Number::I64)
}

/// Decodes bit-width reduction: windows of values, each minus its window's offset, in 8, 16 or 32
/// bits.
///
/// Metadata: the original length, the number of windows, and for each its offset, its bits and its
/// decoded length.
pub(super) fn undo_bit_width(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    number: Number,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let (size, signed) = (number.size(), is_signed(number));
    let original_len = metadata.u32("the length before bit-width reduction")? as usize;
    let n_windows = metadata.u32("the number of windows")?;
    if original_len > limit {
        return Err(Fault::new(format!(
            "bit-width reduction claims {original_len} bytes in a chunk that has room for {limit}"
        )));
    }
    reserve(out, original_len)?;
    let mut data = Cursor::new(data);
    for _ in 0..n_windows {
        let offset = load(metadata.take(size, "a window's offset")?, signed);
        let bits = usize::from(metadata.u8("a window's bits")?);
        let len = metadata.u32("a window's length")? as usize;
        if out.len() + len > original_len {
            return Err(Fault::new("windows contain more than the chunk"));
        }
        if bits >= size * 8 || !len.is_multiple_of(size) {
            out.extend_from_slice(data.take(len, "a window")?);
            continue;
        }
        let window = data.take(len / size * (bits / 8), "a window")?;
        widen_window(window, bits, number, offset, out)?;
    }
    Ok(())
}

/// Decodes differences of 8 bytes that were then reduced, in one pass, into the low four bytes of
/// each value. Returns false, with `out` in an undefined state, if a value needs more bytes or the
/// metadata have an unusual form: then decode step by step.
pub(super) fn sum_windows(
    chunk: super::filtered::Filtered<'_>,
    signed: bool,
    out: &mut Vec<u8>,
) -> Result<bool, Fault> {
    const SIZE: usize = 8;
    let n_values = chunk.original_len / SIZE;
    let mut metadata = Cursor::new(chunk.metadata);
    let reduced_len = metadata.u32("the length before bit-width reduction")? as usize;
    let n_windows = metadata.u32("the number of windows")? as usize;
    let windows = metadata.take(n_windows.saturating_mul(SIZE + 1 + 4), "windows")?;
    // No metadata part, one data part, with these lengths, and the number of values first.
    let one_part = [0, 1, chunk.original_len, chunk.original_len + SIZE];
    let parts = metadata.remaining().as_chunks::<4>().0.iter().map(|len| u32::from_le_bytes(*len));
    if reduced_len != chunk.original_len + SIZE || !parts.map(|len| len as usize).eq(one_part) {
        return Ok(false);
    }
    out.resize(4 * n_values, 0);
    let mut to = out.as_chunks_mut::<4>().0.iter_mut();
    let mut data = Cursor::new(chunk.data);
    let (mut value, mut any) = (0_u64, 0_u64);
    let (mut left, mut is_first) = (reduced_len, true);
    for window in windows.chunks_exact(SIZE + 1 + 4) {
        let offset = load(&window[..SIZE], false);
        let bits = usize::from(window[SIZE]);
        let len = load(&window[SIZE + 1..], false) as usize;
        if len > left || len == 0 || !len.is_multiple_of(SIZE) || !matches!(bits, 8 | 16 | 32 | 64)
        {
            return Ok(false);
        }
        left -= len;
        let mut stored = data.take(len / SIZE * (bits / 8), "a window")?;
        let offset = if bits == 64 { 0 } else { offset };
        if is_first {
            is_first = false;
            let (n, rest) = stored.split_at(bits / 8);
            if load(n, signed).wrapping_add(offset) != n_values as u64 {
                return Err(Fault::new("differences have another number of values than the chunk"));
            }
            stored = rest;
        }
        macro_rules! sum {
            ($signed:ty, $unsigned:ty) => {
                for (stored, to) in stored.as_chunks().0.iter().zip(&mut to) {
                    let difference = if signed {
                        i64::from(<$signed>::from_le_bytes(*stored)).cast_unsigned()
                    } else {
                        u64::from(<$unsigned>::from_le_bytes(*stored))
                    };
                    value = value.wrapping_add(difference.wrapping_add(offset));
                    any |= value;
                    *to = (value as u32).to_le_bytes();
                }
            };
        }
        match bits {
            8 => sum!(i8, u8),
            16 => sum!(i16, u16),
            32 => sum!(i32, u32),
            _ => sum!(i64, u64),
        }
    }
    Ok(left == 0 && u32::try_from(any).is_ok())
}

/// Decodes a window of values of `bits` bits. Each pair of sizes has its own loop, which the
/// compiler vectorizes.
fn widen_window(
    window: &[u8],
    bits: usize,
    number: Number,
    offset: u64,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    macro_rules! widen {
        ($from:ty, $to:ty) => {
            widen(window, out, |bytes| {
                let stored = <$to>::from(<$from>::from_le_bytes(bytes));
                stored.wrapping_add(offset as $to).to_le_bytes()
            })
        };
    }
    match (number, bits) {
        (Number::I16, 8) => widen!(i8, i16),
        (Number::I32, 8) => widen!(i8, i32),
        (Number::I32, 16) => widen!(i16, i32),
        (Number::I64, 8) => widen!(i8, i64),
        (Number::I64, 16) => widen!(i16, i64),
        (Number::I64, 32) => widen!(i32, i64),
        (Number::U16, 8) => widen!(u8, u16),
        (Number::U32, 8) => widen!(u8, u32),
        (Number::U32, 16) => widen!(u16, u32),
        (Number::U64, 8) => widen!(u8, u64),
        (Number::U64, 16) => widen!(u16, u64),
        (Number::U64, 32) => widen!(u32, u64),
        _ => return Err(Fault::new(format!("a window of {bits} bits of {number:?}"))),
    }
    Ok(())
}

/// Appends `value` of each stored value.
pub(super) fn widen<const FROM: usize, const TO: usize>(
    stored: &[u8],
    out: &mut Vec<u8>,
    value: impl Fn([u8; FROM]) -> [u8; TO],
) {
    let (stored, _) = stored.as_chunks::<FROM>();
    let start = out.len();
    out.resize(start + stored.len() * TO, 0);
    let (to, _) = out[start..].as_chunks_mut::<TO>();
    to.iter_mut().zip(stored).for_each(|(to, stored)| *to = value(*stored));
}

/// Decodes windows of differences to the previous value, the first one to the window's offset.
///
/// Metadata: the number of windows, and for each its offset and its length.
pub(super) fn undo_positive_delta(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    number: Number,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let size = number.size();
    let n_windows = metadata.u32("the number of windows")?;
    out.reserve(data.len());
    let mut data = Cursor::new(data);
    for _ in 0..n_windows {
        let mut value = load(metadata.take(size, "a window's offset")?, false);
        let len = metadata.u32("a window's length")? as usize;
        let window = data.take(len, "a window")?;
        if !len.is_multiple_of(size) {
            out.extend_from_slice(window);
            continue;
        }
        for delta in window.chunks_exact(size) {
            value = value.wrapping_add(load(delta, false));
            store(value, size, out);
        }
    }
    Ok(())
}

/// Decodes differences: the number of values, the first one, then the differences.
pub(super) fn undo_delta(
    number: Number,
    from: &[u8],
    to: &mut Vec<u8>,
    len: usize,
) -> Result<(), Fault> {
    let size = number.size();
    let mut from = Cursor::new(from);
    let n_values = from.u64("the number of values")?;
    if n_values.checked_mul(size as u64) != Some(len as u64) {
        return Err(Fault::new(format!(
            "{n_values} values of {size} bytes do not make {len} bytes"
        )));
    }
    let differences = from.take(len, "differences")?;
    let mut value = 0_u64;
    if size == 8 {
        let start = to.len();
        reserve(to, len)?;
        to.resize(start + len, 0);
        let words = to[start..].as_chunks_mut().0.iter_mut();
        for (to, difference) in words.zip(differences.as_chunks().0) {
            value = value.wrapping_add(u64::from_le_bytes(*difference));
            *to = value.to_le_bytes();
        }
        return Ok(());
    }
    reserve(to, len)?;
    for difference in differences.chunks_exact(size) {
        value = value.wrapping_add(load(difference, false));
        store(value, size, to);
    }
    Ok(())
}

/// Decodes exclusive or with the previous value, part by part.
///
/// Metadata: the number of parts, then the length of each.
pub(super) fn undo_xor(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    value_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let n_parts = metadata.u32("the number of parts")?;
    out.reserve(data.len());
    let mut data = Cursor::new(data);
    for _ in 0..n_parts {
        let len = metadata.u32("the length of a part")? as usize;
        let part = data.take(len, "a part")?;
        let mut value = 0;
        for stored in part.chunks(value_bytes) {
            value ^= load(stored, false);
            store(value, stored.len(), out);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NUMBERS: [Number; 6] =
        [Number::I16, Number::U16, Number::I32, Number::U32, Number::I64, Number::U64];

    proptest! {
        #[test]
        fn windows_widen_value_by_value(which in 0..6_usize, bits in prop_oneof![Just(8_usize), Just(16), Just(32)], offset in any::<u64>(), stored in prop::collection::vec(any::<u8>(), 0..200)) {
            let number = NUMBERS[which];
            let mut wide = vec![7];
            let widened = widen_window(&stored, bits, number, offset, &mut wide);
            prop_assert_eq!(widened.is_ok(), bits < number.size() * 8);
            if widened.is_ok() {
                let mut naive = vec![7];
                for value in stored.chunks_exact(bits / 8) {
                    store(load(value, is_signed(number)).wrapping_add(offset), number.size(), &mut naive);
                }
                prop_assert_eq!(wide, naive);
            }
        }
    }

    #[test]
    fn a_window_of_odd_bits_is_damage() {
        assert!(widen_window(&[1, 2, 3], 24, Number::I64, 0, &mut Vec::new()).is_err());
    }
}
