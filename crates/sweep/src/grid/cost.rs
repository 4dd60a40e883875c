//! Cost of a grid point relative to others, by which points are dealt to machines.

use grid_point::Point;
use loader::{BlockForm, PipelineSpec};

/// Rows assumed for a whole epoch: the data is not open yet.
const EPOCH_ROWS: u64 = 1 << 20;

/// Rows that a chunk costs in addition to its own. In blocks of 65,536 rows, the method csr took
/// 1.6 times as long with chunks of 64 rows as with chunks of 512, and 2.9 times with chunks of 16
/// (results/2026-11-22-grid).
const CHUNK_ROWS: u64 = 32;

/// Returns a number that grows with the time that a point takes: rows that it reads, times the
/// cost of a row.
pub(super) fn relative_cost(point: &Point) -> u64 {
    let PipelineSpec { chunk_rows, chunks_per_block, batch_rows, .. } = point.spec.pipeline;
    let block_rows = chunk_rows.saturating_mul(chunks_per_block).max(1);
    let epoch_rows = match point.max_batches {
        // An epoch that is cut off reads whole blocks.
        Some(batches) => batches
            .saturating_mul(batch_rows)
            .min(EPOCH_ROWS)
            .div_ceil(block_rows)
            .saturating_mul(block_rows),
        None => EPOCH_ROWS,
    };
    // The first batch waits for a whole block, while nothing else is done.
    let rows = epoch_rows.saturating_mul(point.n_epochs).saturating_add(block_rows);
    let of_chunks = (rows / chunk_rows.max(1)).saturating_mul(CHUNK_ROWS);
    rows.saturating_add(of_chunks).saturating_mul(of_form(point.spec.block_form))
}

/// Returns the cost of a row in this form of blocks, in rows of the form csr
/// (results/2026-11-22-grid).
fn of_form(method: BlockForm) -> u64 {
    match method {
        BlockForm::Dense => 8,
        BlockForm::ConvertedCsr => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use loader::LoaderSpec;

    use super::*;

    fn point(method: &str, chunks_per_block: u64, chunk_rows: u64) -> Point {
        let pipeline = PipelineSpec { chunk_rows, chunks_per_block, ..PipelineSpec::default() };
        let block_form = method.parse().unwrap();
        let spec = LoaderSpec { pipeline, block_form, ..LoaderSpec::default() };
        Point { spec, ..Point::default() }
    }

    #[test]
    fn slower_points_cost_more() {
        let falling = [
            point("np.array", 1024, 64),
            point("scipy.csr", 1024, 64),
            point("csr", 4096, 16),
            point("csr", 1024, 64),
            point("csr", 128, 512),
            point("csr", 64, 512),
        ];
        let costs: Vec<u64> = falling.iter().map(relative_cost).collect();
        assert!(costs.is_sorted_by(|one, next| one > next), "{costs:?}");
        let cut = |max_batches| relative_cost(&Point { max_batches, ..point("csr", 1024, 64) });
        assert!(cut(Some(1)) == cut(Some(64)) && cut(Some(64)) < cut(Some(65)));
        assert_eq!(cut(Some(1 << 10)), cut(None));
        let huge = Point { n_epochs: u64::MAX, ..point("np.array", u64::MAX, u64::MAX) };
        assert_eq!(relative_cost(&huge), u64::MAX);
    }
}
