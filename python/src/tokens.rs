//! Tokenizers, and the tokens of batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_schema::DataType;
use loader::TokenBatch;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokens::{
    BinSpec, BinnedValues, Cut, Layout, RankSpec, RankValues, SpecialNames, Ties, Vocabulary,
};

use crate::border::Memory;
use crate::buffers::SlotBuffer;
use crate::dataset::Dataset;
use crate::engine::choice;
use crate::errors::{OrException as _, value_error};
use crate::memory_limit::KeptBatches;
use crate::numpy;
use crate::waiting::detached;

/// Makes tokens of the cells of a data set.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Tokenizer {
    pub(crate) made: Arc<tokens::Tokenizer>,
}

#[pymethods]
impl Tokenizer {
    #[staticmethod]
    #[pyo3(signature = (
        dataset, vocabulary, medians, *, gene_column = "feature_id", pad = "<pad>", cls = None,
        eos = None, target_sum = 1e4, max_length = 2048
    ))]
    fn ranks(
        py: Python<'_>,
        dataset: &Dataset,
        vocabulary: &Bound<'_, PyDict>,
        medians: HashMap<String, f64>,
        gene_column: &str,
        pad: &str,
        cls: Option<&str>,
        eos: Option<&str>,
        target_sum: f64,
        max_length: usize,
    ) -> PyResult<Self> {
        let entries = entries(vocabulary)?;
        let genes = gene_names(dataset, gene_column)?;
        let spec = RankSpec { target_sum, max_length };
        let made = detached(py, || {
            let vocabulary = Vocabulary::new(entries, SpecialNames { pad, cls, eos })?;
            RankValues::new(&vocabulary, &medians, &genes, spec)
        })?;
        Ok(Self { made: Arc::new(tokens::Tokenizer::Ranks(made.or_exception()?)) })
    }

    #[staticmethod]
    #[pyo3(signature = (
        dataset, vocabulary, *, gene_column = "feature_id", pad = "<pad>", cls = None, eos = None,
        n_bins = 51, ties = "spread", cut = "random", include_zeros = false, max_length = 1200,
        pad_value = -2.0, seed = 0
    ))]
    fn bins(
        py: Python<'_>,
        dataset: &Dataset,
        vocabulary: &Bound<'_, PyDict>,
        gene_column: &str,
        pad: &str,
        cls: Option<&str>,
        eos: Option<&str>,
        n_bins: usize,
        ties: &str,
        cut: &str,
        include_zeros: bool,
        max_length: usize,
        pad_value: f32,
        seed: u64,
    ) -> PyResult<Self> {
        let entries = entries(vocabulary)?;
        let genes = gene_names(dataset, gene_column)?;
        let all_ties = [("spread", Ties::Spread), ("highest", Ties::Highest)];
        let cuts = [("random", Cut::Random), ("highest", Cut::HighestValues)];
        let (ties, cut) = (choice("ties", ties, &all_ties)?, choice("cut", cut, &cuts)?);
        let spec = BinSpec { n_bins, ties, cut, include_zeros, max_length, pad_value, seed };
        let made = detached(py, || {
            let vocabulary = Vocabulary::new(entries, SpecialNames { pad, cls, eos })?;
            BinnedValues::new(&vocabulary, &genes, spec)
        })?;
        Ok(Self { made: Arc::new(tokens::Tokenizer::Bins(made.or_exception()?)) })
    }

    #[getter]
    fn n_known(&self) -> usize {
        self.made.genes().n_known()
    }

    #[getter]
    fn n_unknown(&self) -> usize {
        self.made.genes().n_unknown()
    }

    #[getter]
    fn max_length(&self) -> usize {
        self.made.max_length()
    }

    fn __repr__(&self) -> String {
        let (genes, most) = (self.made.genes(), self.made.max_length());
        let (n_known, n_genes) = (genes.n_known(), genes.n_columns());
        format!("Tokenizer({n_known} of {n_genes} genes, at most {most} tokens)")
    }
}

/// The layout with this name.
pub(crate) fn layout(name: &str) -> PyResult<Layout> {
    let layouts = [
        ("padded", Layout::Padded),
        ("longest", Layout::PaddedToLongest),
        ("ragged", Layout::Ragged),
    ];
    choice("token_layout", name, &layouts)
}

/// Names and token ids, in the dictionary's order.
fn entries(vocabulary: &Bound<'_, PyDict>) -> PyResult<Vec<(String, u32)>> {
    vocabulary.iter().map(|(name, id)| Ok((name.extract()?, id.extract()?))).collect()
}

/// The names of a data set's genes in a var column; empty for absent genes.
fn gene_names(dataset: &Dataset, column: &str) -> PyResult<Vec<String>> {
    let var = dataset.var_rows();
    let Some(names) = var.column_by_name(column) else {
        let fields = var.schema_ref().fields().iter().map(|field| field.name().as_str());
        let there = fields.collect::<Vec<_>>().join(", ");
        let problem = format!(
            "the data set has no var column {column:?} to find genes by; it has {there}: open it \
             with var_columns=[{column:?}]"
        );
        return Err(value_error(&problem));
    };
    let texts = arrow_cast::cast(names, &DataType::LargeUtf8)
        .map_err(|error| value_error(&format!("var column {column:?}: {error}")))?;
    let texts = texts.as_string::<i64>();
    let name = |at| if texts.is_null(at) { String::new() } else { texts.value(at).to_owned() };
    Ok((0..texts.len()).map(name).collect())
}

/// Tokens of a batch as numpy sees them.
#[derive(Debug)]
pub(crate) struct Tokens {
    ids: Py<Memory>,
    values: Option<Py<Memory>>,
    lengths: Py<Memory>,
    offsets: Py<Memory>,
    is_padded: bool,
}

impl Tokens {
    /// Takes over the tokens of a batch, and adds their bytes to `n_bytes`.
    pub(crate) fn new(
        py: Python<'_>,
        batch: TokenBatch<SlotBuffer>,
        kept: &Arc<KeptBatches>,
        n_bytes: &mut u64,
    ) -> PyResult<Self> {
        let TokenBatch { tokens, values, places, .. } = batch;
        let bytes = places.n_tokens() as u64 * 4;
        let mut array_of = |buffer: SlotBuffer| {
            *n_bytes += bytes;
            let memory = buffer.into_memory(kept.keep(bytes))?;
            let memory = match places.width() {
                Some(width) => memory.with_shape(&[places.n_cells(), width])?,
                None => memory,
            };
            Py::new(py, memory)
        };
        let offsets = places.offsets().iter().map(|offset| *offset as i64).collect();
        Ok(Self {
            ids: array_of(tokens)?,
            values: values.map(array_of).transpose()?,
            lengths: Py::new(py, Memory::of_vec(lengths(places.lengths())))?,
            offsets: Py::new(py, Memory::of_vec::<i64>(offsets))?,
            is_padded: places.width().is_some(),
        })
    }

    /// The arrays by name.
    pub(crate) fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = PyDict::new(py);
        arrays.set_item("input_ids", numpy::array(py, &self.ids)?)?;
        if let Some(values) = &self.values {
            arrays.set_item("values", numpy::array(py, values)?)?;
        }
        arrays.set_item("length", numpy::array(py, &self.lengths)?)?;
        if !self.is_padded {
            arrays.set_item("offsets", numpy::array(py, &self.offsets)?)?;
        }
        Ok(arrays)
    }
}

/// Lengths as the integers that models take.
fn lengths(lengths: &[u32]) -> Vec<i64> {
    lengths.iter().copied().map(i64::from).collect()
}
