//! Doc2Vec: training on the words of sequences, and files of vectors.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use doc2vec::{
    Combine, Documents, Embeddings, Error, InferSpec, Inference, Model, NamedVectors, TrainSpec,
    TrainedWords, Trainer, WindowRule,
};
use loader::RowSet;
use pipeline::{Pipeline, PipelineSpec, Selected, Stop};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sequences::{
    SequenceBatch, SequenceSamples, SequenceSpec, TokenFrames, TokenScratch, Tokenizer,
};

use crate::errors::{OrException as _, SomafeedError};
use crate::experiment::unpicklable;
use crate::kmers::KmerVocabulary;
use crate::numpy::{array_of, elements};
use crate::process::OfProcess;
use crate::sequences::Sequences;
use crate::waiting::{computed, stoppable};

/// Targets of a batch, about: few enough that Ctrl-C ends training soon.
const BATCH_TARGETS: u64 = 1 << 17;

/// Sequences of a batch at most.
const BATCH_SEQUENCES: u64 = 256;

/// Settings of training, as Python describes them by gensim's names.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    vector_size: usize,
    window: usize,
    negative: usize,
    epochs: u64,
    dm: bool,
    dm_mean: bool,
    shrink_windows: bool,
    alpha: f32,
    min_alpha: f32,
    sample: f64,
    ns_exponent: f64,
    workers: usize,
    seed: u64,
    /// Number of words of the whole store, if they were counted.
    n_words: Option<u64>,
}

impl Settings {
    fn spec(&self, n_targets: u64) -> TrainSpec {
        let model = if self.dm {
            Model::DistributedMemory {
                window: self.window,
                window_rule: if self.shrink_windows {
                    WindowRule::Reduced
                } else {
                    WindowRule::Whole
                },
                combine: if self.dm_mean { Combine::Mean } else { Combine::Sum },
            }
        } else {
            Model::BagOfWords
        };
        TrainSpec {
            dimension: self.vector_size,
            negatives: self.negative,
            noise_exponent: self.ns_exponent,
            alpha: self.alpha,
            min_alpha: self.min_alpha,
            subsample: (self.sample != 0.0).then_some(self.sample),
            threads: self.workers,
            seed: self.seed,
            ..TrainSpec::new(model, n_targets.saturating_mul(self.epochs).max(1))
        }
    }
}

/// The error with gensim's names of settings.
fn by_gensims_names(error: Error) -> Error {
    match error {
        Error::Setting { name, value, problem } => {
            let name = match name {
                "dimension" => "vector_size",
                "negatives" => "negative",
                "subsample" => "sample",
                "threads" => "workers",
                other => other,
            };
            Error::Setting { name, value, problem }
        }
        other => other,
    }
}

/// Trains vectors of sequences and words, epoch by epoch.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Doc2VecTrainer {
    here: OfProcess<Mutex<Option<Training>>>,
}

/// A trainer and the engine that feeds it.
#[derive(Debug)]
struct Training {
    pipeline: Pipeline<Selected<SequenceSamples>>,
    trainer: Trainer,
    padding: usize,
    /// The sequences that are trained on, whose places are the documents' rows.
    rows: RowSet,
}

/// How an epoch went.
#[derive(Debug, Default)]
struct Progress {
    n_sequences: u64,
    n_words: u64,
    /// Sum over words.
    loss: f64,
}

impl Training {
    fn new(
        samples: Selected<SequenceSamples>,
        vocabulary: (&[u64], usize),
        settings: &Settings,
    ) -> PyResult<Self> {
        let (counts, padding) = vocabulary;
        let rows = samples.rows().clone();
        let n_documents = usize::try_from(rows.len())?;
        let n_store = samples.source().store().summary().n_sequences.max(1);
        // Words are those of the whole store; the rate falls by the part that is trained on.
        let n_words = settings.n_words.unwrap_or_else(|| expected_words(&samples));
        let n_targets = (u128::from(n_words) * u128::from(rows.len()) / u128::from(n_store)) as u64;
        let trainer = Trainer::new(&settings.spec(n_targets), n_documents, counts);
        let trainer = trainer.map_err(by_gensims_names).or_exception()?;
        let mean = (n_words / n_store).max(1);
        let least = (4 * settings.workers as u64).min(BATCH_SEQUENCES);
        let batch_rows = (BATCH_TARGETS / mean).clamp(least, BATCH_SEQUENCES);
        let spec = PipelineSpec {
            chunk_rows: 16,
            chunks_per_block: 256,
            batch_rows,
            seed: settings.seed,
            ..PipelineSpec::default()
        };
        let pipeline = Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences);
        Ok(Self { pipeline: pipeline.or_exception()?, trainer, padding, rows })
    }

    fn epoch(&mut self, number: u64, stop: &Stop) -> PyResult<Progress> {
        let mut progress = Progress::default();
        for batch in self.pipeline.epoch(number).or_exception()? {
            if stop.is_set() {
                return Err(sequences::Error::Stopped).or_exception();
            }
            self.train(&batch.or_exception()?, &mut progress)?;
        }
        Ok(progress)
    }

    fn train(&mut self, batch: &SequenceBatch, progress: &mut Progress) -> PyResult<()> {
        let Some(tokens) = batch.tokens() else { return Ok(()) };
        let n_frames = batch.n_frames();
        let document_ends: Vec<usize> = (1..=batch.n_sequences()).map(|n| n * n_frames).collect();
        let places = batch.rows().iter().map(|row| self.rows.n_below(*row));
        let documents: Vec<u64> = places.collect();
        let trained = self.trainer.train_batch(&Documents {
            documents: &documents,
            document_ends: &document_ends,
            frame_ends: tokens.frame_ends(),
            tokens: tokens.tokens(),
            padding: self.padding,
        });
        let trained = trained.map_err(by_gensims_names).or_exception()?;
        progress.n_sequences += documents.len() as u64;
        progress.n_words += trained.words;
        progress.loss += trained.loss.unwrap_or(0.0) * trained.words as f64;
        Ok(())
    }
}

/// The number of words of a store whose sequences have the mean length, without padding.
fn expected_words(samples: &Selected<SequenceSamples>) -> u64 {
    let summary = samples.source().store().summary();
    let mean = (summary.n_letters / summary.n_sequences.max(1)) as usize;
    let spec = samples.source().spec().tokenizer.as_ref().map(|tokenizer| *tokenizer.spec());
    let words = spec.map_or(0, |spec| {
        spec.n_words(mean).saturating_sub(2 * spec.padding * spec.n_frames) as u64
    });
    words.saturating_mul(summary.n_sequences)
}

impl Doc2VecTrainer {
    /// Takes the training out, which a call gives back when it has ended.
    fn take(&self) -> PyResult<Training> {
        let training = self.here.get().and_then(|here| {
            let mut training = here.lock().unwrap_or_else(PoisonError::into_inner);
            training.take()
        });
        training.ok_or_else(|| {
            SomafeedError::new_err(
                "there is no training: it was interrupted, runs in another thread, or belongs to \
                 the process that forked this one. Make a new model",
            )
        })
    }

    fn give_back(&self, training: Training) {
        if let Some(here) = self.here.get() {
            *here.lock().unwrap_or_else(PoisonError::into_inner) = Some(training);
        }
    }
}

#[pymethods]
impl Doc2VecTrainer {
    #[new]
    fn new(
        py: Python<'_>,
        sequences: Py<Sequences>,
        vocabulary: Py<KmerVocabulary>,
        settings: Settings,
    ) -> PyResult<Self> {
        let vocabulary = vocabulary.get();
        let tokenizer = Some(vocabulary.tokenizer()?);
        let spec = SequenceSpec { tokenizer, ..SequenceSpec::default() };
        let samples = sequences.get().with_spec(py, spec)?;
        let (words, padding) = (Arc::clone(vocabulary.words()), vocabulary.padding());
        let made =
            computed(py, move || Training::new(samples, (words.counts(), padding), &settings))?;
        Ok(Self { here: OfProcess::new(Mutex::new(Some(made?))) })
    }

    /// Trains for an epoch; number of sequences, of words, and the mean loss of a word.
    fn epoch(&self, py: Python<'_>, number: u64) -> PyResult<(u64, u64, f64)> {
        let (mut training, stop) = (self.take()?, Stop::default());
        let of_thread = stop.clone();
        let work = move || training.epoch(number, &of_thread).map(|progress| (training, progress));
        let (training, progress) = stoppable(py, work, || stop.set())??;
        self.give_back(training);
        let Progress { n_sequences, n_words, loss } = progress;
        Ok((n_sequences, n_words, loss / n_words.max(1) as f64))
    }

    /// The vectors of sequences, those of words that make up a context, and those that score words,
    /// each row by row.
    fn vectors<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let training = self.take()?;
        let trainer = &training.trainer;
        let vectors =
            (trainer.document_vectors(), trainer.input_vectors(), trainer.output_vectors());
        self.give_back(training);
        Ok([array_of(py, vectors.0)?, array_of(py, vectors.1)?, array_of(py, vectors.2)?])
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Doc2VecTrainer", "pickle its vectors"))
    }
}

/// Infers vectors of further sequences by the words of a model.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Doc2VecInference(Arc<Inferring>);

#[derive(Debug)]
struct Inferring {
    inference: Inference,
    tokenizer: Tokenizer,
    padding: usize,
}

impl Inferring {
    /// The vectors of some sequences, row by row.
    fn infer(&self, sequences: &[String], spec: &InferSpec, stop: &Stop) -> PyResult<Vec<f32>> {
        let mut vectors = Vec::with_capacity(sequences.len() * self.inference.dimension());
        let mut scratch = TokenScratch::default();
        let n_frames = self.tokenizer.spec().n_frames;
        for (part, some) in sequences.chunks(BATCH_SEQUENCES as usize).enumerate() {
            if stop.is_set() {
                return Err(sequences::Error::Stopped).or_exception();
            }
            let mut words = TokenFrames::default();
            for (row, letters) in (part as u64 * BATCH_SEQUENCES..).zip(some) {
                let letters = letters.as_bytes();
                self.tokenizer.tokenize(row, letters, &mut words, &mut scratch).or_exception()?;
            }
            let document_ends: Vec<usize> = (1..=some.len()).map(|n| n * n_frames).collect();
            let documents = Documents {
                documents: &vec![0; some.len()],
                document_ends: &document_ends,
                frame_ends: words.frame_ends(),
                tokens: words.tokens(),
                padding: self.padding,
            };
            let inferred = self.inference.infer(&documents, spec);
            vectors.extend(inferred.map_err(by_gensims_names).or_exception()?);
        }
        Ok(vectors)
    }
}

#[pymethods]
impl Doc2VecInference {
    #[new]
    fn new(
        py: Python<'_>,
        vocabulary: Py<KmerVocabulary>,
        settings: Settings,
        inputs: &Bound<'_, PyAny>,
        outputs: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let wrong = || PyTypeError::new_err("vectors of words are needed as arrays of float32");
        let rows = |of: &Bound<'_, PyAny>| elements::<f32>(of)?.ok_or_else(wrong);
        let (inputs, outputs) = (rows(inputs)?, rows(outputs)?);
        let vocabulary = vocabulary.get();
        let (words, tokenizer) = (Arc::clone(vocabulary.words()), vocabulary.tokenizer()?);
        let padding = vocabulary.padding();
        let made = computed(py, move || {
            let counts = words.counts();
            let words = TrainedWords { inputs: &inputs, outputs: &outputs, counts };
            Inference::new(&settings.spec(1), words).map_err(by_gensims_names)
        })?;
        let inference = made.or_exception()?;
        Ok(Self(Arc::new(Inferring { inference, tokenizer, padding })))
    }

    /// The vectors of sequences, row by row.
    fn infer<'py>(
        &self,
        py: Python<'py>,
        sequences: Vec<String>,
        epochs: u64,
        alpha: f32,
        min_alpha: f32,
        workers: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let spec = InferSpec { epochs, alpha, min_alpha, threads: workers };
        let (inferring, stop) = (Arc::clone(&self.0), Stop::default());
        let of_thread = stop.clone();
        let work = move || inferring.infer(&sequences, &spec, &of_thread);
        array_of(py, stoppable(py, work, || stop.set())??)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Doc2VecInference", "pickle the model"))
    }
}

/// Vectors with names, as Python gives them.
#[derive(Debug)]
pub(crate) struct Named(NamedVectors);

impl<'py> FromPyObject<'_, 'py> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (names, values, dimension): (Vec<String>, Bound<'py, PyAny>, usize) =
            object.extract()?;
        let wrong = || PyTypeError::new_err("vectors are needed as one array of float32");
        let values: Vec<f32> = elements(&values)?.ok_or_else(wrong)?;
        Ok(Self(NamedVectors::new(names, values, dimension).or_exception()?))
    }
}

/// Writes vectors in word2vec's text or binary form.
#[pyfunction]
pub(crate) fn write_word2vec(
    py: Python<'_>,
    path: PathBuf,
    vectors: Named,
    binary: bool,
) -> PyResult<()> {
    let write = move || {
        let Named(vectors) = vectors;
        if binary { vectors.write_word2vec_binary(path) } else { vectors.write_word2vec_text(path) }
    };
    computed(py, write)?.or_exception()
}

/// Writes the vectors of sequences and words to one file.
#[pyfunction]
pub(crate) fn write_embeddings(
    py: Python<'_>,
    path: PathBuf,
    documents: Named,
    words: Named,
) -> PyResult<()> {
    let embeddings = Embeddings { documents: documents.0, words: words.0 };
    computed(py, move || embeddings.write_safetensors(path))?.or_exception()
}

/// The vectors of a file that `write_embeddings` wrote.
#[pyfunction]
pub(crate) fn read_embeddings(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let read = computed(py, move || Embeddings::read_safetensors(path))?.or_exception()?;
    let dict = PyDict::new(py);
    for (name, vectors) in [("documents", read.documents), ("words", read.words)] {
        let values = array_of(py, vectors.values().to_vec())?;
        dict.set_item(name, (vectors.names().to_vec(), values, vectors.dimension()))?;
    }
    Ok(dict)
}
