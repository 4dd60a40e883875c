//! Model of the seconds and the memory of a run. docs/tune.md derives it.

use super::decoding::{Decoding, unit_sizes};
use super::least_squares::{Fit, dot, non_negative};
use super::memory::{KnownMemory, MemoryModel};
use super::observation::{Observation, typical};
use super::run_shape::{BlockRows, RunShape};

/// Quantity that the decoding time is proportional to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// Bytes decoded, which the reader counts.
    Bytes(Decoding),
    /// Rows of the pieces touched, for a reader that does not count bytes.
    Rows {
        /// Rows per piece.
        unit_rows: f64,
    },
}

impl Work {
    fn of_block(&self, run: &RunShape, block: BlockRows) -> f64 {
        match self {
            Self::Bytes(decoding) => decoding.of_block(run, block),
            Self::Rows { unit_rows } => run.touched_rows(block.rows, *unit_rows),
        }
    }
}

/// Predicts seconds and bytes of a run from its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostModel {
    pub(crate) work: Work,
    /// Seconds of reading. Units: a chunk, a row, a unit of [`Work`], and a row of memory that is
    /// written for the first time.
    pub(crate) read: Fit<4>,
    /// Seconds of cutting batches per epoch and per row.
    pub(crate) cut: Fit<2>,
    /// Seconds lost per second that reading and cutting run at once. 0 if they do not disturb each
    /// other, 1 if they might as well take turns.
    pub(crate) overlap: f64,
    pub(crate) memory: MemoryModel,
}

/// Upper bound of [`CostModel::overlap`]: beyond taking turns by more than this is noise.
const MOST_OVERLAP: f64 = 1.25;

impl CostModel {
    /// Fits the model to these runs.
    ///
    /// Runs without prefetching separate reading from cutting; runs with it show how much the two
    /// disturb each other.
    pub(crate) fn fit(observed: &[Observation], known: KnownMemory) -> Self {
        let times = typical(observed);
        let alone: Vec<&Observation> =
            times.iter().filter(|one| one.run.prefetch_blocks == 0).collect();
        let (work, read) = fit_reading(&alone);
        let cut: Vec<([f64; 2], f64)> = alone
            .iter()
            .map(|one| ([1.0, one.run.n_rows() as f64], one.elapsed - one.read_secs))
            .collect();
        let memory = MemoryModel::fit(known, observed);
        let mut model = Self { work, read, cut: non_negative(&cut), overlap: 0.0, memory };
        model.overlap = model.fit_overlap(&times);
        model
    }

    /// Fits the share of simultaneous time that is lost: least squares over the runs that read
    /// ahead.
    ///
    /// Returns 1 if there are none.
    fn fit_overlap(&self, observed: &[Observation]) -> f64 {
        let (mut product, mut square) = (0.0, 0.0);
        for one in observed.iter().filter(|one| one.run.prefetch_blocks != 0) {
            let Stages { base, beside } = self.stages(&one.run);
            let share = beside / one.elapsed;
            product += share * (one.elapsed - base) / one.elapsed;
            square += share * share;
        }
        if square == 0.0 { 1.0 } else { (product / square).clamp(0.0, MOST_OVERLAP) }
    }

    /// Returns the seconds from the request for the first batch to the end.
    pub(crate) fn elapsed(&self, run: &RunShape) -> f64 {
        let Stages { base, beside } = self.stages(run);
        base + self.overlap * beside
    }

    /// Returns the stages' seconds if each had the machine to itself, and how long two run at once.
    fn stages(&self, run: &RunShape) -> Stages {
        let [start, of_row] = self.cut.coefficients;
        let mut stages = Stages { base: start, beside: 0.0 };
        let mut before: Option<f64> = None;
        for (idx, block) in (0..).zip(run.blocks()) {
            let read = dot(&self.read.coefficients, &read_columns(run, &self.work, idx, block));
            match before.filter(|_| 0 < run.prefetch_blocks) {
                // The previous block is cut while this one is read.
                Some(cut) => stages.both(read, cut),
                None => stages.base += before.unwrap_or(0.0) + read,
            }
            before = Some(of_row * block.rows as f64);
        }
        let last = before.unwrap_or(0.0);
        stages.base += last;
        if 0 < run.prefetch_blocks && run.is_cut_off() {
            // The loader reads one more block meanwhile, which is never used.
            let columns = read_columns(run, &self.work, run.n_blocks(), next_block(run));
            stages.beside += last.min(dot(&self.read.coefficients, &columns));
        }
        stages
    }
}

/// Returns the block after the run's last one.
fn next_block(run: &RunShape) -> BlockRows {
    let before = run.n_rows();
    BlockRows { before, rows: run.block_rows().min(run.total_rows - before) }
}

/// Seconds of an epoch's stages.
#[derive(Clone, Copy, Debug)]
struct Stages {
    /// Seconds of stages that run alone, plus the longer of two that run at once.
    base: f64,
    /// Seconds of the shorter of two that run at once.
    beside: f64,
}

impl Stages {
    fn both(&mut self, one: f64, other: f64) {
        self.base += one.max(other);
        self.beside += one.min(other);
    }
}

fn read_columns(run: &RunShape, work: &Work, idx: u64, block: BlockRows) -> [f64; 4] {
    let rows = block.rows as f64;
    let fresh = if idx < run.blocks_made() { rows } else { 0.0 };
    [rows / run.spec.chunk_rows as f64, rows, work.of_block(run, block), fresh]
}

/// Returns the sums of the columns over all blocks of a run.
pub(crate) fn all_read_columns(run: &RunShape, work: &Work) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for (idx, block) in (0..).zip(run.blocks()) {
        for (sum, value) in sums.iter_mut().zip(read_columns(run, work, idx, block)) {
            *sum += value;
        }
    }
    sums
}

/// Fits the reading time of runs without prefetching.
///
/// Uses decoded bytes if every run counted them, otherwise the piece size that fits best.
fn fit_reading(alone: &[&Observation]) -> (Work, Fit<4>) {
    let counted: Option<Vec<(RunShape, f64)>> =
        alone.iter().map(|one| Some((one.run, one.bytes_decoded?))).collect();
    let fit = |work: Work, measured: bool| {
        let rows: Vec<([f64; 4], f64)> = alone
            .iter()
            .map(|one| {
                let mut columns = all_read_columns(&one.run, &work);
                if let Some(bytes) = one.bytes_decoded.filter(|_| measured) {
                    columns[2] = bytes;
                }
                (columns, one.read_secs)
            })
            .collect();
        non_negative(&rows)
    };
    if let Some(counted) = counted {
        let work = Work::Bytes(Decoding::fit(&counted));
        return (work, fit(work, true));
    }
    let first = Work::Rows { unit_rows: 1.0 };
    let mut best = (first, fit(first, false));
    for unit_rows in unit_sizes().skip(1) {
        let work = Work::Rows { unit_rows };
        let found = fit(work, false);
        if found.error < best.1.error {
            best = (work, found);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::planted::{observed, planted};
    use bench_run::BlockSpec;

    fn run(chunks: u64, chunk_rows: u64, prefetch_blocks: u64, most_blocks: u64) -> RunShape {
        let spec = BlockSpec { chunk_rows, chunks_per_block: chunks };
        RunShape { total_rows: 200_000, spec, prefetch_blocks, most_blocks }
    }

    fn probes() -> Vec<RunShape> {
        vec![
            run(128, 64, 0, 4),
            run(512, 16, 0, 4),
            run(16, 512, 0, 4),
            run(32, 64, 0, 8),
            run(512, 64, 0, 2),
            run(32, 1024, 0, 2),
            run(256, 64, 1, 3),
            run(16, 1024, 1, 3),
        ]
    }

    #[track_caller]
    fn same(found: f64, expected: f64, share: f64) -> Result<(), TestCaseError> {
        prop_assert!((found - expected).abs() <= share * expected, "{} {}", found, expected);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn a_planted_machine_is_found(
            per_row in 1e-6_f64..2e-5, per_byte in 1e-10_f64..3e-10, per_chunk in 0.0_f64..1e-4,
            cut in 5e-6_f64..3e-5, overlap in 0.0_f64..1.0, unit in 6_u32..40,
        ) {
            let unit_rows = 2.0_f64.powf(f64::from(unit) / 4.0);
            let decoding = Decoding { unit_rows, tile_rows: 2048.0, bytes: [1.5e4, 2e4], error: 0.0 };
            let read = [per_chunk, per_row, per_byte, 1e-6];
            let machine = planted(Work::Bytes(decoding), read, [0.05, cut], overlap);
            let model = CostModel::fit(&probes().iter().map(|run| observed(&machine, *run)).collect::<Vec<_>>(), machine.memory.known);
            prop_assert!((model.overlap - overlap).abs() < 0.02, "{:?}", model);
            for (chunks, chunk_rows, prefetch) in [(1024, 64, 0), (1024, 64, 1), (4096, 8, 0), (64, 256, 1)] {
                let epoch = run(chunks, chunk_rows, prefetch, u64::MAX);
                same(model.elapsed(&epoch), machine.elapsed(&epoch), 0.02)?;
            }
        }

        /// Without a count of bytes, reading times determine the piece size.
        #[test]
        fn pieces_are_found_without_a_count(per_unit in 1e-6_f64..1e-5, unit in 20_u32..44) {
            let work = Work::Rows { unit_rows: 2.0_f64.powf(f64::from(unit) / 4.0) };
            let machine = planted(work, [0.0, 1e-6, per_unit, 0.0], [0.01, 1e-5], 0.5);
            let model = CostModel::fit(&probes().iter().map(|run| observed(&machine, *run)).collect::<Vec<_>>(), machine.memory.known);
            let epoch = run(1024, 64, 1, u64::MAX);
            same(model.elapsed(&epoch), machine.elapsed(&epoch), 0.02)?;
        }
    }

    #[test]
    fn stages_that_take_turns_add_up_and_those_beside_each_other_overlap() {
        let work = Work::Rows { unit_rows: 1.0 };
        // Reading takes 2 s per block of 100 rows, cutting 1 s.
        let machine = planted(work, [0.0, 0.02, 0.0, 0.0], [0.0, 0.01], 0.0);
        let spec = BlockSpec { chunk_rows: 10, chunks_per_block: 10 };
        let epoch = |prefetch| RunShape::epoch(300, spec, prefetch);
        assert!((machine.elapsed(&epoch(0)) - 9.0).abs() < 1e-9);
        assert!((machine.elapsed(&epoch(1)) - 7.0).abs() < 1e-9);
        let turns = CostModel { overlap: 1.0, ..machine };
        assert!((turns.elapsed(&epoch(1)) - 9.0).abs() < 1e-9);
        // In a run that is cut off, the last block is cut while an unused one is read.
        let begun = RunShape { most_blocks: 2, ..epoch(1) };
        assert!((machine.elapsed(&begun) - 5.0).abs() < 1e-9);
        assert!((turns.elapsed(&begun) - 7.0).abs() < 1e-9);
    }
}
