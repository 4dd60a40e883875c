//! Merging of the word vectors that threads trained apart.

use crate::document::WordRows;
use crate::row::Row;

/// Product of learning rate and number of steps up to which changes of a row may be added up.
///
/// Each thread's change was made without the others'. As long as it is small, their sum is what one
/// thread would have changed after all of them. Beyond, all threads have gone the same way, and
/// their sum goes too far. Measured on 256 4-mers, PV-DM: sums up to a product of 5 found as many
/// relatives as one thread (eight threads, 0.80), and diverged at 19. Means are stable at any, but
/// found fewer (eight threads at 19, 0.49).
const STEPS: f64 = 4.0;

/// Expected steps of each row in a round.
#[derive(Debug)]
pub(crate) struct Steps<'a> {
    /// Learning rate at the beginning of training: a rule that changes on the way does harm.
    pub(crate) rate: f64,
    /// Occurrences of each word in the round, with padding.
    pub(crate) occurrences: &'a [u32],
    /// Context words of a target.
    pub(crate) context: f64,
    /// Noise words of the round.
    pub(crate) n_noise: f64,
    /// Probability of each word as noise.
    pub(crate) noise: &'a [f64],
}

/// Moves each row of `base` by the changes of those copies that changed it, and makes all copies
/// equal to it. Changes after few steps are added up, those after many are averaged.
pub(crate) fn merge<const N: usize>(
    base: &mut WordRows<N>,
    copies: &mut [&mut WordRows<N>],
    steps: &Steps<'_>,
) {
    let WordRows { inputs, outputs } = base;
    let Steps { rate, occurrences, context, n_noise, noise } = *steps;
    let of_input = |row: usize| rate * context * f64::from(occurrences[row]);
    merge_rows(inputs, copies, |words| &mut words.inputs, of_input);
    let of_output = |row: usize| rate * (f64::from(occurrences[row]) + n_noise * noise[row]);
    merge_rows(outputs, copies, |words| &mut words.outputs, of_output);
}

fn merge_rows<const N: usize>(
    base: &mut [Row<N>],
    copies: &mut [&mut WordRows<N>],
    rows_of: impl Fn(&mut WordRows<N>) -> &mut Vec<Row<N>>,
    steps_of: impl Fn(usize) -> f64,
) {
    let mut copies: Vec<&mut Vec<Row<N>>> = copies.iter_mut().map(|words| rows_of(words)).collect();
    for (idx, base) in base.iter_mut().enumerate() {
        let (mut change, mut n_changed) = (Row::ZERO, 0.0);
        for copy in &copies {
            if copy[idx] != *base {
                change.add(&copy[idx]);
                change.add_scaled(-1.0, base);
                n_changed += 1.0;
            }
        }
        if 0.0 < n_changed {
            // No steps were expected of a row: the maximum chooses 1 over infinity.
            let part = (STEPS / steps_of(idx)).powi(2).min(1.0).max(1.0 / n_changed);
            base.add_scaled(part as f32, &change);
            for copy in &mut copies {
                copy[idx] = *base;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wide::f32x8;

    use super::*;

    fn row(value: f32) -> Row<1> {
        Row([f32x8::splat(value)])
    }

    fn words(inputs: [f32; 3], output: f32) -> WordRows<1> {
        WordRows { inputs: inputs.map(row).to_vec(), outputs: vec![row(output)] }
    }

    fn steps<'a>(rate: f64, occurrences: &'a [u32], noise: &'a [f64]) -> Steps<'a> {
        Steps { rate, occurrences, context: 2.0, n_noise: 10.0, noise }
    }

    #[test]
    fn few_steps_are_added_up_and_many_averaged() {
        let noise = [0.5, 0.5, 0.0];
        // With a rate of 0.01, ten occurrences are 0.2 steps as input and 0.15 as output; with 1,
        // 20 and 15; with 0.25, 5 and 3.75.
        let check = |rate: f64, input: f32, output: f32| {
            let mut base = words([1.0, 1.0, 1.0], 0.0);
            let (mut a, mut b) = (words([2.0, 1.0, 1.0], 4.0), words([4.0, 3.0, 1.0], 2.0));
            merge(&mut base, &mut [&mut a, &mut b], &steps(rate, &[10, 10, 0], &noise));
            for merged in [base, a, b] {
                // Only one thread changed row 1: all of its change is kept.
                let [first, second, third] = [merged.inputs[0], merged.inputs[1], merged.inputs[2]];
                assert!((first.numbers().next().unwrap() - input).abs() < 1e-5, "{first:?}");
                assert_eq!((second, third), (row(3.0), row(1.0)));
                assert!((merged.outputs[0].numbers().next().unwrap() - output).abs() < 1e-5);
            }
        };
        check(0.01, 5.0, 6.0);
        check(1.0, 3.0, 3.0);
        check(0.25, 1.0 + 4.0 * 0.64, 6.0);
    }
}
