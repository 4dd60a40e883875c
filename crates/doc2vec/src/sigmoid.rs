//! The logistic function of eight numbers at once, without a table.
//!
//! word2vec and gensim look it up in a table of 1,000 values between -6 and 6, and skip words with
//! a score outside. Computing it takes as long as eight look-ups, has no steps, and skips nothing.

use std::f32::consts::{LN_2, LOG2_E};

use bytemuck::cast;
use wide::{f32x8, i32x8};

/// Scores beyond this are limited to it: `exp(-30)` is less than the rounding error of 1.
const LARGEST: f32 = 30.0;

/// Adding and subtracting 1.5 * 2^23 rounds to the nearest whole number.
const ROUND: f32 = 12_582_912.0;

/// Coefficients of Taylor's series of `2^x`, from that of `x`: `ln(2)^k / k!`. For at most 1/2 the
/// next term is below 1.3e-7.
const SERIES: [f32; 6] =
    [LN_2, 0.240_226_5, 0.055_504_11, 0.009_618_129, 0.001_333_355_8, 0.000_154_035_3];

/// `1 / (1 + exp(-x))` of each number, with a relative error below 3e-6. A NaN remains NaN.
#[inline]
pub(crate) fn sigmoid(scores: f32x8) -> f32x8 {
    let splat = f32x8::splat;
    // In this order the processor's instructions pass a NaN on.
    let x = splat(-LARGEST).fast_max(splat(LARGEST).fast_min(-scores));
    // exp(x) is 2^n 2^f with a whole n and |f| <= 1/2.
    let power = x * splat(LOG2_E);
    let shifted = power + splat(ROUND);
    let f = power - (shifted - splat(ROUND));
    // Pairs of terms do not wait for each other: each target waits for its scores, and the next
    // target for it.
    let square = f * f;
    let [one, two, three, four, five, six] = SERIES.map(splat);
    let low = splat(1.0) + one * f;
    let middle = two + three * f;
    let high = (four + five * f) + six * square;
    let series = low + square * (middle + square * high);
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
                assert!((found / exact - 1.0).abs() < 3e-6, "{x}: {found}, {exact}");
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
