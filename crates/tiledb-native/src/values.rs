//! Copies values out of decoded chunks: columns as u32, values as f32, times as u64.
//!
//! A chunk is prepared once and then copied from in pieces, which may be as short as the cells of
//! one row.
//!
//! Values convert to f32 like Rust's `as`: integers round to the nearest f32, ties to even, exactly
//! up to 2^24; f64 rounds likewise and becomes infinite beyond f32's range; booleans are 0 and 1.
//! With
//! [`Narrowing::Exact`], a value that would be rounded becomes [`csr::INEXACT`].

use std::ops::Range;

use csr::{Narrow as _, Narrowing, pack_counts};

use crate::datatype::Number;
use crate::decoded_chunk::DecodedChunk;
use crate::error::Fault;
use crate::filter::Decoded;
use crate::packed_integers::PackedIntegers;

/// The columns of a chunk, in a tile whose first and last column are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a> {
    chunk: ColumnBytes<'a>,
    bounds: (u32, u32),
}

/// The type of delivered columns: their distance from the first wanted one.
pub(crate) trait Position: Copy {
    /// Converts a distance, which must fit.
    fn new(distance: u32) -> Self;
}

impl Position for u32 {
    #[inline]
    fn new(distance: u32) -> Self {
        distance
    }
}

impl Position for u16 {
    #[inline]
    fn new(distance: u32) -> Self {
        distance as Self
    }
}

/// Columns as stored. Only the byte planes that the tile's last column needs are copied; the others
/// must be 0.
#[derive(Debug, Clone, Copy)]
enum ColumnBytes<'a> {
    OnePlane(&'a [u8], ZeroPlanes<'a>),
    TwoPlanes([&'a [u8]; 2], ZeroPlanes<'a>),
    FourPlanes([&'a [u8]; 4], ZeroPlanes<'a>),
    Words4(&'a [[u8; 4]]),
    Words8(&'a [[u8; 8]]),
    /// Cached, each as its distance from the tile's first column.
    Distances(&'a PackedIntegers),
}

/// Planes of `n` bytes each that must be 0.
#[derive(Debug, Clone, Copy)]
struct ZeroPlanes<'a> {
    planes: &'a [u8],
    n: usize,
}

impl ZeroPlanes<'_> {
    fn are_zero(self, range: &Range<usize>) -> bool {
        let any = |all, &byte: &u8| all | byte;
        let planes = self.planes.chunks_exact(self.n.max(1));
        planes.fold(0, |all, plane| plane[range.clone()].iter().fold(all, any)) == 0
    }
}

/// The first `N` planes of a chunk of `n` values, and the rest.
fn planes<const N: usize>(planes: &[u8], n: usize) -> ([&[u8]; N], ZeroPlanes<'_>) {
    let first = std::array::from_fn(|byte| &planes[byte * n..(byte + 1) * n]);
    (first, ZeroPlanes { planes: &planes[N * n..], n })
}

impl<'a> Columns<'a> {
    /// Prepares the columns of a chunk of `n` cells; none may lie outside `bounds`, both included.
    pub(crate) fn new(chunk: Decoded<'a>, n: usize, number: Number, bounds: (u32, u32)) -> Self {
        let (_, last) = bounds;
        let chunk = match chunk {
            Decoded::Planes(bytes) if last < 1 << 8 => {
                let ([low], zero) = planes(bytes, n);
                ColumnBytes::OnePlane(low, zero)
            }
            Decoded::Planes(bytes) if last < 1 << 16 => {
                let (low, zero) = planes(bytes, n);
                ColumnBytes::TwoPlanes(low, zero)
            }
            Decoded::Planes(bytes) => {
                let (low, zero) = planes(bytes, n);
                ColumnBytes::FourPlanes(low, zero)
            }
            Decoded::Plain(bytes) if number.size() == 8 => ColumnBytes::Words8(bytes.as_chunks().0),
            Decoded::Plain(bytes) | Decoded::LowFour(bytes) => {
                ColumnBytes::Words4(bytes.as_chunks().0)
            }
        };
        Self { chunk, bounds }
    }

    /// Prepares the columns of a cached chunk of the tile, which were checked before. `None` for a
    /// chunk of values.
    pub(crate) fn kept(chunk: &'a DecodedChunk, bounds: (u32, u32)) -> Option<Self> {
        match chunk {
            DecodedChunk::Columns(kept) => {
                Some(Self { chunk: ColumnBytes::Distances(kept), bounds })
            }
            _ => None,
        }
    }

    /// The tile's first and last column.
    pub(crate) fn bounds(&self) -> (u32, u32) {
        self.bounds
    }

    /// Checks that no column of `range` lies outside the bounds.
    pub(crate) fn check(&self, range: &Range<usize>) -> Result<(), Fault> {
        fn ends<T: Ord + Copy + Into<u64>>(columns: impl Iterator<Item = T> + Clone) -> (u64, u64) {
            let least = columns.clone().min().map_or(u64::MAX, Into::into);
            (least, columns.max().map_or(0, Into::into))
        }
        let range = range.clone();
        let (first, last) = self.bounds;
        if let ColumnBytes::Words4(words) = self.chunk {
            // One comparison per column instead of two; the offending column is searched only if
            // there is one.
            let beyond = |word: &[u8; 4]| {
                u32::from_le_bytes(*word).wrapping_sub(first) > last.wrapping_sub(first)
            };
            if !words[range.clone()].iter().fold(false, |any, word| any | beyond(word)) {
                return Ok(());
            }
        }
        let ((least, highest), is_whole) = match self.chunk {
            ColumnBytes::OnePlane(a, zero) => {
                (ends(a[range.clone()].iter().copied()), zero.are_zero(&range))
            }
            ColumnBytes::TwoPlanes([a, b], zero) => {
                let columns = a[range.clone()].iter().zip(&b[range.clone()]);
                let columns = columns.map(|(&a, &b)| u16::from_le_bytes([a, b]));
                (ends(columns), zero.are_zero(&range))
            }
            ColumnBytes::FourPlanes(planes, zero) => {
                let [a, b, c, d] = planes.map(|plane| &plane[range.clone()]);
                let columns = a.iter().zip(b).zip(c).zip(d);
                let columns = columns.map(|(((&a, &b), &c), &d)| u32::from_le_bytes([a, b, c, d]));
                (ends(columns), zero.are_zero(&range))
            }
            ColumnBytes::Words4(words) => {
                (ends(words[range].iter().map(|word| u32::from_le_bytes(*word))), true)
            }
            ColumnBytes::Words8(words) => {
                (ends(words[range].iter().map(|word| u64::from_le_bytes(*word))), true)
            }
            ColumnBytes::Distances(_) => return Ok(()),
        };
        let outside = |what: &str| {
            let bounds = format!("the tile's columns {first} to {last}");
            Err(Fault::new(format!("a cell of {what} outside {bounds}")))
        };
        if !is_whole {
            return outside("a column");
        }
        if highest > u64::from(last) {
            return outside(&format!("column {highest}"));
        }
        if least < u64::from(first) {
            return outside(&format!("column {least}"));
        }
        Ok(())
    }

    /// Copies the columns of `range`, which have been checked, into `out`, each as its distance
    /// from `first`.
    pub(crate) fn copy<T: Position>(&self, range: Range<usize>, first: u32, out: &mut [T]) {
        let position = |column: u32| T::new(column.wrapping_sub(first));
        match self.chunk {
            ColumnBytes::OnePlane(a, _) => {
                out.iter_mut().zip(&a[range]).for_each(|(to, &a)| *to = position(a.into()));
            }
            ColumnBytes::TwoPlanes([a, b], _) => {
                let columns = a[range.clone()].iter().zip(&b[range]);
                out.iter_mut()
                    .zip(columns)
                    .for_each(|(to, (&a, &b))| *to = position(u16::from_le_bytes([a, b]).into()));
            }
            ColumnBytes::FourPlanes(planes, _) => {
                join(planes, range, out, |bytes| position(u32::from_le_bytes(bytes)));
            }
            ColumnBytes::Words4(words) => {
                out.iter_mut()
                    .zip(&words[range])
                    .for_each(|(to, word)| *to = position(u32::from_le_bytes(*word)));
            }
            ColumnBytes::Words8(words) => {
                out.iter_mut()
                    .zip(&words[range])
                    .for_each(|(to, word)| *to = position(u64::from_le_bytes(*word) as u32));
            }
            ColumnBytes::Distances(distances) => {
                let tile_first = self.bounds.0.wrapping_sub(first);
                distances.unpack(range, |to, distances| {
                    let distances = out[to].iter_mut().zip(distances);
                    distances.for_each(|(to, distance)| {
                        *to = T::new(tile_first.wrapping_add(*distance));
                    });
                });
            }
        }
    }
}

/// Assembles values of four bytes.
fn join<T>(planes: [&[u8]; 4], range: Range<usize>, out: &mut [T], value: impl Fn([u8; 4]) -> T) {
    let [a, b, c, d] = planes.map(|plane| &plane[range.clone()]);
    let bytes = a.iter().zip(b).zip(c).zip(d);
    out.iter_mut().zip(bytes).for_each(|(to, (((&a, &b), &c), &d))| *to = value([a, b, c, d]));
}

/// The type of stored values, and how they become f32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversion {
    pub(crate) number: Number,
    pub(crate) narrowing: Narrowing,
}

/// The values of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    FloatPlanes([&'a [u8]; 4]),
    Floats(&'a [[u8; 4]]),
    /// Planes of this many bytes each.
    Planes(&'a [u8], usize, Conversion),
    Plain(&'a [u8], Conversion),
    /// Cached whole numbers that fit 16 bits.
    Counts(&'a PackedIntegers),
    /// Cached.
    Converted(&'a [f32]),
}

impl<'a> Values<'a> {
    /// Prepares the values of a chunk of `n` cells.
    pub(crate) fn new(chunk: Decoded<'a>, n: usize, conversion: Conversion) -> Self {
        match (chunk, conversion.number) {
            (Decoded::Planes(bytes), Number::F32) => Self::FloatPlanes(planes(bytes, n).0),
            (Decoded::Plain(bytes), Number::F32) => Self::Floats(bytes.as_chunks().0),
            (Decoded::Planes(bytes), _) => Self::Planes(bytes, n, conversion),
            (Decoded::LowFour(bytes), _) => {
                Self::Plain(bytes, Conversion { number: Number::U32, ..conversion })
            }
            (Decoded::Plain(bytes), _) => Self::Plain(bytes, conversion),
        }
    }

    /// Prepares the values of a cached chunk. `None` for a chunk of columns.
    pub(crate) fn kept(chunk: &'a DecodedChunk) -> Option<Self> {
        match chunk {
            DecodedChunk::Counts(counts) => Some(Self::Counts(counts)),
            DecodedChunk::Floats(values) => Some(Self::Converted(values)),
            DecodedChunk::Columns(_) => None,
        }
    }

    /// Copies the values of `range` into `out`.
    pub(crate) fn copy(&self, range: Range<usize>, out: &mut [f32]) {
        match *self {
            Self::FloatPlanes(planes) => join(planes, range, out, f32::from_le_bytes),
            Self::Floats(words) => {
                out.iter_mut()
                    .zip(&words[range])
                    .for_each(|(to, word)| *to = f32::from_le_bytes(*word));
            }
            Self::Planes(planes, n, conversion) => {
                convert_planes(planes, n, conversion, range, out);
            }
            Self::Counts(counts) => counts.unpack(range, |to, counts| {
                out[to].iter_mut().zip(counts).for_each(|(to, count)| *to = *count as f32);
            }),
            Self::Converted(values) => out.copy_from_slice(&values[range]),
            Self::Plain(bytes, conversion) => {
                let size = conversion.number.size();
                let stored = bytes[range.start * size..range.end * size].chunks_exact(size);
                out.iter_mut().zip(stored).for_each(|(to, stored)| {
                    let mut wide = [0; 8];
                    wide[..size].copy_from_slice(stored);
                    *to = convert(u64::from_le_bytes(wide), conversion);
                });
            }
        }
    }
}

/// Values that are converted together.
const AT_ONCE: usize = 64;

impl Values<'_> {
    /// Copies the values of `range` as whole numbers into `out`. Returns false if any is not a
    /// count.
    pub(crate) fn copy_counts(&self, range: Range<usize>, out: &mut [u16]) -> bool {
        match *self {
            Self::FloatPlanes(planes) => {
                let [a, b, c, d] = planes.map(|plane| &plane[range.clone()]);
                let bytes = a.iter().zip(b).zip(c).zip(d);
                let values = bytes.map(|(((&a, &b), &c), &d)| f32::from_le_bytes([a, b, c, d]));
                return pack_counts(values, out);
            }
            Self::Counts(counts) => {
                counts.unpack(range, |to, counts| {
                    out[to].iter_mut().zip(counts).for_each(|(to, count)| *to = *count as u16);
                });
                return true;
            }
            Self::Converted(values) => return pack_counts(values[range].iter().copied(), out),
            Self::Floats(_) | Self::Planes(..) | Self::Plain(..) => {}
        }
        let mut fits = true;
        for (start, out) in range.step_by(AT_ONCE).zip(out.chunks_mut(AT_ONCE)) {
            let mut values = [0.0; AT_ONCE];
            let values = &mut values[..out.len()];
            self.copy(start..start + values.len(), values);
            fits &= pack_counts(values.iter().copied(), out);
        }
        fits
    }
}

/// Converts values of any type from planes of `n` bytes, plane by plane for several values at a
/// time.
fn convert_planes(
    planes: &[u8],
    n: usize,
    conversion: Conversion,
    range: Range<usize>,
    out: &mut [f32],
) {
    for (start, out) in range.clone().step_by(AT_ONCE).zip(out.chunks_mut(AT_ONCE)) {
        let mut words = [0; AT_ONCE];
        let part = start..range.end.min(start + AT_ONCE);
        for plane in 0..conversion.number.size() {
            add_plane(&mut words, plane, &planes[plane * n..(plane + 1) * n][part.clone()]);
        }
        out.iter_mut().zip(words).for_each(|(to, word)| *to = convert(word, conversion));
    }
}

/// Adds the bytes of plane `plane` to these values.
fn add_plane(words: &mut [u64], plane: usize, bytes: &[u8]) {
    words.iter_mut().zip(bytes).for_each(|(word, &byte)| *word |= u64::from(byte) << (8 * plane));
}

/// Converts the value whose little-endian bytes are the low ones of `word`.
fn convert(word: u64, Conversion { number, narrowing }: Conversion) -> f32 {
    match number {
        Number::I8 => f32::from(word as u8 as i8),
        Number::U8 => f32::from(word as u8),
        Number::I16 => f32::from(word as u16 as i16),
        Number::U16 => f32::from(word as u16),
        Number::I32 => (word as u32).cast_signed().narrow(narrowing),
        Number::U32 => (word as u32).narrow(narrowing),
        Number::I64 => word.cast_signed().narrow(narrowing),
        Number::U64 => word.narrow(narrowing),
        Number::F32 => f32::from_bits(word as u32),
        Number::F64 => f64::from_bits(word).narrow(narrowing),
    }
}

/// Copies the values in `range` of a chunk of `n` cells into `out`, `size` bytes each, as stored.
pub(crate) fn copy_bytes(
    chunk: Decoded<'_>,
    (n, size): (usize, usize),
    range: Range<usize>,
    out: &mut [u8],
) {
    match chunk {
        Decoded::Plain(bytes) => out.copy_from_slice(&bytes[range.start * size..range.end * size]),
        Decoded::LowFour(bytes) => {
            let words = &bytes.as_chunks::<4>().0[range];
            out.fill(0);
            out.chunks_exact_mut(size).zip(words).for_each(|(to, word)| {
                to[..4].copy_from_slice(word);
            });
        }
        Decoded::Planes(planes) => {
            for (byte, plane) in planes.chunks_exact(n.max(1)).take(size).enumerate() {
                let to = out.iter_mut().skip(byte).step_by(size);
                to.zip(&plane[range.clone()]).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Copies the times in `range` of a chunk of `n` cells into `out`.
pub(crate) fn copy_times(chunk: Decoded<'_>, n: usize, range: Range<usize>, out: &mut [u64]) {
    match chunk {
        Decoded::Plain(bytes) => {
            let words = &bytes.as_chunks::<8>().0[range];
            out.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
        }
        Decoded::LowFour(bytes) => {
            let words = &bytes.as_chunks::<4>().0[range];
            out.iter_mut().zip(words).for_each(|(to, word)| *to = u32::from_le_bytes(*word).into());
        }
        Decoded::Planes(planes) => {
            out.fill(0);
            for plane in 0..8 {
                add_plane(out, plane, &planes[plane * n..(plane + 1) * n][range.clone()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_converts_from_both_forms() {
        // More values than are converted at once; the first is not requested.
        const N: usize = 100;
        let check_as = |narrowing: Narrowing, number: Number, bytes: &[u8], expect: f32| {
            let conversion = Conversion { number, narrowing };
            let other = vec![0x11; bytes.len()];
            let values: Vec<&[u8]> =
                std::iter::once(other.as_slice()).chain([bytes; N - 1]).collect();
            let plain = values.concat();
            let planes: Vec<u8> = (0..bytes.len())
                .flat_map(|byte| values.iter().map(move |value| value[byte]))
                .collect();
            for chunk in [Decoded::Plain(&plain), Decoded::Planes(&planes)] {
                let mut out = [0.0; N - 1];
                let values = Values::new(chunk, N, conversion);
                values.copy(1..N, &mut out);
                assert_eq!(out.map(f32::to_bits), [expect.to_bits(); N - 1]);
                let mut counts = [0; N - 1];
                let is_count = values.copy_counts(1..N, &mut counts);
                assert_eq!(is_count, f32::from(expect as u16).to_bits() == expect.to_bits());
                assert!(!is_count || counts == [expect as u16; N - 1]);
            }
        };
        let check = |number: Number, bytes: &[u8], expect: f32, is_exact: bool| {
            check_as(Narrowing::Nearest, number, bytes, expect);
            let exact = if is_exact { expect } else { csr::INEXACT };
            check_as(Narrowing::Exact, number, bytes, exact);
        };
        check(Number::I8, &(-3_i8).to_le_bytes(), -3.0, true);
        check(Number::U8, &[200], 200.0, true);
        check(Number::I16, &(-300_i16).to_le_bytes(), -300.0, true);
        check(Number::U16, &60_000_u16.to_le_bytes(), 60_000.0, true);
        check(Number::I32, &(-70_000_i32).to_le_bytes(), -70_000.0, true);
        check(Number::I32, &(-16_777_217_i32).to_le_bytes(), -16_777_216.0, false);
        check(Number::U32, &4_000_000_000_u32.to_le_bytes(), 4e9, true);
        check(Number::U32, &u32::MAX.to_le_bytes(), 4_294_967_296.0, false);
        check(Number::I64, &i64::MIN.to_le_bytes(), -9.223_372e18, true);
        check(Number::I64, &i64::MAX.to_le_bytes(), 9.223_372e18, false);
        check(Number::U64, &u64::MAX.to_le_bytes(), 1.844_674_4e19, false);
        check(Number::F32, &1.5_f32.to_le_bytes(), 1.5, true);
        check(Number::F64, &(-2.5_f64).to_le_bytes(), -2.5, true);
        check(Number::F64, &0.1_f64.to_le_bytes(), 0.1, false);
        check(Number::F64, &1e300_f64.to_le_bytes(), f32::INFINITY, false);
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
            let columns = |last| Columns::new(chunk, 3, Number::I64, (5, last));
            for (range, last, expect) in [
                (0..3, 70_000, &[5, 300, 70_000][..]),
                (1..2, 300, &[300]),
                (0..2, 300, &[5, 300]),
                (0..1, 5, &[5]),
            ] {
                let mut out = vec![0_u32; range.len()];
                columns(last).check(&range).unwrap();
                columns(last).copy(range.clone(), 0, &mut out);
                assert_eq!(out, expect);
                let mut narrow = vec![0_u16; range.len()];
                columns(last).copy(range, 5, &mut narrow);
                assert!(
                    narrow
                        .iter()
                        .zip(expect)
                        .all(|(found, column)| { *found == (column - 5) as u16 })
                );
            }
            let after_the_first = Columns::new(chunk, 3, Number::I64, (6, 70_000));
            assert!(
                after_the_first.check(&(0..3)).is_err() && after_the_first.check(&(1..3)).is_ok()
            );
            for (range, last) in [(0..3, 69_999), (0..3, 300), (0..3, 5), (0..2, 299), (0..2, 255)]
            {
                assert!(columns(last).check(&range).is_err(), "{last}");
            }
        }
    }
}
