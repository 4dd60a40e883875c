//! Predictions corrected by the model's error at settings that were run.
//!
//! A model of a dozen coefficients, fitted to very different runs, misses each of them a little. At
//! settings that were run the error is known, and it changes slowly with the settings. So the error
//! at a candidate is estimated as the mean error over all runs, weighted by the inverse square of
//! the distance. At settings that were run, the model only extrapolates from the beginning of an
//! epoch to its end.

use super::cost::CostModel;
use super::memory::KnownMemory;
use super::observation::{Observation, median, repeats};
use super::run_shape::RunShape;

/// Distance between reading ahead and not. A factor of two in chunk or block rows is a distance of
/// 1.
const PREFETCH_DISTANCE: f64 = 2.0;
/// Distance for a factor of two in the rows read. It is small: runs at the same settings decide,
/// and among them those of the nearest length.
const LENGTH_DISTANCE: f64 = 0.01;
/// Added to squared distances, so that runs at the same settings have a large but finite weight.
const NO_DISTANCE: f64 = 1e-9;

/// The model and its errors at settings that were run.
#[derive(Clone, Debug)]
pub(crate) struct Anchored {
    pub(crate) model: CostModel,
    missed: Vec<Missed>,
    /// Peak memory of the process before the epoch, in bytes: no settings need less. 0 if the
    /// epoch's peak was always higher.
    pub(crate) opening_bytes: f64,
}

/// The model's error at settings that were run.
#[derive(Clone, Copy, Debug)]
struct Missed {
    run: RunShape,
    /// Natural logarithm of measured over modelled; `peak` likewise.
    elapsed: f64,
    peak: f64,
    /// Dense batches that the run touched, as estimated from its peak.
    n_batches: u64,
}

impl Anchored {
    /// Fits the model to these runs and keeps its errors.
    pub(crate) fn fit(observed: &[Observation], known: KnownMemory) -> Self {
        let model = CostModel::fit(observed, known);
        let missed = repeats(observed)
            .iter()
            .filter_map(|group| Missed::from_group(group, &model))
            .collect();
        let opening_bytes = observed.iter().map(|one| one.opening_bytes).fold(0.0, f64::max);
        Self { model, missed, opening_bytes }
    }

    /// Returns the seconds from the request for the first batch to the end.
    pub(crate) fn elapsed(&self, run: &RunShape) -> f64 {
        self.model.elapsed(run) * self.correction(run, |missed| missed.elapsed)
    }

    /// Returns the rows per second, including the first batch.
    pub(crate) fn samples_per_sec(&self, run: &RunShape) -> f64 {
        run.n_rows() as f64 / self.elapsed(run).max(f64::MIN_POSITIVE)
    }

    /// Returns the peak memory in bytes, and the bytes that batches not yet counted may add.
    ///
    /// At settings that were run, the peak counts the batches that those runs touched; elsewhere
    /// all.
    pub(crate) fn peak_bytes(&self, run: &RunShape) -> (f64, f64) {
        let all = self.model.memory.known.n_batches;
        let had = self.at(run).map(|missed| missed.n_batches as f64).collect();
        let expected = median(had).map_or(all, |n_batches| n_batches.ceil() as u64);
        let correction = self.correction(run, |missed| missed.peak);
        let peak = |n_batches| {
            let epoch = self.model.memory.peak_bytes(run, n_batches) * correction;
            epoch.max(self.opening_bytes)
        };
        (peak(expected), peak(all) - peak(expected))
    }

    /// Returns the errors at the settings of a run.
    fn at(&self, run: &RunShape) -> impl Iterator<Item = &Missed> {
        let (spec, ahead) = (run.spec, run.prefetch_blocks);
        self.missed
            .iter()
            .filter(move |missed| missed.run.spec == spec && missed.run.prefetch_blocks == ahead)
    }

    /// Returns the expected ratio of measured to modelled.
    fn correction(&self, run: &RunShape, figure: impl Fn(&Missed) -> f64) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for missed in &self.missed {
            let weight = 1.0 / (square_distance(&missed.run, run) + NO_DISTANCE);
            sum += weight * figure(missed);
            weights += weight;
        }
        if weights == 0.0 { 1.0 } else { (sum / weights).exp() }
    }
}

impl Missed {
    /// Returns the error over runs of the same shape. `None` if a logarithm is not finite.
    fn from_group(group: &[Observation], model: &CostModel) -> Option<Self> {
        let run = group.first()?.run;
        let logarithm = |measured: f64, modelled: f64| {
            Some((measured / modelled).ln()).filter(|missed| missed.is_finite())
        };
        let touched = |one: &Observation| model.memory.known.touched(one);
        let elapsed = median(group.iter().map(|one| one.elapsed).collect())?;
        let peaks = group.iter().filter_map(|one| {
            logarithm(one.peak_bytes, model.memory.peak_bytes(&run, touched(one)))
        });
        let batches = median(group.iter().map(|one| touched(one) as f64).collect())?;
        Some(Self {
            run,
            elapsed: logarithm(elapsed, model.elapsed(&run))?,
            peak: peaks.reduce(f64::max)?,
            n_batches: batches.ceil() as u64,
        })
    }
}

fn square_distance(one: &RunShape, other: &RunShape) -> f64 {
    let ratio = |one: u64, other: u64| (one as f64 / other as f64).log2();
    let chunks = ratio(one.spec.chunk_rows, other.spec.chunk_rows);
    let blocks = ratio(one.block_rows(), other.block_rows());
    let is_same = one.prefetch_blocks == other.prefetch_blocks;
    let ahead = if is_same { 0.0 } else { PREFETCH_DISTANCE };
    let length = LENGTH_DISTANCE * ratio(one.n_rows(), other.n_rows());
    chunks.powi(2) + blocks.powi(2) + length.powi(2) + ahead * ahead
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Work;
    use crate::model::planted::{observed, planted};
    use bench_run::BlockSpec;

    fn run(chunks_per_block: u64, chunk_rows: u64, most_blocks: u64) -> RunShape {
        let spec = BlockSpec { chunk_rows, chunks_per_block };
        RunShape { total_rows: 200_000, spec, prefetch_blocks: 0, most_blocks }
    }

    fn all() -> (CostModel, Vec<Observation>) {
        let machine =
            planted(Work::Rows { unit_rows: 128.0 }, [0.0, 1e-5, 1e-5, 0.0], [0.01, 1e-5], 0.5);
        let runs = [
            run(128, 64, 8),
            run(512, 16, 6),
            run(16, 512, 8),
            run(32, 64, 12),
            run(512, 64, 3),
            run(32, 1024, 3),
        ];
        (machine, runs.iter().map(|run| observed(&machine, *run)).collect())
    }

    #[test]
    fn settings_that_were_run_are_as_measured_and_their_neighbours_nearly() {
        let (machine, mut observed) = all();
        let known = machine.memory.known;
        // One run differs from anything that the model can describe.
        let far = run(512, 256, 2);
        let mut odd = crate::model::planted::observed(&machine, far);
        odd.elapsed *= 1.5;
        odd.peak_bytes += 1e8;
        observed.push(odd);
        let anchored = Anchored::fit(&observed, known);
        let near = |found: f64, expected: f64, share: f64| (found / expected - 1.0).abs() < share;
        assert!(near(anchored.elapsed(&far), odd.elapsed, 1e-3));
        assert!(near(anchored.peak_bytes(&far).0, odd.peak_bytes, 1e-3));
        let whole = RunShape { most_blocks: u64::MAX, ..far };
        assert!(near(anchored.elapsed(&whole), 1.5 * machine.elapsed(&whole), 0.1));
        // The correction grows as the distance shrinks.
        let ratio = |run: RunShape| anchored.elapsed(&run) / anchored.model.elapsed(&run);
        let [here, beside, away] = [run(512, 256, 2), run(1024, 128, 2), run(64, 4, 2)].map(ratio);
        assert!(away < beside && beside < here, "{here} {beside} {away}");
    }

    #[test]
    fn a_batch_that_no_run_touched_may_be_added() {
        let (machine, mut observed) = all();
        let known = machine.memory.known;
        observed[0].peak_bytes -= known.batch_bytes;
        let anchored = Anchored::fit(&observed, known);
        let [without, with] =
            [run(128, 64, 8), run(512, 16, 6)].map(|run| anchored.peak_bytes(&run));
        assert!(
            (without.0 - observed[0].peak_bytes).abs() < 1e6
                && (without.1 - known.batch_bytes).abs() < 1e7,
            "{without:?}"
        );
        assert!((with.0 - observed[1].peak_bytes).abs() < 1e6 && with.1 == 0.0, "{with:?}");
        assert_eq!(anchored.peak_bytes(&run(1024, 64, 2)).1, 0.0);
    }

    #[test]
    fn no_settings_need_less_than_opening_does() {
        let (machine, observed) = all();
        let fit = |opening_bytes: f64| {
            let observed: Vec<Observation> =
                observed.iter().map(|one| Observation { opening_bytes, ..*one }).collect();
            Anchored::fit(&observed, machine.memory.known)
        };
        let (without, with) = (fit(0.0), fit(1.1e9));
        assert_eq!((without.opening_bytes, with.opening_bytes), (0.0, 1.1e9));
        let (small, large) = (run(32, 64, 12), run(2000, 100, 1));
        assert_eq!(with.peak_bytes(&small), (1.1e9, 0.0));
        assert!(without.peak_bytes(&small).0 < 1.1e9);
        // A run that needs more than opening is not affected.
        assert_eq!(with.peak_bytes(&large), without.peak_bytes(&large));
        assert!(1.1e9 < with.peak_bytes(&large).0);
    }
}
