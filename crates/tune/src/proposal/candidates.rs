//! Settings to choose from.

use std::collections::BTreeSet;

use bench_run::BlockSpec;

use crate::survey::Facts;

/// Rows of the largest chunks considered: larger ones hardly read less, and mix worse.
const MOST_CHUNK_ROWS: u64 = 1 << 13;

/// Numbers of blocks that may be read ahead. A second one would help only if blocks differ in cost,
/// and needs as much memory again.
pub(crate) const PREFETCH_BLOCKS: [u64; 2] = [0, 1];

/// Least batches in a block if batches are copied from it. With fewer, not all batches that may
/// exist are made, so memory is not linear in the block's rows.
const LEAST_BATCHES: u64 = 4;

/// Returns the least rows of a block that the model covers.
///
/// That is four batches, or one if batches are parts of blocks; for small data a quarter of all
/// rows, but at least a batch.
pub(crate) fn least_block_rows(facts: &Facts) -> u64 {
    let Facts { n_rows, batch_rows, .. } = *facts;
    let least_batches = if facts.whole_batches { 1 } else { LEAST_BATCHES };
    (least_batches * batch_rows).min(batch_rows.max(n_rows / 4)).min(n_rows)
}

/// Returns the block specifications to choose from, of [`least_block_rows`] to `most_rows` rows.
///
/// Chunks have a power of two of rows, which aligns them to how X is stored; blocks have 2, 3, 4,
/// 6, 8, 12 ... chunks, or as many batches if they must have whole ones. If all rows fit, one block
/// of all of them is included.
pub(crate) fn specs(facts: &Facts, most_rows: u64) -> Vec<BlockSpec> {
    let n_rows = facts.n_rows;
    let least = least_block_rows(facts);
    let most = most_rows.min(n_rows);
    let mut specs = Vec::new();
    let sizes = (0..64).map(|power| 1_u64 << power);
    for chunk_rows in sizes.take_while(|rows| *rows <= MOST_CHUNK_ROWS.min(n_rows)) {
        let all = n_rows.div_ceil(chunk_rows);
        let unit = if facts.whole_batches { facts.batch_rows } else { chunk_rows };
        let counts = (0..40).flat_map(|power| [1_u64 << power, 3 << power]);
        let sizes = counts.map(|n| n.saturating_mul(unit));
        let mut fitting: BTreeSet<u64> = sizes
            .filter(|rows| (least..=most).contains(rows) && rows % chunk_rows == 0)
            .map(|rows| rows / chunk_rows)
            .collect();
        if n_rows <= most_rows {
            fitting.insert(all);
        }
        specs.extend(
            fitting
                .into_iter()
                .filter(|n| *n <= all)
                .map(|chunks_per_block| BlockSpec { chunk_rows, chunks_per_block }),
        );
    }
    specs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted_samples::copied;

    #[test]
    fn blocks_hold_batches_and_fit() {
        let found = specs(&copied(20_000, 1024), 9000);
        assert!(found.iter().all(|spec| (4096..=9000).contains(&spec.block_rows())));
        for (chunks, chunk_rows) in [(4096, 1), (128, 64), (96, 64), (1, 4096), (1, 8192)] {
            let spec = BlockSpec { chunk_rows, chunks_per_block: chunks };
            assert!(found.contains(&spec), "{spec}");
        }
        let distinct: BTreeSet<_> =
            found.iter().map(|s| (s.chunk_rows, s.chunks_per_block)).collect();
        assert_eq!(distinct.len(), found.len());
    }

    #[test]
    fn all_rows_may_be_one_block() {
        let found = specs(&copied(1000, 4096), u64::MAX);
        assert!(found.iter().all(|spec| (1000..1512).contains(&spec.block_rows())), "{found:?}");
        assert!(found.contains(&BlockSpec { chunk_rows: 64, chunks_per_block: 16 }));
        assert!(specs(&copied(1000, 10), 5).is_empty());
        assert_eq!(
            [(20_000, 1024), (2898, 1024), (2898, 100), (500, 1024)]
                .map(|(n, b)| least_block_rows(&copied(n, b))),
            [4096, 1024, 400, 500]
        );
        assert_eq!(specs(&copied(1, 1024), 1).len(), 1);
    }

    #[test]
    fn blocks_of_which_batches_are_parts_have_whole_ones() {
        let facts = Facts { whole_batches: true, ..copied(100, 6) };
        let found = specs(&facts, 30);
        let sizes: BTreeSet<u64> = found.iter().map(|spec| spec.block_rows()).collect();
        assert_eq!(sizes, [6, 12, 18, 24].into());
        let of_24 = found.iter().filter(|spec| spec.block_rows() == 24);
        assert_eq!(of_24.map(|spec| spec.chunk_rows).collect::<Vec<_>>(), [1, 2, 4, 8]);
        // All rows may be one block, whose last batch is short.
        let whole = specs(&facts, 100);
        assert!(whole.contains(&BlockSpec { chunk_rows: 1, chunks_per_block: 100 }));
    }
}
