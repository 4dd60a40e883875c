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
        let chunks = Pass { chunk_rows, chunks_per_read: CHUNKS_PER_READ, n_rows: CHUNK_PASS_ROWS };
        let single = Pass { chunk_rows: 1, chunks_per_read: ROWS_PER_READ, n_rows: ROW_PASS_ROWS };
        let chunks = rows_per_second(reader, n_rows, chunks)?;
        let single = rows_per_second(reader, n_rows, single)?;
        Ok(Self { chunk_rows_per_second: chunks, single_rows_per_second: single })
    }
}

/// Reads of random chunks that are measured together.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    pub(crate) chunk_rows: u64,
    pub(crate) chunks_per_read: u64,
    /// Rows of all reads.
    pub(crate) n_rows: u64,
}

/// Plans the reads of a pass over `n_rows` rows.
pub(crate) fn random_reads(n_rows: u64, pass: Pass) -> Result<Vec<RowRanges>, Error> {
    let Pass { chunk_rows, chunks_per_read, n_rows: pass_rows } = pass;
    let chunks_per_block = chunks_per_read.min(n_rows.div_ceil(chunk_rows));
    let spec = PlanSpec { n_rows, chunk_rows, chunks_per_block, ..PlanSpec::default() };
    let n_reads = (pass_rows / (chunk_rows * chunks_per_block)).max(1);
    let blocks = spec.epoch(0)?.take(n_reads as usize);
    Ok(blocks.map(|block| RowRanges::new(block.chunks)).collect::<Result<_, _>>()?)
}

/// The speed of the median pass over the same reads, after one pass that is not counted.
fn rows_per_second(reader: &dyn XReader, n_rows: u64, pass: Pass) -> Result<f64, Error> {
    let reads = random_reads(n_rows, pass)?;
    let n_read: u64 = reads.iter().map(RowRanges::n_rows).sum();
    let mut out = CsrBuffers::default();
    let mut read_all = || {
        let started = Instant::now();
        for rows in &reads {
            reader.read_csr(rows, &GeneSelection::All, &mut out)?;
        }
        Ok::<_, Error>(started.elapsed())
    };
    read_all()?;
    let mut passes = vec![read_all()?];
    while passes.iter().sum::<Duration>() < LONG_ENOUGH && passes.len() < MOST_PASSES {
        passes.push(read_all()?);
    }
    passes.sort_unstable();
    let median = passes[passes.len() / 2].as_secs_f64();
    Ok(n_read as f64 / median.max(f64::MIN_POSITIVE))
}
