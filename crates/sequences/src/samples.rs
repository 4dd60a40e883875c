//! Sequences as a source of the engine.

use std::sync::Arc;

use pipeline::{BlockBytes, BlockRows, Need, ReadStats, Source, Stop};
use worktime::{ReadTimes, now};

use crate::alphabet::Alphabet;
use crate::assemble::SequenceAssembler;
use crate::batch::SequenceBatch;
use crate::error::Error;
use crate::layout::Layout;
use crate::sequence_list::SequenceList;
use crate::store::SequenceStore;
use crate::tokenizer::{TokenScratch, Tokenizer};
use crate::tokens::TokenFrames;
use crate::windows::{WindowSpec, Windows};

/// What batches have of each sequence.
#[derive(Debug, Clone, Default)]
pub struct SequenceSpec {
    /// Its letters.
    pub letters: bool,
    /// Its name.
    pub names: bool,
    /// Its words.
    pub tokenizer: Option<Tokenizer>,
    /// Each word with its context and noise. Needs a tokenizer.
    pub windows: Option<WindowSpec>,
    /// A one among zeros for each letter, by its number in this alphabet.
    pub one_hot: Option<Alphabet>,
    /// How sequences of different lengths lie in a batch.
    pub layout: Layout,
    /// The number that fills up rows of words; `None` is the one after the last word.
    pub pad_word: Option<u32>,
}

impl SequenceSpec {
    /// Whether letters are copied to batches, by themselves or to be encoded.
    pub(crate) fn needs_letters(&self) -> bool {
        self.letters || self.one_hot.is_some()
    }
}

/// Sequences of a store, as samples.
///
/// Threads that read blocks (`PipelineSpec::read_threads`) also turn them into words. Windows are
/// made with the batches.
#[derive(Debug, Clone)]
pub struct SequenceSamples {
    store: Arc<dyn SequenceStore>,
    spec: SequenceSpec,
}

impl SequenceSamples {
    /// Takes samples from a store.
    ///
    /// # Errors
    /// Windows are asked for without a tokenizer or without context, with a noise table of another
    /// number of words, or for more sequences than 31-bit numbers have.
    pub fn new(store: Arc<dyn SequenceStore>, spec: SequenceSpec) -> Result<Self, Error> {
        if let Some(windows) = &spec.windows {
            let Some(tokenizer) = &spec.tokenizer else {
                return Err(Error::settings("windows are made of words: set a tokenizer, too"));
            };
            if windows.context == 0 {
                return Err(Error::settings("a window needs at least one word of context"));
            }
            let n_words = tokenizer.vocabulary().n_words();
            if windows.noise.n_counts() != n_words {
                return Err(Error::settings(format!(
                    "the noise is drawn from {} words, and the vocabulary has {n_words}",
                    windows.noise.n_counts()
                )));
            }
            if i32::try_from(store.summary().n_sequences).is_err() {
                return Err(Error::settings(
                    "windows number their sequences with 31 bits, and there are more: split the \
                     store",
                ));
            }
        }
        Ok(Self { store, spec })
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn SequenceStore> {
        &self.store
    }

    /// What batches have of each sequence.
    pub fn spec(&self) -> &SequenceSpec {
        &self.spec
    }

    /// Bytes of a block of `n_rows` sequences that have `n_letters` together.
    fn block_bytes_for(&self, n_rows: u64, n_letters: u64) -> u64 {
        let of_numbers = |n: u64, bytes: usize| n.saturating_mul(bytes as u64);
        let names =
            if self.spec.names { self.mean_of(self.store.summary().n_name_bytes) } else { 0 };
        let lists = n_rows.saturating_mul(names).saturating_add(of_numbers(n_rows, 24));
        let tokens = self.n_tokens(n_rows, n_letters);
        let frames = n_rows.saturating_mul(self.n_frames() as u64);
        [lists, n_letters, of_numbers(tokens, 4), of_numbers(frames, 8)]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Words of `n_rows` sequences that have `n_letters` together, at most.
    fn n_tokens(&self, n_rows: u64, n_letters: u64) -> u64 {
        let Some(tokenizer) = &self.spec.tokenizer else { return 0 };
        let spec = tokenizer.spec();
        let padding = (2 * spec.padding * spec.k + spec.stride) as u64;
        let letters = n_letters.saturating_add(n_rows.saturating_mul(padding));
        letters.saturating_mul(spec.n_frames as u64) / spec.stride as u64
    }

    /// Bytes of letters and words in rows of equal length, and of encoded letters, at most.
    fn laid_out_bytes(&self, n_rows: u64, n_letters: u64) -> u64 {
        let longest = self.store.summary().longest;
        let of_rows = |longest: u64| match self.spec.layout {
            Layout::Ragged => 0,
            Layout::Longest => n_rows.saturating_mul(longest),
            Layout::Padded(width) => n_rows.saturating_mul(width as u64),
        };
        let letters = if self.spec.needs_letters() { of_rows(longest) } else { 0 };
        let words = of_rows(self.n_tokens(1, longest)).min(match &self.spec.tokenizer {
            Some(_) => u64::MAX,
            None => 0,
        });
        let encoded = self.spec.one_hot.as_ref().map_or(0, |alphabet| {
            let n_letters = if self.spec.layout == Layout::Ragged { n_letters } else { letters };
            n_letters.saturating_mul(4 * alphabet.letters().len() as u64)
        });
        // A mask, and numbers of 32 bits.
        [letters.saturating_mul(2), words.saturating_mul(5), encoded]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    fn n_frames(&self) -> usize {
        self.spec.tokenizer.as_ref().map_or(0, |tokenizer| tokenizer.spec().n_frames)
    }

    /// A number of all sequences together as mean over them, rounded up.
    fn mean_of(&self, all: u64) -> u64 {
        all.div_ceil(self.store.summary().n_sequences.max(1))
    }
}

/// Sequences that were read together, in the order of the store.
#[derive(Debug, Default)]
pub struct SequenceBlock {
    pub(crate) rows: Vec<u64>,
    pub(crate) sequences: SequenceList,
    pub(crate) tokens: TokenFrames,
}

impl Source for SequenceSamples {
    type Block = SequenceBlock;
    type Batch = SequenceBatch;
    type Error = Error;
    type Scratch = TokenScratch;
    type Assembler = SequenceAssembler;

    fn n_rows(&self) -> u64 {
        self.store.summary().n_sequences
    }

    fn fingerprint(&self) -> String {
        self.store.summary().fingerprint.clone()
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let summary = self.store.summary();
        let mean = self.mean_of(summary.n_letters);
        let typical = |n_rows: u64| self.block_bytes_for(n_rows, n_rows.saturating_mul(mean));
        let most = block_rows.saturating_mul(summary.longest).min(summary.n_letters);
        let windows = self.spec.windows.as_ref().map_or(0, |windows| {
            let n_tokens = self.n_tokens(batch_rows, batch_rows.saturating_mul(mean));
            Windows::bytes_for(windows, n_tokens)
        });
        Ok(Need {
            block: typical(block_rows),
            largest: self.block_bytes_for(block_rows, most),
            batch: typical(batch_rows)
                .saturating_add(windows)
                .saturating_add(self.laid_out_bytes(batch_rows, batch_rows.saturating_mul(mean))),
            // The codes of the letters of one sequence come after what the store needs, and stay.
            reading: self
                .store
                .working_bytes(block_rows, self.spec.names)
                .saturating_add(self.n_frames().min(1) as u64 * summary.longest.saturating_mul(4)),
            other: 0,
        })
    }

    fn block_bytes(&self, block: &SequenceBlock) -> BlockBytes {
        let rows = size_of::<u64>() * block.rows.capacity();
        let now = rows + block.sequences.capacity_bytes() + block.tokens.capacity_bytes();
        BlockBytes { now: now as u64, most: now as u64 }
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut SequenceBlock,
        scratch: &mut TokenScratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        let SequenceBlock { rows: of_block, sequences, tokens } = into;
        of_block.clear();
        of_block.extend(rows.ranges.iter().cloned().flatten());
        sequences.clear();
        tokens.clear();
        let started = now();
        let n_read = self.store.read(rows.ranges, self.spec.names, sequences, stop)?;
        let fetched = now();
        if let Some(tokenizer) = &self.spec.tokenizer {
            let (letters, ends) = sequences.letters_and_ends();
            let n_tokens = self.n_tokens(ends.len() as u64, letters.len() as u64);
            tokens.clear_for(n_tokens as usize, ends.len() * self.n_frames());
            for (row, letters) in of_block.iter().zip(sequences.letters()) {
                if stop.is_set() {
                    return Err(Error::Stopped);
                }
                tokenizer.tokenize(*row, letters, tokens, scratch)?;
            }
        }
        let times = ReadTimes { fetch: fetched - started, decode: now() - fetched };
        let n_letters = sequences.letters_and_ends().0.len() as u64;
        Ok(ReadStats {
            values: n_letters,
            values_decoded: Some(n_letters),
            bytes_read: Some(n_read),
            bytes_decoded: Some(n_letters),
            bytes_needed: Some(n_letters),
            times: Some(times),
            ..ReadStats::default()
        })
    }

    fn row_name(&self, row: u64) -> String {
        let mut names = SequenceList::default();
        let read = self.store.read_names(&[row..row + 1], &mut names, &Stop::default());
        let name = names.names().next().filter(|_| read.is_ok());
        name.map_or_else(
            || format!("sequence {row}"),
            |name| String::from_utf8_lossy(name).into_owned(),
        )
    }

    fn is_damage(&self, error: &Error) -> bool {
        let is_of_rows = match error {
            Error::Read { .. }
            | Error::Damaged { .. }
            | Error::UnknownLetter { .. }
            | Error::UnknownWord { .. } => true,
            #[cfg(feature = "servers")]
            Error::Servers(error) => matches!(error, key_values::Error::MissingValue { .. }),
            _ => false,
        };
        is_of_rows && pipeline::system_failure(error).is_none()
    }

    fn assembler(&self, _batch_rows: u64) -> Result<SequenceAssembler, Error> {
        Ok(SequenceAssembler::new(self.spec.clone()))
    }
}
