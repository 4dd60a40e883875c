//! Design of the probe: a few short runs that determine the model's coefficients.
//!
//! Their settings differ enough to separate the coefficients.

use bench_run::BlockSpec;

use super::candidates::least_block_rows;
use crate::model::Probe;
use crate::survey::Facts;

/// Rows of a usual and of a large block of the probe.
const BLOCK_ROWS: [u64; 2] = [1 << 13, 1 << 15];
/// Data of at most this many rows, and of at most this many bytes in blocks, is read whole.
const WHOLE_ROWS: u64 = 1 << 16;
const WHOLE_BYTES: f64 = 2e9;
/// Chunks of smaller blocks than this shrink with the blocks.
const SMALL_ROWS: u64 = 1 << 10;

/// Returns the probe's runs, with blocks of at most `most_rows` rows.
///
/// Blocks have at least the rows that the model covers, if `most_rows` allows that. Runs without
/// prefetching take turns at reading and cutting, which separates the two: small, usual and large
/// blocks of small, usual and large chunks. Runs with prefetching show how much the two disturb
/// each other.
pub(crate) fn design(facts: &Facts, most_rows: u64) -> Vec<Probe> {
    let n_rows = facts.n_rows;
    let power = |rows: u64| 1_u64 << rows.max(1).ilog2();
    let least = least_block_rows(facts).min(most_rows).next_power_of_two();
    let most = power(n_rows.min(most_rows));
    let usual = power(BLOCK_ROWS[0].min(n_rows / 4)).clamp(least.min(most), most);
    let large = power(BLOCK_ROWS[1].min(n_rows / 2)).clamp(usual, most);
    let small = (usual / 4).clamp(least.min(usual), usual);
    let is_small = n_rows <= WHOLE_ROWS && n_rows as f64 * facts.most_row_bytes <= WHOLE_BYTES;
    let runs = [
        (usual, 64, 0, 8),
        (usual, 16, 0, 6),
        (usual, 512, 0, 8),
        (small, 64, 0, 12),
        (large, 64, 0, 3),
        (large, 1024, 0, 3),
        (usual, 64, 1, 8),
        ((large / 2).max(usual), 256, 1, 4),
    ];
    let mut probes: Vec<Probe> = Vec::new();
    for (block_rows, chunk_rows, prefetch_blocks, blocks) in runs {
        let block_rows = in_batches(facts, block_rows);
        // A power of two that divides the block.
        let most = chunk_of(block_rows, chunk_rows).min((block_rows / 2).max(1));
        let chunk_rows = 1 << most.ilog2().min(block_rows.trailing_zeros());
        let spec = BlockSpec { chunk_rows, chunks_per_block: block_rows / chunk_rows };
        let most_blocks = if is_small { u64::MAX } else { blocks };
        let probe = Probe { spec, prefetch_blocks, most_blocks };
        if !probes.contains(&probe) {
            probes.push(probe);
        }
    }
    probes
}

/// Returns the rows of a block that has whole batches, if it must.
fn in_batches(facts: &Facts, block_rows: u64) -> u64 {
    let Facts { batch_rows, whole_batches, .. } = *facts;
    if whole_batches { (block_rows / batch_rows).max(1) * batch_rows } else { block_rows }
}

/// Returns the rows of a chunk: small ones in a small block, so that runs still differ in them.
fn chunk_of(block_rows: u64, chunk_rows: u64) -> u64 {
    if block_rows < SMALL_ROWS { (chunk_rows * block_rows / SMALL_ROWS).max(1) } else { chunk_rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted_samples::copied;

    #[test]
    fn probes_differ_in_what_the_model_tells_apart() {
        let probes = design(&copied(200_000, 256), u64::MAX);
        assert_eq!(probes.len(), 8);
        let alone: Vec<_> = probes.iter().filter(|probe| probe.prefetch_blocks == 0).collect();
        assert_eq!(alone.len(), 6);
        let rows: u64 =
            probes.iter().map(|probe| probe.spec.block_rows() * probe.most_blocks).sum();
        assert!(rows < 550_000, "{rows} rows");
        assert!(probes.iter().all(|probe| probe.spec.block_rows() <= 32_768));
    }

    #[test]
    fn small_data_and_little_memory_make_small_blocks() {
        for n_rows in [1, 2, 3, 5, 100, 2898, 20_000] {
            for most_rows in [1, 7, 500, u64::MAX] {
                let probes = design(&copied(n_rows, 100), most_rows);
                assert!(
                    probes.iter().all(|probe| probe.spec.block_rows() <= most_rows.min(n_rows))
                );
                assert!(probes.iter().any(|probe| probe.prefetch_blocks == 0));
                assert!(probes.iter().all(|probe| 0 < probe.spec.block_rows()));
            }
        }
    }

    /// Samples of 10 MB, of which a few fit: short runs that differ in blocks and chunks.
    #[test]
    fn large_samples_are_probed_in_whole_batches() {
        let facts = Facts::with_parts(10_000, 6, 10_000_000);
        let probes = design(&facts, 60);
        assert!(probes.iter().all(|probe| probe.spec.block_rows().is_multiple_of(6)), "{probes:?}");
        assert!(probes.iter().all(|probe| probe.spec.block_rows() <= 60), "{probes:?}");
        let rows: u64 =
            probes.iter().map(|probe| probe.spec.block_rows() * probe.most_blocks).sum();
        assert!(rows < 2500, "{rows} rows");
        let chunks: std::collections::BTreeSet<u64> =
            probes.iter().map(|probe| probe.spec.chunk_rows).collect();
        assert!(1 < chunks.len(), "{probes:?}");
    }
}
