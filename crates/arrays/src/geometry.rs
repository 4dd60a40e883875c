//! The selected part of an array, split into the pieces that are read on their own.

use std::ops::Range;
use std::sync::OnceLock;

use crate::part::Part;
use crate::selection::{ChunkRuns, Indices, by_chunk};

/// A selected chunk, of those that share an index in the first dimension.
#[derive(Debug)]
pub(crate) struct SelectedChunk {
    /// Its indices in all dimensions but the first.
    pub(crate) indices: Vec<u64>,
    pub(crate) part: Part,
}

/// Consecutive elements of a row, and the chunks that they come from. Segments are split at the
/// borders of chunks in the second dimension, so that no chunk belongs to two.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its elements within the row.
    pub(crate) elements: Range<usize>,
    pub(crate) chunks: Vec<SelectedChunk>,
}

/// The shape of the chunks, and the selected part of a row.
#[derive(Debug)]
pub(crate) struct Geometry {
    /// Rows of a chunk.
    pub(crate) chunk_rows: u64,
    /// Elements of a chunk in one index of the first dimension.
    pub(crate) chunk_row_len: usize,
    /// Shape of the selected part of a row.
    pub(crate) row_shape: Vec<usize>,
    /// Elements of the selected part of a row.
    pub(crate) row_len: usize,
    /// What is selected in all dimensions but the first, and the length of a chunk in each.
    selected: Vec<(Indices, usize)>,
    /// Made by the first read, since a chunk takes some hundred bytes, whatever it holds.
    segments: OnceLock<Vec<Segment>>,
}

/// The most chunks of a row: their list takes a gigabyte.
pub(crate) const MOST_CHUNKS: u64 = 1 << 22;

impl Geometry {
    /// The part of an array with chunks of `chunk_shape` that `selected` describes, an entry for
    /// each dimension but the first. `None` if it has more elements than memory has addresses, or
    /// more than [`MOST_CHUNKS`] chunks in a row.
    pub(crate) fn new(chunk_shape: &[u64], selected: &[Indices], n_bytes: usize) -> Option<Self> {
        let (chunk_rows, chunk_lens) = chunk_shape.split_first()?;
        let row_shape: Vec<usize> = selected
            .iter()
            .map(|indices| usize::try_from(indices.len()).ok())
            .collect::<Option<_>>()?;
        let chunk_lens: Vec<usize> =
            chunk_lens.iter().map(|len| usize::try_from(*len).ok()).collect::<Option<_>>()?;
        let row_len = addressable(&row_shape, n_bytes)?;
        let n_chunks = selected
            .iter()
            .zip(&chunk_lens)
            .try_fold(1_u64, |n, (indices, len)| n.checked_mul(indices.n_chunks(*len as u64)));
        n_chunks.filter(|n_chunks| *n_chunks <= MOST_CHUNKS)?;
        let chunk_row_len = addressable(&chunk_lens, n_bytes)?;
        addressable(&[usize::try_from(*chunk_rows).ok()?, chunk_row_len], n_bytes)?;
        let selected = selected.iter().cloned().zip(chunk_lens).collect();
        let (chunk_rows, segments) = (*chunk_rows, OnceLock::new());
        Some(Self { chunk_rows, chunk_row_len, row_shape, row_len, selected, segments })
    }

    /// The segments of a row.
    pub(crate) fn segments(&self) -> &[Segment] {
        self.segments.get_or_init(|| {
            let lens = self.selected.iter().map(|(_, len)| *len).zip(self.row_shape.clone());
            let by_dim: Vec<Vec<ChunkRuns>> =
                self.selected.iter().map(|(indices, len)| by_chunk(indices, *len as u64)).collect();
            segments(&by_dim, &lens.collect::<Vec<_>>())
        })
    }
}

/// The product of `shape`, if memory has addresses for that many elements of `n_bytes` each.
fn addressable(shape: &[usize], n_bytes: usize) -> Option<usize> {
    let n = shape.iter().try_fold(1_usize, |n, len| n.checked_mul(*len))?;
    isize::try_from(n.checked_mul(n_bytes)?).ok().map(|_| n)
}

fn segments(by_dim: &[Vec<ChunkRuns>], lens: &[(usize, usize)]) -> Vec<Segment> {
    let Some((outer, inner)) = by_dim.split_first() else {
        // Rows of a single element.
        let one =
            ChunkRuns { chunk: 0, runs: vec![crate::selection::Run { src: 0, dst: 0, len: 1 }] };
        let part = Part::new(&[&one], &[(1, 1)], 0);
        let chunks = vec![SelectedChunk { indices: Vec::new(), part }];
        return vec![Segment { elements: 0..1, chunks }];
    };
    let inner_len: usize = lens[1..].iter().map(|(_, in_row)| in_row).product();
    outer
        .iter()
        .map(|of_outer| {
            let Range { start, end } = of_outer.positions();
            let chunks = combinations(inner).into_iter().map(|of_inner| {
                let runs: Vec<&ChunkRuns> = std::iter::once(of_outer).chain(of_inner).collect();
                let indices = runs.iter().map(|of_dim| of_dim.chunk).collect();
                SelectedChunk { indices, part: Part::new(&runs, lens, start) }
            });
            Segment { elements: start * inner_len..end * inner_len, chunks: chunks.collect() }
        })
        .collect()
}

/// Every way to take one entry of each dimension, the last varying fastest.
fn combinations(by_dim: &[Vec<ChunkRuns>]) -> Vec<Vec<&ChunkRuns>> {
    by_dim.iter().fold(vec![Vec::new()], |all, dim| {
        all.iter()
            .flat_map(|so_far| {
                dim.iter().map(|next| so_far.iter().copied().chain([next]).collect())
            })
            .collect()
    })
}
