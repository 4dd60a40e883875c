//! Taking values out of decoded chunks: columns as u32, values as f32, times as u64.
//!
//! Values convert to f32 as Rust's `as` does: integers round to the nearest f32, ties to even, exactly up to 2^24; f64 rounds
//! likewise and becomes infinite beyond f32's range; booleans are 0 and 1.

use std::ops::Range;

use crate::datatype::Number;
use crate::error::Fault;
use crate::filter::Decoded;

/// The planes of a chunk of `n` values.
struct Planes<'a> {
    planes: &'a [u8],
    n: usize,
}

impl<'a> Planes<'a> {
    /// Bytes number `byte` of the values in `range`.
    fn part(&self, byte: usize, range: &Range<usize>) -> &'a [u8] {
        &self.planes[byte * self.n..][range.clone()]
    }
}

/// Copies the columns `range` of a chunk of `n` into `out`.
///
/// # Errors
/// When one of them is beyond `last`.
pub(crate) fn copy_columns(
    chunk: Decoded<'_>,
    n: usize,
    number: Number,
    range: Range<usize>,
    last: u32,
    out: &mut [u32],
) -> Result<(), Fault> {
    let highest = match (chunk, number) {
        (Decoded::Planes(planes), _) => {
            columns_from_planes(&Planes { planes, n }, number.size(), &range, last, out)?
        }
        (Decoded::Plain(bytes), Number::I64 | Number::U64) => {
            let words = &bytes.as_chunks::<8>().0[range.clone()];
            out.iter_mut().zip(words).fold(0, |highest: u64, (to, word)| {
                let column = u64::from_le_bytes(*word);
                *to = column as u32;
                highest.max(column)
            })
        }
        (Decoded::Plain(bytes), _) => {
            let words = &bytes.as_chunks::<4>().0[range.clone()];
            out.iter_mut()
                .zip(words)
                .fold(0, |highest, (to, word)| {
                    *to = u32::from_le_bytes(*word);
                    highest.max(*to)
                })
                .into()
        }
    };
    if highest <= u64::from(last) {
        Ok(())
    } else {
        Err(Fault::new(format!("a cell of column {highest}, beyond the tile's last column {last}")))
    }
}

/// The highest of the columns that were copied, or u64::MAX when a byte that must be 0 is not.
fn columns_from_planes(
    planes: &Planes<'_>,
    size: usize,
    range: &Range<usize>,
    last: u32,
    out: &mut [u32],
) -> Result<u64, Fault> {
    // The tile's bounds say how many bytes of a column can be other than 0.
    let n_low = if last < 1 << 8 {
        1
    } else if last < 1 << 16 {
        2
    } else {
        4
    }
    .min(size);
    let part = |byte| planes.part(byte, range);
    let stray =
        (n_low..size).fold(0, |all, byte| part(byte).iter().fold(all, |all, &byte| all | byte));
    if stray != 0 {
        return Err(Fault::new(format!("a cell of a column beyond the tile's last column {last}")));
    }
    let mut highest = 0;
    match n_low {
        1 => out.iter_mut().zip(part(0)).for_each(|(to, &a)| {
            *to = a.into();
            highest = highest.max(*to);
        }),
        2 => out.iter_mut().zip(part(0)).zip(part(1)).for_each(|((to, &a), &b)| {
            *to = u32::from(a) | u32::from(b) << 8;
            highest = highest.max(*to);
        }),
        _ => out.iter_mut().zip(part(0)).zip(part(1)).zip(part(2)).zip(part(3)).for_each(
            |((((to, &a), &b), &c), &d)| {
                *to = u32::from_le_bytes([a, b, c, d]);
                highest = highest.max(*to);
            },
        ),
    }
    Ok(highest.into())
}

/// Copies the values `range` of a chunk of `n` into `out`.
pub(crate) fn copy_values(
    chunk: Decoded<'_>,
    n: usize,
    number: Number,
    range: Range<usize>,
    out: &mut [f32],
) {
    match (chunk, number) {
        (Decoded::Planes(planes), Number::F32) => {
            let planes = Planes { planes, n };
            let part = |byte| planes.part(byte, &range);
            let bytes = part(0).iter().zip(part(1)).zip(part(2)).zip(part(3));
            out.iter_mut()
                .zip(bytes)
                .for_each(|(to, (((&a, &b), &c), &d))| *to = f32::from_le_bytes([a, b, c, d]));
        }
        (Decoded::Planes(planes), number) => {
            let planes = Planes { planes, n };
            let mut words = vec![0_u64; range.len()];
            for byte in 0..number.size() {
                words
                    .iter_mut()
                    .zip(planes.part(byte, &range))
                    .for_each(|(word, &from)| *word |= u64::from(from) << (8 * byte));
            }
            out.iter_mut().zip(words).for_each(|(to, word)| *to = convert(word, number));
        }
        (Decoded::Plain(bytes), Number::F32) => {
            let words = &bytes.as_chunks::<4>().0[range];
            out.iter_mut().zip(words).for_each(|(to, word)| *to = f32::from_le_bytes(*word));
        }
        (Decoded::Plain(bytes), number) => {
            let size = number.size();
            let stored = bytes[range.start * size..range.end * size].chunks_exact(size);
            out.iter_mut().zip(stored).for_each(|(to, stored)| {
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(stored);
                *to = convert(u64::from_le_bytes(wide), number);
            });
        }
    }
}

/// A value whose little-endian bytes are the low ones of `word`.
fn convert(word: u64, number: Number) -> f32 {
    match number {
        Number::I8 => f32::from(word as u8 as i8),
        Number::U8 => f32::from(word as u8),
        Number::I16 => f32::from(word as u16 as i16),
        Number::U16 => f32::from(word as u16),
        Number::I32 => word as u32 as i32 as f32,
        Number::U32 => word as u32 as f32,
        Number::I64 => word.cast_signed() as f32,
        Number::U64 => word as f32,
        Number::F32 => f32::from_bits(word as u32),
        Number::F64 => f64::from_bits(word) as f32,
    }
}

/// Copies the times `range` of a chunk of `n` into `out`.
pub(crate) fn copy_times(chunk: Decoded<'_>, n: usize, range: Range<usize>, out: &mut [u64]) {
    match chunk {
        Decoded::Plain(bytes) => {
            let words = &bytes.as_chunks::<8>().0[range];
            out.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
        }
        Decoded::Planes(planes) => {
            let planes = Planes { planes, n };
            out.fill(0);
            for byte in 0..8 {
                out.iter_mut()
                    .zip(planes.part(byte, &range))
                    .for_each(|(to, &from)| *to |= u64::from(from) << (8 * byte));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_converts_from_both_forms() {
        let check = |number: Number, bytes: &[u8], expect: f32| {
            let mut out = [0.0; 2];
            let plain = [bytes, bytes].concat();
            copy_values(Decoded::Plain(&plain), 2, number, 0..2, &mut out);
            assert_eq!(out, [expect; 2]);
            let planes: Vec<u8> = bytes.iter().flat_map(|&byte| [byte, byte]).collect();
            copy_values(Decoded::Planes(&planes), 2, number, 0..2, &mut out);
            assert_eq!(out, [expect; 2]);
        };
        check(Number::I8, &(-3_i8).to_le_bytes(), -3.0);
        check(Number::U8, &[200], 200.0);
        check(Number::I16, &(-300_i16).to_le_bytes(), -300.0);
        check(Number::U16, &60_000_u16.to_le_bytes(), 60_000.0);
        check(Number::I32, &(-70_000_i32).to_le_bytes(), -70_000.0);
        check(Number::U32, &4_000_000_000_u32.to_le_bytes(), 4e9);
        check(Number::I64, &i64::MIN.to_le_bytes(), -9.223_372e18);
        check(Number::U64, &u64::MAX.to_le_bytes(), 1.844_674_4e19);
        check(Number::F32, &1.5_f32.to_le_bytes(), 1.5);
        check(Number::F64, &1e300_f64.to_le_bytes(), f32::INFINITY);
    }

    #[test]
    fn columns_beyond_the_bounds_are_damage() {
        let bytes: Vec<u8> =
            [5_i64, 300, 70_000].iter().flat_map(|column| column.to_le_bytes()).collect();
        let planes: Vec<u8> = (0..8)
            .flat_map(|byte| (0..3).map(move |value| (value, byte)))
            .map(|(value, byte)| bytes[value * 8 + byte])
            .collect();
        for chunk in [Decoded::Plain(&bytes), Decoded::Planes(&planes)] {
            let mut out = [0; 3];
            copy_columns(chunk, 3, Number::I64, 0..3, 70_000, &mut out).unwrap();
            assert_eq!(out, [5, 300, 70_000]);
            copy_columns(chunk, 3, Number::I64, 0..2, 300, &mut out[..2]).unwrap();
            for (range, last) in [(0..3, 69_999), (0..3, 300), (0..3, 5), (0..2, 255)] {
                let mut out = vec![0; range.len()];
                assert!(
                    copy_columns(chunk, 3, Number::I64, range, last, &mut out).is_err(),
                    "{last}"
                );
            }
        }
    }
}
