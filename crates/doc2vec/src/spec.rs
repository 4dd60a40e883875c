//! Settings of training, and their checks.

use crate::error::Error;

/// Largest dimension that has compiled loops.
pub const MAX_DIMENSION: usize = 512;

/// How a word is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// PV-DM (distributed memory): from the document and the words around it. Le and Mikolov,
    /// "Distributed Representations of Sentences and Documents" (2014), section 2.2.
    DistributedMemory {
        /// Largest distance of a context word from the target, on both sides.
        window: usize,
        /// Which words within that distance are the context.
        window_rule: WindowRule,
        /// How the vectors of context and document become one.
        combine: Combine,
    },
    /// PV-DBOW (distributed bag of words): from the document alone. Section 2.3 of the same paper.
    BagOfWords,
}

/// Which words around a target are its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowRule {
    /// All words within the window.
    Whole,
    /// Those within a distance that is drawn for each target, uniform from 1 to the window: nearer
    /// words count more. The rule of word2vec, and gensim's default.
    Reduced,
}

/// How the vectors of context and document become the vector that scores words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Their sum. A step follows the loss's gradient.
    Sum,
    /// Their mean. Each vector gets the whole gradient of the mean, not its share: the rule of
    /// word2vec and gensim. So for the vectors that are averaged, the step is as many times the
    /// learning rate as there are vectors.
    Mean,
}

/// Settings of training. Make one with [`TrainSpec::new`] and change its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainSpec {
    /// How a word is predicted.
    pub model: Model,
    /// Length of each vector, 1 to [`MAX_DIMENSION`]. Default: 24.
    pub dimension: usize,
    /// Noise words for each target, at least 1. Default: 5.
    pub negatives: usize,
    /// Noise words are drawn in proportion to their counts to this power. Default: 0.75.
    pub noise_exponent: f64,
    /// Learning rate at the beginning. Default: 0.025.
    pub alpha: f32,
    /// Learning rate after `planned_words`. Default: 0.0001.
    pub min_alpha: f32,
    /// Number of targets in all epochs together, over which the learning rate falls linearly.
    pub planned_words: u64,
    /// If set, frequent words are left out at random: a word that makes up the share `f` of all
    /// words is kept with probability `sqrt(t/f) + t/f`, with this number as `t`. The rule is that
    /// of word2vec's program, close to Mikolov et al. 2013, section 2.3. Default: none is left out.
    pub subsample: Option<f64>,
    /// Number of threads that train, with the caller's. Default: 1.
    pub threads: usize,
    /// Number of targets for which each thread trains its own copy of the word vectors before the
    /// copies are merged. Default: chosen by the number of words, see [`Trainer`](crate::Trainer).
    pub words_per_merge: Option<usize>,
    /// Seed of the first vectors, noise, windows and subsampling. Default: 0.
    pub seed: u64,
}

impl TrainSpec {
    /// The default settings for a model and a number of targets in all epochs together.
    pub fn new(model: Model, planned_words: u64) -> Self {
        Self {
            model,
            dimension: 24,
            negatives: 5,
            noise_exponent: 0.75,
            alpha: 0.025,
            min_alpha: 0.0001,
            planned_words,
            subsample: None,
            threads: 1,
            words_per_merge: None,
            seed: 0,
        }
    }

    /// Checks each setting on its own.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { dimension, negatives, alpha, min_alpha, threads, .. } = *self;
        if !(1..=MAX_DIMENSION).contains(&dimension) {
            let problem = format!("must be 1 to {MAX_DIMENSION}");
            return Err(Error::setting("dimension", dimension, problem));
        }
        if !(1..=1000).contains(&negatives) {
            return Err(Error::setting("negatives", negatives, "must be 1 to 1000"));
        }
        if !(alpha.is_finite() && 0.0 < alpha) {
            return Err(Error::setting("alpha", alpha, "must be a finite number above 0"));
        }
        if !(0.0..=alpha).contains(&min_alpha) {
            return Err(Error::setting(
                "min_alpha",
                min_alpha,
                format!("must be 0 to alpha, which is {alpha}"),
            ));
        }
        if self.planned_words == 0 {
            return Err(Error::setting(
                "planned_words",
                0,
                "must be at least 1: targets of all epochs",
            ));
        }
        if let Some(share) = self.subsample.filter(|share| !(share.is_finite() && 0.0 < *share)) {
            return Err(Error::setting("subsample", share, "must be a finite number above 0"));
        }
        if !(1..=1024).contains(&threads) {
            return Err(Error::setting("threads", threads, "must be 1 to 1024"));
        }
        if self.words_per_merge == Some(0) {
            return Err(Error::setting("words_per_merge", 0, "must be at least 1"));
        }
        match self.model {
            Model::DistributedMemory { window: 0, .. } => {
                Err(Error::setting("window", 0, "must be at least 1; BagOfWords has no context"))
            }
            _ => Ok(()),
        }
    }

    /// The learning rate after this many targets. It falls linearly to `min_alpha`, and stays
    /// there if more words come than planned.
    pub fn rate_after(&self, n_words: u64) -> f32 {
        let part = (n_words as f64 / self.planned_words as f64).min(1.0);
        let (alpha, min_alpha) = (f64::from(self.alpha), f64::from(self.min_alpha));
        (alpha - (alpha - min_alpha) * part) as f32
    }
}
