//! Model of the bytes that reading decodes: more than requested, since filters decode whole pieces.
//!
//! X is stored in pieces of consecutive rows that are decoded as one. A block decodes each piece
//! that one of its chunks touches, once. When the native reader first needs a tile, it also decodes
//! the positions of the tile's rows, and keeps them. So
//!
//! `bytes = f T(rows so far, t) + d Σ over blocks T(rows of the block, u)`
//!
//! Here `T` is [`RunShape::touched_rows`], pieces have `u` rows, tiles have `t` rows, and `f` and
//! `d` are bytes per row. The native reader counts the bytes, so timing plays no part.

use super::least_squares::non_negative;
use super::run_shape::{BlockRows, RunShape};

/// Predicts the bytes that a run decodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decoding {
    /// Rows per piece, which is decoded as one.
    pub(crate) unit_rows: f64,
    /// Rows per tile, which share an index of their positions.
    pub(crate) tile_rows: f64,
    /// Bytes per row when its tile is first needed, and whenever its piece is touched.
    pub(crate) bytes: [f64; 2],
    /// Root mean square of the relative error over the fitted runs.
    pub(crate) error: f64,
}

/// Candidate piece sizes: powers of the fourth root of two up to 2^13 rows. Finer steps change
/// nothing visible.
pub(crate) fn unit_sizes() -> impl Iterator<Item = f64> {
    (0..=52).map(|step| 2.0_f64.powf(f64::from(step) / 4.0))
}

/// Candidate tile sizes: powers of two up to 2^16 rows.
fn tile_sizes() -> impl Iterator<Item = f64> {
    (0..=16).map(|step| 2.0_f64.powi(step))
}

impl Decoding {
    /// Fits sizes and bytes to the byte counts of these runs.
    pub(crate) fn fit(counted: &[(RunShape, f64)]) -> Self {
        let mut best: Option<Self> = None;
        for unit_rows in unit_sizes() {
            for tile_rows in tile_sizes() {
                let rows: Vec<([f64; 2], f64)> = counted
                    .iter()
                    .map(|(run, bytes)| (columns(run, unit_rows, tile_rows), *bytes))
                    .collect();
                let fit = non_negative(&rows);
                if best.is_none_or(|best| fit.error < best.error) {
                    let (bytes, error) = (fit.coefficients, fit.error);
                    best = Some(Self { unit_rows, tile_rows, bytes, error });
                }
            }
        }
        best.unwrap_or(Self { unit_rows: 1.0, tile_rows: 1.0, bytes: [0.0; 2], error: 0.0 })
    }

    /// Returns the bytes that a block decodes, for tiles first needed and for the pieces it
    /// touches.
    pub(crate) fn of_block(&self, run: &RunShape, block: BlockRows) -> f64 {
        let BlockRows { before, rows } = block;
        let known = run.touched_rows(before, self.tile_rows);
        let first = run.touched_rows(before + rows, self.tile_rows) - known;
        let [of_first, of_piece] = self.bytes;
        of_first * first + of_piece * run.touched_rows(rows, self.unit_rows)
    }
}

fn columns(run: &RunShape, unit_rows: f64, tile_rows: f64) -> [f64; 2] {
    let touched = run.blocks().map(|block| run.touched_rows(block.rows, unit_rows)).sum();
    [run.touched_rows(run.n_rows(), tile_rows), touched]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use bench_run::BlockSpec;

    fn runs() -> Vec<RunShape> {
        [(128, 64, 4), (512, 16, 4), (16, 512, 4), (32, 64, 8), (512, 64, 2), (32, 1024, 2)]
            .map(|(chunks_per_block, chunk_rows, most_blocks)| RunShape {
                total_rows: 200_000,
                spec: BlockSpec { chunk_rows, chunks_per_block },
                prefetch_blocks: 0,
                most_blocks,
            })
            .into()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn planted_pieces_are_found(
            unit_rows in 20.0_f64..1000.0, tile_rows in 1000.0_f64..4000.0, first in 0.0_f64..2e4,
            bytes in 1e3_f64..4e4,
        ) {
            let planted = Decoding { unit_rows, tile_rows, bytes: [first, bytes], error: 0.0 };
            let total = |model: &Decoding, run: &RunShape| -> f64 {
                run.blocks().map(|block| model.of_block(run, block)).sum()
            };
            let counted: Vec<_> = runs().iter().map(|run| (*run, total(&planted, run))).collect();
            let found = Decoding::fit(&counted);
            prop_assert!(found.error < 0.05, "{:?}", found);
            // A whole epoch at other settings.
            let spec = BlockSpec { chunk_rows: 256, chunks_per_block: 64 };
            let epoch = RunShape::epoch(200_000, spec, 0);
            let (found, expected) = (total(&found, &epoch), total(&planted, &epoch));
            // 4 of 3,000 cases were off by more than a tenth, none by more than an eighth.
            prop_assert!((found - expected).abs() < 0.2 * expected, "{} {}", found, expected);
        }
    }

    /// One piece size describes the bytes that the native reader counted.
    ///
    /// Counts are in GB, of whole epochs of 200,000 cells x 60,000 genes.
    #[test]
    fn counted_epochs_are_described() {
        let counted = [
            (1024, 64, 10.825),
            (128, 64, 16.809),
            (512, 16, 38.458),
            (32, 512, 7.600),
            (128, 512, 7.192),
            (256, 64, 15.562),
        ]
        .map(|(chunks_per_block, chunk_rows, gigabytes)| {
            let spec = BlockSpec { chunk_rows, chunks_per_block };
            (RunShape::epoch(200_000, spec, 0), gigabytes * 1e9)
        });
        let found = Decoding::fit(&counted);
        assert!(found.error < 0.01, "{found:?}");
    }
}
