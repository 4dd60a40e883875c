//! Words of k letters: how sequences are cut into them, and their numbers.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sequences::{
    Alphabet, KmerSpec, SequenceStore, TokenFrames, TokenScratch, Tokenizer, Vocabulary,
    WhenUnknown,
};

use crate::engine::choice;
use crate::errors::OrException as _;
use crate::experiment::unpicklable;
use crate::numpy::{Integers, array_of};

/// How sequences are cut into words, as Python describes it.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Kmers {
    k: usize,
    stride: usize,
    frames: usize,
    padding: usize,
    unknown: String,
    pub(crate) alphabet: Option<String>,
    pub(crate) fold_case: bool,
}

impl Kmers {
    pub(crate) fn spec(&self) -> KmerSpec {
        let Self { k, stride, frames: n_frames, padding, .. } = *self;
        KmerSpec { k, stride, n_frames, padding }
    }

    pub(crate) fn when_unknown(&self) -> PyResult<WhenUnknown> {
        let rules =
            [("fail", WhenUnknown::Fail), ("skip", WhenUnknown::Skip), ("word", WhenUnknown::Word)];
        choice("unknown", &self.unknown, &rules)
    }
}

/// The given letters, or those that occur in the store.
pub(crate) fn alphabet(
    letters: Option<&str>,
    fold_case: bool,
    store: &dyn SequenceStore,
) -> Result<Alphabet, sequences::Error> {
    match (letters, fold_case) {
        (Some(letters), false) => Alphabet::new(letters.as_bytes()),
        (Some(letters), true) => Ok(Alphabet::new(letters.as_bytes())?.folding_case()),
        (None, false) => store.summary().alphabet(),
        (None, true) => store.summary().alphabet_of_both_cases(),
    }
}

/// Words of `k` letters with their numbers.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct KmerVocabulary {
    kmers: Kmers,
    words: Arc<Vocabulary>,
}

impl KmerVocabulary {
    pub(crate) fn of(kmers: Kmers, words: Vocabulary) -> Self {
        Self { kmers, words: Arc::new(words) }
    }

    /// The words with the way in which sequences are cut.
    pub(crate) fn tokenizer(&self) -> PyResult<Tokenizer> {
        let when_unknown = self.kmers.when_unknown()?;
        Tokenizer::new(self.kmers.spec(), Arc::clone(&self.words), when_unknown).or_exception()
    }

    /// The vocabulary.
    pub(crate) fn words(&self) -> &Arc<Vocabulary> {
        &self.words
    }

    /// Words of padding at each end of a sequence.
    pub(crate) fn padding(&self) -> usize {
        self.kmers.padding
    }

    /// The words as texts.
    pub(crate) fn names(&self) -> Vec<String> {
        let numbers = 0..self.words.n_words() as u32;
        numbers.map(|number| self.words.word(number).unwrap_or_default()).collect()
    }
}

#[pymethods]
impl KmerVocabulary {
    /// The vocabulary of words with these counts. The alphabet must be given.
    #[new]
    fn new(kmers: Kmers, words: Vec<String>, counts: Integers) -> PyResult<Self> {
        let letters = kmers.alphabet.as_deref().unwrap_or_default();
        let alphabet = Alphabet::new(letters.as_bytes()).or_exception()?;
        let alphabet = if kmers.fold_case { alphabet.folding_case() } else { alphabet };
        if words.len() != counts.0.len() {
            let (n_words, n_counts) = (words.len(), counts.0.len());
            let problem = format!("{n_words} words have {n_counts} counts: give one for each");
            return Err(PyValueError::new_err(problem));
        }
        let counted = words.iter().map(String::as_bytes).zip(counts.0);
        let rule = kmers.when_unknown()?;
        let words = Vocabulary::from_words(&alphabet, &kmers.spec(), rule, counted);
        Ok(Self { words: Arc::new(words.or_exception()?), kmers })
    }

    #[getter]
    fn alphabet(&self) -> String {
        self.words.alphabet().to_string()
    }

    #[getter]
    fn n_counted(&self) -> usize {
        self.words.n_counted()
    }

    fn texts(&self) -> Vec<String> {
        self.names()
    }

    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array_of(py, self.words.counts().to_vec())
    }

    /// The words of a sequence, frame by frame.
    fn encode(&self, sequence: &str) -> PyResult<Vec<Vec<u32>>> {
        let mut frames = TokenFrames::default();
        let (tokenizer, mut scratch) = (self.tokenizer()?, TokenScratch::default());
        tokenizer.tokenize(0, sequence.as_bytes(), &mut frames, &mut scratch).or_exception()?;
        Ok(frames.frames().map(<[u32]>::to_vec).collect())
    }

    fn __len__(&self) -> usize {
        self.words.n_words()
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("KmerVocabulary", "pickle the words and counts it was made with"))
    }
}
