//! The probe: the first few short runs, to which the model is fitted.

use bench_report::EpochRecord;

use crate::args::TuneFlags;
use crate::model::{Observation, Probe, RunShape};
use crate::proposal::design;
use crate::runs::Runs;
use crate::survey::Facts;
use crate::tunable::{RunSettings, Tunable};

/// Seconds that a point is measured for: shorter runs repeat, up to `MOST_RUNS` times.
const SHORT_SECS: f64 = 0.7;
const MOST_RUNS: usize = 3;
/// Share of the memory goal that a block of the probe may take.
const MEMORY_SHARE: f64 = 0.125;

/// Returns the settings of a run that ends after a number of blocks, and its shape for the model.
///
/// A run that is cut off delivers whole batches, at least one; the shape has the blocks that these
/// need.
pub(super) fn run_of(facts: &Facts, probe: Probe) -> (RunSettings, RunShape) {
    let Facts { n_rows, batch_rows, .. } = *facts;
    let Probe { spec, prefetch_blocks, most_blocks } = probe;
    let whole = RunShape::epoch(n_rows, spec, prefetch_blocks);
    let begun = RunShape { most_blocks, ..whole };
    let (max_batches, run) = if begun.is_cut_off() {
        let batches = (begun.n_rows() / batch_rows).max(1);
        let blocks = (batches * batch_rows).div_ceil(begun.block_rows());
        (Some(batches), RunShape { most_blocks: blocks, ..whole })
    } else {
        (None, whole)
    };
    (RunSettings { spec, prefetch_blocks, max_batches }, run)
}

/// Measures the probe, after the choice of what is fixed in all runs.
pub(super) fn measure<K: Tunable>(
    runs: &mut Runs<K>,
    flags: &TuneFlags,
    facts: &Facts,
) -> anyhow::Result<Vec<Observation>> {
    let most_rows = (MEMORY_SHARE * flags.memory.as_u64() as f64 / facts.most_row_bytes) as u64;
    let probes = design(facts, most_rows.max(1));
    if let Some(first) = probes.first() {
        let (settings, _) = run_of(facts, Probe { most_blocks: 1, ..*first });
        K::choose(runs, &settings)?;
    }
    let mut observed = Vec::new();
    for probe in probes {
        let (settings, run) = run_of(facts, probe);
        let records = repeat(runs, &settings, "probe")?;
        observed.extend(records.iter().map(|record| observation(record, run)));
    }
    Ok(observed)
}

/// Measures a point, and repeats a short run.
pub(super) fn repeat<K: Tunable>(
    runs: &mut Runs<K>,
    settings: &RunSettings,
    purpose: &str,
) -> anyhow::Result<Vec<EpochRecord>> {
    let (mut secs, mut records) = (0.0, Vec::new());
    while records.is_empty() || (secs < SHORT_SECS && records.len() < MOST_RUNS) {
        let record = runs.measure(settings, purpose)?;
        secs += record.measured.elapsed.unwrap_or(SHORT_SECS);
        records.push(record);
    }
    Ok(records)
}

pub(super) fn observation(record: &EpochRecord, run: RunShape) -> Observation {
    let measured = &record.measured;
    let epoch_peak_bytes = measured.epoch_peak_bytes();
    let opening_bytes = measured.max_mem.filter(|process| epoch_peak_bytes < Some(*process));
    Observation {
        run,
        elapsed: measured.elapsed.unwrap_or(0.0),
        read_secs: measured.read_secs.unwrap_or(0.0),
        // Only the epoch's peak depends on the settings; opening the data takes the same memory in
        // all.
        peak_bytes: epoch_peak_bytes.unwrap_or(0) as f64,
        opening_bytes: opening_bytes.unwrap_or(0) as f64,
        start_bytes: measured.start_mem_bytes.unwrap_or(0) as f64,
        bytes_decoded: measured.bytes_decoded.map(|bytes| bytes as f64),
    }
}
