//! How mixed batches are: the entropy of each label that they have.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shuffle::entropy::{LabelEntropy, entropy};

use crate::numpy::Integers;

/// Most classes of a label that is counted, at 16 bytes each.
const MOST_CLASSES: usize = 1 << 16;

/// Counts the labels of an epoch's batches: of cells the codes of its encoders, and its categorical
/// obs columns; of other samples the columns of labels beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct EntropyMeter {
    labels: Vec<Label>,
}

#[derive(Debug, Clone)]
struct Label {
    name: String,
    /// Where a batch has it.
    column: Column,
    /// Codes are below this number; the last is that of cells without a label.
    n_classes: usize,
    counted: LabelEntropy,
}

#[derive(Debug, Clone)]
enum Column {
    /// The codes of this encoder.
    Codes(usize),
    /// The keys of this categorical column of obs.
    Obs(usize),
    /// The label of each sample.
    OfSamples(Arc<SampleLabels>),
}

/// A column of labels beside samples, as Python describes it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DescribedLabels {
    name: String,
    n_classes: usize,
    /// The code of each sample's label; empty if samples of one label follow each other.
    codes: Integers,
    /// One past the last sample of each label.
    ends: Integers,
}

/// The label of each sample, by its number.
#[derive(Debug)]
struct SampleLabels {
    codes: Vec<u32>,
    ends: Vec<u64>,
}

impl SampleLabels {
    fn code(&self, sample: u64) -> u32 {
        let code = usize::try_from(sample).ok().and_then(|sample| self.codes.get(sample));
        code.copied().unwrap_or_else(|| self.ends.partition_point(|end| *end <= sample) as u32)
    }
}

impl EntropyMeter {
    /// A meter for batches of `batch_rows` cells of a data set, which looks at all its codes.
    pub(crate) fn new(dataset: &loader::Dataset, batch_rows: u64) -> Self {
        let codes = dataset.encoders().enumerate().filter_map(|(idx, name)| {
            let most = dataset.codes_of(name)?.max().unwrap_or(0);
            Some((name.to_owned(), Column::Codes(idx), usize::try_from(most).unwrap_or(0) + 1))
        });
        let obs = dataset.obs();
        let categories = obs.schema_ref().fields().iter().zip(obs.columns()).enumerate();
        let categories = categories.filter_map(|(idx, (field, array))| {
            let n_classes = array.as_any_dictionary_opt()?.values().len();
            Some((field.name().clone(), Column::Obs(idx), n_classes))
        });
        let mut labels: Vec<Label> = Vec::new();
        for (name, column, n_classes) in codes.chain(categories) {
            // An encoder may have the name of the column that it encodes.
            if n_classes >= MOST_CLASSES || labels.iter().any(|label| label.name == name) {
                continue;
            }
            let n_classes = n_classes + 1;
            if let Ok(counted) = LabelEntropy::new(n_classes, batch_rows) {
                labels.push(Label { name, column, n_classes, counted });
            }
        }
        Self { labels }
    }

    /// A meter for batches of `batch_rows` samples that have these labels.
    pub(crate) fn of_samples(labels: Vec<DescribedLabels>, batch_rows: u64) -> PyResult<Self> {
        let mut meter = Self::default();
        for DescribedLabels { name, n_classes, codes, ends } in labels {
            let labels = SampleLabels { codes: codes.codes()?, ends: ends.0 };
            if n_classes >= MOST_CLASSES {
                continue;
            }
            if let Ok(counted) = LabelEntropy::new(n_classes, batch_rows) {
                let column = Column::OfSamples(Arc::new(labels));
                meter.labels.push(Label { name, column, n_classes, counted });
            }
        }
        Ok(meter)
    }

    /// Whether no label is counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Counts the labels of a batch of these samples, without its padding.
    pub(crate) fn add_samples(&mut self, samples: &[u64], n_padding: usize) {
        let samples = &samples[..samples.len().saturating_sub(n_padding)];
        for Label { column, n_classes, counted, .. } in &mut self.labels {
            let Column::OfSamples(labels) = column else { continue };
            let last = n_classes.saturating_sub(1) as u32;
            let codes = samples.iter().map(|sample| labels.code(*sample).min(last));
            // Codes are below the number of classes, so none is refused.
            drop(counted.add(codes));
        }
    }

    /// Counts the labels of a batch of cells, without its padding.
    pub(crate) fn add(&mut self, obs: &RecordBatch, codes: &RecordBatch, n_padding: usize) {
        for label in &mut self.labels {
            let array = match label.column {
                Column::Codes(idx) => codes.columns().get(idx),
                Column::Obs(idx) => obs.columns().get(idx),
                Column::OfSamples(_) => None,
            };
            let Some(array) = array else { continue };
            let n_rows = array.len().saturating_sub(n_padding);
            // Codes are below the number of classes, so none is refused.
            drop(label.counted.add(label_codes(array, label.n_classes).into_iter().take(n_rows)));
        }
    }

    /// A dictionary for each label: `batch` and `spread`, mean and standard deviation of the bits
    /// of full batches, and `cells`, the bits of all cells that were delivered.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for Label { name, counted, .. } in &self.labels {
            let of_label = PyDict::new(py);
            let batches = counted.batches();
            of_label.set_item("batch", batches.map(|batches| batches.mean))?;
            of_label.set_item("spread", batches.map(|batches| batches.standard_deviation))?;
            of_label.set_item("cells", entropy(counted.class_rows().iter().copied()))?;
            all.set_item(name, of_label)?;
        }
        Ok(all)
    }
}

/// The code of each row; the last class for rows without a label.
fn label_codes(array: &ArrayRef, n_classes: usize) -> Vec<u32> {
    let none = n_classes - 1;
    let code = |code: usize| code.min(none) as u32;
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        // Without any category no row has one.
        if dictionary.values().is_empty() {
            return vec![none as u32; array.len()];
        }
        let keys = dictionary.normalized_keys();
        return (0..array.len())
            .map(|row| if array.is_valid(row) { code(keys[row]) } else { none as u32 })
            .collect();
    }
    let Some(codes) = array.as_primitive_opt::<Int64Type>() else { return Vec::new() };
    codes.values().iter().map(|of| code(usize::try_from(*of).unwrap_or(none))).collect()
}
