//! Values kept as whole numbers of few bits.

/// The type of a count: a whole number of 8 or 16 bits.
pub trait Count: Copy + Into<f32> {
    /// The number in the lowest bits.
    fn from_lowest_bits(bits: u32) -> Self;
}

impl Count for u8 {
    #[inline]
    fn from_lowest_bits(bits: u32) -> Self {
        bits as Self
    }
}

impl Count for u16 {
    #[inline]
    fn from_lowest_bits(bits: u32) -> Self {
        bits as Self
    }
}

/// Writes values as whole numbers. Returns whether all of them are numbers that the type has.
#[inline]
pub fn pack_counts<C: Count>(values: impl Iterator<Item = f32>, out: &mut [C]) -> bool {
    let mut lost = 0;
    for (to, value) in out.iter_mut().zip(values) {
        // A whole number up to 2^16 added to 2^23 stands in the sum's lower bits; others are found
        // by comparing.
        *to = C::from_lowest_bits((value + 8_388_608.0).to_bits());
        let kept: f32 = (*to).into();
        lost |= kept.to_bits() ^ value.to_bits();
    }
    lost == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_count_does_not_fit() {
        for (value, fits) in [
            (0.0, [true; 2]),
            (255.0, [true; 2]),
            (256.0, [false, true]),
            (65_535.0, [false, true]),
            (-0.0, [false; 2]),
            (0.5, [false; 2]),
            (-1.0, [false; 2]),
            (65_536.0, [false; 2]),
            (8_388_608.0, [false; 2]),
            (f32::NAN, [false; 2]),
            (f32::INFINITY, [false; 2]),
        ] {
            let values = [3.0, value];
            assert_eq!(pack_counts(values.into_iter(), &mut [0_u8; 2]), fits[0], "{value}");
            assert_eq!(pack_counts(values.into_iter(), &mut [0_u16; 2]), fits[1], "{value}");
        }
    }
}
