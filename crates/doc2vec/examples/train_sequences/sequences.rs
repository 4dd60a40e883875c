//! Random sequences in families, and their words.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;
use doc2vec::Documents;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

const BASES: [char; 4] = ['A', 'C', 'G', 'T'];

/// Number of bases in a word.
const K: usize = 4;

/// Sequences in families: copies of a random ancestor, each base replaced with a probability.
#[derive(Debug, Clone, Args)]
pub(crate) struct SequencesSpec {
    /// Number of sequences
    #[arg(long, default_value_t = 4000)]
    pub(crate) sequences: usize,
    /// Sequences of a family; 1 for unrelated sequences
    #[arg(long, default_value_t = 10)]
    pub(crate) family: usize,
    /// Probability that a base of a copy is drawn anew
    #[arg(long, default_value_t = 0.1)]
    pub(crate) mutation: f64,
    /// Bases of a sequence
    #[arg(long, default_value_t = 1024)]
    pub(crate) bases: usize,
    /// Seed of sequences and training
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Sequences as numbers of bases, and the family of each.
#[derive(Debug)]
pub(crate) struct Sequences {
    sequences: Vec<Vec<u8>>,
    /// The family of each sequence.
    pub(crate) families: Vec<usize>,
}

/// The words of all sequences, in batches.
#[derive(Debug)]
pub(crate) struct TokenizedSequences {
    /// All documents in their order.
    pub(crate) batches: Vec<TokenBatch>,
    /// Number of occurrences of each word.
    pub(crate) word_counts: Vec<u64>,
}

/// TokenizedSequences of one frame each.
#[derive(Debug, Default)]
pub(crate) struct TokenBatch {
    rows: Vec<u64>,
    document_ends: Vec<usize>,
    frame_ends: Vec<usize>,
    tokens: Vec<u32>,
}

impl Sequences {
    /// Draws them.
    pub(crate) fn generate(spec: &SequencesSpec) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(spec.seed);
        let base = |generator: &mut ChaCha8Rng| (generator.next_u32() >> 30) as u8;
        let n_families = spec.sequences.div_ceil(spec.family.max(1));
        let ancestors: Vec<Vec<u8>> = (0..n_families)
            .map(|_| (0..spec.bases).map(|_| base(&mut generator)).collect())
            .collect();
        // Relatives are far from each other: training on them in a row would be another task.
        let families: Vec<usize> = (0..spec.sequences).map(|number| number % n_families).collect();
        let mut mutated = |of: &u8| {
            let is_drawn = f64::from(generator.next_u32()) < spec.mutation * 2_f64.powi(32);
            if is_drawn { base(&mut generator) } else { *of }
        };
        let sequences = families
            .iter()
            .map(|family| ancestors[*family].iter().map(&mut mutated).collect())
            .collect();
        Self { sequences, families }
    }

    /// Writes a line for each sequence: family, a tab, bases.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = String::new();
        for (sequence, family) in self.sequences.iter().zip(&self.families) {
            let bases: String = sequence.iter().map(|base| BASES[usize::from(*base)]).collect();
            // Writing to a string cannot fail.
            let _written = writeln!(text, "{family}\t{bases}");
        }
        std::fs::write(path, text)
    }

    /// The 4-mers of each sequence in all four frames, one frame after another.
    pub(crate) fn documents(&self, batch_size: usize) -> TokenizedSequences {
        let mut batches = Vec::new();
        let mut word_counts = vec![0; BASES.len().pow(K as u32)];
        let rows: Vec<u64> = (0..self.sequences.len() as u64).collect();
        let size = batch_size.max(1);
        for (rows, sequences) in rows.chunks(size).zip(self.sequences.chunks(size)) {
            let mut batch = TokenBatch { rows: rows.to_vec(), ..TokenBatch::default() };
            for sequence in sequences {
                let frames = (0..K).filter_map(|begin| sequence.get(begin..));
                for word in frames.flat_map(|frame| frame.chunks_exact(K)) {
                    let token = word.iter().fold(0, |token, base| 4 * token + u32::from(*base));
                    word_counts[token as usize] += 1;
                    batch.tokens.push(token);
                }
                batch.frame_ends.push(batch.tokens.len());
                batch.document_ends.push(batch.frame_ends.len());
            }
            batches.push(batch);
        }
        TokenizedSequences { batches, word_counts }
    }

    /// Names of the documents: their rows.
    pub(crate) fn names(&self) -> Vec<String> {
        (0..self.sequences.len()).map(|row| row.to_string()).collect()
    }
}

impl TokenizedSequences {
    /// Number of words in all documents.
    pub(crate) fn n_words(&self) -> u64 {
        self.word_counts.iter().sum()
    }

    /// The 4-mers in the order of their numbers.
    pub(crate) fn word_names(&self) -> Vec<String> {
        let base = |word: usize, place: usize| BASES[(word >> (2 * (K - 1 - place))) & 3];
        let name = |word: usize| (0..K).map(|place| base(word, place)).collect();
        (0..self.word_counts.len()).map(name).collect()
    }
}

impl TokenBatch {
    /// The batch as the trainer takes it.
    pub(crate) fn frames(&self) -> Documents<'_> {
        Documents {
            documents: &self.rows,
            document_ends: &self.document_ends,
            frame_ends: &self.frame_ends,
            tokens: &self.tokens,
            padding: 0,
        }
    }
}
