//! Least and greatest value, sum and number of nulls: of the values of a tile, and of all tiles.
//!
//! They follow libtiledb's arithmetic (`tile/tile_metadata_generator.cc`): value by value, so that
//! NaN and the order of additions give the same results; sums saturate, and stay so.

use crate::datatype::Number;

/// Statistics of values of one type. Without values, the least is the type's largest number and
/// the greatest its lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Statistics {
    /// The value's bytes, in the low bytes.
    pub(super) least: u64,
    /// As [`Self::least`].
    pub(super) greatest: u64,
    /// The bits of an i64, a u64 or an f64.
    pub(super) sum: u64,
    pub(super) n_nulls: u64,
}

/// A type of values.
pub(super) trait Value: Copy + PartialOrd {
    /// The type of its sums.
    type Sum: Sum;
    const LARGEST: Self;
    const LOWEST: Self;
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
    fn widened(self) -> Self::Sum;
}

/// A type of sums.
pub(super) trait Sum: Copy + Default {
    /// Adds, and returns whether the sum is at its limit, where it stays.
    fn add(&mut self, value: Self) -> bool;
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl Sum for i64 {
    fn add(&mut self, value: Self) -> bool {
        let sum = self.checked_add(value);
        *self = self.saturating_add(value);
        sum.is_none()
    }

    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }

    fn bits(self) -> u64 {
        self.cast_unsigned()
    }
}

impl Sum for u64 {
    fn add(&mut self, value: Self) -> bool {
        let sum = self.checked_add(value);
        *self = self.saturating_add(value);
        sum.is_none()
    }

    fn from_bits(bits: u64) -> Self {
        bits
    }

    fn bits(self) -> u64 {
        self
    }
}

impl Sum for f64 {
    fn add(&mut self, value: Self) -> bool {
        if (*self < 0.0) == (value < 0.0) && self.abs() > Self::MAX - value.abs() {
            *self = if *self < 0.0 { Self::MIN } else { Self::MAX };
            return true;
        }
        *self += value;
        false
    }

    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn bits(self) -> u64 {
        self.to_bits()
    }
}

macro_rules! value {
    ($($type:ty, $sum:ty, $from:expr, $bits:expr;)*) => {
        $(
            impl Value for $type {
                type Sum = $sum;
                const LARGEST: Self = <$type>::MAX;
                const LOWEST: Self = <$type>::MIN;
                fn from_bits(bits: u64) -> Self {
                    $from(bits)
                }
                fn bits(self) -> u64 {
                    $bits(self)
                }
                fn widened(self) -> Self::Sum {
                    self.into()
                }
            }
        )*
    };
}
value! {
    i8, i64, |bits| bits as i8, |value: i8| value.cast_unsigned().into();
    u8, u64, |bits| bits as u8, u64::from;
    i16, i64, |bits| bits as i16, |value: i16| value.cast_unsigned().into();
    u16, u64, |bits| bits as u16, u64::from;
    i32, i64, |bits| bits as i32, |value: i32| value.cast_unsigned().into();
    u32, u64, |bits| bits as u32, u64::from;
    i64, i64, |bits: u64| bits.cast_signed(), |value: i64| value.cast_unsigned();
    u64, u64, |bits| bits, |value| value;
    f32, f64, |bits| f32::from_bits(bits as u32), |value: f32| value.to_bits().into();
    f64, f64, f64::from_bits, f64::to_bits;
}

/// Calls a generic function for the type of a [`Number`].
macro_rules! for_number {
    ($number:expr, $function:ident($($argument:expr),*)) => {
        match $number {
            Number::I8 => $function::<i8>($($argument),*),
            Number::U8 => $function::<u8>($($argument),*),
            Number::I16 => $function::<i16>($($argument),*),
            Number::U16 => $function::<u16>($($argument),*),
            Number::I32 => $function::<i32>($($argument),*),
            Number::U32 => $function::<u32>($($argument),*),
            Number::I64 => $function::<i64>($($argument),*),
            Number::U64 => $function::<u64>($($argument),*),
            Number::F32 => $function::<f32>($($argument),*),
            Number::F64 => $function::<f64>($($argument),*),
        }
    };
}

impl Statistics {
    /// Returns the statistics of values without nulls.
    pub(super) fn from_values<V: Value>(values: impl IntoIterator<Item = V>) -> Self {
        let (mut least, mut greatest) = (V::LARGEST, V::LOWEST);
        let mut sum = V::Sum::default();
        let mut is_full = false;
        for value in values {
            // Not `min`: a NaN replaces what is there.
            least = if least < value { least } else { value };
            greatest = if greatest > value { greatest } else { value };
            if !is_full {
                is_full = sum.add(value.widened());
            }
        }
        Self { least: least.bits(), greatest: greatest.bits(), sum: sum.bits(), n_nulls: 0 }
    }

    /// Returns the statistics of the values of type `number` in `bytes`. If they may be null,
    /// `validity` has a byte for each, 0 for a null.
    pub(super) fn of_bytes(number: Number, bytes: &[u8], validity: Option<&[u8]>) -> Self {
        for_number!(number, of_bytes(bytes, number.size(), validity))
    }

    /// Adds up tiles of type `number`, each with its number of cells. A tile of nothing but nulls
    /// says nothing about values.
    pub(super) fn of_tiles(number: Number, tiles: &[(Self, u64)]) -> Self {
        for_number!(number, of_tiles(tiles))
    }
}

fn n_nulls(validity: Option<&[u8]>) -> u64 {
    validity.map_or(0, |validity| validity.iter().map(|valid| u64::from(*valid == 0)).sum())
}

fn of_bytes<V: Value>(bytes: &[u8], size: usize, validity: Option<&[u8]>) -> Statistics {
    let values = bytes.chunks_exact(size).map(|bytes| {
        V::from_bits(bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
    });
    match validity {
        None => Statistics::from_values(values),
        Some(validity) => {
            let valid = values.zip(validity).filter(|(_, valid)| **valid != 0);
            let statistics = Statistics::from_values(valid.map(|(value, _)| value));
            Statistics { n_nulls: n_nulls(Some(validity)), ..statistics }
        }
    }
}

fn of_tiles<V: Value>(tiles: &[(Statistics, u64)]) -> Statistics {
    let known = || tiles.iter().filter(|(tile, n_cells)| tile.n_nulls < *n_cells);
    let ends = |end: fn(&Statistics) -> u64| {
        Statistics::from_values(known().map(|(tile, _)| V::from_bits(end(tile))))
    };
    let mut sum = V::Sum::default();
    for (tile, _) in known() {
        if sum.add(V::Sum::from_bits(tile.sum)) {
            break;
        }
    }
    Statistics {
        least: ends(|tile| tile.least).least,
        greatest: ends(|tile| tile.greatest).greatest,
        sum: sum.bits(),
        n_nulls: tiles.iter().map(|(tile, _)| tile.n_nulls).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_at_their_limits() {
        assert_eq!(Statistics::from_values([i64::MAX, 1, -5]).sum, i64::MAX.cast_unsigned());
        assert_eq!(Statistics::from_values([u64::MAX, 1]).sum, u64::MAX);
        assert_eq!(Statistics::from_values([f64::INFINITY, -1.0]).sum, f64::MAX.to_bits());
        assert_eq!(Statistics::from_values([i8::MIN, i8::MAX, 3]).sum, 2);
    }

    #[test]
    fn nulls_count_and_say_nothing_else() {
        let bytes: Vec<u8> = [5_i16, -7, 9].iter().flat_map(|value| value.to_le_bytes()).collect();
        let found = Statistics::of_bytes(Number::I16, &bytes, Some(&[1, 0, 1]));
        assert_eq!(found, Statistics { least: 5, greatest: 9, sum: 14, n_nulls: 1 });
        let nothing = Statistics::of_bytes(Number::I16, &bytes, Some(&[0, 0, 0]));
        let all = Statistics::of_tiles(Number::I16, &[(found, 3), (nothing, 3)]);
        assert_eq!(all, Statistics { n_nulls: 4, ..found });
        assert_eq!(nothing.least, i16::MAX as u64);
        assert_eq!(nothing.greatest, u64::from(i16::MIN.cast_unsigned()));
    }
}
