//! Memory for the tokens of a cell, used again for the next.

use crate::order::Sorter;

/// Memory of one thread.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Detected genes, sorted: the key of a value above its place in the row.
    pub(crate) entries: Vec<u64>,
    /// The results that genes are ranked by, by place in the row.
    pub(crate) scaled: Vec<f64>,
    /// Borders of bins.
    pub(crate) borders: Vec<f64>,
    /// Bins by place in the row, or by column if genes without a value have tokens, too.
    pub(crate) bins: Vec<f32>,
    /// Genes that may get a place in the sequence.
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) sorter: Sorter,
}

/// A gene that may get a place in the sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) token: u32,
    pub(crate) value: f32,
    pub(crate) bin: f32,
}
