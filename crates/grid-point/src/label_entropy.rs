//! Measures how random the order of an epoch is: the entropy of labels in each batch, and the
//! entropy expected from the settings.
//!
//! A label is an obs column. A dictionary's keys are counted as they are; an encoder gives other
//! columns codes once, when the data is opened. A batch then costs one count per code, without
//! reading its labels. Null is a class of its own.

use std::sync::Arc;

use anyhow::Context as _;
use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};
use bench_report::OrderEntropy;
use bench_run::{LabelCodes, first_chunks};
use loader::encode::{Encoder, Encoders, LabelEncoder, Nulls, Rules};
use loader::{Dataset, PipelineSpec};
use shuffle::entropy::LabelEntropy;

use crate::feed::{self, PointBatch};

/// Columns that are measured by default, one of each list: the first that obs has as text. Files
/// are often sorted by where cells come from, which says nothing about how their types are mixed.
pub const DEFAULT_COLUMNS: [&[&str]; 2] =
    [&["cell_type"], &["donor_id", "donor", "sample_id", "sample", "batch", "dataset_id"]];

/// Rows whose keys are listed at once.
const WINDOW_ROWS: usize = 1 << 20;

/// Returns the columns to measure: all in `asked`, or those of the default that obs has as text.
pub(crate) fn columns(asked: Option<&[String]>, obs: &Schema) -> Vec<String> {
    let is_text = |data_type: &DataType| {
        matches!(data_type, DataType::Dictionary(..) | DataType::Utf8 | DataType::LargeUtf8)
    };
    if let Some(columns) = asked {
        return columns.to_vec();
    }
    let has =
        |name: &&&str| obs.field_with_name(name).is_ok_and(|field| is_text(field.data_type()));
    let first = |names: &&[&str]| names.iter().find(has).map(ToString::to_string);
    DEFAULT_COLUMNS.iter().filter_map(first).collect()
}

/// Labels of a data set's cells, whose entropy is measured.
#[derive(Debug)]
pub struct Labels(Vec<Label>);

#[derive(Debug)]
struct Label {
    column: String,
    /// Codes are below this number.
    n_classes: usize,
    /// Whether the codes are the keys of the column's dictionary; otherwise an encoder makes them.
    is_category: bool,
}

impl Labels {
    /// Returns the labels in these obs columns, and the data set with the codes of `encoders` and
    /// of the labels that need an encoder. Fails if a column is missing or cannot be encoded.
    pub(crate) fn read(
        dataset: Dataset,
        columns: &[String],
        mut encoders: Vec<Arc<dyn Encoder>>,
    ) -> anyhow::Result<(Self, Dataset)> {
        let rules = Rules { nulls: Nulls::Class, ..Rules::default() };
        let mut labels = Vec::with_capacity(columns.len());
        for column in columns {
            let array = obs_column(&dataset, column)?;
            let n_classes = if let Some(dictionary) = array.as_any_dictionary_opt() {
                dictionary.values().len() + 1
            } else {
                let encoder = LabelEncoder::fit(column, array, rules)
                    .with_context(|| format!("no entropy of {column} can be measured"))?;
                let n_classes = encoder.n_classes().unwrap_or(0);
                encoders.push(Arc::new(encoder));
                n_classes
            };
            let is_category = array.as_any_dictionary_opt().is_some();
            labels.push(Label { column: column.clone(), n_classes, is_category });
        }
        let dataset = if encoders.is_empty() {
            dataset
        } else {
            dataset.with_encoders(&Encoders::new(encoders)?)?
        };
        Ok((Self(labels), dataset))
    }

    /// Returns each label's expected entropy in the full batches of these settings; without
    /// shuffling, only in the first `max_batches`.
    pub(crate) fn expected(
        &self,
        dataset: &Dataset,
        spec: &PipelineSpec,
        max_batches: Option<u64>,
    ) -> anyhow::Result<Vec<OrderEntropy>> {
        let expected = |label: &Label| Ok(label.codes(dataset)?.expected(spec, max_batches)?);
        self.0.iter().map(expected).collect()
    }

    /// Returns the classes of each label.
    pub fn codes(&self, dataset: &Dataset) -> anyhow::Result<Vec<LabelCodes>> {
        self.0.iter().map(|label| label.codes(dataset)).collect()
    }

    /// Returns meters for one epoch.
    pub(crate) fn meters(&self, spec: &PipelineSpec) -> anyhow::Result<Meters<'_>> {
        let meter = |label: &Label| LabelEntropy::new(label.n_classes, spec.batch_rows);
        let meters = || self.0.iter().map(meter).collect::<Result<_, _>>();
        Ok(Meters {
            labels: self,
            of_labels: meters()?,
            of_first: meters()?,
            n_first: first_chunks(spec)
                .map_or(0, |chunks| chunks * spec.chunk_rows / spec.batch_rows),
            n_added: 0,
            codes: Vec::new(),
        })
    }
}

impl Label {
    fn codes(&self, dataset: &Dataset) -> anyhow::Result<LabelCodes> {
        let mut codes = Vec::with_capacity(dataset.n_rows() as usize);
        if self.is_category {
            self.keys(obs_column(dataset, &self.column)?, &mut codes);
        } else {
            let encoded = dataset.codes_of(&self.column).context("an encoder gave no codes")?;
            codes.extend(encoded.map(|code| code as u32));
        }
        Ok(LabelCodes { label: self.column.clone(), codes, n_classes: self.n_classes })
    }

    /// Appends the keys of a dictionary to `codes`; null is the last class.
    fn keys(&self, array: &ArrayRef, codes: &mut Vec<u32>) {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return };
        let null = self.n_classes as u32 - 1;
        if dictionary.values().is_empty() {
            // All values are null: no key is valid.
            codes.extend(std::iter::repeat_n(null, array.len()));
            return;
        }
        // Arrow makes keys of 8 bytes, so it gets some rows at a time.
        for first in (0..array.len()).step_by(WINDOW_ROWS) {
            let window = array.slice(first, WINDOW_ROWS.min(array.len() - first));
            let Some(dictionary) = window.as_any_dictionary_opt() else { return };
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            codes.extend(keys.map(
                |(row, key)| {
                    if window.is_null(row) { null } else { key as u32 }
                },
            ));
        }
    }
}

fn obs_column<'a>(dataset: &'a Dataset, column: &str) -> anyhow::Result<&'a ArrayRef> {
    dataset.obs().column_by_name(column).with_context(|| format!("obs has no column {column}"))
}

/// Counts the labels of an epoch's batches.
#[derive(Debug)]
pub(crate) struct Meters<'a> {
    labels: &'a Labels,
    of_labels: Vec<LabelEntropy>,
    /// Labels of the batches that lie in the first of several growing blocks.
    of_first: Vec<LabelEntropy>,
    /// Number of these batches.
    n_first: u64,
    n_added: u64,
    /// Codes of one batch; the memory is reused.
    codes: Vec<u32>,
}

impl Meters<'_> {
    pub(crate) fn add(&mut self, batch: &PointBatch) -> anyhow::Result<()> {
        let is_first = self.n_added < self.n_first;
        self.n_added += 1;
        let meters = self.of_labels.iter_mut().zip(&mut self.of_first);
        for (label, (meter, of_first)) in self.labels.0.iter().zip(meters) {
            self.codes.clear();
            if label.is_category {
                let column = feed::obs(batch).column_by_name(&label.column);
                label.keys(column.context("a batch lacks an obs column")?, &mut self.codes);
            } else {
                let codes = feed::codes(batch, &label.column)?;
                self.codes.extend(codes.iter().map(|code| *code as u32));
            }
            meter.add(self.codes.iter().copied())?;
            if is_first {
                of_first.add(self.codes.iter().copied())?;
            }
        }
        Ok(())
    }

    /// Adds the measured entropy to the expected one.
    pub(crate) fn measured(&self, expected: &[OrderEntropy]) -> Vec<OrderEntropy> {
        let fill = |(expected, (meter, first)): (&OrderEntropy, (&LabelEntropy, &LabelEntropy))| {
            let batches = meter.batches();
            OrderEntropy {
                first_mean: first.batches().map(|batches| batches.mean),
                mean: batches.map(|batches| batches.mean),
                standard_deviation: batches.map(|batches| batches.standard_deviation),
                ..expected.clone()
            }
        };
        let meters = self.of_labels.iter().zip(&self.of_first);
        expected.iter().zip(meters).map(fill).collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int8Type, UInt32Type};
    use arrow_array::{DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
    use arrow_schema::Field;
    use loader::{Cells, GeneSelection, Order};
    use soma_io::{CsrBuffers, MemoryReader};

    use super::*;

    /// Sixty cells with a category with nulls, as keys of two widths, as text and as numbers, and
    /// with a column that is not a label.
    fn dataset() -> Dataset {
        let texts: Vec<Option<&str>> =
            (0..60).map(|row| [Some("a"), Some("b"), None][row / 7 % 3]).collect();
        let numbers: Vec<Option<i64>> =
            texts.iter().map(|text| text.map(|text| i64::from(text == "a"))).collect();
        let narrow: DictionaryArray<Int8Type> = texts.iter().copied().collect();
        let wide: DictionaryArray<UInt32Type> = texts.iter().copied().collect();
        let obs = RecordBatch::try_from_iter([
            ("narrow", Arc::new(narrow) as ArrayRef),
            ("wide", Arc::new(wide)),
            ("text", Arc::new(StringArray::from(texts))),
            ("number", Arc::new(Int64Array::from(numbers))),
            ("nnz", Arc::new(Float64Array::from(vec![0.5; 60]))),
        ])
        .unwrap();
        let csr = CsrBuffers { row_offsets: vec![0; 61], n_columns: 1, ..CsrBuffers::default() };
        let x = MemoryReader::new(csr).unwrap();
        Dataset::new(Arc::new(x), Cells::Range(0..60), obs, GeneSelection::All).unwrap()
    }

    fn spec(order: Order) -> PipelineSpec {
        PipelineSpec {
            order,
            chunk_rows: 3,
            chunks_per_block: 4,
            batch_rows: 8,
            ..PipelineSpec::default()
        }
    }

    #[test]
    fn a_column_says_the_same_whatever_its_type() {
        let columns = ["narrow", "wide", "text", "number"].map(str::to_owned);
        let (labels, dataset) = Labels::read(dataset(), &columns, Vec::new()).unwrap();
        for order in [Order::Shuffled, Order::InOrder] {
            let found = labels.expected(&dataset, &spec(order), None).unwrap();
            let figures = |one: &OrderEntropy| (one.expected, one.perfect, one.data);
            for (one, column) in found.iter().zip(&columns) {
                assert_eq!(one.label, *column);
                let [of_this, of_first] = [figures(one), figures(&found[0])];
                let all = |figures: (Option<f64>, Option<f64>, Option<f64>)| {
                    [figures.0.unwrap(), figures.1.unwrap(), figures.2.unwrap()]
                };
                let pairs = all(of_this).into_iter().zip(all(of_first));
                assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
            }
            let by = found[0].expected_by.as_deref().unwrap();
            assert_eq!(by, if order == Order::Shuffled { "simulation" } else { "rows" });
            // Three classes of equal size, including null.
            assert!((found[0].data.unwrap() - 3.0_f64.log2()).abs() < 0.01);
        }
    }

    #[test]
    fn a_category_without_categories_is_one_class() {
        let nothing: DictionaryArray<Int8Type> = [None::<&str>; 5].into_iter().collect();
        let label = Label { column: "nothing".to_owned(), n_classes: 1, is_category: true };
        let mut codes = Vec::new();
        label.keys(&(Arc::new(nothing) as ArrayRef), &mut codes);
        assert_eq!(codes, [0; 5]);
    }

    #[test]
    fn in_order_what_comes_is_what_is_expected() {
        let (labels, dataset) = Labels::read(dataset(), &["wide".to_owned()], Vec::new()).unwrap();
        let first_expected = |max_batches| {
            let found = labels.expected(&dataset, &spec(Order::InOrder), max_batches).unwrap();
            found[0].expected.unwrap()
        };
        // The first eight rows are seven times a and once b.
        let first = -(7.0 / 8.0 * f64::log2(7.0 / 8.0) + 1.0 / 8.0 * f64::log2(1.0 / 8.0));
        assert!((first_expected(Some(1)) - first).abs() < 1e-12);
        assert!(first < first_expected(None));
    }

    #[test]
    fn enough_chunks_need_no_simulation_and_too_few_rows_have_no_batch() {
        let (labels, dataset) = Labels::read(dataset(), &["text".to_owned()], Vec::new()).unwrap();
        let expectation =
            |spec: PipelineSpec| labels.expected(&dataset, &spec, None).unwrap().remove(0);
        let all = expectation(PipelineSpec { chunks_per_block: 1 << 20, ..spec(Order::Shuffled) });
        assert_eq!(all.expected_by.as_deref(), Some("formula"));
        assert!((all.expected.unwrap() - all.perfect.unwrap()).abs() < 1e-9);
        let none = expectation(PipelineSpec { batch_rows: 61, ..spec(Order::Shuffled) });
        assert_eq!((none.expected, none.perfect), (None, None));
        assert!(none.data.is_some());
    }

    #[test]
    fn what_is_no_label_is_named() {
        let error = Labels::read(dataset(), &["nnz".to_owned()], Vec::new()).unwrap_err();
        assert!(format!("{error:#}").contains("no entropy of nnz"), "{error:#}");
    }

    #[test]
    fn cell_types_and_donors_are_taken_where_nothing_is_said_and_obs_has_them() {
        let with = |data_type| Schema::new(vec![Field::new("cell_type", data_type, true)]);
        let texts = ["batch", "cell_type", "tissue", "donor_id"];
        let texts = Schema::new(texts.map(|name| Field::new(name, DataType::Utf8, true)).to_vec());
        assert_eq!(columns(None, &texts), ["cell_type", "donor_id"]);
        assert_eq!(columns(None, &with(DataType::Utf8)), ["cell_type"]);
        assert!(columns(None, &with(DataType::Float32)).is_empty());
        assert!(columns(None, &Schema::empty()).is_empty());
        assert!(columns(Some(&[]), &with(DataType::Utf8)).is_empty());
        assert_eq!(columns(Some(&["tissue".to_owned()]), &Schema::empty()), ["tissue"]);
    }
}
