//! Which indices of a dimension are read, and how they lie in the array's chunks.

use std::collections::HashMap;
use std::ops::Range;

/// Indices of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indices {
    /// Consecutive ones.
    Range(Range<u64>),
    /// Chosen ones, in the order of the batch. One may come several times.
    List(Vec<u64>),
}

impl Indices {
    /// The number of indices.
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::List(list) => list.len() as u64,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The indices, in the order of the batch.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let (range, list) = match self {
            Self::Range(range) => (range.clone(), [].as_slice()),
            Self::List(list) => (0..0, list.as_slice()),
        };
        range.chain(list.iter().copied())
    }

    /// The index at a place among them.
    pub(crate) fn get(&self, at: u64) -> Option<u64> {
        match self {
            Self::Range(range) => range.start.checked_add(at).filter(|index| *index < range.end),
            Self::List(list) => list.get(usize::try_from(at).ok()?).copied(),
        }
    }

    /// The reason why they cannot be indices of a dimension of `len`.
    pub(crate) fn problem(&self, len: u64) -> Option<String> {
        let last = match self {
            Self::Range(range) => range.end.checked_sub(1).filter(|_| range.start < range.end),
            Self::List(list) => list.iter().max().copied(),
        };
        match last {
            None => Some("there is no index".to_owned()),
            Some(last) if len <= last => Some(format!("index {last} of a length of {len}")),
            Some(_) => None,
        }
    }

    /// Those at these places among them; none at places beyond the last.
    #[must_use]
    pub fn slice(&self, places: Range<u64>) -> Self {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        match self {
            Self::Range(range) => Self::Range(range.start + start..range.start + end),
            Self::List(list) => Self::List(list[start as usize..end as usize].to_vec()),
        }
    }

    /// The number of chunks of `chunk_len` that they lie in.
    pub fn n_chunks(&self, chunk_len: u64) -> u64 {
        let chunk = |index: u64| index / chunk_len.max(1);
        match self {
            Self::Range(range) if range.is_empty() => 0,
            Self::Range(range) => chunk(range.end - 1) - chunk(range.start) + 1,
            Self::List(list) => {
                let mut chunks: Vec<u64> = list.iter().map(|index| chunk(*index)).collect();
                chunks.sort_unstable();
                chunks.dedup();
                chunks.len() as u64
            }
        }
    }

    /// Splits them at the borders of chunks of `chunk_len`. Chunks come in the order of their first
    /// places.
    pub fn by_chunk(&self, chunk_len: u64) -> Vec<ChunkRuns> {
        let chunk_len = chunk_len.max(1);
        let mut chunks: Vec<ChunkRuns> = Vec::new();
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut dst = 0;
        for range in self.ranges() {
            let mut start = range.start;
            while start < range.end {
                let chunk = start / chunk_len;
                let end = range.end.min((chunk + 1) * chunk_len);
                let len = (end - start) as usize;
                let run = Run { src: (start - chunk * chunk_len) as usize, dst, len };
                if let Some(of_chunk) = known.get(&chunk).and_then(|at| chunks.get_mut(*at)) {
                    of_chunk.runs.push(run);
                } else {
                    known.insert(chunk, chunks.len());
                    chunks.push(ChunkRuns { chunk, runs: vec![run] });
                }
                (start, dst) = (end, dst + len);
            }
        }
        chunks
    }

    /// Ranges of consecutive indices, in the order of the batch.
    fn ranges(&self) -> Vec<Range<u64>> {
        match self {
            Self::Range(range) => vec![range.clone()],
            Self::List(list) => list
                .chunk_by(|one, next| one + 1 == *next)
                .filter_map(|run| Some(*run.first()?..run.last()? + 1))
                .collect(),
        }
    }
}

/// Consecutive indices within a chunk, and their place among the selected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first index, counted from the chunk's beginning.
    pub src: usize,
    /// The first position among the selected indices.
    pub dst: usize,
    /// The number of indices.
    pub len: usize,
}

/// The selected indices of a dimension that lie in one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRuns {
    /// The chunk's index in this dimension.
    pub chunk: u64,
    /// In the order of their places.
    pub runs: Vec<Run>,
}

impl ChunkRuns {
    /// The positions among the selected indices; `None` if there are others between them.
    pub(crate) fn positions(&self) -> Option<Range<usize>> {
        let start = self.runs.first().map_or(0, |run| run.dst);
        let end = self.runs.last().map_or(0, |run| run.dst + run.len);
        let len: usize = self.runs.iter().map(|run| run.len).sum();
        (end - start == len).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_cover_the_selection(
            list in prop::collection::vec(0..60_u64, 1..20),
            is_ascending in any::<bool>(),
            chunk_len in 1..9_u64,
        ) {
            let mut list = list;
            if is_ascending {
                list.sort_unstable();
                list.dedup();
            }
            let mut seen = vec![None; list.len()];
            let indices = Indices::List(list.clone());
            let chunks = indices.by_chunk(chunk_len);
            prop_assert_eq!(chunks.len() as u64, indices.n_chunks(chunk_len));
            let mut at = 0;
            for of_chunk in &chunks {
                if let Some(positions) = of_chunk.positions() {
                    prop_assert!(!is_ascending || positions.start == at);
                    at = positions.end;
                } else {
                    prop_assert!(!is_ascending);
                }
                for Run { src, dst, len } in &of_chunk.runs {
                    prop_assert!(src + len <= chunk_len as usize);
                    for i in 0..*len {
                        let index = of_chunk.chunk * chunk_len + (src + i) as u64;
                        prop_assert_eq!(seen[dst + i].replace(index), None);
                    }
                }
            }
            prop_assert_eq!(seen.into_iter().collect::<Option<Vec<_>>>(), Some(list));
        }
    }

    #[test]
    fn indices_that_cannot_be_are_named() {
        assert!(Indices::Range(0..4).problem(4).is_none());
        assert!(Indices::Range(0..5).problem(4).unwrap().contains("index 4"));
        assert!(Indices::Range(2..2).problem(4).unwrap().contains("no index"));
        assert!(Indices::List(vec![3, 1, 1]).problem(4).is_none());
        assert!(Indices::List(vec![4, 1]).problem(4).unwrap().contains("index 4"));
    }
}
