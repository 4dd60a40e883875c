//! Stored numbers as f32: the nearest one, or the equal one with a mark where there is none.

/// How stored numbers become f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Narrowing {
    /// The nearest f32, ties to even; infinite beyond f32's range.
    #[default]
    Nearest,
    /// The equal f32, or [`INEXACT`] if there is none.
    Exact,
}

/// Stands for a stored number that f32 does not have: a NaN that no conversion makes. A reader that
/// finds it in its result fails.
pub const INEXACT: f32 = f32::from_bits(0x7fc5_0fa5);

/// Numbers that f32 may not have.
pub trait Narrow: Copy {
    /// The number as f32.
    fn narrow(self, narrowing: Narrowing) -> f32;
}

/// Bits of an f32's significand, the leading one included: f32 represents every whole number of
/// this many bits.
const SIGNIFICANT_BITS: u32 = f32::MANTISSA_DIGITS;

macro_rules! integers {
    ($($integer:ty),+) => {$(
        impl Narrow for $integer {
            #[inline]
            fn narrow(self, narrowing: Narrowing) -> f32 {
                let size = u64::from(self.abs_diff(0));
                let is_exact = size >> SIGNIFICANT_BITS == 0
                    || (size >> size.trailing_zeros()) >> SIGNIFICANT_BITS == 0;
                if is_exact || narrowing == Narrowing::Nearest { self as f32 } else { INEXACT }
            }
        }
    )+};
}

integers!(i32, u32, i64, u64);

impl Narrow for f64 {
    #[inline]
    fn narrow(self, narrowing: Narrowing) -> f32 {
        let nearest = self as f32;
        match narrowing {
            Narrowing::Nearest => nearest,
            // A NaN is one, whatever its bits: those of `INEXACT` must not come from data.
            Narrowing::Exact if self.is_nan() => f32::NAN,
            Narrowing::Exact if Self::from(nearest) == self => nearest,
            Narrowing::Exact => INEXACT,
        }
    }
}

/// The position of the first [`INEXACT`] value, if there is one.
pub fn first_inexact(values: &[f32]) -> Option<usize> {
    let is_inexact = |value: &f32| value.to_bits() == INEXACT.to_bits();
    // Without an early end, the first loop compares several values at a time.
    let any = values.iter().fold(false, |any, value| any | is_inexact(value));
    any.then(|| values.iter().position(is_inexact)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the number is an f32 that converts back to it.
    fn check_integer(number: i128, narrow: impl Fn(Narrowing) -> f32) {
        assert_eq!(narrow(Narrowing::Nearest), number as f32, "{number}");
        let expect = if (number as f32) as i128 == number { number as f32 } else { INEXACT };
        assert_eq!(narrow(Narrowing::Exact).to_bits(), expect.to_bits(), "{number}");
    }

    #[test]
    fn an_integer_is_exact_if_it_converts_back() {
        let ends = (0..64).flat_map(|shift| [-2, -1, 0, 1, 2].map(|by| (1_i128 << shift) + by));
        let steps = (0..2000).map(|step| step * 0x1_2345_6789_abcd % (1 << 40));
        let sizes: Vec<i128> = ends.chain(steps).chain([i128::from(u64::MAX)]).collect();
        for number in sizes.iter().flat_map(|size| [*size, -size]) {
            if let Ok(narrowed) = i32::try_from(number) {
                check_integer(number, |narrowing| narrowed.narrow(narrowing));
            }
            if let Ok(narrowed) = u32::try_from(number) {
                check_integer(number, |narrowing| narrowed.narrow(narrowing));
            }
            if let Ok(narrowed) = i64::try_from(number) {
                check_integer(number, |narrowing| narrowed.narrow(narrowing));
            }
            if let Ok(narrowed) = u64::try_from(number) {
                check_integer(number, |narrowing| narrowed.narrow(narrowing));
            }
        }
    }

    #[test]
    fn a_float64_is_exact_if_it_is_a_float32() {
        let exact = [0.0, -0.0, 1.0, -0.5, 16_777_216.0, 1e-45_f32, f32::MIN_POSITIVE, f32::MAX];
        for value in exact.into_iter().chain([f32::INFINITY, f32::NEG_INFINITY]) {
            for narrowing in [Narrowing::Nearest, Narrowing::Exact] {
                assert_eq!(f64::from(value).narrow(narrowing).to_bits(), value.to_bits());
            }
        }
        for value in [0.1, 16_777_217.0, 1e300, -1e-300, f64::from(f32::MAX) * 1.000_001] {
            assert_eq!(value.narrow(Narrowing::Nearest), value as f32);
            assert_eq!(value.narrow(Narrowing::Exact).to_bits(), INEXACT.to_bits(), "{value}");
        }
        // A stored NaN with the bits of the mark is exact.
        let nan = f64::from(INEXACT);
        assert!(nan.is_nan() && first_inexact(&[nan.narrow(Narrowing::Exact)]).is_none());
    }

    #[test]
    fn the_first_inexact_value_is_found() {
        let mut values = vec![f32::NAN; 100];
        assert_eq!(first_inexact(&values), None);
        (values[37], values[90]) = (INEXACT, INEXACT);
        assert_eq!(first_inexact(&values), Some(37));
        assert_eq!(first_inexact(&[]), None);
    }
}
