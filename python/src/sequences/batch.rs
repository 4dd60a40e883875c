//! Batches of sequences.

use std::sync::Arc;

use pipeline::BatchPlace;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sequences::{PaddedRows, SequenceBatch as Batch, SequenceParts};

use super::text;
use crate::border::{Element, Memory, ViewedElement};
use crate::engine::{NumberedBatch, PlacedBatch};
use crate::memory_limit::KeptBatches;
use crate::numpy;

impl NumberedBatch for Batch {
    type Class = SequenceBatch;

    fn place(&self) -> BatchPlace {
        self.place()
    }

    fn samples(&self) -> &[u64] {
        self.rows()
    }

    fn into_class(self, py: Python<'_>, kept: &Arc<KeptBatches>) -> PyResult<SequenceBatch> {
        SequenceBatch::new(py, self.into_parts(), kept)
    }
}

/// Sequences of a batch.
#[pyclass(extends = PlacedBatch, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct SequenceBatch {
    arrays: Vec<(&'static str, Py<Memory>)>,
    names: Option<Py<PyList>>,
}

/// Arrays of a batch that is on its way to Python, whose memory counts as kept.
struct Arrays<'a, 'py> {
    py: Python<'py>,
    kept: &'a Arc<KeptBatches>,
    n_bytes: u64,
    made: Vec<(&'static str, Py<Memory>)>,
}

impl Arrays<'_, '_> {
    /// Adds a vector as an array of this type and shape, without a copy.
    fn push<T: ViewedElement>(
        &mut self,
        name: &'static str,
        values: Vec<T>,
        element: Element,
        shape: &[usize],
    ) -> PyResult<()> {
        let n_bytes = (values.capacity() * size_of::<T>()) as u64;
        let memory = Memory::of_kept_vec(values, self.kept.keep(n_bytes));
        let memory = Py::new(self.py, memory.seen_as(element)?.with_shape(shape)?)?;
        self.n_bytes += n_bytes;
        self.made.push((name, memory));
        Ok(())
    }

    /// Adds where each of several parts begins, and where the last one ends.
    fn push_offsets(&mut self, name: &'static str, ends: &[usize]) -> PyResult<()> {
        let offsets = std::iter::once(0).chain(ends.iter().map(|end| *end as i64)).collect();
        self.push(name, offsets, Element::I64, &[ends.len() + 1])
    }

    /// Adds words, which are below 2^31.
    fn push_words(
        &mut self,
        name: &'static str,
        words: Vec<u32>,
        width: Option<usize>,
    ) -> PyResult<()> {
        let n_words = words.len();
        match width {
            None => self.push(name, words, Element::I32, &[n_words]),
            Some(width) => self.push(name, words, Element::I32, &[n_words / width.max(1), width]),
        }
    }

    fn push_lengths(&mut self, name: &'static str, lengths: &[usize]) -> PyResult<()> {
        let values = lengths.iter().map(|length| *length as i64).collect();
        self.push(name, values, Element::I64, &[lengths.len()])
    }

    fn push_windows(&mut self, windows: sequences::Windows) -> PyResult<()> {
        self.push_words("sequences", windows.sequences, None)?;
        self.push_words("targets", windows.targets, None)?;
        self.push_words("contexts", windows.contexts, Some(windows.n_context))?;
        self.push_words("targets_and_noise", windows.targets_and_noise, Some(1 + windows.n_noise))
    }

    fn push_padded_words(&mut self, words: PaddedRows<u32>) -> PyResult<()> {
        let shape = [words.lengths.len(), words.width];
        self.push("input_ids", words.values, Element::I32, &shape)?;
        self.push("attention_mask", words.mask, Element::Bool, &shape)?;
        self.push_lengths("length", &words.lengths)
    }
}

impl SequenceBatch {
    fn new(py: Python<'_>, parts: SequenceParts, kept: &Arc<KeptBatches>) -> PyResult<Self> {
        let SequenceParts { rows, sequences, words, padded_letters, padded_words, .. } = parts;
        let mut arrays = Arrays { py, kept, n_bytes: 0, made: Vec::new() };
        let names: Vec<String> = sequences.names().map(text).collect();
        let has_names = !names.is_empty();
        let names = has_names.then(|| PyList::new(py, names).map(Bound::unbind)).transpose()?;
        let n_samples = rows.len();
        let (letters, ends) = sequences.into_letters_and_ends();
        let letters_shape = match &padded_letters {
            Some(padded) => vec![n_samples, padded.width],
            None => vec![letters.len()],
        };
        if let Some(one_hot) = parts.one_hot {
            let n_letters: usize = letters_shape.iter().product();
            let width = one_hot.len().checked_div(n_letters).unwrap_or(0);
            let shape: Vec<usize> = letters_shape.iter().copied().chain([width]).collect();
            arrays.push("one_hot", one_hot, Element::F32, &shape)?;
        }
        if let Some(padded) = padded_letters {
            arrays.push_lengths("letter_length", &padded.lengths)?;
            arrays.push("letters", padded.values, Element::U8, &letters_shape)?;
        } else if !ends.is_empty() {
            arrays.push_offsets("letter_offsets", &ends)?;
            arrays.push("letters", letters, Element::U8, &letters_shape)?;
        }
        if let Some(windows) = parts.windows {
            arrays.push_windows(windows)?;
        } else if let Some(words) = words {
            let (tokens, ends) = words.into_tokens_and_ends();
            arrays.push_words("input_ids", tokens, None)?;
            arrays.push_offsets("offsets", &ends)?;
        } else if let Some(words) = padded_words {
            arrays.push_padded_words(words)?;
        }
        let Arrays { n_bytes, made: arrays, .. } = arrays;
        kept.lease(n_bytes);
        Ok(Self { arrays, names })
    }
}

#[pymethods]
impl SequenceBatch {
    #[getter]
    fn names(&self, py: Python<'_>) -> Option<Py<PyList>> {
        self.names.as_ref().map(|names| names.clone_ref(py))
    }

    /// The arrays by their names.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, memory) in &self.arrays {
            dict.set_item(name, numpy::array(py, memory)?)?;
        }
        Ok(dict)
    }
}
