//! Means over the hypergeometric distribution, term by term.

/// Terms less likely than the mode by this factor do not change a mean in 64 bits.
const NEGLIGIBLE: f64 = 1e-16;

/// The mean of `f` over the number of marked items among `draws` draws without replacement from
/// `population` items, `marked` of which are marked.
///
/// Sums about ten standard deviations of terms. `marked` and `draws` are at most `population`.
pub(super) fn mean(population: u64, marked: u64, draws: u64, mut f: impl FnMut(u64) -> f64) -> f64 {
    let least = (marked + draws).saturating_sub(population);
    let most = marked.min(draws);
    let mode = (u128::from(draws + 1) * u128::from(marked + 1) / u128::from(population + 2)) as u64;
    let mode = mode.clamp(least, most);
    // Likelihoods relative to the mode's, each computed from its neighbour.
    let unmarked_left = |x: u64| (population - marked + x - draws) as f64;
    let (mut total, mut sum) = (1.0, f(mode));
    let mut weight = 1.0;
    for x in mode..most {
        weight *=
            (marked - x) as f64 * (draws - x) as f64 / ((x + 1) as f64 * (unmarked_left(x) + 1.0));
        if weight < NEGLIGIBLE {
            break;
        }
        total += weight;
        sum += weight * f(x + 1);
    }
    weight = 1.0;
    for x in (least + 1..=mode).rev() {
        weight *= x as f64 * unmarked_left(x) / ((marked - x + 1) as f64 * (draws - x + 1) as f64);
        if weight < NEGLIGIBLE {
            break;
        }
        total += weight;
        sum += weight * f(x - 1);
    }
    sum / total
}

/// Interpolates `f` linearly at `at`, between the adjacent whole numbers.
pub(super) fn between(at: f64, mut f: impl FnMut(u64) -> f64) -> f64 {
    let (below, part) = (at.floor(), at.fract());
    let value = f(below as u64);
    if part < 1e-9 { value } else { value + part * (f(below as u64 + 1) - value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_two_moments_are_those_of_the_textbook(
            population in 1_u64..5000,
            parts in (0.0_f64..=1.0, 0.0_f64..=1.0),
        ) {
            let count = |part: f64| (part * population as f64) as u64;
            let (marked, draws) = (count(parts.0), count(parts.1));
            let expected = draws as f64 * marked as f64 / population as f64;
            let found = mean(population, marked, draws, |x| x as f64);
            prop_assert!((found - expected).abs() < 1e-9 * (1.0 + expected), "{} {}", found, expected);
            let share = marked as f64 / population as f64;
            let variance = expected * (1.0 - share) * (population - draws) as f64
                / (population - 1).max(1) as f64;
            let found = mean(population, marked, draws, |x| (x as f64 - expected).powi(2));
            prop_assert!((found - variance).abs() < 1e-8 * (1.0 + variance), "{} {}", found, variance);
        }

        #[test]
        fn small_ones_are_counted_out(population in 1_u64..9, marked in 0_u64..9, draws in 0_u64..9) {
            let (marked, draws) = (marked.min(population), draws.min(population));
            // Every set of draws as the bits of a number; the first rows are marked.
            let sets = (0_u32..1 << population).filter(|set| u64::from(set.count_ones()) == draws);
            let found: Vec<f64> =
                sets.map(|set| f64::from((set & ((1 << marked) - 1)).count_ones()).exp2()).collect();
            let expected = found.iter().sum::<f64>() / found.len() as f64;
            let found = mean(population, marked, draws, |x| (x as f64).exp2());
            prop_assert!((found - expected).abs() < 1e-9 * expected);
        }
    }

    #[test]
    fn lines_are_drawn_between_whole_numbers() {
        let square = |x: u64| (x * x) as f64;
        assert_eq!([2.0, 2.25, 3.0].map(|at| between(at, square)), [4.0, 5.25, 9.0]);
    }
}
