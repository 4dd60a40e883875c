//! Sequences of stores in files and on servers, and what batches have of each.

mod batch;
mod import;
mod stores;

use std::sync::Arc;

use pipeline::{Selected, Stop};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sequences::{
    JoinedStores, Layout, SequenceList, SequenceSamples, SequenceSpec, SequenceStore, Vocabulary,
    WindowSpec,
};
use shuffle::AliasTable;
use storage::Config;

pub(crate) use self::batch::SequenceBatch;
pub(crate) use self::import::import_sequences;
pub(crate) use self::stores::fill_sequence_servers;
use self::stores::{DescribedStore, Store};
use crate::engine::choice;
use crate::errors::OrException as _;
use crate::kmers::{KmerVocabulary, Kmers, alphabet};
use crate::samples::{Chosen, Kind, Samples, StoreAddress};
use crate::waiting::stoppable;

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
