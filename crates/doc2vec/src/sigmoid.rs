//! The logistic function of eight numbers at once, without a table.
//!
//! word2vec and gensim look it up in a table of 1,000 values between -6 and 6, and skip words with
//! a score outside. Computing it takes as long as eight look-ups, has no steps, and skips nothing.

use bytemuck::cast;
use wide::{f32x8, i32x8};

/// Scores beyond this are limited to it: `exp(-30)` is less than the rounding error of 1.
const LARGEST: f32 = 30.0;

/// Adding and subtracting 1.5 * 2^23 rounds to the nearest whole number.
const ROUND: f32 = 12_582_912.0;

/// The natural logarithm of 2 in two parts. The first has few bits, so that products with small
/// whole numbers are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// `1 / (1 + exp(-x))` of each number, with a relative error below 1e-6. A NaN remains NaN.
#[inline(always)]
pub(crate) fn sigmoid(scores: f32x8) -> f32x8 {
    let splat = f32x8::splat;
    // In this order the processor's instructions pass a NaN on.
    let x = splat(-LARGEST).fast_max(splat(LARGEST).fast_min(-scores));
    // exp(x) is 2^n exp(r) with a whole n and |r| <= ln(2) / 2.
    let shifted = x * splat(std::f32::consts::LOG2_E) + splat(ROUND);
    let n = shifted - splat(ROUND);
    let r = (x - n * splat(LN_2_HIGH)) - n * splat(LN_2_LOW);
    // Taylor's series of exp; its next term is below 1.3e-7.
    let mut series = splat(1.0 / 720.0);
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + splat(coefficient);
    }
    // The lowest bits of the shifted number are n: moved into the exponent they multiply by 2^n.
    let exponent: i32x8 = cast(shifted);
    let bits: i32x8 = cast(series);
    let exp: f32x8 = cast(bits + (exponent << 23));
    splat(1.0) / (splat(1.0) + exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_logistic_function() {
        for step in -35_000..35_000 {
            let x = step as f32 / 1000.0;
            let found = f64::from(sigmoid(f32x8::splat(x)).to_array()[3]);
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            if x.abs() <= LARGEST {
                assert!((found / exact - 1.0).abs() < 1e-6, "{x}: {found}, {exact}");
            } else {
                assert!((found - exact).abs() < 1e-12, "{x}: {found}, {exact}");
            }
        }
    }

    #[test]
    fn extreme_scores_have_a_value_and_nan_stays() {
        let scores =
            [f32::MAX, f32::INFINITY, f32::MIN, f32::NEG_INFINITY, 0.0, -0.0, 1e-30, f32::NAN];
        let found = sigmoid(f32x8::new(scores)).to_array();
        assert_eq!(found[..2], [1.0; 2]);
        assert!(found[2..4].iter().all(|value| (0.0..1e-12).contains(value)), "{found:?}");
        assert_eq!(found[4..7], [0.5; 3]);
        assert!(found[7].is_nan());
    }
}
