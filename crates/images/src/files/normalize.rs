//! Spectra divided by their norm.

/// A norm of a pixel's spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Norm {
    /// Sum of the absolute values.
    L1,
    /// Square root of the sum of the squares.
    L2,
}

/// Divides the `channels` values of each pixel by their norm, as htc does after reading a cube.
///
/// The sums are those of `numpy.linalg.norm`, to the bit. The quotients then pass through
/// `numpy.nan_to_num`: NaN, which a spectrum of zeros gives, becomes 0, and infinity the largest
/// finite number of its sign. Values after the last whole pixel stay as they are.
pub fn normalize(cube: &mut [f32], channels: usize, norm: Norm) {
    for spectrum in cube.chunks_exact_mut(channels.max(1)) {
        let divisor = match norm {
            Norm::L1 => sum(spectrum, f32::abs),
            Norm::L2 => sum(spectrum, |value| value * value).sqrt(),
        };
        for value in spectrum {
            *value = finite(*value / divisor);
        }
    }
}

fn finite(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(f32::MIN, f32::MAX) }
}

/// Values that numpy adds without splitting them into halves.
const SUM_VALUES: usize = 128;

/// The sum of `term` of all values in the order of numpy's pairwise summation: eight sums side by
/// side for up to 128 values, and halves of more.
fn sum(values: &[f32], term: impl Fn(f32) -> f32 + Copy) -> f32 {
    if values.len() > SUM_VALUES {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % 8);
        return sum(first, term) + sum(second, term);
    }
    let (eights, rest) = values.as_chunks::<8>();
    let mut total = match eights.split_first() {
        None => 0.0,
        Some((first, eights)) => {
            let mut sums = first.map(term);
            for eight in eights {
                for (sum, value) in sums.iter_mut().zip(eight) {
                    *sum += term(*value);
                }
            }
            let pairs = [0, 2, 4, 6].map(|at| sums[at] + sums[at + 1]);
            (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
        }
    };
    for value in rest {
        total += term(*value);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{Norm, normalize};

    #[test]
    fn each_spectrum_is_divided_by_its_norm() {
        let mut cube = [3.0, -4.0, 0.0, 8.0];
        normalize(&mut cube, 2, Norm::L2);
        assert_eq!(cube, [0.6, -0.8, 0.0, 1.0]);
        let mut cube = [1.0, -3.0, 2.0, 2.0];
        normalize(&mut cube, 2, Norm::L1);
        assert_eq!(cube, [0.25, -0.75, 0.5, 0.5]);
        normalize(&mut cube, 0, Norm::L1);
        assert_eq!(cube, [1.0, -1.0, 1.0, 1.0], "a pixel has at least one channel");
    }

    #[test]
    fn what_is_not_finite_becomes_finite() {
        let mut cube = [0.0, 0.0, f32::INFINITY, 1.0, f32::NAN, 1.0];
        normalize(&mut cube, 2, Norm::L1);
        assert_eq!(cube, [0.0; 6]);
        // The squares vanish and the values do not.
        let mut cube = [1e-30, -1e-30];
        normalize(&mut cube, 2, Norm::L2);
        assert_eq!(cube, [f32::MAX, f32::MIN]);
    }

    #[test]
    fn any_number_of_channels_is_summed() {
        for channels in [1, 7, 8, 9, 100, 128, 129, 136, 300, 1000] {
            let mut cube: Vec<f32> = (0..channels).map(|at| (at % 16) as f32 - 8.0).collect();
            let norm: f32 = cube.iter().map(|value| value.abs()).sum();
            let expected: Vec<f32> = cube.iter().map(|value| value / norm).collect();
            normalize(&mut cube, channels, Norm::L1);
            assert_eq!(cube, expected, "{channels} channels");
        }
    }
}
