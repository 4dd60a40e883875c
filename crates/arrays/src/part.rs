//! The selected part of a chunk, and its place in a row.

use std::ops::Range;

use crate::selection::{ChunkRuns, Run};

/// Elements of a run that is copied for itself, and runs that are not.
const SHORT_RUN: usize = 4;

/// A dimension of a part.
#[derive(Debug, Clone)]
struct PartDim {
    runs: Vec<Run>,
    place: DimPlace,
}

/// The lengths of a dimension, and how it lies in a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DimPlace {
    /// Length of the dimension in the chunk.
    pub(crate) chunk_len: usize,
    /// Length of the dimension in the row.
    pub(crate) row_len: usize,
    /// Elements of the row from one index to the next. It means nothing where there is one index.
    pub(crate) row_stride: usize,
}

/// The selected elements of a chunk: where they lie in it, and in a row.
///
/// Describes one index of the chunk's first dimension; the others have the same part.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// As they are stored, outermost first. Dimensions that are copied whole are joined with the
    /// one around them if they follow each other in the row, too.
    dims: Vec<PartDim>,
}

impl Part {
    /// The part of the selected indices `runs`, one for each dimension but the first, as `places`
    /// describes them. Positions in the dimension `outer` count from `start`.
    pub(crate) fn new(
        runs: &[&ChunkRuns],
        places: &[DimPlace],
        (outer, start): (usize, usize),
    ) -> Self {
        let dims = runs.iter().zip(places).enumerate().map(|(idx, (of_dim, place))| {
            let start = if idx == outer { start } else { 0 };
            let runs = of_dim.runs.iter().map(|run| Run { dst: run.dst - start, ..*run });
            PartDim { runs: runs.collect(), place: *place }
        });
        let mut part = Self { dims: dims.collect() };
        part.join_whole_dims();
        part
    }

    fn join_whole_dims(&mut self) {
        while let [.., outer, inner] = &mut self.dims[..] {
            let DimPlace { chunk_len: len, row_len, row_stride } = inner.place;
            let follow =
                len == 1 || outer.place.row_len == 1 || outer.place.row_stride == len * row_stride;
            if !follow || len != row_len || inner.runs != [Run { src: 0, dst: 0, len }] {
                return;
            }
            for run in &mut outer.runs {
                *run = Run { src: run.src * len, dst: run.dst * len, len: run.len * len };
            }
            outer.place.chunk_len *= len;
            outer.place.row_len *= len;
            if 1 < len {
                outer.place.row_stride = row_stride;
            }
            self.dims.pop();
        }
    }

    /// The place of the whole chunk, in elements of the row, if all of the chunk is copied and lies
    /// in the row as it lies in the chunk.
    pub(crate) fn whole(&self) -> Option<Range<usize>> {
        match &self.dims[..] {
            [PartDim { runs, place }] => match runs[..] {
                [Run { src: 0, dst, len }] if len == place.chunk_len => Some(dst..dst + len),
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `f` for each run of elements that are consecutive in the chunk and in the row, with
    /// the places of its first element and its length.
    pub(crate) fn for_each_run(&self, mut f: impl FnMut(Run)) {
        visit(&self.dims, (0, 0), &mut f);
    }

    /// The number of selected elements.
    pub(crate) fn n_elements(&self) -> usize {
        let of_dim = |dim: &PartDim| dim.runs.iter().map(|run| run.len).sum::<usize>();
        self.dims.iter().map(of_dim).product()
    }

    /// Calls `f` for each run of elements that are consecutive in the chunk, wherever they go.
    pub(crate) fn for_each_stored(&self, mut f: impl FnMut(Range<usize>)) {
        let mut of_chunk;
        let mut dims = &self.dims;
        if self.is_transposed() {
            of_chunk = self.dims.clone();
            for dim in &mut of_chunk {
                dim.place.row_stride = 1;
            }
            dims = &of_chunk;
        }
        visit(dims, (0, 0), &mut |Run { src, len, .. }| f(src..src + len));
    }

    /// Calls `f` for each run of elements that are consecutive in the row, wherever they come from.
    pub(crate) fn for_each_place(&self, mut f: impl FnMut(Range<usize>)) {
        let mut of_row;
        let mut dims = &self.dims;
        if self.is_transposed() {
            of_row = self.dims.clone();
            of_row.sort_by_key(|dim| {
                (1 < dim.place.row_len, std::cmp::Reverse(dim.place.row_stride))
            });
            dims = &of_row;
        }
        visit(dims, (0, 0), &mut |Run { dst, len, .. }| f(dst..dst + len));
    }

    /// Whether the dimension that is innermost in the chunk is not that in the row.
    pub(crate) fn is_transposed(&self) -> bool {
        let innermost = self.dims.iter().rfind(|dim| 1 < dim.place.row_len);
        innermost.is_some_and(|dim| dim.place.row_stride != 1)
    }

    /// Whether its elements are put into their places in tiles: it is transposed, or an index of
    /// its innermost dimension hardly ever follows the one before.
    pub(crate) fn is_tiled(&self) -> bool {
        let innermost = self.dims.iter().rfind(|dim| 1 < dim.place.row_len);
        innermost.is_some_and(|PartDim { runs, place }| {
            let n: usize = runs.iter().map(|run| run.len).sum();
            place.row_stride != 1 || SHORT_RUN < runs.len() && n < SHORT_RUN * runs.len()
        })
    }

    /// The dimensions by the places of their selected indices, in the chunk and in the row, counted
    /// in elements: outermost first, as they are stored.
    pub(crate) fn offsets(&self) -> Vec<Vec<[usize; 2]>> {
        let mut stride = 1;
        let mut all: Vec<Vec<[usize; 2]>> = Vec::with_capacity(self.dims.len());
        for PartDim { runs, place } in self.dims.iter().rev() {
            let each = runs.iter().flat_map(|run| {
                (0..run.len).map(|i| [(run.src + i) * stride, (run.dst + i) * place.row_stride])
            });
            all.push(each.collect());
            stride *= place.chunk_len;
        }
        all.reverse();
        all
    }

    /// The numbers of the dimensions that are innermost in the chunk and in the row.
    pub(crate) fn innermost(&self) -> Option<(usize, usize)> {
        let has_several = |dim: &PartDim| 1 < dim.place.row_len;
        let in_chunk = self.dims.iter().rposition(has_several)?;
        let in_row = self.dims.iter().position(|dim| has_several(dim) && dim.place.row_stride == 1);
        Some((in_chunk, in_row?))
    }

    /// Selected indices of the outermost dimension.
    pub(crate) fn n_outer(&self) -> usize {
        self.dims.first().map_or(0, |outer| outer.runs.iter().map(|run| run.len).sum())
    }

    /// Elements of the chunk in one index of the outermost dimension.
    pub(crate) fn outer_stride(&self) -> usize {
        self.dims.iter().skip(1).map(|dim| dim.place.chunk_len).product()
    }

    /// A part of the selected indices of the outermost dimension, counted from the first.
    pub(crate) fn band(&self, indices: Range<usize>) -> Self {
        let mut dims = self.dims.clone();
        if let Some(outer) = dims.first_mut() {
            let mut at = 0;
            let runs = outer.runs.iter().filter_map(|run| {
                let (start, end) = (at.max(indices.start), (at + run.len).min(indices.end));
                let skipped = start - at;
                at += run.len;
                (start < end).then(|| Run {
                    src: run.src + skipped,
                    dst: run.dst + skipped,
                    len: end - start,
                })
            });
            outer.runs = runs.collect();
        }
        Self { dims }
    }

    /// The elements of the chunk from the least selected index of the outermost dimension to the
    /// greatest one.
    pub(crate) fn span(&self) -> Range<usize> {
        let runs = self.dims.first().map_or(&[][..], |outer| &outer.runs);
        let stride = self.outer_stride();
        let start = runs.iter().map(|run| run.src).min().unwrap_or(0);
        let end = runs.iter().map(|run| run.src + run.len).max().unwrap_or(0);
        start * stride..end * stride
    }
}

/// Visits the runs of `dims`, which lie at the given places in the chunk and in the row.
fn visit(dims: &[PartDim], (src, dst): (usize, usize), f: &mut impl FnMut(Run)) {
    let Some((outer, inner)) = dims.split_first() else { return };
    let dst_stride = outer.place.row_stride;
    if inner.is_empty() {
        outer.runs.iter().for_each(|run| {
            if dst_stride == 1 || run.len == 1 {
                let dst = dst + run.dst * dst_stride;
                f(Run { src: src + run.src, dst, len: run.len });
            } else {
                for i in 0..run.len {
                    let dst = dst + (run.dst + i) * dst_stride;
                    f(Run { src: src + run.src + i, dst, len: 1 });
                }
            }
        });
        return;
    }
    let src_stride: usize = inner.iter().map(|dim| dim.place.chunk_len).product();
    if let [PartDim { runs, place }] = inner
        && let [one] = runs[..]
        && (place.row_stride == 1 || one.len == 1)
    {
        let one = Run { dst: one.dst * place.row_stride, ..one };
        // A short run for each place: a call for each would take longer than the copy.
        for run in &outer.runs {
            let places = (src + run.src * src_stride, dst + run.dst * dst_stride);
            for i in 0..run.len {
                let (src, dst) = (places.0 + i * src_stride, places.1 + i * dst_stride);
                f(Run { src: src + one.src, dst: dst + one.dst, len: one.len });
            }
        }
        return;
    }
    for run in &outer.runs {
        for i in 0..run.len {
            let places = (src + (run.src + i) * src_stride, dst + (run.dst + i) * dst_stride);
            visit(inner, places, f);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::selection::Indices;

    fn runs_of(part: &Part) -> Vec<[usize; 3]> {
        let mut all = Vec::new();
        part.for_each_run(|Run { src, dst, len }| all.push([src, dst, len]));
        all
    }

    proptest! {
        /// The bands of a part have its runs, in its order, within their spans.
        #[test]
        fn bands_have_the_runs_of_their_part(
            lens in prop::collection::vec(1..6_u64, 2..4),
            chunk_lens in prop::collection::vec(1..6_u64, 3),
            taken in prop::collection::vec(any::<bool>(), 15),
            step in 1..4_usize,
        ) {
            let by_dim: Vec<Vec<ChunkRuns>> = lens
                .iter()
                .zip(&chunk_lens)
                .enumerate()
                .map(|(idx, (len, chunk))| {
                    let of_dim = &taken[5 * idx..];
                    let all = (0..*len).filter(|at| of_dim[*at as usize]).collect();
                    Indices::List(all).by_chunk(*chunk)
                })
                .collect();
            prop_assume!(by_dim.iter().all(|chunks| !chunks.is_empty()));
            let row_lens = by_dim.iter().map(|chunks| {
                chunks.iter().flat_map(|of| &of.runs).map(|run| run.len).sum::<usize>()
            });
            let lens: Vec<(usize, usize)> =
                chunk_lens.iter().map(|len| *len as usize).zip(row_lens).collect();
            let place = |at: usize| DimPlace {
                chunk_len: lens[at].0,
                row_len: lens[at].1,
                row_stride: lens[at + 1..].iter().map(|(_, row_len)| row_len).product(),
            };
            let places: Vec<DimPlace> = (0..lens.len()).map(place).collect();
            let first: Vec<&ChunkRuns> = by_dim.iter().map(|chunks| &chunks[0]).collect();
            let part = Part::new(&first, &places, (0, 0));
            let mut of_bands = Vec::new();
            for start in (0..part.n_outer()).step_by(step) {
                let band = part.band(start..part.n_outer().min(start + step));
                let span = band.span();
                let runs = runs_of(&band);
                for [src, _, len] in &runs {
                    prop_assert!(span.start <= *src && src + len <= span.end);
                }
                of_bands.extend(runs);
            }
            // A run that goes on in the next band is one in the part.
            let elements = |runs: Vec<[usize; 3]>| -> Vec<[usize; 2]> {
                let each = runs.into_iter().flat_map(|[src, dst, len]| (0..len).map(move |i| [src + i, dst + i]));
                each.collect()
            };
            prop_assert_eq!(elements(of_bands), elements(runs_of(&part)));
        }
    }
}
