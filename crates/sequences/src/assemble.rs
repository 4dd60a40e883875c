//! Makes batches from blocks.

use pipeline::{Assemble, BatchPlace, BlockPart};
use worktime::ThreadTime;

use crate::batch::SequenceBatch;
use crate::error::Error;
use crate::layout::{Layout, PaddedRows, one_hot};
use crate::samples::{SequenceBlock, SequenceSpec};
use crate::sequence_list::SequenceList;
use crate::tokens::TokenFrames;
use crate::windows::Windows;

/// Copies sequences of blocks into batches, and makes windows of their words.
#[derive(Debug)]
pub struct SequenceAssembler {
    spec: SequenceSpec,
    rows: Vec<u64>,
    sequences: SequenceList,
    tokens: TokenFrames,
}

impl SequenceAssembler {
    pub(crate) fn new(spec: SequenceSpec) -> Self {
        let (sequences, tokens) = (SequenceList::default(), TokenFrames::default());
        Self { spec, rows: Vec::new(), sequences, tokens }
    }

    fn n_frames(&self) -> usize {
        self.spec.tokenizer.as_ref().map_or(0, |tokenizer| tokenizer.spec().n_frames)
    }

    /// Makes room for rows of a block at once: a batch that grows would take up to twice its size.
    fn reserve(&mut self, block: &SequenceBlock, order: &[u32]) {
        let n_bytes = |of: &dyn Fn(usize) -> Option<usize>| {
            (order.len(), order.iter().filter_map(|at| of(*at as usize)).sum())
        };
        let list = &block.sequences;
        let letters =
            self.spec.needs_letters().then(|| n_bytes(&|at| list.get(at).map(<[u8]>::len)));
        let names = self.spec.names.then(|| n_bytes(&|at| list.name(at).map(<[u8]>::len)));
        self.sequences.reserve(letters, names);
        let n_frames = self.n_frames();
        if 0 < n_frames {
            let tokens = &block.tokens;
            let (n, n_tokens) = n_bytes(&|at| Some(tokens.n_tokens_from(at * n_frames, n_frames)));
            self.tokens.reserve(n_tokens, n * n_frames);
        }
    }

    fn windows(&self, spec: &crate::windows::WindowSpec, epoch: u64) -> Result<Windows, Error> {
        let n_frames = self.n_frames();
        let mut windows = Windows::for_frames(spec, &self.tokens);
        for (idx, row) in self.rows.iter().enumerate() {
            let row = u32::try_from(*row)
                .map_err(|_| Error::settings(format!("row {row} has more than 32 bits")))?;
            let frames = idx * n_frames..(idx + 1) * n_frames;
            windows.add(spec, (epoch, row), frames.map(|number| self.tokens.frame(number)));
        }
        Ok(windows)
    }
}

impl Assemble for SequenceAssembler {
    type Block = SequenceBlock;
    type Batch = SequenceBatch;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.rows = Vec::with_capacity(n_rows);
        self.sequences = SequenceList::default();
        self.tokens = TokenFrames::default();
        Ok(())
    }

    fn add(&mut self, block: &SequenceBlock, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        let n_frames = self.n_frames();
        self.reserve(block, part.order);
        for at in part.order {
            let at = *at as usize;
            let row = block.rows.get(at).zip(block.sequences.get(at));
            let Some((row, letters)) = row else {
                let n = block.rows.len();
                return Err(Error::settings(format!(
                    "a block of {n} sequences has no number {at}"
                )));
            };
            self.rows.push(*row);
            let letters = self.spec.needs_letters().then_some(letters);
            let name = block.sequences.name(at);
            self.sequences.push_parts(letters, name);
            if 0 < n_frames {
                self.tokens.append(&block.tokens, at * n_frames, n_frames);
            }
        }
        Ok(ThreadTime::default())
    }

    fn finish(&mut self, place: BatchPlace) -> Result<SequenceBatch, Error> {
        let windows = match &self.spec.windows {
            Some(spec) => Some(self.windows(spec, place.epoch)?),
            None => None,
        };
        let (mut sequences, tokens) =
            (std::mem::take(&mut self.sequences), std::mem::take(&mut self.tokens));
        let (spec, n_frames) = (&self.spec, self.n_frames());
        let padded_letters = if spec.needs_letters() {
            PaddedRows::new(sequences.letters(), spec.layout, 0)
        } else {
            None
        };
        let padded_words = spec.tokenizer.as_ref().and_then(|tokenizer| {
            let after_the_last = tokenizer.vocabulary().n_words() as u32;
            let fill = spec.pad_word.unwrap_or(after_the_last);
            PaddedRows::new(tokens.sequences(n_frames), spec.layout, fill)
        });
        let one_hot = spec.one_hot.as_ref().map(|alphabet| {
            let ragged = sequences.letters_and_ends().0;
            one_hot(padded_letters.as_ref().map_or(ragged, |padded| &padded.values), alphabet)
        });
        let is_ragged = spec.layout == Layout::Ragged;
        if !is_ragged {
            sequences.clear_letters();
        }
        Ok(SequenceBatch {
            rows: std::mem::take(&mut self.rows),
            n_frames,
            sequences,
            tokens: (spec.tokenizer.is_some() && is_ragged).then_some(tokens),
            padded_letters,
            padded_words,
            one_hot,
            windows,
            place,
        })
    }
}
