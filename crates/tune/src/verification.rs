//! Comparison of the proposal's run with its prediction.

use bench_report::Measured;
use serde::Serialize;

use crate::model::median;

/// Largest difference from the prediction that still counts as agreement.
///
/// A share of the speed, a share of the memory, and bits of entropy.
pub(super) const SPEED_WITHIN: f64 = 0.2;
pub(super) const MEMORY_WITHIN: f64 = 0.1;
pub(super) const ENTROPY_WITHIN: f64 = 0.05;

/// A predicted and a measured figure, and whether they agree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    pub(super) predicted: f64,
    pub(super) measured: f64,
    pub(super) within: bool,
}

impl Compared {
    /// Compares two figures; they agree within `share` of the prediction.
    fn by_share(predicted: f64, measured: f64, share: f64) -> Self {
        let within = (measured - predicted).abs() <= share * predicted;
        Self { predicted, measured, within }
    }

    /// Compares two figures that agree if the measured one is at most `share` above the prediction:
    /// less memory than predicted is no failure.
    fn by_most(predicted: f64, measured: f64, share: f64) -> Self {
        Self { predicted, measured, within: measured - predicted <= share * predicted }
    }

    /// Whether the measured figure is more than `share` below the prediction.
    pub(super) fn is_less(&self, share: f64) -> bool {
        self.predicted - self.measured > share * self.predicted
    }

    fn by_difference(predicted: f64, measured: f64, most: f64) -> Self {
        Self { predicted, measured, within: (measured - predicted).abs() <= most }
    }

    /// Returns measured over predicted.
    pub(super) fn ratio(&self) -> f64 {
        self.measured / self.predicted
    }
}

/// Figures of a run, either all predicted or all measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) samples_per_sec: f64,
    pub(super) peak_bytes: f64,
    /// `None` if no label is measured.
    pub(super) entropy_bits: Option<f64>,
}

impl Figures {
    /// Returns the figures of one measured run.
    pub(super) fn measured(measured: &Measured) -> Self {
        Self {
            samples_per_sec: measured.samples_per_sec.unwrap_or(0.0),
            peak_bytes: measured.max_mem.unwrap_or(0) as f64,
            entropy_bits: measured.order_entropy.first().and_then(|label| label.mean),
        }
    }

    /// Returns the median of each figure over several runs.
    fn typical(runs: &[Self]) -> Self {
        let median_of =
            |figure: fn(&Self) -> Option<f64>| median(runs.iter().filter_map(figure).collect());
        Self {
            samples_per_sec: median_of(|run| Some(run.samples_per_sec)).unwrap_or(0.0),
            peak_bytes: median_of(|run| Some(run.peak_bytes)).unwrap_or(0.0),
            entropy_bits: median_of(|run| run.entropy_bits),
        }
    }
}

/// Measured figures of the proposal beside the predicted ones.
///
/// A short run is repeated; the figures are then the medians.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Verification {
    pub(super) n_runs: usize,
    /// Rows that each run delivered.
    pub(super) n_rows: u64,
    /// Whether a run is a whole epoch and not the beginning of one.
    pub(super) is_whole: bool,
    pub(super) samples_per_sec: Compared,
    pub(super) peak_bytes: Compared,
    pub(super) entropy_bits: Option<Compared>,
    /// Whether every run stayed within the memory goal.
    pub(super) fits: bool,
}

impl Verification {
    pub(super) fn new(
        predicted: &Figures,
        runs: &[Figures],
        (n_rows, is_whole): (u64, bool),
        memory_bytes: f64,
    ) -> Self {
        let measured = Figures::typical(runs);
        let entropy = predicted.entropy_bits.zip(measured.entropy_bits);
        Self {
            n_runs: runs.len(),
            n_rows,
            is_whole,
            samples_per_sec: Compared::by_share(
                predicted.samples_per_sec,
                measured.samples_per_sec,
                SPEED_WITHIN,
            ),
            peak_bytes: Compared::by_most(predicted.peak_bytes, measured.peak_bytes, MEMORY_WITHIN),
            entropy_bits: entropy
                .map(|(one, other)| Compared::by_difference(one, other, ENTROPY_WITHIN)),
            fits: runs.iter().all(|run| run.peak_bytes <= memory_bytes),
        }
    }

    /// Whether speed and entropy agree with the prediction, memory agrees or is less, and every
    /// run fits the memory goal.
    pub(super) fn holds(&self) -> bool {
        let entropy = self.entropy_bits.is_none_or(|entropy| entropy.within);
        self.samples_per_sec.within && self.peak_bytes.within && entropy && self.fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREDICTED: Figures =
        Figures { samples_per_sec: 1000.0, peak_bytes: 100.0, entropy_bits: Some(3.0) };

    #[track_caller]
    fn check(measured: Figures, memory_bytes: f64, holds: bool) {
        let found = Verification::new(&PREDICTED, &[measured], (10, true), memory_bytes);
        assert_eq!(found.holds(), holds, "{found:?}");
    }

    #[test]
    fn each_figure_has_its_own_bounds() {
        check(PREDICTED, 100.0, true);
        check(PREDICTED, 99.0, false);
        for (rate, holds) in [(800.0, true), (799.0, false), (1200.0, true), (1201.0, false)] {
            check(Figures { samples_per_sec: rate, ..PREDICTED }, 1e9, holds);
        }
        for (bytes, holds) in [(10.0, true), (90.0, true), (110.0, true), (111.0, false)] {
            check(Figures { peak_bytes: bytes, ..PREDICTED }, 1e9, holds);
        }
        for (bits, holds) in [(2.96, true), (2.94, false), (3.04, true), (3.06, false)] {
            check(Figures { entropy_bits: Some(bits), ..PREDICTED }, 1e9, holds);
        }
        check(Figures { entropy_bits: None, ..PREDICTED }, 1e9, true);
    }

    #[test]
    fn several_runs_are_as_good_as_their_median_and_as_large_as_the_largest() {
        let runs = [0.5, 1.0, 1.1].map(|factor| Figures {
            samples_per_sec: 1000.0 * factor,
            peak_bytes: 100.0 * factor,
            entropy_bits: Some(3.0),
        });
        let verified = |memory| Verification::new(&PREDICTED, &runs, (10, true), memory);
        assert!(verified(111.0).holds() && !verified(109.0).holds(), "{:?}", verified(109.0));
        assert_eq!((verified(111.0).n_runs, verified(111.0).peak_bytes.measured), (3, 100.0));
    }
}
