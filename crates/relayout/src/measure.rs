//! Chooses a codec: writes a sample of the rows with each candidate, and times reading it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use soma_io::{
    Config, CsrBuffers, Experiment, ExperimentSpec, ExperimentWriter, Extent, GeneSelection,
    OpenOptions, ReaderChoice, RowRanges, XReader,
};

use crate::codec::{Codec, Codecs, GENE_CODECS, MeasuredCodecs, VALUE_CODECS, first_not_whole};
use crate::layout;
use crate::order::Order;
use crate::source::Source;
use crate::speed::{Pass, random_reads};
use crate::{Error, RelayoutSpec};

/// Values of the sample, memory permitting: about 2,500 cells of the Census.
const SAMPLE_VALUES: u64 = 4 << 20;
/// Runs of consecutive rows in the sample.
const SAMPLE_RUNS: u64 = 32;
/// Chunks per read.
const CHUNKS_PER_READ: u64 = 16;

/// Passes over all samples, in turn.
const PASSES: usize = 7;
/// Relative speed from which a codec counts as fast as the fastest: measurements vary by this much.
const ABOUT_AS_QUICK: f64 = 0.97;

const MEASUREMENT: &str = "sample";
const LAYER: &str = "sample";

/// Reads a sample of the source: runs of rows from everywhere, shuffled if the new experiment will
/// be. Single rows from everywhere would take almost as long as reading the whole source.
pub(crate) fn sample(
    source: &Source,
    order: &Order,
    spec: &RelayoutSpec,
) -> Result<CsrBuffers, Error> {
    let n_cells = source.cells.n_rows();
    let n_values = SAMPLE_VALUES.min(spec.piece_values());
    let n_rows = (n_values / source.mean_nnz()).clamp(1, n_cells);
    let run = (n_rows / SAMPLE_RUNS).max(spec.chunk_rows);
    let n_runs = n_rows.div_ceil(run).min(n_cells.div_ceil(run));
    let runs = (0..n_runs).map(|idx| {
        let start = idx * n_cells / n_runs;
        start..(start + run).min((idx + 1) * n_cells / n_runs)
    });
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    for joinid in runs.flat_map(|run| Order::new(&source.cells, None).joinids(run)) {
        match ranges.last_mut() {
            Some(last) if last.end == joinid => last.end += 1,
            _ => ranges.push(joinid..joinid + 1),
        }
    }
    let mut out = CsrBuffers::default();
    source.read(&RowRanges::new(ranges)?, &mut out)?;
    Ok(if order.is_shuffled() { shuffled(&out) } else { out })
}

/// The rows in a random order, the same each time.
fn shuffled(rows: &CsrBuffers) -> CsrBuffers {
    let mut out = CsrBuffers { n_columns: rows.n_columns, ..CsrBuffers::default() };
    for row_idx in shuffle::storage_order(rows.n_rows() as u32, 0) {
        let (columns, values) = rows.row(row_idx as usize);
        out.columns.extend_from_slice(columns);
        out.values.extend_from_slice(values);
        out.row_offsets.push(out.values.len());
    }
    out
}

/// Measures codecs on a sample. Returns the one to use first, the others by speed. Measures the
/// codecs for genes with the first codec for values, then those for values with the best for genes:
/// columns and values are decoded one after the other, so their times are independent.
pub(crate) fn measure(
    sample: &CsrBuffers,
    folder: &Path,
    spec: &RelayoutSpec,
    storage_bytes_per_second: f64,
) -> Result<Vec<MeasuredCodecs>, Error> {
    let are_whole = first_not_whole(&sample.row_offsets, &sample.values).is_none();
    let fits = |codec: &&Codec| are_whole || !codec.whole_numbers;
    let values: Vec<Codec> = VALUE_CODECS.iter().filter(fits).copied().collect();
    let first = values.first().copied().unwrap_or(VALUE_CODECS[VALUE_CODECS.len() - 1]);
    let sample = Sample { rows: sample, folder, spec, storage_bytes_per_second };
    let genes = GENE_CODECS.map(|genes| Codecs { genes, values: first });
    let mut measured = sample.measure(&genes)?;
    best_first(&mut measured);
    let genes = measured[0].codecs.genes;
    let values: Vec<Codecs> =
        values.iter().map(|values| Codecs { genes, values: *values }).collect();
    // The best pair is measured again, so that all pairs that are compared were read in turn.
    measured.retain(|one| !values.contains(&one.codecs));
    measured.extend(sample.measure(&values)?);
    best_first(&mut measured);
    Ok(measured)
}

/// Sorts by speed, then moves the choice to the front: the smallest of those about as fast as the
/// fastest.
fn best_first(measured: &mut [MeasuredCodecs]) {
    let speed = |one: &MeasuredCodecs| one.rows_per_second_of_storage;
    measured.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let Some(enough) = measured.first().map(|one| speed(one) * ABOUT_AS_QUICK) else { return };
    let as_quick = measured.iter().enumerate().take_while(|(_, one)| speed(one) >= enough);
    let smallest =
        as_quick.min_by(|(_, a), (_, b)| a.bytes_per_value.total_cmp(&b.bytes_per_value));
    let best = smallest.map_or(0, |(idx, _)| idx);
    measured[..=best].rotate_right(1);
}

/// The rows to measure codecs on, and the folder for the files.
struct Sample<'a> {
    rows: &'a CsrBuffers,
    folder: &'a Path,
    spec: &'a RelayoutSpec,
    storage_bytes_per_second: f64,
}

/// A written sample, open for reading.
struct Candidate {
    codecs: Codecs,
    n_bytes: u64,
    reader: Arc<dyn XReader>,
    /// The least processor time of a pass.
    cpu: Duration,
}

impl Sample<'_> {
    /// Writes the sample with each of `codecs` and reads all of them in turn, several times.
    /// Reports the least processor time of each, which other work on the machine disturbs the
    /// least.
    fn measure(&self, codecs: &[Codecs]) -> Result<Vec<MeasuredCodecs>, Error> {
        let n_rows = self.rows.n_rows() as u64;
        let chunk_rows = self.spec.chunk_rows;
        let reads =
            random_reads(n_rows, Pass { chunk_rows, chunks_per_read: CHUNKS_PER_READ, n_rows })?;
        let mut candidates =
            codecs.iter().map(|codecs| self.write(*codecs)).collect::<Result<Vec<_>, _>>()?;
        let mut out = CsrBuffers::default();
        for _ in 0..PASSES {
            for candidate in &mut candidates {
                let mut cpu = Duration::ZERO;
                for rows in &reads {
                    let stats = candidate.reader.read_csr(rows, &GeneSelection::All, &mut out)?;
                    let times = stats.times.unwrap_or_default();
                    cpu += (times.fetch + times.decode).cpu;
                }
                candidate.cpu = candidate.cpu.min(cpu);
            }
        }
        let n_read: u64 = reads.iter().map(RowRanges::n_rows).sum();
        let measured = candidates.iter().map(|one| self.result(one, n_read)).collect();
        for codecs in codecs {
            let path = self.place(codecs);
            std::fs::remove_dir_all(&path).map_err(|source| Error::File {
                action: "remove",
                path,
                source,
            })?;
        }
        Ok(measured)
    }

    fn place(&self, codecs: &Codecs) -> PathBuf {
        self.folder.join(format!("{}-{}", codecs.genes.name, codecs.values.name))
    }

    fn write(&self, codecs: Codecs) -> Result<Candidate, Error> {
        let place = self.place(&codecs);
        let uri = place.to_string_lossy();
        write(self.rows, &uri, self.spec, &codecs)?;
        let n_bytes = folder_bytes(&place.join(format!("ms/{MEASUREMENT}/X/{LAYER}")))?;
        let experiment = Experiment::open(&uri, &options(&self.spec.config))?;
        let reader = experiment.measurement(MEASUREMENT)?.x(LAYER)?.reader(ReaderChoice::Native)?;
        Ok(Candidate { codecs, n_bytes, reader, cpu: Duration::MAX })
    }

    fn result(&self, candidate: &Candidate, n_read: u64) -> MeasuredCodecs {
        let seconds = candidate.cpu.as_secs_f64() / layout::n_threads() as f64;
        let rows_per_second = n_read as f64 / seconds.max(f64::MIN_POSITIVE);
        let row_bytes = candidate.n_bytes as f64 / self.rows.n_rows() as f64;
        MeasuredCodecs {
            codecs: candidate.codecs,
            bytes_per_value: candidate.n_bytes as f64 / self.rows.nnz().max(1) as f64,
            rows_per_second,
            rows_per_second_of_storage: 1.0
                / (1.0 / rows_per_second + row_bytes / self.storage_bytes_per_second),
        }
    }
}

pub(crate) fn options(config: &Config) -> OpenOptions {
    OpenOptions { config: config.clone(), ..OpenOptions::default() }
}

/// Writes the sample as an experiment whose obs and var have no columns.
fn write(
    sample: &CsrBuffers,
    uri: &str,
    spec: &RelayoutSpec,
    codecs: &Codecs,
) -> Result<(), Error> {
    let (n_obs, n_var) = (sample.n_rows() as u64, sample.n_columns as u64);
    let mut writer = ExperimentWriter::create(
        uri,
        ExperimentSpec {
            n_obs,
            n_var,
            obs: Vec::new(),
            var: Vec::new(),
            measurement: MEASUREMENT.to_owned(),
            layers: vec![LAYER.to_owned()],
            extent: Extent::CurrentDomain,
            x_layout: layout::for_training(spec.chunk_rows, n_var, codecs),
            fragment_rows: None,
            consolidate: false,
            config: spec.config.clone(),
        },
    )?;
    writer.write_x_natively(layout::n_threads())?;
    let rows = |n_rows: u64| {
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows as usize));
        RecordBatch::try_new_with_options(Schema::empty().into(), Vec::new(), &options)
            .map_err(|source| Error::Arrow { uri: uri.to_owned(), source })
    };
    writer.write_obs(&rows(n_obs)?)?;
    writer.write_var(&rows(n_var)?)?;
    writer.write_x(LAYER, &sample.row_offsets, &sample.columns, &sample.values)?;
    Ok(writer.finish()?)
}

/// The bytes of all files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64, Error> {
    let mut n_bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let list = || {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let found = entry.metadata()?;
                if found.is_dir() {
                    folders.push(entry.path());
                } else {
                    n_bytes += found.len();
                }
            }
            Ok(())
        };
        let mut list = list;
        list().map_err(|source| Error::File { action: "list", path: folder.clone(), source })?;
    }
    Ok(n_bytes)
}
