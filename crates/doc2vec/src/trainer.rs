//! The trainer: settings, schedule and vectors.

use crate::batch_training::{BatchTraining, LaneTraining, Vectors};
use crate::document::{Rules, kept_cases};
use crate::documents::Documents;
use crate::embeddings::{Embeddings, NamedVectors};
use crate::error::Error;
use crate::part::Begin;
use crate::row::{OfLanes, narrowest};
use crate::spec::{Model, TrainSpec};
use shuffle::AliasTable;

/// Trains document and word vectors on the CPU: PV-DM or PV-DBOW by negative sampling.
///
/// Word vectors begin with small random numbers, output vectors with zeros, as in word2vec's
/// program. Each target's step follows the gradient of its loss, computed without approximation
/// (see [`Combine::Mean`](crate::Combine::Mean) for the one exception).
///
/// # Threads
///
/// Each thread trains on whole documents, with word vectors of its own. After
/// [`words_per_merge`](TrainSpec::words_per_merge) targets each, and at the end of each batch, the
/// threads' changes of a row of the word vectors are added up, or if there were many, averaged. The
/// default is 32 targets for each word, divided by the number of threads: more targets between
/// merges cost quality, fewer cost time. A document belongs to one thread, so a batch needs more
/// documents than threads, and documents that are long for the vocabulary are a reason for fewer
/// threads. One that comes twice in a batch is trained on twice, one time after the other.
///
/// The result depends on the seed, the batches and the number of threads. It depends neither on
/// timing nor on the processor that a program runs on. With one thread it does not depend on how
/// documents are divided into batches.
#[derive(Debug)]
pub struct Trainer {
    spec: TrainSpec,
    n_documents: usize,
    n_words: usize,
    training: Box<dyn BatchTraining>,
    /// Targets that were trained on or left out.
    n_targets: u64,
    /// Documents that were trained on, counted each time.
    n_trained_documents: u64,
    /// Begins of the documents of a batch, in memory that is used again.
    begins: Vec<Begin>,
}

/// Progress of training after a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Targets of the batch, with those that were left out (see [`TrainSpec::subsample`]).
    pub targets: u64,
    /// Targets of the batch that were trained on: gensim's "effective words".
    pub words: u64,
    /// Mean loss of a target in nats, estimated from every eighth, each before its own step. None
    /// if the batch has no targets.
    pub loss: Option<f64>,
    /// Learning rate of the next document.
    pub rate: f32,
}

impl Trainer {
    /// Makes the first vectors and starts the threads. `word_counts` has the number of occurrences
    /// of each word; a word with a count of 0 is never noise, and may be context.
    ///
    /// # Errors
    /// - [`Error::Setting`]: a setting is out of range.
    /// - [`Error::Noise`]: no word occurs, there are more than 2^32, or the exponent is not finite.
    /// - [`Error::StartThread`]: the system starts no thread.
    pub fn new(spec: &TrainSpec, n_documents: usize, word_counts: &[u64]) -> Result<Self, Error> {
        spec.check()?;
        let noise = AliasTable::new(word_counts, spec.noise_exponent)?;
        let kept = spec.subsample.map(|share| kept_cases(word_counts, share)).unwrap_or_default();
        let n_words = word_counts.len();
        let noise_probabilities = noise.probabilities();
        let rules = Rules { spec: spec.clone(), noise, noise_probabilities, kept };
        let per_merge =
            spec.words_per_merge.unwrap_or_else(|| (32 * n_words / spec.threads).max(256)) as u64;
        Ok(Self {
            spec: spec.clone(),
            n_documents,
            n_words,
            training: narrowest(spec.dimension, Begun { rules, n_documents, n_words, per_merge })?,
            n_targets: 0,
            n_trained_documents: 0,
            begins: Vec::new(),
        })
    }

    /// Trains on a batch.
    ///
    /// # Errors
    /// - [`Error::Lengths`], [`Error::Descending`], [`Error::LastEnd`], [`Error::Document`],
    ///   [`Error::Token`]: the batch is not valid; nothing was trained.
    /// - [`Error::ThreadEnded`]: a thread has ended by a panic. The trainer cannot continue.
    /// - [`Error::Diverged`]: the loss is not a number any more, and will not become one again.
    pub fn train_batch(&mut self, batch: &Documents<'_>) -> Result<Progress, Error> {
        batch.check(self.n_documents, self.n_words)?;
        self.begins.clear();
        let (mut n_targets, number) = (self.n_targets, self.n_trained_documents);
        for document in 0..batch.documents.len() {
            let frames = batch.frames_of(document);
            let begin = Begin {
                number: number + document as u64,
                rate: self.spec.rate_after(n_targets),
                n_targets: frames.map(|frame| batch.targets_of(frame) as u64).sum(),
            };
            n_targets += begin.n_targets;
            self.begins.push(begin);
        }
        let loss = self.training.train(batch, &self.begins)?;
        let targets = n_targets - self.n_targets;
        self.n_targets = n_targets;
        self.n_trained_documents += batch.documents.len() as u64;
        if loss.sum.is_nan() {
            return Err(Error::Diverged { n_targets, alpha: self.spec.alpha });
        }
        Ok(Progress {
            targets,
            words: loss.n_targets,
            loss: (0 < loss.n_measured).then(|| loss.sum / loss.n_measured as f64),
            rate: self.spec.rate_after(n_targets),
        })
    }

    /// The settings.
    pub fn spec(&self) -> &TrainSpec {
        &self.spec
    }

    /// Number of targets of all batches so far, with those that were left out.
    pub fn n_targets(&self) -> u64 {
        self.n_targets
    }

    /// Document vectors: documents x dimension, row by row.
    pub fn document_vectors(&self) -> Vec<f32> {
        self.training.vectors(Vectors::Documents)
    }

    /// Word vectors: words x dimension, row by row. In PV-DM these are the vectors that make up a
    /// context. PV-DBOW has no such vectors; it returns the output vectors.
    pub fn word_vectors(&self) -> Vec<f32> {
        match self.spec.model {
            Model::BagOfWords => self.training.vectors(Vectors::Outputs),
            Model::DistributedMemory { .. } => self.input_vectors(),
        }
    }

    /// Input vectors, which make up a context: words x dimension, row by row. PV-DBOW has none.
    pub fn input_vectors(&self) -> Vec<f32> {
        self.training.vectors(Vectors::Inputs)
    }

    /// Output vectors, which score words: words x dimension, row by row.
    pub fn output_vectors(&self) -> Vec<f32> {
        self.training.vectors(Vectors::Outputs)
    }

    /// Document and word vectors with names.
    ///
    /// # Errors
    /// - [`Error::Names`]: there are fewer or more names than vectors.
    /// - [`Error::NotFinite`]: a vector has a number that is infinite or not a number: the learning
    ///   rate was too large.
    pub fn embeddings(
        &self,
        document_names: Vec<String>,
        word_names: Vec<String>,
    ) -> Result<Embeddings, Error> {
        let dimension = self.spec.dimension;
        Ok(Embeddings {
            documents: NamedVectors::new(document_names, self.document_vectors(), dimension)?,
            words: NamedVectors::new(word_names, self.word_vectors(), dimension)?,
        })
    }
}

/// What a trainer's vectors are made of.
struct Begun {
    rules: Rules,
    n_documents: usize,
    n_words: usize,
    per_merge: u64,
}

impl OfLanes for Begun {
    type Made = Result<Box<dyn BatchTraining>, Error>;

    fn make<const N: usize>(self) -> Self::Made {
        let Self { rules, n_documents, n_words, per_merge } = self;
        Ok(Box::new(LaneTraining::<N>::new(rules, n_documents, n_words, per_merge)?))
    }
}
