//! Words with their context and with noise, as Doc2Vec learns from them.

use std::sync::Arc;

use rand_chacha::rand_core::Rng as _;
use shuffle::{AliasTable, RandomKey};

use crate::tokens::TokenFrames;

/// Keeps these streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed  noise ";

/// Windows around words, and the noise beside them.
#[derive(Debug, Clone)]
pub struct WindowSpec {
    /// Words of context at each side of a target. A word with fewer neighbours in its frame is no
    /// target.
    pub context: usize,
    /// Words of noise for each target.
    pub n_noise: usize,
    /// What noise is drawn from.
    pub noise: Arc<AliasTable>,
    /// Seed of the noise, which also depends on the epoch and the sequence: not on threads, batches
    /// or ranks.
    pub seed: u64,
}

/// Targets with their contexts and noise. `T` is the number of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// The row of each target's sequence: `[T]`.
    pub sequences: Vec<u32>,
    /// The words: `[T]`.
    pub targets: Vec<u32>,
    /// Their neighbours, from the first before them to the last behind them: `[T, 2 * context]`.
    pub contexts: Vec<u32>,
    /// The target, then noise: `[T, 1 + n_noise]`.
    pub targets_and_noise: Vec<u32>,
    /// Words of context of a target, at both sides together.
    pub n_context: usize,
    /// Words of noise of a target.
    pub n_noise: usize,
}

impl Windows {
    /// No targets yet, with memory for those of these frames.
    pub(crate) fn for_frames(spec: &WindowSpec, tokens: &TokenFrames) -> Self {
        let n_targets: usize =
            tokens.frames().map(|frame| frame.len().saturating_sub(2 * spec.context)).sum();
        let of_width = |width: usize| Vec::with_capacity(n_targets * width);
        Self {
            sequences: of_width(1),
            targets: of_width(1),
            contexts: of_width(2 * spec.context),
            targets_and_noise: of_width(1 + spec.n_noise),
            n_context: 2 * spec.context,
            n_noise: spec.n_noise,
        }
    }

    /// Appends the windows of a sequence's frames. `row` is its number in the store.
    pub(crate) fn add<'a>(
        &mut self,
        spec: &WindowSpec,
        (epoch, row): (u64, u32),
        frames: impl Iterator<Item = &'a [u32]>,
    ) {
        let key = RandomKey { domain: DOMAIN, seed: spec.seed, number: epoch };
        let mut random = key.stream(u64::from(row));
        let length = 2 * spec.context + 1;
        for frame in frames {
            for window in frame.windows(length) {
                let target = window[spec.context];
                self.sequences.push(row);
                self.targets.push(target);
                self.contexts.extend_from_slice(&window[..spec.context]);
                self.contexts.extend_from_slice(&window[spec.context + 1..]);
                self.targets_and_noise.push(target);
                let noise = (0..spec.n_noise).map(|_| spec.noise.draw(random.next_u64()));
                self.targets_and_noise.extend(noise);
            }
        }
    }

    /// Number of targets.
    pub fn n_targets(&self) -> usize {
        self.targets.len()
    }

    /// Bytes of the windows around the words of these frames, at most.
    pub(crate) fn bytes_for(spec: &WindowSpec, n_tokens: u64) -> u64 {
        let words = 3 + 2 * spec.context + spec.n_noise;
        n_tokens.saturating_mul((words * size_of::<u32>()) as u64)
    }
}
