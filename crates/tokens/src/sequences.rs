//! Sequences of tokens: where each cell's are in a batch, and the threads that write them.

use std::ops::Range;
use std::thread;

use worktime::ThreadTime;

use crate::bins::BinnedValues;
use crate::cells::Cells;
use crate::error::Error;
use crate::ranks::RankValues;
use crate::scratch::Scratch;
use crate::vocabulary::Genes;

/// Fewer cells than these are not worth a thread: starting one takes as long as two cells.
const THREAD_CELLS: usize = 32;

/// A type of token ids.
pub trait TokenId: Copy + Default + Send {
    /// The id in this type; ids are below 2^31.
    fn from_id(id: u32) -> Self;
}

impl TokenId for u32 {
    #[inline]
    fn from_id(id: u32) -> Self {
        id
    }
}

impl TokenId for i32 {
    #[inline]
    fn from_id(id: u32) -> Self {
        id as Self
    }
}

impl TokenId for i64 {
    #[inline]
    fn from_id(id: u32) -> Self {
        Self::from(id)
    }
}

/// Makes sequences of tokens from cells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Tokenizer {
    /// Genes ranked by value; no values beside the tokens.
    Ranks(RankValues),
    /// Genes with the bins of their values.
    Bins(BinnedValues),
}

/// Where the sequences of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A row of the maximal length for each cell, filled up with padding.
    Padded,
    /// Rows as long as the longest sequence of the batch.
    PaddedToLongest,
    /// One sequence directly after another.
    Ragged,
}

/// The place of each sequence among the tokens of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    offsets: Vec<usize>,
    lengths: Vec<u32>,
    width: Option<usize>,
}

impl Places {
    /// Where each sequence's part begins, and at last the number of tokens of the batch.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Number of tokens of each sequence, without padding.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Number of tokens in each row of a padded batch.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Number of cells.
    pub fn n_cells(&self) -> usize {
        self.lengths.len()
    }

    /// Number of tokens of the batch, padding included.
    pub fn n_tokens(&self) -> usize {
        self.offsets.last().copied().unwrap_or_default()
    }

    /// Computes the offsets from the lengths.
    fn lay_out(&mut self, layout: Layout, max_length: usize) {
        let longest = self.lengths.iter().max().map_or(0, |length| *length as usize);
        self.width = match layout {
            Layout::Padded => Some(max_length),
            Layout::PaddedToLongest => Some(longest),
            Layout::Ragged => None,
        };
        self.offsets.clear();
        self.offsets.push(0);
        let mut end = 0;
        for length in &self.lengths {
            end += self.width.unwrap_or(*length as usize);
            self.offsets.push(end);
        }
    }
}

/// Memory of the threads that make tokens, used again from batch to batch.
#[derive(Debug, Default)]
pub struct Workspace {
    of_threads: Vec<Scratch>,
}

impl Tokenizer {
    /// The token of each column.
    pub fn genes(&self) -> &Genes {
        match self {
            Self::Ranks(ranks) => ranks.genes(),
            Self::Bins(bins) => bins.genes(),
        }
    }

    /// Longest sequence in tokens, special tokens included.
    pub fn max_length(&self) -> usize {
        match self {
            Self::Ranks(ranks) => ranks.spec().max_length,
            Self::Bins(bins) => bins.spec().max_length,
        }
    }

    /// Most tokens that a cell of `n_values` stored values has, special tokens included.
    pub fn most_tokens(&self, n_values: usize) -> usize {
        self.length(n_values.min(self.genes().n_known()))
    }

    /// Tokens of a cell in which `n_detected` known genes have values, special tokens included.
    fn length(&self, n_detected: usize) -> usize {
        let n_genes = match self {
            Self::Bins(bins) if bins.spec().include_zeros => self.genes().n_known(),
            Self::Ranks(_) | Self::Bins(_) => n_detected,
        };
        let n_special = self.genes().special().n_in_sequence();
        n_genes.saturating_add(n_special).min(self.max_length())
    }

    /// The value of padding beside the tokens; `None` if there are no values.
    pub fn pad_value(&self) -> Option<f32> {
        match self {
            Self::Ranks(_) => None,
            Self::Bins(bins) => Some(bins.spec().pad_value),
        }
    }

    /// Whether random numbers decide anything, so that cells need numbers.
    pub fn is_random(&self) -> bool {
        match self {
            Self::Ranks(_) => false,
            Self::Bins(bins) => bins.is_random(),
        }
    }

    /// Measures the sequences of a batch and gives each its place.
    ///
    /// # Errors
    /// The parts of `cells` do not fit together; a column does not exist; a value is negative or
    /// not finite.
    pub fn places(
        &self,
        cells: &Cells<'_>,
        layout: Layout,
        n_threads: usize,
        places: &mut Places,
    ) -> Result<ThreadTime, Error> {
        cells.check(self.is_random())?;
        places.lengths.clear();
        places.lengths.resize(cells.rows.n_rows(), 0);
        let rows_of = part_rows(places.n_cells(), n_threads);
        let parts = places.lengths.chunks_mut(rows_of).enumerate();
        let measure = |(idx, lengths): (usize, &mut [u32])| {
            for (row_idx, length) in (idx * rows_of..).zip(lengths) {
                *length = self.length(cells.cell(row_idx)?.n_detected(self.genes())?) as u32;
            }
            Ok(())
        };
        let others = on_threads(parts, measure)?;
        places.lay_out(layout, self.max_length());
        Ok(others)
    }

    /// Writes the sequences to their places: all of `tokens`, and all of `values` if there are
    /// values beside the tokens. Returns the time of the threads other than the caller's.
    ///
    /// # Errors
    /// The parts of `cells`, or the slices, do not fit together; a row with values has no total
    /// above 0 to rank by.
    pub fn fill<T: TokenId>(
        &self,
        cells: &Cells<'_>,
        places: &Places,
        n_threads: usize,
        workspace: &mut Workspace,
        (tokens, values): (&mut [T], &mut [f32]),
    ) -> Result<ThreadTime, Error> {
        cells.check(self.is_random())?;
        let n_values = if self.pad_value().is_some() { places.n_tokens() } else { 0 };
        for (what, found, expected) in [
            ("the places", places.n_cells(), cells.rows.n_rows()),
            ("the tokens", tokens.len(), places.n_tokens()),
            ("the values", values.len(), n_values),
        ] {
            if found != expected {
                return Err(Error::Length { what, found, expected });
            }
        }
        let rows_of = part_rows(places.n_cells(), n_threads);
        let n_parts = places.n_cells().div_ceil(rows_of);
        if workspace.of_threads.len() < n_parts {
            workspace.of_threads.resize_with(n_parts, Scratch::default);
        }
        let (mut tokens, mut values) = (tokens, values);
        let mut parts = Vec::with_capacity(n_parts);
        for (idx, scratch) in workspace.of_threads[..n_parts].iter_mut().enumerate() {
            let rows = idx * rows_of..((idx + 1) * rows_of).min(places.n_cells());
            let n_of_part = places.offsets[rows.end] - places.offsets[rows.start];
            let (of_part, rest) = tokens.split_at_mut(n_of_part);
            tokens = rest;
            let (values_of_part, rest) = values.split_at_mut(n_of_part.min(values.len()));
            values = rest;
            parts.push((rows, scratch, of_part, values_of_part));
        }
        on_threads(parts.into_iter(), |(rows, scratch, tokens, values)| {
            self.fill_part(cells, places, rows, scratch, (tokens, values))
        })
    }

    /// Writes the sequences of some rows; the slices begin with the first of them.
    fn fill_part<T: TokenId>(
        &self,
        cells: &Cells<'_>,
        places: &Places,
        rows: Range<usize>,
        scratch: &mut Scratch,
        (mut tokens, mut values): (&mut [T], &mut [f32]),
    ) -> Result<(), Error> {
        let special = self.genes().special();
        let (n_before, n_after) = (special.cls.iter().len(), special.eos.iter().len());
        for row_idx in rows {
            let cell = cells.cell(row_idx)?;
            let n_slot = places.offsets[row_idx + 1] - places.offsets[row_idx];
            let length = places.lengths[row_idx] as usize;
            let (slot, rest) = tokens.split_at_mut(n_slot);
            tokens = rest;
            // Places of another tokenizer may have no room for these special tokens.
            let begin = n_before.min(length);
            let genes = begin..length.saturating_sub(n_after).max(begin);
            if let (Some(cls), Some(to)) = (special.cls, slot.first_mut()) {
                *to = T::from_id(cls);
            }
            if let (Some(eos), Some(to)) = (special.eos, slot.get_mut(genes.end)) {
                *to = T::from_id(eos);
            }
            slot[length..].fill(T::from_id(special.pad));
            match self {
                Self::Ranks(ranks) => ranks.encode(&cell, scratch, &mut slot[genes])?,
                Self::Bins(bins) => {
                    let (of_slot, rest) = values.split_at_mut(n_slot);
                    values = rest;
                    of_slot[..begin].fill(0.0);
                    of_slot[genes.end..length].fill(0.0);
                    of_slot[length..].fill(bins.spec().pad_value);
                    bins.encode(&cell, scratch, (&mut slot[genes.clone()], &mut of_slot[genes]));
                }
            }
        }
        Ok(())
    }
}

/// Number of rows of each thread's part.
fn part_rows(n_rows: usize, n_threads: usize) -> usize {
    let n_threads = n_threads.min(n_rows / THREAD_CELLS).max(1);
    n_rows.div_ceil(n_threads).max(1)
}

/// Runs `work` on each part in a thread of its own; the first part on the caller's. Returns the
/// time of the other threads.
fn on_threads<P: Send>(
    mut parts: impl Iterator<Item = P>,
    work: impl Fn(P) -> Result<(), Error> + Sync,
) -> Result<ThreadTime, Error> {
    let Some(first) = parts.next() else { return Ok(ThreadTime::default()) };
    thread::scope(|scope| {
        let (mut others, work) = (Vec::new(), &work);
        for (idx, part) in parts.enumerate() {
            let timed = move || {
                let start = worktime::now();
                work(part).map(|()| worktime::now() - start)
            };
            let thread = thread::Builder::new().name(format!("somafeed-tokens-{}", idx + 1));
            let other = thread.spawn_scoped(scope, timed);
            others.push(other.map_err(|source| Error::Spawn { source })?);
        }
        let mut result = work(first).map(|()| ThreadTime::default());
        for other in others {
            let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and_then(|times| Ok(times + other?));
        }
        result
    })
}
