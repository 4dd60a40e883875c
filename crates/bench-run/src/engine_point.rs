//! The engine's settings as those of a row, for every kind of samples.

use bench_report::{GridPoint, OWN_LOADER, Settings};
use pipeline::PipelineSpec;
use shuffle::Remainder;

/// The settings of a row that the engine decides. The caller adds what it alone knows: the kind of
/// samples, their forms, who reads them, and the page cache.
pub fn engine_point(spec: &PipelineSpec) -> GridPoint {
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        batch_size: spec.batch_rows,
        chunk_size: spec.chunk_rows,
        chunks_per_block: spec.chunks_per_block,
        block_size: spec.chunk_rows * spec.chunks_per_block,
        order: spec.order.name().to_owned(),
        seed: spec.seed,
        settings: Settings::default()
            .with_unless("prefetch_blocks", spec.prefetch_blocks as u64, 0)
            .with_unless("read_threads", spec.read_threads as u64, 1)
            .with_unless("prefetch_batches", spec.prefetch_batches as u64, 1)
            .with_unless("ramp_blocks", spec.ramp_blocks.into(), 0)
            .with_some("drop_last", (spec.remainder == Remainder::Drop).then_some(true)),
        ..GridPoint::default()
    }
}

/// The rows of each of `n_epochs`, in the order in which the engine delivers them; of an epoch that
/// is cut off, those of its first batches.
///
/// # Errors
/// The settings have no plan.
pub fn delivered_rows(
    spec: &PipelineSpec,
    n_rows: u64,
    n_epochs: u64,
    max_batches: Option<u64>,
) -> anyhow::Result<Vec<Vec<u64>>> {
    let lanes = spec.batches(spec.default_lanes());
    let most = max_batches.unwrap_or(u64::MAX).saturating_mul(spec.batch_rows);
    let of_epoch = |epoch| {
        let plan = spec.plan(n_rows).dealt_epoch(epoch, &lanes)?;
        let mut rows: Vec<u64> = plan.flat_map(|block| block.delivered_rows()).collect();
        rows.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(rows)
    };
    (0..n_epochs).map(of_epoch).collect()
}
