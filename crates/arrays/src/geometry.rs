//! The selected part of an array, split into the pieces that are read on their own.

use std::ops::Range;
use std::sync::OnceLock;

use crate::part::{DimPlace, Part};
use crate::selection::{ChunkRuns, Indices, Run};

/// The first element.
const ONE: Run = Run { src: 0, dst: 0, len: 1 };

/// A selected chunk, of those that share an index in the dimension of the rows.
#[derive(Debug)]
pub(crate) struct SelectedChunk {
    /// Its indices in all dimensions but that of the rows. Where this is not the first, it is there
    /// too, with an index that has no meaning.
    pub(crate) indices: Vec<u64>,
    pub(crate) part: Part,
}

/// Consecutive elements of a row, and the chunks that they come from. Segments are split at the
/// borders of chunks in the row's outermost dimension, so that no chunk belongs to two. Where
/// selected indices go to and fro between chunks, all are one.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its elements within the row.
    pub(crate) elements: Range<usize>,
    pub(crate) chunks: Vec<SelectedChunk>,
}

/// The shape of the chunks, and the selected part of a row.
#[derive(Debug)]
pub(crate) struct Geometry {
    /// The dimension of the rows.
    pub(crate) axis: usize,
    /// Rows of a chunk.
    pub(crate) chunk_rows: u64,
    /// Elements of a chunk that one row has.
    pub(crate) chunk_row_len: usize,
    /// Elements of a chunk from a place in one row to the same place in the next.
    pub(crate) row_stride: usize,
    /// Shape of the selected part of a row, as it is delivered.
    pub(crate) row_shape: Vec<usize>,
    /// The number of each of these dimensions among `selected`.
    order: Vec<usize>,
    /// Elements of the selected part of a row.
    pub(crate) row_len: usize,
    /// What is selected in all dimensions but that of the rows, and the length of a chunk in each.
    selected: Vec<(Indices, usize)>,
    /// Made by the first read, since a chunk takes some hundred bytes, whatever it holds.
    segments: OnceLock<Vec<Segment>>,
}

/// The most chunks of a row: their list takes a gigabyte.
pub(crate) const MOST_CHUNKS: u64 = 1 << 22;

impl Geometry {
    /// The part of an array with chunks of `chunk_shape` that `selected` describes, an entry for
    /// each dimension but `axis`, that of the rows. `None` if it has more elements than memory has
    /// addresses, or more than [`MOST_CHUNKS`] chunks in a row.
    pub(crate) fn new(
        chunk_shape: &[u64],
        (axis, selected): (usize, &[Indices]),
        n_bytes: usize,
    ) -> Option<Self> {
        let mut chunk_lens = chunk_shape.to_vec();
        let chunk_rows = (axis < chunk_lens.len()).then(|| chunk_lens.remove(axis))?;
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
        addressable(&[usize::try_from(chunk_rows).ok()?, chunk_row_len], n_bytes)?;
        let row_stride = chunk_lens[axis..].iter().product();
        let selected = selected.iter().cloned().zip(chunk_lens).collect();
        Some(Self {
            axis,
            chunk_rows,
            chunk_row_len,
            row_stride,
            order: (0..row_shape.len()).collect(),
            row_shape,
            row_len,
            selected,
            segments: OnceLock::new(),
        })
    }

    /// The same with the dimensions of a row in another order: the numbers of those that are
    /// stored, each once.
    pub(crate) fn ordered(self, order: &[usize]) -> Self {
        let row_shape = order.iter().filter_map(|at| self.row_shape.get(*at).copied()).collect();
        Self { row_shape, order: order.to_vec(), segments: OnceLock::new(), ..self }
    }

    /// The order in which the dimensions of a row are delivered, if it is not that in which they
    /// are stored.
    pub(crate) fn order(&self) -> Option<&[usize]> {
        (!self.order.is_sorted()).then_some(&self.order)
    }

    /// The segments of a row.
    pub(crate) fn segments(&self) -> &[Segment] {
        self.segments.get_or_init(|| {
            let (by_dim, places, outer) = self.by_dim(&[]);
            segments(&by_dim, &places, outer)
        })
    }

    /// The chunks of a row that has other indices in some dimensions, by their numbers among those
    /// that are stored. Their places in the row count from its first element.
    pub(crate) fn chunks_with(&self, others: &[(usize, Indices)]) -> Vec<SelectedChunk> {
        let (by_dim, places, outer) = self.by_dim(others);
        let each = combinations(by_dim.iter().map(Vec::as_slice)).into_iter();
        let each = each.map(|runs| SelectedChunk {
            indices: runs.iter().map(|of_dim| of_dim.chunk).collect(),
            part: Part::new(&runs, &places, (outer, 0)),
        });
        each.collect()
    }

    /// The indices of a stored dimension that are selected, and the length of a chunk in it.
    pub(crate) fn selected(&self, dim: usize) -> Option<&(Indices, usize)> {
        self.selected.get(dim)
    }

    /// The number among those that are stored of a dimension that is delivered.
    pub(crate) fn stored_dim(&self, delivered: usize) -> Option<usize> {
        self.order.get(delivered).copied()
    }

    /// The number among those that are delivered of a dimension that is stored.
    pub(crate) fn delivered_dim(&self, stored: usize) -> Option<usize> {
        self.order.iter().position(|at| *at == stored)
    }

    /// The selected indices of each stored dimension by their chunks, with its place in a row, and
    /// the number of that which is outermost in it. Some dimensions have other indices than those
    /// selected.
    fn by_dim(&self, others: &[(usize, Indices)]) -> (Vec<Vec<ChunkRuns>>, Vec<DimPlace>, usize) {
        let indices_of = |dim| others.iter().find(|(of, _)| *of == dim).map(|(_, other)| other);
        let each = self.selected.iter().enumerate().map(|(dim, (selected, len))| {
            let indices = indices_of(dim).unwrap_or(selected);
            let (chunk_len, row_len) = (*len, indices.len() as usize);
            let place = DimPlace { chunk_len, row_len, row_stride: 1 };
            (indices.by_chunk(*len as u64), place)
        });
        let (mut by_dim, mut places): (Vec<_>, Vec<DimPlace>) = each.unzip();
        let mut row_stride = 1;
        for at in self.order.iter().rev() {
            places[*at].row_stride = row_stride;
            row_stride *= places[*at].row_len;
        }
        let mut outer = self.order.first().copied().unwrap_or(0);
        if 0 < self.axis {
            // The first row of a chunk; the others are strides away.
            by_dim.insert(self.axis, vec![ChunkRuns { chunk: 0, runs: vec![ONE] }]);
            let chunk_len = self.chunk_rows as usize;
            places.insert(self.axis, DimPlace { chunk_len, row_len: 1, row_stride: 1 });
            outer += usize::from(self.axis <= outer);
        }
        (by_dim, places, outer)
    }

    /// The indices of a chunk among those that have its other indices.
    pub(crate) fn indices(&self, chunk_row: u64, chunk: &SelectedChunk) -> Vec<u64> {
        let mut indices = chunk.indices.clone();
        match indices.get_mut(self.axis).filter(|_| 0 < self.axis) {
            Some(of_rows) => *of_rows = chunk_row,
            None => indices.insert(0, chunk_row),
        }
        indices
    }
}

/// The product of `shape`, if memory has addresses for that many elements of `n_bytes` each.
fn addressable(shape: &[usize], n_bytes: usize) -> Option<usize> {
    let n = shape.iter().try_fold(1_usize, |n, len| n.checked_mul(*len))?;
    isize::try_from(n.checked_mul(n_bytes)?).ok().map(|_| n)
}

/// The segments of a row whose outermost dimension has this number among those that are stored.
fn segments(by_dim: &[Vec<ChunkRuns>], places: &[DimPlace], outer: usize) -> Vec<Segment> {
    let Some((all_outer, place)) = by_dim.get(outer).zip(places.get(outer)) else {
        // Rows of a single element.
        let one = ChunkRuns { chunk: 0, runs: vec![ONE] };
        let place = DimPlace { chunk_len: 1, row_len: 1, row_stride: 1 };
        let part = Part::new(&[&one], &[place], (0, 0));
        let chunks = vec![SelectedChunk { indices: Vec::new(), part }];
        return vec![Segment { elements: 0..1, chunks }];
    };
    let row_len: usize = places.iter().map(|place| place.row_len).product();
    let inner_len = row_len / place.row_len.max(1);
    let chunks = |of_outer: &ChunkRuns, start: usize| -> Vec<SelectedChunk> {
        let each = by_dim.iter().enumerate();
        let each = each.map(|(at, of_dim)| match at {
            _ if at == outer => std::slice::from_ref(of_outer),
            _ => of_dim,
        });
        let each = combinations(each).into_iter().map(|runs| {
            let indices = runs.iter().map(|of_dim| of_dim.chunk).collect();
            SelectedChunk { indices, part: Part::new(&runs, places, (outer, start)) }
        });
        each.collect()
    };
    let positions: Option<Vec<Range<usize>>> = all_outer.iter().map(ChunkRuns::positions).collect();
    let Some(positions) = positions else {
        let all = all_outer.iter().flat_map(|of_outer| chunks(of_outer, 0)).collect();
        return vec![Segment { elements: 0..row_len, chunks: all }];
    };
    let each = all_outer.iter().zip(positions).map(|(of_outer, Range { start, end })| Segment {
        elements: start * inner_len..end * inner_len,
        chunks: chunks(of_outer, start),
    });
    each.collect()
}

/// Every way to take one entry of each dimension, the last varying fastest.
fn combinations<'a>(by_dim: impl Iterator<Item = &'a [ChunkRuns]>) -> Vec<Vec<&'a ChunkRuns>> {
    by_dim.fold(vec![Vec::new()], |all, dim| {
        all.iter()
            .flat_map(|so_far| {
                dim.iter().map(|next| so_far.iter().copied().chain([next]).collect())
            })
            .collect()
    })
}
