//! Read speed: a short measurement of random chunks and of single rows, with the reader that
//! training uses.

use std::time::{Duration, Instant};

use shuffle::PlanSpec;
use soma_io::{CsrBuffers, GeneSelection, RowRanges, XReader};

use crate::Error;

/// Chunks per read.
const CHUNKS_PER_READ: u64 = 16;
/// Single rows per read.
const ROWS_PER_READ: u64 = 256;
/// Rows per pass.
const CHUNK_PASS_ROWS: u64 = 8192;
const ROW_PASS_ROWS: u64 = 512;
/// Passes repeat until they have taken this long.
const LONG_ENOUGH: Duration = Duration::from_millis(400);
const MOST_PASSES: usize = 9;

/// Rows per second of repeated reads. The data come from memory, so the speed is that of the
/// reader's work.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ReadSpeed {
    /// In random chunks of the size that X is written for.
    pub chunk_rows_per_second: f64,
    /// One by one.
    pub single_rows_per_second: f64,
}

impl ReadSpeed {
    /// Reads sampled rows of X repeatedly.
    pub(crate) fn measure(
        reader: &dyn XReader,
        n_rows: u64,
        chunk_rows: u64,
    ) -> Result<Self, Error> {
        let chunks =
            rows_per_second(reader, n_rows, (chunk_rows, CHUNKS_PER_READ, CHUNK_PASS_ROWS))?;
        let single = rows_per_second(reader, n_rows, (1, ROWS_PER_READ, ROW_PASS_ROWS))?;
        Ok(Self { chunk_rows_per_second: chunks, single_rows_per_second: single })
    }
}

/// Plans reads of `chunks_per_read` random chunks of `chunk_rows` rows each, `pass_rows` rows in
/// all.
pub(crate) fn random_reads(
    n_rows: u64,
    (chunk_rows, chunks_per_read, pass_rows): (u64, u64, u64),
) -> Result<Vec<RowRanges>, Error> {
    let chunks_per_block = chunks_per_read.min(n_rows.div_ceil(chunk_rows));
    let spec = PlanSpec { n_rows, chunk_rows, chunks_per_block, ..PlanSpec::default() };
    let n_reads = (pass_rows / (chunk_rows * chunks_per_block)).max(1);
    let blocks = spec.epoch(0)?.take(n_reads as usize);
    Ok(blocks.map(|block| RowRanges::new(block.chunks)).collect::<Result<_, _>>()?)
}

/// The speed of the median pass over the same reads, after one pass that is not counted.
fn rows_per_second(
    reader: &dyn XReader,
    n_rows: u64,
    sizes: (u64, u64, u64),
) -> Result<f64, Error> {
    let reads = random_reads(n_rows, sizes)?;
    let n_read: u64 = reads.iter().map(RowRanges::n_rows).sum();
    let mut out = CsrBuffers::default();
    let mut pass = || {
        let started = Instant::now();
        for rows in &reads {
            reader.read_csr(rows, &GeneSelection::All, &mut out)?;
        }
        Ok::<_, Error>(started.elapsed())
    };
    pass()?;
    let mut passes = vec![pass()?];
    while passes.iter().sum::<Duration>() < LONG_ENOUGH && passes.len() < MOST_PASSES {
        passes.push(pass()?);
    }
    passes.sort_unstable();
    let median = passes[passes.len() / 2].as_secs_f64();
    Ok(n_read as f64 / median.max(f64::MIN_POSITIVE))
}
