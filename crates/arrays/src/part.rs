//! The selected part of a chunk, and its place in a row.

use std::ops::Range;

use crate::selection::{ChunkRuns, Run};

/// A dimension of a part.
#[derive(Debug, Clone)]
struct PartDim {
    runs: Vec<Run>,
    /// Length of the dimension in the chunk.
    chunk_len: usize,
    /// Length of the dimension in the row.
    row_len: usize,
}

/// The selected elements of a chunk: where they lie in it, and in a row.
///
/// Describes one index of the chunk's first dimension; the others have the same part.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Outermost first. Dimensions that are copied whole are joined with the one around them.
    dims: Vec<PartDim>,
}

impl Part {
    /// The part of the selected indices `runs`, one for each dimension but the first.
    /// `lens` are the lengths of each in the chunk and in the row. Positions in the outermost
    /// dimension count from `start`.
    pub(crate) fn new(runs: &[&ChunkRuns], lens: &[(usize, usize)], start: usize) -> Self {
        let dims = runs.iter().zip(lens).enumerate().map(|(idx, (of_dim, lens))| {
            let start = if idx == 0 { start } else { 0 };
            let runs = of_dim.runs.iter().map(|run| Run { dst: run.dst - start, ..*run });
            PartDim { runs: runs.collect(), chunk_len: lens.0, row_len: lens.1 }
        });
        let mut part = Self { dims: dims.collect() };
        part.join_whole_dims();
        part
    }

    fn join_whole_dims(&mut self) {
        while let [.., outer, inner] = &mut self.dims[..] {
            let PartDim { chunk_len: len, row_len, .. } = *inner;
            if len != row_len || inner.runs != [Run { src: 0, dst: 0, len }] {
                return;
            }
            for run in &mut outer.runs {
                *run = Run { src: run.src * len, dst: run.dst * len, len: run.len * len };
            }
            outer.chunk_len *= len;
            outer.row_len *= len;
            self.dims.pop();
        }
    }

    /// The place of the whole chunk, in elements of the row, if all of the chunk is copied and lies
    /// in the row as it lies in the chunk.
    pub(crate) fn whole(&self) -> Option<Range<usize>> {
        match &self.dims[..] {
            [PartDim { runs, chunk_len, .. }] => match runs[..] {
                [Run { src: 0, dst, len }] if len == *chunk_len => Some(dst..dst + len),
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
}

/// Visits the runs of `dims`, which lie at the given places in the chunk and in the row.
fn visit(dims: &[PartDim], (src, dst): (usize, usize), f: &mut impl FnMut(Run)) {
    let Some((outer, inner)) = dims.split_first() else { return };
    if inner.is_empty() {
        outer.runs.iter().for_each(|run| {
            f(Run { src: src + run.src, dst: dst + run.dst, len: run.len });
        });
        return;
    }
    let src_stride: usize = inner.iter().map(|dim| dim.chunk_len).product();
    let dst_stride: usize = inner.iter().map(|dim| dim.row_len).product();
    for run in &outer.runs {
        for i in 0..run.len {
            let places = (src + (run.src + i) * src_stride, dst + (run.dst + i) * dst_stride);
            visit(inner, places, f);
        }
    }
}
