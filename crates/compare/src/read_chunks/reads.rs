//! A run of our readers: reads CSR, chunk by chunk, in the measured process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use bench_report::{CpuTime, peak_bytes, resident_bytes};
use bench_run::Reporter;
use grid_point::Data;
use serde::{Deserialize, Serialize};
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, RowRanges, XReader};

use super::order::ChunkFile;
use crate::equality::Tally;

/// The subcommand of the program that runs [`serve`].
pub const SUBCOMMAND: &str = "read-chunks-task";

/// The task of a run of our readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChunksTask {
    pub(crate) data: Data,
    pub(crate) chunks: Chunks,
}

/// The chunks that a run reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunks {
    /// File of the joinids, in order.
    pub(crate) joinids: PathBuf,
    /// Cells per read.
    pub(crate) chunk_rows: u64,
    /// Number of first genes to read.
    pub(crate) n_genes: u64,
}

/// Result of a run. Seconds and bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChunksRead {
    /// Versions of the reader and its libraries.
    pub(crate) versions: BTreeMap<String, String>,
    /// Seconds from opening the experiment until X was ready.
    pub(crate) open_secs: f64,
    /// Seconds of all reads together.
    pub(crate) read_secs: f64,
    /// CPU seconds of all threads of the process during the reads.
    pub(crate) cpu_secs: f64,
    /// Resident memory after X was opened.
    pub(crate) start_mem_bytes: u64,
    /// Peak resident memory of the process.
    pub(crate) max_mem: u64,
    pub(crate) n_cells: u64,
    pub(crate) tally: Tally,
}

/// Reads an order from stdin, performs it and reports on stdout.
pub fn serve() -> anyhow::Result<()> {
    bench_run::serve(
        |task: &ChunksTask| task.data.secrets(),
        |order, reporter| {
            let ChunksTask { data, chunks } = &order.task;
            let read = read(data, chunks, reporter)?;
            reporter.answer(read)
        },
    )
}

/// Reads all chunks. Measures time and CPU time of the reads alone, not of the count after each.
fn read(
    data: &Data,
    job: &Chunks,
    reporter: &mut Reporter<ChunksRead>,
) -> anyhow::Result<ChunksRead> {
    let opening = Instant::now();
    let options = OpenOptions { config: data.config.clone(), ..OpenOptions::default() };
    let experiment = Experiment::open(data.uri.full(), &options)?;
    let x = experiment.measurement(&data.measurement)?.x(&data.layer)?;
    let reader = x.reader(data.reader.parse()?)?;
    let mut run = ChunksRead {
        open_secs: opening.elapsed().as_secs_f64(),
        start_mem_bytes: resident_bytes()?,
        versions: versions(),
        ..ChunksRead::default()
    };
    let mut chunks = ChunkFile::open(&job.joinids, job.chunk_rows)?;
    let (genes, of_rows) = (GeneSelection::Range(0..job.n_genes), chunks.n_left());
    let mut rows = AskedRows::default();
    while let Some(joinids) = chunks.next()? {
        let (start, start_cpu) = (Instant::now(), CpuTime::now()?);
        let csr = rows.read(reader.as_ref(), &joinids, &genes)?;
        run.read_secs += start.elapsed().as_secs_f64();
        run.cpu_secs += CpuTime::now()?.total_secs - start_cpu.total_secs;
        run.n_cells += csr.n_rows() as u64;
        for (row, joinid) in joinids.iter().enumerate() {
            let (columns, values) = csr.row(row);
            run.tally.add_row(*joinid, columns, values);
        }
        reporter.progress(run.n_cells, of_rows)?;
    }
    run.max_mem = peak_bytes()?;
    Ok(run)
}

/// Returns the versions of the readers.
fn versions() -> BTreeMap<String, String> {
    let versions = grid_point::versions();
    let named = [("somafeed", versions.somafeed), ("libtiledb", versions.libtiledb)];
    named.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?))).collect()
}

/// Reads CSR rows in the requested order, into reused memory.
#[derive(Default)]
struct AskedRows {
    ascending: CsrBuffers,
    asked: CsrBuffers,
}

impl AskedRows {
    fn read(
        &mut self,
        reader: &dyn XReader,
        joinids: &[i64],
        genes: &GeneSelection,
    ) -> anyhow::Result<&CsrBuffers> {
        let mut sorted: Vec<u64> = joinids.iter().map(|joinid| joinid.cast_unsigned()).collect();
        let in_order = sorted.is_sorted();
        sorted.sort_unstable();
        let ranges = sorted.iter().map(|joinid| *joinid..*joinid + 1).collect();
        reader.read_csr(&RowRanges::new(ranges)?, genes, &mut self.ascending)?;
        if in_order {
            return Ok(&self.ascending);
        }
        let (from, to) = (&self.ascending, &mut self.asked);
        to.clear();
        to.n_columns = from.n_columns;
        for joinid in joinids {
            let row = sorted
                .binary_search(&joinid.cast_unsigned())
                .ok()
                .context("a row that was asked for was not read")?;
            let (columns, values) = from.row(row);
            to.columns.extend_from_slice(columns);
            to.values.extend_from_slice(values);
            to.row_offsets.push(to.values.len());
        }
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soma_io::MemoryReader;

    #[test]
    fn rows_come_in_the_order_asked_for() {
        let x = MemoryReader::new(CsrBuffers {
            row_offsets: vec![0, 2, 2, 3, 4],
            columns: vec![0, 3, 1, 2],
            values: vec![1.0, 2.0, 5.0, 7.0],
            n_columns: 4,
        })
        .unwrap();
        let mut rows = AskedRows::default();
        for (joinids, expect) in [
            (&[0, 1, 2][..], vec![1.0, 2.0, 5.0]),
            (&[3, 0, 1], vec![7.0, 1.0, 2.0]),
            (&[2], vec![5.0]),
        ] {
            let csr = rows.read(&x, joinids, &GeneSelection::All).unwrap();
            csr.check().unwrap();
            assert_eq!((csr.n_rows(), &csr.values), (joinids.len(), &expect));
        }
        rows.read(&x, &[1, 1], &GeneSelection::All).unwrap_err();
    }
}
