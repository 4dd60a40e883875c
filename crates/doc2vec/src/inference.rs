//! Vectors of documents that a model was not trained on.

use std::fmt::Debug;
use std::ops::Range;
use std::thread;

use shuffle::AliasTable;

use crate::document::{Document, DocumentTrainer, Rules, WordRows, kept_cases};
use crate::documents::Documents;
use crate::error::Error;
use crate::random::{Decision, generator};
use crate::row::{OfLanes, Row, narrowest, padded, random_rows, unpadded};
use crate::spec::{Model, TrainSpec};
use crate::target::Loss;

/// Infers vectors of documents by the word vectors of a trained model, which stay as they are.
///
/// A document's vector begins with small random numbers, and is trained on the document's words for
/// some epochs like in [`Trainer`](crate::Trainer): the inference of Le and Mikolov 2014, section
/// 2.3, and gensim's `infer_vector`. All documents have the same random numbers. So a vector
/// depends on the seed and the document's words alone, not on other documents or the threads.
///
/// ```
/// use doc2vec::{Documents, InferSpec, Inference, Model, TrainSpec, Trainer};
///
/// let batch = Documents {
///     documents: &[0, 1],
///     document_ends: &[1, 2],
///     frame_ends: &[4, 8],
///     tokens: &[0, 1, 0, 1, 2, 1, 2, 2],
///     padding: 0,
/// };
/// let spec = TrainSpec { dimension: 8, ..TrainSpec::new(Model::BagOfWords, 100 * 8) };
/// let mut trainer = Trainer::new(&spec, 2, &[2, 3, 3])?;
/// for _epoch in 0..100 {
///     trainer.train_batch(&batch)?;
/// }
/// let inference = Inference::of(&trainer, &[2, 3, 3])?;
/// let vectors = inference.infer(&batch, &InferSpec { epochs: 100, ..InferSpec::default() })?;
/// assert_eq!(vectors.len(), 2 * 8);
/// # Ok::<(), doc2vec::Error>(())
/// ```
#[derive(Debug)]
pub struct Inference {
    n_words: usize,
    dimension: usize,
    words: Box<dyn FixedWords>,
}

/// How vectors are inferred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InferSpec {
    /// Passes over each document. Default: 10.
    pub epochs: u64,
    /// Learning rate of the first epoch. Default: 0.025.
    pub alpha: f32,
    /// Learning rate of the last epoch. Those between fall linearly. Default: 0.0001.
    pub min_alpha: f32,
    /// Number of threads, with the caller's. Default: 1.
    pub threads: usize,
}

impl Default for InferSpec {
    fn default() -> Self {
        Self { epochs: 10, alpha: 0.025, min_alpha: 0.0001, threads: 1 }
    }
}

impl InferSpec {
    fn rate(&self, epoch: u64) -> f32 {
        let part = epoch as f64 / (self.epochs - 1).max(1) as f64;
        let (alpha, min_alpha) = (f64::from(self.alpha), f64::from(self.min_alpha));
        (alpha - (alpha - min_alpha) * part) as f32
    }

    fn check(&self) -> Result<(), Error> {
        if self.epochs == 0 {
            return Err(Error::setting("epochs", 0, "must be at least 1"));
        }
        let Self { alpha, min_alpha, threads, .. } = *self;
        // The same limits as for training.
        TrainSpec { alpha, min_alpha, threads, ..TrainSpec::new(Model::BagOfWords, 1) }.check()
    }
}

/// Word vectors of a trained model, row by row without padding.
#[derive(Debug, Clone, Copy)]
pub struct TrainedWords<'a> {
    /// The vectors that make up a context; none for [`Model::BagOfWords`].
    pub inputs: &'a [f32],
    /// The vectors that score words.
    pub outputs: &'a [f32],
    /// How often each word occurs in the documents of training.
    pub counts: &'a [u64],
}

impl Inference {
    /// Infers by the words of a trainer as they are now.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of(trainer: &crate::Trainer, word_counts: &[u64]) -> Result<Self, Error> {
        let (inputs, outputs) = (trainer.input_vectors(), trainer.output_vectors());
        let words = TrainedWords { inputs: &inputs, outputs: &outputs, counts: word_counts };
        Self::new(trainer.spec(), words)
    }

    /// Infers by these words of a model that was trained with `spec`.
    ///
    /// # Errors
    /// - [`Error::Setting`]: a setting is out of range.
    /// - [`Error::Names`]: there are fewer or more numbers than words have.
    /// - [`Error::Noise`]: no word occurs.
    pub fn new(spec: &TrainSpec, words: TrainedWords<'_>) -> Result<Self, Error> {
        spec.check()?;
        let (n_words, dimension) = (words.counts.len(), spec.dimension);
        let n_inputs = if spec.model == Model::BagOfWords { 0 } else { n_words };
        for (n_names, values) in [(n_inputs, words.inputs), (n_words, words.outputs)] {
            let n_values = values.len();
            if n_names.checked_mul(dimension) != Some(n_values) {
                return Err(Error::Names { n_names, n_values, dimension });
            }
        }
        let noise = AliasTable::new(words.counts, spec.noise_exponent)?;
        let kept = spec.subsample.map(|share| kept_cases(words.counts, share)).unwrap_or_default();
        let noise_probabilities = noise.probabilities();
        let rules = Rules { spec: spec.clone(), noise, noise_probabilities, kept };
        Ok(Self { n_words, dimension, words: narrowest(dimension, Fix { rules, words }) })
    }

    /// The vectors of the documents of a batch, row by row in their order. Their rows in
    /// [`Documents::documents`] do not count.
    ///
    /// # Errors
    /// - [`Error::Setting`]: a setting is out of range.
    /// - [`Error::Lengths`], [`Error::Descending`], [`Error::LastEnd`], [`Error::Token`]: the batch
    ///   is not valid.
    /// - [`Error::StartThread`]: the system starts no thread.
    /// - [`Error::Diverged`]: a loss is not a number any more.
    pub fn infer(&self, batch: &Documents<'_>, spec: &InferSpec) -> Result<Vec<f32>, Error> {
        spec.check()?;
        batch.check(usize::MAX, self.n_words)?;
        self.words.infer(batch, spec)
    }

    /// Length of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }
}

/// Words whose vectors stay as they are, without the number of lanes in the type.
trait FixedWords: Debug + Send + Sync {
    fn infer(&self, batch: &Documents<'_>, spec: &InferSpec) -> Result<Vec<f32>, Error>;
}

/// What rows of words are made of.
struct Fix<'a> {
    rules: Rules,
    words: TrainedWords<'a>,
}

impl OfLanes for Fix<'_> {
    type Made = Box<dyn FixedWords>;

    fn make<const N: usize>(self) -> Box<dyn FixedWords> {
        let Self { rules, words } = self;
        let rows = |values: &[f32]| padded::<N>(values, rules.spec.dimension);
        let words = WordRows { inputs: rows(words.inputs), outputs: rows(words.outputs) };
        Box::new(LaneWords { rules, words })
    }
}

#[derive(Debug)]
struct LaneWords<const N: usize> {
    rules: Rules,
    words: WordRows<N>,
}

impl<const N: usize> LaneWords<N> {
    /// The vectors of some documents.
    fn infer_some(
        &self,
        batch: &Documents<'_>,
        documents: Range<usize>,
        spec: &InferSpec,
    ) -> (Vec<Row<N>>, Loss) {
        let TrainSpec { seed, dimension, .. } = self.rules.spec;
        let first: Vec<Row<N>> =
            random_rows(1, dimension, &mut generator(seed, Decision::FirstInferred));
        let mut trainer = DocumentTrainer::new(&self.rules, &self.words);
        let inferred = documents.map(|document| {
            let mut row = first[0];
            for epoch in 0..spec.epochs {
                let generator = generator(seed, Decision::Inferred(epoch));
                let mut trained = Document { row: &mut row, rate: spec.rate(epoch), generator };
                for frame in batch.frames_of(document) {
                    let tokens = &batch.tokens[batch.tokens_of(frame)];
                    trainer.train_frame(&mut trained, tokens, batch.padding);
                }
            }
            row
        });
        let rows = inferred.collect();
        (rows, trainer.loss)
    }
}

impl<const N: usize> FixedWords for LaneWords<N> {
    fn infer(&self, batch: &Documents<'_>, spec: &InferSpec) -> Result<Vec<f32>, Error> {
        let n_documents = batch.documents.len();
        let n_threads = spec.threads.clamp(1, n_documents.max(1));
        let part = |at: usize| at * n_documents / n_threads..(at + 1) * n_documents / n_threads;
        let parts = thread::scope(|scope| {
            let start = |at: usize| {
                let name = format!("infer-{at}");
                let started = thread::Builder::new()
                    .name(name.clone())
                    .spawn_scoped(scope, move || self.infer_some(batch, part(at), spec));
                let failed = |source| Error::StartThread { name: name.clone(), source };
                started.map_err(failed).map(|thread| (name.clone(), thread))
            };
            let threads = (1..n_threads).map(start).collect::<Result<Vec<_>, Error>>()?;
            let mut parts = vec![self.infer_some(batch, part(0), spec)];
            for (name, thread) in threads {
                parts.push(thread.join().map_err(|_| Error::ThreadEnded { name })?);
            }
            Ok::<_, Error>(parts)
        })?;
        let mut vectors = Vec::with_capacity(n_documents * self.rules.spec.dimension);
        let mut loss = Loss::default();
        for (rows, of_part) in parts {
            vectors.extend(unpadded(&rows, self.rules.spec.dimension));
            loss.add_other(of_part);
        }
        if loss.sum.is_nan() || !vectors.iter().all(|value| value.is_finite()) {
            return Err(Error::Diverged { n_targets: loss.n_targets, alpha: spec.alpha });
        }
        Ok(vectors)
    }
}
