//! Model of a run's memory. Most of it is known beforehand: that of batches, and the least that
//! blocks take.
//!
//! One buffer of the dense batches may stay untouched: the last is made only if there is time while
//! the first block is read, or if the consumer is late. Peaks of the same settings therefore differ
//! by a whole batch, so the number of batches in each peak is estimated before the fit.

use serde::{Deserialize, Serialize};

use super::least_squares::{Fit, dot, non_negative};
use super::observation::Observation;
use super::run_shape::RunShape;

/// Memory of all runs that is known before one is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownMemory {
    /// Expected bytes per row of a block.
    pub row_bytes: f64,
    /// Least bytes per row of a block.
    pub least_row_bytes: f64,
    /// Bytes of a batch that has the same size in all runs and is not part of a block; 0 for
    /// others, which count as part of the rest.
    pub batch_bytes: f64,
    /// Most batches in memory at once.
    pub n_batches: u64,
}

impl KnownMemory {
    /// Returns the number of batches in a run's peak.
    pub(crate) fn touched(&self, one: &Observation) -> u64 {
        if self.batch_bytes <= 0.0 {
            return self.n_batches;
        }
        let blocks = self.row_bytes * rows_held(&one.run);
        let batches = (one.peak_bytes - one.start_bytes - blocks) / self.batch_bytes;
        // Everything else takes tens of megabytes; if a batch is that small, the number hardly
        // matters.
        (batches as u64).clamp(self.n_batches.min(1), self.n_batches)
    }
}

/// Predicts the peak memory of a process in bytes from a run's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MemoryModel {
    pub(crate) known: KnownMemory,
    /// Bytes beyond the known ones. Units: a process, a row of the blocks in memory, and a row of
    /// the largest block.
    pub(crate) beside: Fit<3>,
}

impl MemoryModel {
    pub(crate) fn fit(known: KnownMemory, observed: &[Observation]) -> Self {
        let mut model = Self { known, beside: Fit { coefficients: [0.0; 3], error: 0.0 } };
        let rows: Vec<([f64; 3], f64)> = observed
            .iter()
            .map(|one| {
                let known = model.peak_bytes(&one.run, known.touched(one));
                (columns(&one.run), one.peak_bytes - known)
            })
            .collect();
        model.beside = non_negative(&rows);
        model
    }

    /// Returns the peak memory in bytes if `n_batches` batches are touched.
    pub(crate) fn peak_bytes(&self, run: &RunShape, n_batches: u64) -> f64 {
        let KnownMemory { least_row_bytes, batch_bytes, .. } = self.known;
        dot(&self.beside.coefficients, &columns(run))
            + least_row_bytes * rows_held(run)
            + batch_bytes * n_batches as f64
    }
}

/// Returns the rows of all blocks in memory at once.
fn rows_held(run: &RunShape) -> f64 {
    (run.block_rows() * run.blocks_made()) as f64
}

fn columns(run: &RunShape) -> [f64; 3] {
    [1.0, rows_held(run), run.block_rows() as f64]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use bench_run::BlockSpec;

    const KNOWN: KnownMemory = KnownMemory {
        row_bytes: 6196.0,
        least_row_bytes: 6196.0,
        batch_bytes: 245_760_000.0,
        n_batches: 3,
    };

    fn observed(
        total_rows: u64,
        block_rows: u64,
        prefetch_blocks: u64,
        start: f64,
        peak: f64,
    ) -> Observation {
        let spec = BlockSpec { chunk_rows: 64, chunks_per_block: block_rows / 64 };
        let run = RunShape::epoch(total_rows, spec, prefetch_blocks);
        let (start_bytes, peak_bytes) = (start * 1e6, peak * 1e6);
        Observation {
            run,
            elapsed: 1.0,
            read_secs: 0.5,
            peak_bytes,
            opening_bytes: 0.0,
            start_bytes,
            bytes_decoded: None,
        }
    }

    /// Measured peaks in MB for 60,000 and for 20,000 genes, some with an untouched batch. The
    /// model predicts blocks six times as large.
    #[test]
    fn measured_peaks_are_described_whether_a_batch_was_touched_or_not() {
        let many_genes = [
            (8192, 0, 977.0, 3),
            (8192, 0, 725.0, 2),
            (4096, 0, 703.0, 2),
            (16_384, 0, 1025.0, 3),
            (16_384, 0, 770.0, 2),
            (8192, 1, 1028.0, 3),
            (8192, 1, 778.0, 2),
        ];
        let check = |known: KnownMemory,
                     total_rows,
                     start,
                     rows: &[(u64, u64, f64, u64)],
                     largest: (u64, f64)| {
            let observed: Vec<Observation> = rows
                .iter()
                .map(|(rows, ahead, peak, _)| observed(total_rows, *rows, *ahead, start, *peak))
                .collect();
            let touched: Vec<u64> = observed.iter().map(|one| known.touched(one)).collect();
            assert_eq!(touched, rows.iter().map(|row| row.3).collect::<Vec<_>>());
            let model = MemoryModel::fit(known, &observed);
            assert!(model.beside.error < 0.1, "{model:?}");
            let (rows, peak) = largest;
            let run = self::observed(total_rows, rows, 0, start, peak).run;
            let ratio = model.peak_bytes(&run, known.n_batches) / (1e6 * peak);
            assert!((0.99..1.06).contains(&ratio), "{ratio} {model:?}");
        };
        check(KNOWN, 200_000, 153.0, &many_genes, (98_304, 1536.0));
        let fewer_genes = [
            (4096, 0, 349.0, 2),
            (4096, 0, 430.0, 3),
            (8192, 0, 456.0, 3),
            (8192, 0, 373.0, 2),
            (4096, 1, 374.0, 2),
            (4096, 1, 457.0, 3),
        ];
        let known = KnownMemory { batch_bytes: 81_920_000.0, ..KNOWN };
        check(known, 20_000, 150.0, &fewer_genes, (20_032, 529.0));
    }

    proptest! {
        /// No block is predicted to take much less than it must, whatever the noise.
        ///
        /// Any set of batches may be untouched.
        #[test]
        fn an_extrapolation_is_not_far_too_low(
            untouched in prop::collection::vec(any::<bool>(), 8), noise in prop::collection::vec(-8e6_f64..8e6, 8),
            of_row in 0.0_f64..3000.0, process in 2e7_f64..6e7,
        ) {
            let shapes = [(8192, 0), (8192, 0), (8192, 0), (2048, 0), (16_384, 0), (16_384, 0), (8192, 1), (8192, 1)];
            let truth = |run: &RunShape, n_batches: u64| {
                153e6 + process + (6196.0 + of_row) * rows_held(run) + 245.76e6 * n_batches as f64
            };
            let all: Vec<Observation> = shapes
                .iter()
                .zip(untouched.iter().zip(&noise))
                .map(|((rows, ahead), (untouched, noise))| {
                    let one = observed(200_000, *rows, *ahead, 153.0, 0.0);
                    Observation { peak_bytes: truth(&one.run, 3 - u64::from(*untouched)) + noise, ..one }
                })
                .collect();
            let model = MemoryModel::fit(KNOWN, &all);
            let run = observed(200_000, 200_000, 0, 153.0, 0.0).run;
            let (predicted, actual) = (model.peak_bytes(&run, 3), truth(&run, 3));
            prop_assert!(actual * 0.75 - 2000.0 < predicted, "{} {}", predicted, actual);
            prop_assert!(predicted < 1.35 * actual, "{} {}", predicted, actual);
        }
    }

    #[test]
    fn sparse_batches_are_a_part_of_the_rest() {
        let known = KnownMemory { batch_bytes: 0.0, ..KNOWN };
        let all =
            [observed(200_000, 4096, 0, 153.0, 247.0), observed(200_000, 4096, 1, 153.0, 268.0)];
        assert_eq!(all.map(|one| known.touched(&one)), [3, 3]);
        let model = MemoryModel::fit(known, &all);
        let found = model.peak_bytes(&all[0].run, 3);
        assert!((found - 247e6).abs() < 6e6, "{found}");
    }
}
