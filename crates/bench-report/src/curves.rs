//! Curves over the batches of a point's epochs: the distribution of the consumer's waits, and its
//! busy share over the progress of an epoch.

use serde::Serialize;

use crate::{EpochRecord, Status, percentile};

/// Percents at which the distribution of waits is kept: denser near the slow end.
pub(crate) const WAIT_PERCENTS: [f64; 25] = [
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 91.0, 92.0, 93.0,
    94.0, 95.0, 96.0, 97.0, 98.0, 99.0, 99.5, 99.9, 100.0,
];

/// Largest number of parts that the progress of an epoch is cut into.
const MAX_PARTS: usize = 40;

/// The waits of all batches of successful epochs at [`WAIT_PERCENTS`], in seconds; `None` if no
/// waits were recorded.
pub(crate) fn waits(epochs: &[&EpochRecord]) -> Option<Vec<f64>> {
    let mut waits: Vec<f64> =
        well(epochs).flat_map(|epoch| &epoch.measured.batch_wait_secs).copied().collect();
    waits.sort_by(f64::total_cmp);
    WAIT_PERCENTS.iter().map(|&percent| percentile(&waits, percent)).collect()
}

/// Share of all waiting that falls on the slowest tenth of the batches, 0 to 1; `None` if nothing
/// was waited for.
pub(crate) fn slowest_tenth_share(waits: &[f64]) -> Option<f64> {
    let mut sorted = waits.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all: f64 = sorted.iter().sum();
    let slowest: f64 = sorted.iter().rev().take(sorted.len().div_ceil(10)).sum();
    (all > 0.0).then(|| slowest / all)
}

/// Busy share of the consumer over the progress of an epoch, one number per equally long run of
/// batches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct BusyCurve {
    /// Mean over the epochs.
    pub(crate) mean: Vec<f64>,
    /// Least busy and busiest epoch.
    pub(crate) least: Vec<f64>,
    pub(crate) most: Vec<f64>,
    /// Number of epochs.
    pub(crate) n: usize,
}

/// Computes the curve; `None` if batches were not timed one by one, like in older results.
pub(crate) fn busy(epochs: &[&EpochRecord]) -> Option<BusyCurve> {
    let timed: Vec<(&[f64], &[f64])> = well(epochs)
        .map(|epoch| &epoch.measured)
        .map(|one| (one.batch_wait_secs.as_slice(), one.batch_consume_secs.as_slice()))
        .filter(|(waits, consumes)| !waits.is_empty() && waits.len() == consumes.len())
        .collect();
    let n_parts = timed.iter().map(|(waits, _)| waits.len()).min()?.min(MAX_PARTS);
    let shares: Vec<Vec<f64>> = timed
        .iter()
        .map(|(waits, consumes)| {
            (0..n_parts)
                .map(|part| {
                    let bounds = [part, part + 1].map(|end| end * waits.len() / n_parts);
                    let sum = |secs: &[f64]| secs[bounds[0]..bounds[1]].iter().sum::<f64>();
                    let (waited, busy) = (sum(waits), sum(consumes));
                    if waited + busy > 0.0 { busy / (waited + busy) } else { 1.0 }
                })
                .collect()
        })
        .collect();
    let over = |fold: fn(f64, f64) -> f64, start: f64| -> Vec<f64> {
        let at = |part| shares.iter().map(|share: &Vec<f64>| share[part]).fold(start, fold);
        (0..n_parts).map(at).collect()
    };
    let n = shares.len();
    Some(BusyCurve {
        mean: over(|a, b| a + b, 0.0).into_iter().map(|sum| sum / n as f64).collect(),
        least: over(f64::min, 1.0),
        most: over(f64::max, 0.0),
        n,
    })
}

fn well<'a>(epochs: &'a [&EpochRecord]) -> impl Iterator<Item = &'a EpochRecord> {
    epochs.iter().copied().filter(|epoch| epoch.measured.status == Status::Ok)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture;

    fn timed(waits: &[f64], consumes: &[f64]) -> EpochRecord {
        let mut epoch = fixture::epoch("native", (64, 16), 1.0);
        epoch.measured.batch_wait_secs = waits.to_vec();
        epoch.measured.batch_consume_secs = consumes.to_vec();
        epoch
    }

    #[test]
    fn the_slowest_tenth_is_rounded_up_to_whole_batches() {
        assert_eq!(slowest_tenth_share(&[1.0, 7.0]), Some(0.875));
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(slowest_tenth_share(&ten), Some(10.0 / 55.0));
        assert_eq!(slowest_tenth_share(&[0.0; 3]), None);
        assert_eq!(slowest_tenth_share(&[]), None);
    }

    #[test]
    fn the_busy_share_is_that_of_time_and_has_a_range_over_epochs() {
        let (one, other) = (timed(&[1.0, 0.0], &[1.0, 1.0]), timed(&[3.0, 1.0], &[1.0, 1.0]));
        let curve = busy(&[&one, &other]).unwrap();
        assert_eq!((curve.mean, curve.n), (vec![0.375, 0.75], 2));
        assert_eq!((curve.least, curve.most), (vec![0.25, 0.5], vec![0.5, 1.0]));
    }

    #[test]
    fn without_times_of_each_batch_there_is_no_curve() {
        let mut failed = timed(&[1.0], &[1.0]);
        failed.measured.status = Status::Oom;
        for epochs in [&[][..], &[&timed(&[1.0], &[])], &[&failed]] {
            assert_eq!(busy(epochs), None);
        }
        assert_eq!(waits(&[&failed]), None);
    }

    proptest! {
        #[test]
        fn curves_keep_their_bounds(
            epochs in prop::collection::vec(prop::collection::vec((0.0_f64..9.0, 0.0_f64..9.0), 1..100), 1..5),
        ) {
            let epochs: Vec<EpochRecord> = epochs
                .iter()
                .map(|batches| batches.iter().copied().unzip())
                .map(|(waits, consumes): (Vec<f64>, Vec<f64>)| timed(&waits, &consumes))
                .collect();
            let all: Vec<&EpochRecord> = epochs.iter().collect();
            let curve = busy(&all).unwrap();
            prop_assert!(curve.mean.len() <= MAX_PARTS && curve.n == epochs.len());
            for ((least, mean), most) in curve.least.iter().zip(&curve.mean).zip(&curve.most) {
                prop_assert!(0.0 <= *least && *least <= mean + 1e-12 && *mean <= most + 1e-12 && *most <= 1.0);
            }
            let waits = waits(&all).unwrap();
            prop_assert!(waits.len() == WAIT_PERCENTS.len() && waits.is_sorted());
            let share = slowest_tenth_share(&epochs[0].measured.batch_wait_secs);
            prop_assert!(share.is_none_or(|share| (0.0999..=1.0 + 1e-12).contains(&share)));
        }
    }
}
