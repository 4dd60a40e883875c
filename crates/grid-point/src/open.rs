//! Opens the data of a point and makes its loader.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bench_run::IoLimit;
use bytesize::ByteSize;
use loader::encode::{Encoder, LabelEncoder, Nulls, Rules};
use loader::{AxisQuery, Dataset, DatasetSpec, Genes, Joinids, ValueFilter};
use soma_io::{Experiment, OpenOptions, ReadLimit};

use crate::consumer;
use crate::data::{Data, DataSource, Opened};
use crate::feed::{self, PointLoader};
use crate::label_entropy::{self, Labels};
use crate::point::Point;

/// Makes the loader of a point; the process already uses `used_bytes` of the memory limit. Fails if
/// the limit is too small for the blocks, and with the loader's errors.
#[cfg_attr(not(feature = "torch"), expect(unreachable_pub, reason = "public with torch"))]
pub fn point_loader(
    dataset: Dataset,
    point: &Point,
    used_bytes: u64,
) -> anyhow::Result<PointLoader> {
    match feed::loader(dataset, point.loader_spec(used_bytes)) {
        Err(feed::Error::Loader(loader::LoaderError::Pipeline(pipeline::Error::Memory {
            least,
            ..
        }))) => bail!(
            "--memory {} is too little for blocks of {} chunks of {} rows: give {} or more, or make blocks or batches smaller",
            ByteSize(point.memory_limit.unwrap_or(0)),
            point.spec.pipeline.chunks_per_block,
            point.spec.pipeline.chunk_rows,
            ByteSize(least.saturating_add(used_bytes)),
        ),
        loader => Ok(loader?),
    }
}

/// Opened data.
#[derive(Debug)]
pub struct OpenData {
    /// The selected cells and genes.
    pub dataset: Dataset,
    /// Labels whose entropy is measured.
    pub labels: Labels,
    /// Facts about the data.
    pub opened: Opened,
    /// Number of classes that the consumer trains on.
    pub(crate) n_classes: usize,
    /// Token bucket that limits the reader, if it enforces the limit.
    pub(crate) bucket: Option<Arc<ReadLimit>>,
}

impl OpenData {
    /// Opens the data under its read limit. `learned` is the obs column with the classes that the
    /// consumer trains on. Fails if the data cannot be opened or the selection has no cells.
    pub fn open(data: &Data, learned: Option<&str>) -> anyhow::Result<Self> {
        data.io_limit.as_ref().map_or(Ok(()), IoLimit::enter)?;
        let bucket = data.io_limit.as_ref().and_then(IoLimit::bucket);
        open(data, bucket, learned)
    }
}

fn open(
    data: &Data,
    bucket: Option<Arc<ReadLimit>>,
    learned: Option<&str>,
) -> anyhow::Result<OpenData> {
    let DataSource { uri, config } = data.source()?;
    let options = OpenOptions { config, ..OpenOptions::default() };
    let mut experiment = Experiment::open(uri.full(), &options)?;
    if let Some(limit) = &bucket {
        experiment = experiment.with_read_limit(Arc::clone(limit));
    }
    let x = experiment.measurement(&data.measurement)?.x(&data.layer)?;
    let obs = experiment.obs()?;
    let labels = label_entropy::columns(data.entropy_of.as_deref(), obs.schema());
    let mut obs_columns = data.obs_columns.clone();
    for column in labels.iter().map(String::as_str).chain(learned) {
        if !obs_columns.iter().any(|known| known == column) {
            obs_columns.push(column.to_owned());
        }
    }
    let spec = DatasetSpec {
        measurement: Some(data.measurement.clone()),
        layer: Some(data.layer.clone()),
        obs_columns,
        cells: query(
            data.cells.clone().map(|cells| within(cells, x.shape().0)).transpose()?,
            data.obs_filter.as_deref(),
        )?,
        genes: Genes::Query(query(data.n_genes.map(|n| 0..n), data.var_filter.as_deref())?),
        totals: data.totals.clone(),
        reader: data.reader.parse()?,
        ..DatasetSpec::default()
    };
    let dataset =
        Dataset::from_experiment(&experiment, &spec).with_context(|| data.uri.to_string())?;
    if dataset.n_rows() == 0 {
        bail!("{} has no cells in the selection", data.uri);
    }
    let opened = Opened {
        n_cells: dataset.n_rows(),
        n_genes: dataset.n_columns() as u64,
        total_nnz: x.nnz()?,
        reader: dataset.reader_name(),
        why_not_native: dataset.why_not_native().map(str::to_owned),
    };
    let classes = learned.map(|column| classes(&dataset, column)).transpose()?;
    let n_classes = classes.as_ref().and_then(|classes| classes.n_classes()).unwrap_or(0);
    let (labels, dataset) = Labels::read(dataset, &labels, classes.into_iter().collect())?;
    Ok(OpenData { dataset, labels, opened, n_classes, bucket })
}

/// Encodes the classes of an obs column, including null.
fn classes(dataset: &Dataset, column: &str) -> anyhow::Result<Arc<dyn Encoder>> {
    let rules = Rules { nulls: Nulls::Class, ..Rules::default() };
    let labels = dataset.obs().column_by_name(column).context("an obs column was asked for")?;
    let encoder = LabelEncoder::fit(column, labels, rules)
        .with_context(|| format!("--consumer linear:{column} has no classes to learn"))?;
    Ok(Arc::new(encoder.with_name(consumer::CLASSES)))
}

fn query(joinids: Option<Range<u64>>, filter: Option<&str>) -> anyhow::Result<AxisQuery> {
    Ok(AxisQuery {
        joinids: joinids.map_or(Joinids::All, Joinids::Range),
        value_filter: filter.map(ValueFilter::parse).transpose()?,
    })
}

/// Checks a range of cells and ends an open one at the last row. Fails if it is empty or exceeds X.
fn within(cells: Range<u64>, x_rows: u64) -> anyhow::Result<Range<u64>> {
    let end = if cells.end == u64::MAX { x_rows } else { cells.end };
    if x_rows < end || end <= cells.start {
        bail!("cells {}..{end} are asked for, X has rows 0..{x_rows}", cells.start);
    }
    Ok(cells.start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_must_be_rows_of_x() {
        assert_eq!(within(3..u64::MAX, 10).unwrap(), 3..10);
        assert_eq!(within(0..10, 10).unwrap(), 0..10);
        for range in [0..11, 10..u64::MAX, 12..13] {
            let message = within(range, 10).unwrap_err().to_string();
            assert!(message.contains("X has rows 0..10"), "{message}");
        }
    }
}
