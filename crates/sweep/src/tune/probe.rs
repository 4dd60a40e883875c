//! The probe: a few short runs whose settings differ enough for the model's coefficients to be told from each other.

use super::args::TuneArgs;
use super::candidates::least_block_rows;
use super::memory::KnownMemory;
use super::observation::Observation;
use super::run_shape::RunShape;
use super::session::{Interrupted, Session};
use super::survey::{self, Surveyed};
use crate::args::Reader;
use crate::config;
use crate::consumer::Consumer;
use crate::grid::BlockSpec;
use crate::job::{Opened, Point, PointTransform};
use bench_report::EpochRecord;
use loader::{BlockForm, ReaderChoice};

/// Rows of a usual block of the probe, and of a large one.
const BLOCK_ROWS: [u64; 2] = [1 << 13, 1 << 15];
/// Data of so few rows is read whole.
const WHOLE_ROWS: u64 = 1 << 16;
/// A run that took less seconds than this is repeated, at most so often.
const SHORT_SECS: f64 = 0.7;
const MOST_RUNS: usize = 3;
/// Of the memory, what a block of the probe may take.
const MEMORY_SHARE: f64 = 0.125;
/// Bytes of a value of a block, at most.
const CELL_BYTES: f64 = 8.0;

/// One run of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) spec: BlockSpec,
    pub(super) prefetch_blocks: u64,
    /// Blocks after which it ends.
    pub(super) most_blocks: u64,
}

/// What was measured.
pub(super) struct Probed {
    /// The reader that the rest was measured with.
    pub(super) reader: String,
    pub(super) observed: Vec<Observation>,
}

/// The runs for data of so many rows, with blocks of `most_rows` at most, and not less than the model is for where that is no more. Without prefetching, reading and cutting take turns and can be
/// told from each other: small, usual and large blocks, of small, usual and large chunks. With it, how much they disturb each other.
pub(super) fn design(n_rows: u64, batch_rows: u64, most_rows: u64) -> Vec<Probe> {
    let power = |rows: u64| 1_u64 << rows.max(1).ilog2();
    let least = least_block_rows(n_rows, batch_rows).min(most_rows).next_power_of_two();
    let most = power(n_rows.min(most_rows));
    let usual = power(BLOCK_ROWS[0].min(n_rows / 4)).clamp(least.min(most), most);
    let large = power(BLOCK_ROWS[1].min(n_rows / 2)).clamp(usual, most);
    let small = (usual / 4).clamp(least.min(usual), usual);
    let all = |blocks: u64| if n_rows <= WHOLE_ROWS { u64::MAX } else { blocks };
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
        let chunk_rows = chunk_rows.min((block_rows / 2).max(1));
        let spec = BlockSpec { chunk_rows, chunks_per_block: block_rows / chunk_rows };
        let probe = Probe { spec, prefetch_blocks, most_blocks: all(blocks) };
        if !probes.contains(&probe) {
            probes.push(probe);
        }
    }
    probes
}

/// The settings of a run that ends after so many blocks, and what of them the model sees.
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
    let point = Point {
        chunk_rows: spec.chunk_rows,
        chunks_per_block: spec.chunks_per_block,
        batch_rows: args.batch_size,
        method: BlockForm::Csr.name().to_owned(),
        form: config::form(args.batch_form).name().to_owned(),
        transform: PointTransform::default(),
        shuffled: true,
        seed: args.seed,
        drop_last: false,
        prefetch_blocks: prefetch_blocks as usize,
        prefetch_batches: PREFETCH_BATCHES,
        n_epochs: 1,
        max_batches,
        consumer: Consumer::None,
        memory_limit: None,
        keep_decoded: None,
        process_limit: None,
        cold: None,
    };
    (point, run)
}

/// One batch is made while the consumer has another: more would only hide what differs between batches.
pub(super) const PREFETCH_BATCHES: usize = 1;

/// Measures the probe, by the reader that is asked for or, where both are open, by the quicker one.
pub(super) fn measure(
    session: &mut Session<'_>,
    args: &TuneArgs,
    surveyed: &Surveyed,
) -> anyhow::Result<Probed> {
    let n_rows = session.opened.n_cells;
    let row_bytes = surveyed.row_nnz * CELL_BYTES + survey::ROW_BYTES;
    let most_rows = (MEMORY_SHARE * args.memory.as_u64() as f64 / row_bytes) as u64;
    let probes = design(n_rows, args.batch_size, most_rows.max(1));
    let mut probed = Probed { reader: session.opened.reader.clone(), observed: Vec::new() };
    let native = ReaderChoice::Native.name();
    if args.reader == Reader::Auto
        && probed.reader == native
        && let Some(first) = probes.first()
        && is_libtiledb_quicker(session, args, *first)?
    {
        ReaderChoice::Libtiledb.name().clone_into(&mut probed.reader);
    }
    for probe in probes {
        let (point, run) = run_of(args, n_rows, probe);
        let records = repeat(session, &point, &probed.reader, "probe")?;
        probed.observed.extend(records.iter().map(|record| observation(record, run)));
    }
    Ok(probed)
}

/// Measures a point, and again where it takes no time.
pub(super) fn repeat(
    session: &mut Session<'_>,
    point: &Point,
    reader: &str,
    what: &str,
) -> anyhow::Result<Vec<EpochRecord>> {
    let (mut secs, mut records) = (0.0, Vec::new());
    while records.is_empty() || (secs < SHORT_SECS && records.len() < MOST_RUNS) {
        let record = session.measure(point, reader, what)?;
        secs += record.measured.elapsed.unwrap_or(SHORT_SECS);
        records.push(record);
    }
    Ok(records)
}

/// What can be told of memory beforehand.
pub(super) fn known_memory(args: &TuneArgs, opened: &Opened, surveyed: &Surveyed) -> KnownMemory {
    let element = config::form(args.batch_form).dense_type();
    let batch_rows = args.batch_size.min(opened.n_cells);
    let row_bytes = surveyed.row_nnz * survey::LEAST_VALUE_BYTES + survey::ROW_BYTES;
    KnownMemory {
        row_bytes,
        least_row_bytes: if surveyed.is_all { row_bytes } else { survey::ROW_BYTES },
        batch_bytes: element.map_or(0.0, |element| {
            batch_rows as f64 * opened.n_genes as f64 * element.bytes() as f64
        }),
        // With the one in the making, those that wait, and the consumer's.
        n_batches: opened.n_cells.div_ceil(args.batch_size).min(PREFETCH_BATCHES as u64 + 2),
    }
}

/// One block by each. That libtiledb cannot read it is said, and no reason to stop.
fn is_libtiledb_quicker(
    session: &mut Session<'_>,
    args: &TuneArgs,
    first: Probe,
) -> anyhow::Result<bool> {
    let (point, _) = run_of(args, session.opened.n_cells, Probe { most_blocks: 1, ..first });
    let secs = |record: &EpochRecord| record.measured.read_secs;
    let by_native = session.measure(&point, ReaderChoice::Native.name(), "probe of the reader")?;
    let by_libtiledb =
        match session.measure(&point, ReaderChoice::Libtiledb.name(), "probe of the reader") {
            Ok(record) => record,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                session.say(&format!("warning: the native reader is taken: {error:#}"));
                return Ok(false);
            }
        };
    Ok(secs(&by_libtiledb)
        .zip(secs(&by_native))
        .is_some_and(|(libtiledb, native)| libtiledb < native))
}

pub(super) fn observation(record: &EpochRecord, run: RunShape) -> Observation {
    let measured = &record.measured;
    Observation {
        run,
        elapsed: measured.elapsed.unwrap_or(0.0),
        read_secs: measured.read_secs.unwrap_or(0.0),
        peak_bytes: measured.max_mem.unwrap_or(0) as f64,
        start_bytes: measured.start_mem_bytes.unwrap_or(0) as f64,
        bytes_decoded: measured.bytes_decoded.map(|bytes| bytes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_differ_in_what_the_model_tells_apart() {
        let probes = design(200_000, 256, u64::MAX);
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
                let probes = design(n_rows, 100, most_rows);
                assert!(
                    probes.iter().all(|probe| probe.spec.block_rows() <= most_rows.min(n_rows))
                );
                assert!(probes.iter().any(|probe| probe.prefetch_blocks == 0));
                assert!(probes.iter().all(|probe| 0 < probe.spec.block_rows()));
            }
        }
    }
}
