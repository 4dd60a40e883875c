//! Shape of a run, derived from its settings: its blocks, and the pieces of X that they touch.

use bench_run::BlockSpec;

/// An epoch or the beginning of one, on data of `total_rows` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunShape {
    /// Rows of the whole data set; not 0.
    pub(crate) total_rows: u64,
    pub(crate) spec: BlockSpec,
    pub(crate) prefetch_blocks: u64,
    /// Blocks after which the run ends; the epoch may end before.
    pub(crate) most_blocks: u64,
}

/// Settings of a run to measure, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) spec: BlockSpec,
    pub(crate) prefetch_blocks: u64,
    /// Blocks after which the run ends.
    pub(crate) most_blocks: u64,
}

/// A block of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRows {
    /// Rows in all blocks before this one.
    pub(crate) before: u64,
    pub(crate) rows: u64,
}

impl RunShape {
    /// Returns the shape of a whole epoch.
    pub(crate) fn epoch(total_rows: u64, spec: BlockSpec, prefetch_blocks: u64) -> Self {
        Self { total_rows, spec, prefetch_blocks, most_blocks: u64::MAX }
    }

    /// Returns the rows of the largest block.
    pub(crate) fn block_rows(&self) -> u64 {
        self.spec.block_rows().min(self.total_rows)
    }

    pub(crate) fn n_blocks(&self) -> u64 {
        self.total_rows.div_ceil(self.block_rows()).min(self.most_blocks)
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockRows> + '_ {
        let size = self.block_rows();
        (0..self.n_blocks()).map(move |idx| {
            let before = idx * size;
            BlockRows { before, rows: size.min(self.total_rows - before) }
        })
    }

    /// Returns the rows that the run reads.
    pub(crate) fn n_rows(&self) -> u64 {
        self.n_blocks().saturating_mul(self.block_rows()).min(self.total_rows)
    }

    /// Whether the run ends before the epoch does.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.n_rows() < self.total_rows
    }

    /// Returns the blocks in memory at once, each of which is allocated.
    pub(crate) fn blocks_made(&self) -> u64 {
        let all = self.total_rows.div_ceil(self.block_rows());
        all.min(self.prefetch_blocks + 1)
    }

    /// Returns the rows of all pieces that random chunks of `n_rows` rows in total touch.
    ///
    /// X consists of pieces of `unit_rows` consecutive rows.
    ///
    /// On average `1 + (unit_rows - 1) / chunk_rows` chunks meet a piece. If a share `share` of all
    /// chunks is drawn, none of them is drawn with a chance of `(1 - share)` to that power.
    pub(crate) fn touched_rows(&self, n_rows: u64, unit_rows: f64) -> f64 {
        let total = self.total_rows as f64;
        let meets = 1.0 + (unit_rows - 1.0).max(0.0) / self.spec.chunk_rows as f64;
        let share = (n_rows as f64 / total).min(1.0);
        total * (1.0 - (1.0 - share).powf(meets))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use shuffle::PlanSpec;

    use super::*;

    fn gcd(one: u64, other: u64) -> u64 {
        if other == 0 { one } else { gcd(other, one % other) }
    }

    fn shape(total_rows: u64, chunks_per_block: u64, chunk_rows: u64) -> RunShape {
        RunShape::epoch(total_rows, BlockSpec { chunk_rows, chunks_per_block }, 1)
    }

    #[test]
    fn blocks_are_those_of_an_epoch() {
        let run = shape(100, 3, 10);
        let rows: Vec<u64> = run.blocks().map(|block| block.rows).collect();
        assert_eq!(rows, [30, 30, 30, 10]);
        assert_eq!((run.n_rows(), run.is_cut_off(), run.blocks_made()), (100, false, 2));
        let begun = RunShape { most_blocks: 2, ..run };
        assert_eq!((begun.n_blocks(), begun.n_rows(), begun.is_cut_off()), (2, 60, true));
        let whole = shape(100, 50, 10);
        assert_eq!((whole.block_rows(), whole.n_blocks(), whole.blocks_made()), (100, 1, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Compares with the pieces counted in shuffle plans.
        #[test]
        fn touched_pieces_are_as_counted(
            chunk_rows in 1_u64..40, chunks_per_block in 1_u64..40, unit_rows in 1_u64..100,
        ) {
            // Chunks then begin anywhere in a piece, as they do if the sizes have no common
            // divisor.
            prop_assume!(gcd(chunk_rows, unit_rows) == 1);
            // All chunks are whole: after a short one, blocks would begin inside chunks.
            let total_rows = 20_000 / (chunk_rows * chunks_per_block) * chunk_rows * chunks_per_block;
            let run = shape(total_rows, chunks_per_block, chunk_rows);
            let plan = PlanSpec {
                n_rows: total_rows, chunk_rows, chunks_per_block, seed: 1, ..PlanSpec::default()
            };
            let (mut counted, mut n_blocks) = (0_u64, 0_u64);
            for block in plan.epoch(0).unwrap().take(200) {
                let pieces: BTreeSet<u64> = block
                    .chunks
                    .iter()
                    .flat_map(|rows| rows.start / unit_rows..=(rows.end - 1) / unit_rows)
                    .collect();
                counted += pieces.len() as u64 * unit_rows;
                n_blocks += 1;
            }
            let expected: f64 = run
                .blocks()
                .take(n_blocks as usize)
                .map(|block| run.touched_rows(block.rows, unit_rows as f64))
                .sum();
            prop_assert!((counted as f64 - expected).abs() < 0.1 * expected, "{} {}", counted, expected);
        }
    }
}
