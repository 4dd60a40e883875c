//! Training on batches with rows of a fixed number of lanes: the inside of a
//! [`Trainer`](crate::Trainer) once its dimension is known.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::document::{Rules, WordRows};
use crate::documents::Documents;
use crate::error::Error;
use crate::merge::{Steps, merge};
use crate::part::Begin;
use crate::random::{Decision, generator};
use crate::row::{Row, random_rows, unpadded};
use crate::spec::{Model, WindowRule};
use crate::target::Loss;
use crate::threads::{TrainingThread, Work};

/// A trainer without the number of lanes in its type.
pub(crate) trait BatchTraining: Debug + Send {
    /// Trains on a checked batch. `begins` has one entry for each of its documents.
    fn train(&mut self, batch: &Documents<'_>, begins: &[Begin]) -> Result<Loss, Error>;

    /// Numbers of vectors, row by row, without padding.
    fn vectors(&self, of: Vectors) -> Vec<f32>;
}

/// Which vectors of a trainer are meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Vectors {
    Documents,
    /// Input vectors of words; none for bags of words.
    Inputs,
    /// Output vectors of words.
    Outputs,
}

/// Training with rows of `N` times 8 numbers.
#[derive(Debug)]
pub(crate) struct LaneTraining<const N: usize> {
    rules: Arc<Rules>,
    documents: Vec<Row<N>>,
    /// For each document, the last round that trained on it, counted from 1.
    last_rounds: Vec<u64>,
    n_rounds: u64,
    /// Largest number of targets in a round, of all threads together, but for one document. None
    /// if the caller trains alone and nothing is merged.
    round_targets: Option<u64>,
    /// The merged word vectors. Empty if the caller trains alone.
    merged: WordRows<N>,
    /// Occurrences of each word in the last round of several threads.
    occurrences: Vec<u32>,
    /// A part and word vectors for each thread, the caller's first.
    seats: Vec<Work<N>>,
    /// Threads of all seats except the first.
    threads: Vec<TrainingThread<N>>,
}

impl<const N: usize> LaneTraining<N> {
    /// Makes the first vectors and starts the threads.
    pub(crate) fn new(
        rules: Rules,
        n_documents: usize,
        n_words: usize,
        words_per_merge: u64,
    ) -> Result<Self, Error> {
        let rules = Arc::new(rules);
        let (seed, dimension) = (rules.spec.seed, rules.spec.dimension);
        let n_inputs = if rules.spec.model == Model::BagOfWords { 0 } else { n_words };
        let words = WordRows {
            inputs: random_rows(n_inputs, dimension, &mut generator(seed, Decision::Words)),
            outputs: vec![Row::ZERO; n_words],
        };
        let documents =
            random_rows(n_documents, dimension, &mut generator(seed, Decision::Documents));
        let n_threads = rules.spec.threads;
        let threads = (1..n_threads)
            .map(|number| TrainingThread::start(number, Arc::clone(&rules)))
            .collect::<Result<Vec<_>, _>>()?;
        let is_alone = n_threads == 1;
        let seat = |_| Work { words: words.clone(), ..Work::default() };
        Ok(Self {
            seats: (0..n_threads).map(seat).collect(),
            merged: if is_alone { WordRows::default() } else { words },
            round_targets: (!is_alone).then(|| words_per_merge.saturating_mul(n_threads as u64)),
            last_rounds: vec![0; n_documents],
            occurrences: vec![0; n_words],
            n_rounds: 0,
            rules,
            documents,
            threads,
        })
    }

    /// The end of the round that begins with document `begin` of a batch: after `limit` targets, or
    /// before a document that comes a second time.
    fn round_end(
        &mut self,
        batch: &Documents<'_>,
        begins: &[Begin],
        begin: usize,
        limit: u64,
    ) -> usize {
        self.n_rounds += 1;
        let mut n_targets = 0;
        for (at, row) in batch.documents.iter().enumerate().skip(begin) {
            let last_round = &mut self.last_rounds[*row as usize];
            if limit <= n_targets || *last_round == self.n_rounds {
                return at;
            }
            *last_round = self.n_rounds;
            n_targets += begins[at].n_targets;
        }
        batch.documents.len()
    }

    /// Trains on documents of which none comes twice.
    fn train_round(
        &mut self,
        batch: &Documents<'_>,
        begins: &[Begin],
        round: Range<usize>,
    ) -> Result<Loss, Error> {
        let parts = split(begins, round, self.seats.len());
        let fill = |seat: &mut Work<N>, documents: &[Row<N>], part: &Range<usize>| {
            seat.part.fill(batch, part.clone(), &begins[part.clone()], documents);
        };
        for ((thread, seat), part) in self.threads.iter().zip(&mut self.seats[1..]).zip(&parts[1..])
        {
            if !part.is_empty() {
                fill(seat, &self.documents, part);
                thread.begin(std::mem::take(seat))?;
            }
        }
        fill(&mut self.seats[0], &self.documents, &parts[0]);
        let Work { part, words } = &mut self.seats[0];
        part.train(&self.rules, words);
        for ((thread, seat), part) in self.threads.iter().zip(&mut self.seats[1..]).zip(&parts[1..])
        {
            if !part.is_empty() {
                *seat = thread.finish()?;
            }
        }
        let mut loss = Loss::default();
        for (seat, _) in self.seats.iter().zip(&parts).filter(|(_, part)| !part.is_empty()) {
            seat.part.store(&mut self.documents);
            loss.add_other(seat.part.loss);
        }
        if !self.threads.is_empty() {
            let trained = self.seats.iter().zip(&parts).filter(|(_, part)| !part.is_empty());
            self.occurrences.fill(0);
            for (seat, _) in trained {
                for (sum, of_part) in self.occurrences.iter_mut().zip(&seat.part.occurrences) {
                    *sum += of_part;
                }
            }
            self.merge(&loss);
        }
        Ok(loss)
    }

    /// Merges the word vectors of a round.
    fn merge(&mut self, loss: &Loss) {
        let spec = &self.rules.spec;
        let context = match spec.model {
            Model::BagOfWords => 0.0,
            Model::DistributedMemory { window, window_rule: WindowRule::Whole, .. } => {
                2.0 * window as f64
            }
            Model::DistributedMemory { window, window_rule: WindowRule::Reduced, .. } => {
                window as f64 + 1.0
            }
        };
        let steps = Steps {
            rate: f64::from(spec.alpha),
            occurrences: &self.occurrences,
            context,
            n_noise: loss.n_targets as f64 * spec.negatives as f64,
            noise: &self.rules.noise_probabilities,
        };
        let mut copies: Vec<_> = self.seats.iter_mut().map(|seat| &mut seat.words).collect();
        merge(&mut self.merged, &mut copies, &steps);
    }
}

impl<const N: usize> BatchTraining for LaneTraining<N> {
    fn train(&mut self, batch: &Documents<'_>, begins: &[Begin]) -> Result<Loss, Error> {
        let n_targets: u64 = begins.iter().map(|begin| begin.n_targets).sum();
        // Rounds of equal length, so that the last one is not tiny.
        let limit = self
            .round_targets
            .map_or(u64::MAX, |most| n_targets.div_ceil(n_targets.div_ceil(most).max(1)).max(1));
        let mut loss = Loss::default();
        let mut begin = 0;
        while begin < batch.documents.len() {
            let end = self.round_end(batch, begins, begin, limit);
            loss.add_other(self.train_round(batch, begins, begin..end)?);
            begin = end;
        }
        Ok(loss)
    }

    fn vectors(&self, of: Vectors) -> Vec<f32> {
        let words = if self.threads.is_empty() { &self.seats[0].words } else { &self.merged };
        let rows = match of {
            Vectors::Documents => &self.documents,
            Vectors::Inputs => &words.inputs,
            Vectors::Outputs => &words.outputs,
        };
        unpadded(rows, self.rules.spec.dimension)
    }
}

/// Splits documents into consecutive parts of about equally many targets.
fn split(begins: &[Begin], documents: Range<usize>, n_parts: usize) -> Vec<Range<usize>> {
    let total: u64 = begins[documents.clone()].iter().map(|begin| begin.n_targets).sum();
    let mut parts = Vec::with_capacity(n_parts);
    let (mut at, mut n_targets) = (documents.start, 0);
    for part in 1..=n_parts as u64 {
        let begin = at;
        // A document belongs to the part in which its middle target lies.
        let is_inside = |n_targets: u64, more: u64| {
            u128::from(2 * n_targets + more) * n_parts as u128
                <= 2 * u128::from(part) * u128::from(total)
        };
        while at < documents.end && is_inside(n_targets, begins[at].n_targets) {
            n_targets += begins[at].n_targets;
            at += 1;
        }
        parts.push(begin..at);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn begins(n_targets: &[u64]) -> Vec<Begin> {
        n_targets.iter().map(|of| Begin { number: 0, rate: 0.0, n_targets: *of }).collect()
    }

    proptest! {
        #[test]
        fn parts_follow_each_other_and_are_about_equal(
            n_targets in prop::collection::vec(0_u64..50, 0..40),
            n_parts in 1_usize..6,
        ) {
            let parts = split(&begins(&n_targets), 0..n_targets.len(), n_parts);
            prop_assert_eq!(parts.len(), n_parts);
            let mut end = 0;
            let mean = n_targets.iter().sum::<u64>() as f64 / n_parts as f64;
            for part in parts {
                prop_assert_eq!(part.start, end);
                end = part.end;
                let size: u64 = n_targets[part].iter().sum();
                prop_assert!((size as f64 - mean).abs() <= 50.0);
            }
            prop_assert_eq!(end, n_targets.len());
        }
    }
}
