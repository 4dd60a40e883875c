//! The choice of a codec: a sample of the rows is written in each way, and read.

use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use soma_io::{
    Config, CsrBuffers, Experiment, ExperimentSpec, ExperimentWriter, Extent, OpenOptions,
    ReaderChoice, RowRanges,
};

use crate::codec::{Codec, Codecs, GENE_CODECS, MeasuredCodecs, VALUE_CODECS, first_not_whole};
use crate::layout;
use crate::order::Order;
use crate::source::Source;
use crate::speed::rows_per_second;
use crate::{Error, RelayoutSpec};

/// Values of the sample: some 2,500 cells of the Census.
const SAMPLE_VALUES: u64 = 4 << 20;
/// Runs of rows that the sample is made of.
const SAMPLE_RUNS: u64 = 32;
/// Chunks that a read asks for.
const CHUNKS_PER_READ: u64 = 16;

const MEASUREMENT: &str = "sample";
const LAYER: &str = "sample";

/// Rows of the source as they will stand in the new X: single ones from everywhere where they are shuffled, runs otherwise.
pub(crate) fn sample(source: &Source, order: &Order, chunk_rows: u64) -> Result<CsrBuffers, Error> {
    let n_cells = source.cells.n_rows();
    let n_rows = (SAMPLE_VALUES / source.mean_nnz()).clamp(1, n_cells);
    let run = if order.is_shuffled() { 1 } else { (n_rows / SAMPLE_RUNS).max(chunk_rows) };
    let n_runs = n_rows.div_ceil(run).min(n_cells.div_ceil(run));
    let runs = (0..n_runs).map(|idx| {
        let start = idx * n_cells / n_runs;
        start..(start + run).min((idx + 1) * n_cells / n_runs)
    });
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    // Which of the cells a new row holds does not matter where all are shuffled.
    for joinid in runs.flat_map(|run| Order::new(&source.cells, None).joinids(run)) {
        match ranges.last_mut() {
            Some(last) if last.end == joinid => last.end += 1,
            _ => ranges.push(joinid..joinid + 1),
        }
    }
    let mut out = CsrBuffers::default();
    source.read(&RowRanges::new(ranges)?, &mut out)?;
    Ok(out)
}

/// Measures codecs on a sample, quickest first. First those for genes with the last for values, then those for values with the best of
/// the first: the two are read one after the other, and each takes what it takes.
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
    let mut measured = Vec::new();
    for genes in GENE_CODECS {
        let codecs = Codecs { genes, values: first };
        measured.push(measure_one(sample, folder, spec, codecs, storage_bytes_per_second)?);
    }
    let by_speed = |a: &MeasuredCodecs, b: &MeasuredCodecs| {
        b.rows_per_second_of_storage.total_cmp(&a.rows_per_second_of_storage)
    };
    measured.sort_by(by_speed);
    let genes = measured[0].codecs.genes;
    for values in values.into_iter().skip(1) {
        let codecs = Codecs { genes, values };
        measured.push(measure_one(sample, folder, spec, codecs, storage_bytes_per_second)?);
    }
    measured.sort_by(by_speed);
    Ok(measured)
}

fn measure_one(
    sample: &CsrBuffers,
    folder: &Path,
    spec: &RelayoutSpec,
    codecs: Codecs,
    storage_bytes_per_second: f64,
) -> Result<MeasuredCodecs, Error> {
    let place = folder.join(format!("{}-{}", codecs.genes.name, codecs.values.name));
    let uri = place.to_string_lossy();
    write(sample, &uri, spec, &codecs)?;
    let n_bytes = folder_bytes(&place.join(format!("ms/{MEASUREMENT}/X/{LAYER}")))?;
    let experiment = Experiment::open(&uri, &options(&spec.config))?;
    let x = experiment.measurement(MEASUREMENT)?.x(LAYER)?;
    let reader = x.reader(ReaderChoice::Native)?;
    let n_rows = sample.n_rows() as u64;
    let rows_per_second =
        rows_per_second(reader.as_ref(), n_rows, (spec.chunk_rows, CHUNKS_PER_READ, n_rows))?;
    drop((reader, x, experiment));
    std::fs::remove_dir_all(&place).map_err(|source| Error::File {
        action: "remove",
        path: place,
        source,
    })?;
    let row_bytes = n_bytes as f64 / n_rows as f64;
    Ok(MeasuredCodecs {
        codecs,
        bytes_per_value: n_bytes as f64 / sample.nnz().max(1) as f64,
        rows_per_second,
        rows_per_second_of_storage: 1.0
            / (1.0 / rows_per_second + row_bytes / storage_bytes_per_second),
    })
}

pub(crate) fn options(config: &Config) -> OpenOptions {
    OpenOptions { config: config.clone(), timestamp: None }
}

/// Writes the sample as an experiment without columns.
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
