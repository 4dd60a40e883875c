//! The probe: the first few short runs, to which the model is fitted.

use bench_report::EpochRecord;
use bench_run::Interrupted;
use grid_point::{Opened, Point, ReaderFlag};
use loader::{BatchForm, LoaderSpec, PipelineSpec, ReaderChoice};

use crate::args::TuneArgs;
use crate::model::{KnownMemory, Observation, Probe, RunShape};
use crate::proposal::design;
use crate::runs::Runs;
use crate::survey::{self, Surveyed};

/// Seconds that a point is measured for: shorter runs repeat, up to `MOST_RUNS` times.
const SHORT_SECS: f64 = 0.7;
const MOST_RUNS: usize = 3;
/// Share of the memory goal that a block of the probe may take.
const MEMORY_SHARE: f64 = 0.125;
/// Most bytes of a value in a block.
const CELL_BYTES: f64 = 8.0;

/// The probe's measurements.
pub(super) struct Probed {
    /// Reader that all other runs use.
    pub(super) reader: ReaderChoice,
    pub(super) observed: Vec<Observation>,
}

/// Returns the settings of a run that ends after a number of blocks, and its shape for the model.
///
/// A run that is cut off delivers whole batches, at least one; the shape has the blocks that these
/// need.
pub(super) fn run_of(args: &TuneArgs, n_rows: u64, probe: Probe) -> (Point, RunShape) {
    let Probe { spec, prefetch_blocks, most_blocks } = probe;
    let whole = RunShape::epoch(n_rows, spec, prefetch_blocks);
    let begun = RunShape { most_blocks, ..whole };
    let (max_batches, run) = if begun.is_cut_off() {
        let batches = (begun.n_rows() / args.batch_size).max(1);
        let blocks = (batches * args.batch_size).div_ceil(begun.block_rows());
        (Some(batches), RunShape { most_blocks: blocks, ..whole })
    } else {
        (None, whole)
    };
    let pipeline = PipelineSpec {
        batch_rows: args.batch_size,
        seed: args.seed,
        prefetch_blocks: prefetch_blocks as usize,
        prefetch_batches: PREFETCH_BATCHES,
        ..PipelineSpec::default()
    };
    let settings =
        LoaderSpec { pipeline, batch_form: args.batch_form.into(), ..LoaderSpec::default() };
    let point = Point { spec: settings, max_batches, ..Point::default() };
    (point.with_blocks(spec), run)
}

/// Batches made ahead while the consumer uses another. More would only hide the differences between
/// batches.
pub(super) const PREFETCH_BATCHES: usize = 1;

/// Measures the probe with the reader asked for. With `auto`, uses the faster reader if both can
/// read X.
pub(super) fn measure(
    runs: &mut Runs,
    args: &TuneArgs,
    surveyed: &Surveyed,
) -> anyhow::Result<Probed> {
    let n_rows = runs.opened.n_cells;
    let row_bytes = surveyed.row_nnz * CELL_BYTES + survey::ROW_BYTES;
    let most_rows = (MEMORY_SHARE * args.memory.as_u64() as f64 / row_bytes) as u64;
    let probes = design(n_rows, args.batch_size, most_rows.max(1));
    // An AnnData has one reader, which no choice names.
    let reader = runs.opened.reader.parse().unwrap_or(ReaderChoice::Auto);
    let mut probed = Probed { reader, observed: Vec::new() };
    if args.reader == ReaderFlag::Auto
        && probed.reader == ReaderChoice::Native
        && let Some(first) = probes.first()
        && is_libtiledb_quicker(runs, args, *first)?
    {
        probed.reader = ReaderChoice::Libtiledb;
    }
    for probe in probes {
        let (point, run) = run_of(args, n_rows, probe);
        let records = repeat(runs, &point, probed.reader, "probe")?;
        probed.observed.extend(records.iter().map(|record| observation(record, run)));
    }
    Ok(probed)
}

/// Measures a point, and repeats a short run.
pub(super) fn repeat(
    runs: &mut Runs,
    point: &Point,
    reader: ReaderChoice,
    what: &str,
) -> anyhow::Result<Vec<EpochRecord>> {
    let (mut secs, mut records) = (0.0, Vec::new());
    while records.is_empty() || (secs < SHORT_SECS && records.len() < MOST_RUNS) {
        let record = runs.measure(point, reader, what)?;
        secs += record.measured.elapsed.unwrap_or(SHORT_SECS);
        records.push(record);
    }
    Ok(records)
}

/// Returns the memory of a run that is known without measuring.
pub(super) fn known_memory(args: &TuneArgs, opened: &Opened, surveyed: &Surveyed) -> KnownMemory {
    let element = BatchForm::from(args.batch_form).dense_type();
    let batch_rows = args.batch_size.min(opened.n_cells);
    let row_bytes = surveyed.row_nnz * survey::LEAST_VALUE_BYTES + survey::ROW_BYTES;
    KnownMemory {
        row_bytes,
        least_row_bytes: if surveyed.is_all { row_bytes } else { survey::ROW_BYTES },
        batch_bytes: element.map_or(0.0, |element| {
            batch_rows as f64 * opened.n_genes as f64 * element.bytes() as f64
        }),
        // Counts the batch being made, those that wait, and the consumer's.
        n_batches: opened.n_cells.div_ceil(args.batch_size).min(PREFETCH_BATCHES as u64 + 2),
    }
}

/// Whether libtiledb reads one block faster than the native reader. Warns and returns false if
/// libtiledb cannot read it.
fn is_libtiledb_quicker(runs: &mut Runs, args: &TuneArgs, first: Probe) -> anyhow::Result<bool> {
    let (point, _) = run_of(args, runs.opened.n_cells, Probe { most_blocks: 1, ..first });
    let secs = |record: &EpochRecord| record.measured.read_secs;
    let by_native = runs.measure(&point, ReaderChoice::Native, "probe of the reader")?;
    let by_libtiledb = match runs.measure(&point, ReaderChoice::Libtiledb, "probe of the reader") {
        Ok(record) => record,
        Err(error) if error.is::<Interrupted>() => return Err(error),
        Err(error) => {
            runs.say(&format!("warning: the native reader is taken: {error:#}"));
            return Ok(false);
        }
    };
    Ok(secs(&by_libtiledb)
        .zip(secs(&by_native))
        .is_some_and(|(libtiledb, native)| libtiledb < native))
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
