//! One step of negative sampling: scores of a target and its noise words, and their gradients.
//!
//! Mikolov et al. 2013, equation 4: with the vector `h` that predicts, the loss of a target is
//! `-log s(o_0 h) - sum of log s(-o_k h)`. `o_0` is the output vector of the target, `o_k` that of
//! noise word `k`, and `s` the logistic function. The gradient by `o_k` is `(s(o_k h) - y_k) h`, by
//! `h` the sum of `(s(o_k h) - y_k) o_k`, with `y_0 = 1` and `y_k = 0` for noise.

#![expect(clippy::inline_always, reason = "a call for each target costs 7 %: measured")]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use wide::f32x8;

use crate::document::Words;
use crate::row::{LANES, Row, sums};
use crate::sigmoid::sigmoid;
use shuffle::AliasTable;

/// The loss is measured at one of this many targets.
const MEASURED: u64 = 8;

/// The target and its noise words, drawn into memory that is used again.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// The target first.
    words: Vec<u32>,
}

impl Candidates {
    pub(crate) fn new(negatives: usize) -> Self {
        Self { words: vec![0; negatives + 1] }
    }

    #[inline(always)]
    pub(crate) fn draw(&mut self, target: u32, noise: &AliasTable, generator: &mut ChaCha8Rng) {
        self.words[0] = target;
        for word in &mut self.words[1..] {
            *word = noise.draw(generator.next_u64());
        }
    }

    /// Trains the output vectors of the candidates to score `hidden`, unless they stay as they are,
    /// and returns the change of `hidden` that lowers the loss: minus the gradient times `rate`. A
    /// noise word that is the target is skipped, as in word2vec.
    ///
    /// All scores of up to eight candidates are computed before the first vector changes, so that
    /// they do not wait for each other.
    #[inline(always)]
    pub(crate) fn learn<const N: usize>(
        &self,
        hidden: &Row<N>,
        trained: &mut impl Words<N>,
        rate: f32,
        loss: &mut Loss,
    ) -> Row<N> {
        let mut change = Row::ZERO;
        let target = self.words[0];
        let is_measured = loss.begin();
        // Only the first word of the first group should be predicted.
        let mut expected = f32x8::new([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        for (group, words) in self.words.chunks(LANES).enumerate() {
            let mut products = [f32x8::ZERO; LANES];
            for (products, word) in products.iter_mut().zip(words) {
                *products = trained.rows().outputs[*word as usize].products(hidden);
            }
            let errors = expected - sigmoid(sums(&products));
            let factors = (errors * f32x8::splat(rate)).to_array();
            let is_counted = |idx: usize| words[idx] != target || (group, idx) == (0, 0);
            for (idx, (word, factor)) in words.iter().zip(factors).enumerate() {
                if !is_counted(idx) {
                    continue;
                }
                if let Some(rows) = trained.rows_mut() {
                    let output = &mut rows.outputs[*word as usize];
                    change.add_scaled(factor, output);
                    output.add_scaled(factor, hidden);
                } else {
                    change.add_scaled(factor, &trained.rows().outputs[*word as usize]);
                }
            }
            if is_measured {
                let counted = (0..words.len()).filter(|idx| is_counted(*idx));
                loss.add(counted.map(|idx| errors.to_array()[idx]));
            }
            expected = f32x8::ZERO;
        }
        change
    }
}

/// The sum of the loss over every eighth target.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Loss {
    /// Targets that were trained on.
    pub(crate) n_targets: u64,
    /// Targets whose loss was measured.
    pub(crate) n_measured: u64,
    /// Sum of their losses, in nats.
    pub(crate) sum: f64,
}

impl Loss {
    /// Counts a target, and returns whether its loss should be measured.
    #[inline]
    fn begin(&mut self) -> bool {
        let is_measured = self.n_targets.is_multiple_of(MEASURED);
        self.n_targets += 1;
        self.n_measured += u64::from(is_measured);
        is_measured
    }

    /// Adds the losses of up to eight candidates with these differences between expected and
    /// predicted probability.
    fn add(&mut self, errors: impl Iterator<Item = f32>) {
        // A probability may round to 0; the product of eight of the smallest is a normal number.
        // One that is NaN stays NaN, because training diverged; `f32::max` would lose it.
        let likelihood = |error: f32| {
            let likelihood = 1.0 - error.abs();
            f64::from(if likelihood < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { likelihood })
        };
        self.sum -= libm::log(errors.map(likelihood).product());
    }

    pub(crate) fn add_other(&mut self, other: Self) {
        self.n_targets += other.n_targets;
        self.n_measured += other.n_measured;
        self.sum += other.sum;
    }
}
