//! The engine's settings as those of a row, for every kind of samples.

use bench_report::{GridPoint, OWN_LOADER, Settings};
use pipeline::PipelineSpec;
use serde::Serialize;
use serde_json::Value;
use shuffle::Remainder;

/// The engine's settings that rows have in columns of their own, in other words, or not at all.
const SHOWN_ELSEWHERE: [&str; 10] = [
    "chunk_rows",
    "chunks_per_block",
    "order",
    "seed",
    "batch_rows",
    "world",
    "lanes",
    "remainder",
    "memory",
    "keep_bytes",
];

/// The settings of a row that the engine decides. The caller adds what it alone knows: the kind of
/// samples, their forms, who reads them, and the page cache.
pub fn engine_point(spec: &PipelineSpec) -> GridPoint {
    // Rows leave out blocks read ahead if there are none.
    let usual = PipelineSpec { prefetch_blocks: 0, ..PipelineSpec::default() };
    // A sampling cannot be written, and no measurement has one.
    let spec = PipelineSpec { sampling: None, ..spec.clone() };
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        batch_size: spec.batch_rows,
        chunk_size: spec.chunk_rows,
        chunks_per_block: spec.chunks_per_block,
        block_size: spec.chunk_rows * spec.chunks_per_block,
        order: spec.order.name().to_owned(),
        seed: spec.seed,
        settings: changed(&spec, &usual, &SHOWN_ELSEWHERE)
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

/// The settings of `spec` that are not the `usual` ones, by the names of their fields, except those
/// `shown_elsewhere`.
pub fn changed<T: Serialize>(spec: &T, usual: &T, shown_elsewhere: &[&str]) -> Settings {
    let mut settings = Settings::default();
    if let (Ok(Value::Object(spec)), Ok(usual)) =
        (serde_json::to_value(spec), serde_json::to_value(usual))
    {
        for (name, value) in spec {
            if !shown_elsewhere.contains(&name.as_str()) && usual.get(&name) != Some(&value) {
                match value {
                    Value::String(text) => settings.set(&name, text),
                    value => settings.set(&name, value),
                }
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(spec: &PipelineSpec, expect: &str) {
        let point = engine_point(spec);
        let settings: Vec<_> = point.settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(settings.join(" "), expect);
    }

    #[test]
    fn rows_have_the_settings_that_are_not_the_usual_ones() {
        let nothing = PipelineSpec { prefetch_blocks: 0, ..PipelineSpec::default() };
        shows(&nothing, "");
        shows(&PipelineSpec::default(), "prefetch_blocks=1");
        let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 2, batch_rows: 3, ..nothing };
        let many = PipelineSpec {
            seed: 4,
            order: shuffle::Order::InOrder,
            remainder: Remainder::Drop,
            lanes: Some(5),
            read_threads: 6,
            prefetch_batches: 0,
            ramp_blocks: 7,
            memory: pipeline::Budget::new(8),
            keep_bytes: Some(9),
            ..sizes
        };
        shows(&many, "drop_last=true prefetch_batches=0 ramp_blocks=7 read_threads=6");
    }
}
