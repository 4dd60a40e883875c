//! Sequences: stores in files and on servers, and their batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pipeline::{BatchPlace, Selected, Stop};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sequences::key_values::ServerSpec;
use sequences::{
    JoinedStores, Layout, PaddedRows, RecordFormat, RecordReader, SequenceBatch as Batch,
    SequenceFiles, SequenceFilesWriter, SequenceList, SequenceParts, SequenceSamples,
    SequenceServers, SequenceSpec, SequenceStore, Vocabulary, WindowSpec,
};
use shuffle::AliasTable;
use storage::Config;

use crate::border::{Element, Memory, ViewedElement};
use crate::engine::{NumberedBatch, PlacedBatch, choice};
use crate::errors::{IntoException as _, OrException as _};
use crate::kmers::{KmerVocabulary, Kmers, alphabet};
use crate::memory_limit::KeptBatches;
use crate::numpy;
use crate::samples::{Chosen, Kind, Samples, StoreAddress};
use crate::waiting::stoppable;

/// Files of a store, or servers with one.
#[derive(Debug)]
enum Store {
    Files(StoreAddress),
    Servers(ServerSpec),
}

/// Servers, as Python describes them.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Servers {
    addresses: Vec<String>,
    namespace: String,
    retry_secs: f64,
    root_certificates: Option<Vec<u8>>,
}

/// A store, as Python describes it: an address, or servers.
#[derive(Debug, FromPyObject)]
enum DescribedStore {
    Files(String),
    Servers(Servers),
}

impl Servers {
    fn spec(self) -> PyResult<ServerSpec> {
        let retry_for = Duration::try_from_secs_f64(self.retry_secs).map_err(|_| {
            PyValueError::new_err(format!("{} is no time to retry for", self.retry_secs))
        })?;
        let spec = ServerSpec::new(self.addresses, self.namespace);
        Ok(ServerSpec { retry_for, root_certificates: self.root_certificates, ..spec })
    }
}

impl Store {
    fn open(&self) -> PyResult<Arc<dyn SequenceStore>> {
        match self {
            Self::Files(address) => {
                let files = SequenceFiles::open(address.storage()?);
                Ok(Arc::new(address.hiding(files)?))
            }
            Self::Servers(spec) => Ok(Arc::new(SequenceServers::open(spec).or_exception()?)),
        }
    }
}

/// Sequences of stores, and what batches have of each.
#[derive(Debug)]
pub(crate) struct OfStores {
    stores: Arc<[Store]>,
    spec: SequenceSpec,
}

impl Kind for OfStores {
    type Source = SequenceSamples;
    type Class = Sequences;

    fn open(&self) -> PyResult<SequenceSamples> {
        let mut opened = self.stores.iter().map(Store::open).collect::<PyResult<Vec<_>>>()?;
        let store: Arc<dyn SequenceStore> = match opened.len() {
            1 => opened.remove(0),
            _ => Arc::new(JoinedStores::new(opened).or_exception()?),
        };
        SequenceSamples::new(store, self.spec.clone()).or_exception()
    }

    fn class(chosen: Arc<Chosen<Self>>) -> Sequences {
        Sequences(chosen)
    }
}

/// Writes records of files to a new store.
#[pyfunction]
#[pyo3(signature = (files, store, *, skip_empty = false, skip_doubled = false))]
pub(crate) fn import_sequences(
    py: Python<'_>,
    files: Vec<PathBuf>,
    store: PathBuf,
    skip_empty: bool,
    skip_doubled: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let stop = Stop::default();
    let of_thread = stop.clone();
    let work = move || import(&files, &store, (skip_empty, skip_doubled), &of_thread);
    // Messages name the flags of the command.
    let imported = stoppable(py, work, || stop.set())?.map_err(|error| {
        let text = error.value(py).to_string();
        let named = text
            .replace("--skip-empty", "skip_empty=True")
            .replace("--skip-doubled", "skip_doubled=True");
        error.get_type(py).call1((named,)).map_or_else(|error| error, PyErr::from_value)
    })?;
    let dict = PyDict::new(py);
    dict.set_item("n_sequences", imported.n_sequences)?;
    dict.set_item("n_letters", imported.n_letters)?;
    dict.set_item("n_bytes", imported.n_bytes)?;
    dict.set_item("n_empty", imported.n_empty)?;
    dict.set_item("n_doubled", imported.n_doubled)?;
    dict.set_item("formats", imported.formats)?;
    Ok(dict)
}

/// What was written.
struct Imported {
    n_sequences: u64,
    n_letters: u64,
    n_bytes: u64,
    n_empty: u64,
    n_doubled: u64,
    formats: Vec<&'static str>,
}

fn import(
    files: &[PathBuf],
    store: &Path,
    (skip_empty, skip_doubled): (bool, bool),
    stop: &Stop,
) -> PyResult<Imported> {
    let sources: Vec<String> =
        files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let mut readers = Vec::new();
    for file in files {
        let reader = RecordReader::open(file).or_exception()?;
        readers.push(if skip_empty { reader.skipping_empty() } else { reader });
    }
    let mut writer = SequenceFilesWriter::create(store, &sources).or_exception()?;
    if skip_doubled {
        writer = writer.skipping_doubled();
    }
    for reader in &mut readers {
        while let Some(record) = reader.next_record().or_exception()? {
            if stop.is_set() {
                return Err(sequences::Error::Stopped.into_exception());
            }
            writer.push(record.letters, record.name).or_exception()?;
        }
    }
    let report = writer.finish().or_exception()?;
    Ok(Imported {
        n_sequences: report.summary.n_sequences,
        n_letters: report.summary.n_letters,
        n_bytes: report.n_bytes,
        n_empty: readers.iter().map(RecordReader::n_skipped).sum(),
        n_doubled: report.n_doubled,
        formats: readers.iter().map(|reader| format_name(reader.format())).collect(),
    })
}

fn format_name(format: RecordFormat) -> &'static str {
    match format {
        RecordFormat::Lines => "lines",
        RecordFormat::Fasta => "fasta",
        RecordFormat::Fastq => "fastq",
    }
}

/// Copies a store to servers, as far as they do not have it; the number of sequences.
#[pyfunction]
#[pyo3(signature = (uri, servers, *, config = None, sequences_per_key = 1))]
pub(crate) fn fill_sequence_servers(
    py: Python<'_>,
    uri: String,
    servers: Servers,
    config: Option<Config>,
    sequences_per_key: u64,
) -> PyResult<u64> {
    let (spec, stop) = (servers.spec()?, Stop::default());
    let of_thread = stop.clone();
    let fill = move || {
        let source = Store::Files(StoreAddress::new(uri, config)).open()?;
        let progress = &mut |_| ();
        SequenceServers::fill(&spec, &*source, sequences_per_key, progress, &of_thread)
            .or_exception()?;
        Ok(source.summary().n_sequences)
    };
    stoppable(py, fill, || stop.set())?
}

/// Sequences of a store.
#[pyclass(extends = Samples, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Sequences(Arc<Chosen<OfStores>>);

impl Sequences {
    /// The samples in this process, of which batches have what `spec` says.
    pub(crate) fn with_spec(
        &self,
        py: Python<'_>,
        spec: SequenceSpec,
    ) -> PyResult<Selected<SequenceSamples>> {
        let here = self.0.here(py)?;
        let samples = SequenceSamples::new(Arc::clone(here.source().store()), spec);
        Selected::all(Arc::new(samples.or_exception()?)).at(here.rows()).or_exception()
    }
}

#[pymethods]
impl Sequences {
    #[new]
    #[pyo3(signature = (stores, *, config = None))]
    fn new(
        py: Python<'_>,
        stores: Vec<DescribedStore>,
        config: Option<Config>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let store = |store: DescribedStore| -> PyResult<Store> {
            Ok(match store {
                DescribedStore::Files(uri) => Store::Files(StoreAddress::new(uri, config.clone())),
                DescribedStore::Servers(servers) => Store::Servers(servers.spec()?),
            })
        };
        let stores = stores.into_iter().map(store).collect::<PyResult<_>>()?;
        let spec = SequenceSpec { letters: true, ..SequenceSpec::default() };
        Chosen::open(py, OfStores { stores, spec })
    }

    /// The same sequences, of which batches have these entries.
    #[pyo3(signature = (entries, *, vocabulary = None, seed = 0))]
    fn with_entries(
        &self,
        py: Python<'_>,
        entries: Entries,
        vocabulary: Option<Py<KmerVocabulary>>,
        seed: u64,
    ) -> PyResult<Py<Self>> {
        let here = self.0.here(py)?;
        let vocabulary = vocabulary.as_ref().map(Py::get);
        let spec = entries.spec(&**here.source().store(), vocabulary, seed)?;
        let chosen = self.with_spec(py, spec.clone())?;
        let kind = OfStores { stores: Arc::clone(&self.0.kind().stores), spec };
        Py::new(py, Chosen::class(Arc::new(kind), chosen))
    }

    /// Numbers that describe the whole store.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let here = self.0.here(py)?;
        let summary = here.source().store().summary();
        let dict = PyDict::new(py);
        dict.set_item("n_sequences", summary.n_sequences)?;
        dict.set_item("n_letters", summary.n_letters)?;
        dict.set_item("longest", summary.longest)?;
        dict.set_item("letters", summary.letters.clone())?;
        dict.set_item("fingerprint", &summary.fingerprint)?;
        Ok(dict)
    }

    /// The number of sequences of each store.
    fn sizes(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        Ok(self.0.here(py)?.source().store().sizes())
    }

    /// The names of the selected sequences.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let (here, stop) = (self.0.here(py)?, Stop::default());
        let of_thread = stop.clone();
        let read = move || {
            let rows: Vec<_> = here.rows().ranges().collect();
            let mut list = SequenceList::default();
            here.source().store().read_names(&rows, &mut list, &of_thread).or_exception()?;
            Ok(list.names().map(text).collect())
        };
        stoppable(py, read, || stop.set())?
    }

    /// Counts the words of the whole store.
    #[pyo3(signature = (kmers, *, threads = 1))]
    fn count_words(
        &self,
        py: Python<'_>,
        kmers: Kmers,
        threads: usize,
    ) -> PyResult<KmerVocabulary> {
        let (here, stop) = (self.0.here(py)?, Stop::default());
        let of_thread = stop.clone();
        let count = move || {
            let (store, rule) = (here.source().store(), kmers.when_unknown()?);
            let letters = alphabet(kmers.alphabet.as_deref(), kmers.fold_case, &**store);
            let letters = letters.or_exception()?;
            let spec = kmers.spec();
            let words =
                Vocabulary::count_until(&of_thread, &**store, &letters, &spec, rule, threads);
            Ok(KmerVocabulary::of(kmers, words.or_exception()?))
        };
        stoppable(py, count, || stop.set())?
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What batches have of each sequence, as Python describes it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Entries {
    letters: bool,
    names: bool,
    /// An alphabet, or that of the store, and whether both cases are one letter.
    one_hot: Option<(Option<String>, bool)>,
    /// Words at each side, words of noise, and the exponent of their counts.
    windows: Option<(usize, usize, f64)>,
    layout: String,
    max_length: Option<usize>,
    pad: Option<u32>,
}

impl Entries {
    fn spec(
        self,
        store: &dyn SequenceStore,
        vocabulary: Option<&KmerVocabulary>,
        seed: u64,
    ) -> PyResult<SequenceSpec> {
        let layout = match (self.layout.as_str(), self.max_length) {
            ("padded", Some(length)) => Layout::Padded(length),
            ("padded", None) => {
                return Err(PyValueError::new_err("layout=\"padded\" needs max_length"));
            }
            (name, _) => {
                let layouts = [("ragged", Layout::Ragged), ("longest", Layout::Longest)];
                choice("layout", name, &layouts)?
            }
        };
        let windows = match (self.windows, vocabulary) {
            (Some((context, n_noise, exponent)), Some(vocabulary)) => {
                let noise = AliasTable::new(vocabulary.words().counts(), exponent);
                let noise = Arc::new(noise.map_err(sequences::Error::from).or_exception()?);
                Some(WindowSpec { context, n_noise, noise, seed })
            }
            (Some(_), None) => {
                return Err(PyValueError::new_err("windows are made of words: give kmers, too"));
            }
            (None, _) => None,
        };
        let one_hot = self.one_hot.map(|(letters, fold_case)| {
            alphabet(letters.as_deref(), fold_case, store).or_exception()
        });
        Ok(SequenceSpec {
            letters: self.letters,
            names: self.names,
            tokenizer: vocabulary.map(KmerVocabulary::tokenizer).transpose()?,
            windows,
            one_hot: one_hot.transpose()?,
            layout,
            pad_word: self.pad,
        })
    }
}

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
