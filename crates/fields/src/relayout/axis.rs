//! One dimension of an array: the source's chunks, the target's, and what is read for a part.

use std::ops::Range;

use arrays::{ChunkRuns, Indices};

/// A dimension of the source and of the target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// The source's indices, in the order of the target.
    pub(crate) selected: Indices,
    /// Length of a source chunk.
    pub(crate) source_chunk: u64,
    /// Length of a target chunk.
    pub(crate) chunk: u64,
    /// Length of a target file: a shard, whole chunks of it, or a chunk.
    pub(crate) file: u64,
}

impl Axis {
    /// The length of the target.
    pub(crate) fn len(&self) -> u64 {
        self.selected.len()
    }

    /// The length of the target in whole chunks.
    pub(crate) fn padded(&self) -> u64 {
        self.len().next_multiple_of(self.chunk)
    }

    /// Chunks of a file.
    pub(crate) fn chunks_per_file(&self) -> u64 {
        self.file / self.chunk
    }

    /// Whether parts of this length are the source's chunks.
    pub(crate) fn has_chunks_of(&self, part: u64) -> bool {
        let is_at_chunk = |at: u64| at.is_multiple_of(self.source_chunk);
        let Indices::Range(selected) = &self.selected else { return false };
        part == self.source_chunk && is_at_chunk(selected.start) && is_at_chunk(selected.end)
    }

    /// Splits the part `range` of the target at the borders of the source's chunks. Chunks ascend.
    /// The part may reach beyond the target's end.
    pub(crate) fn runs(&self, range: &Range<u64>) -> Vec<ChunkRuns> {
        let mut found = self.selected.slice(range.clone()).by_chunk(self.source_chunk);
        found.sort_unstable_by_key(|of| of.chunk);
        found
    }

    /// The number of source chunks that parts of `part` read, added up.
    pub(crate) fn n_reads(&self, part: u64) -> u64 {
        let n_parts = self.len().div_ceil(part);
        let parts = (0..n_parts).map(|idx| self.selected.slice(idx * part..(idx + 1) * part));
        parts.map(|indices| indices.n_chunks(self.source_chunk)).sum()
    }

    /// Lengths of a part that may be read and written together: whole chunks that divide a file, or
    /// whole files. Ascends; each reads fewer source chunks than the one before.
    pub(crate) fn candidates(&self) -> Vec<u64> {
        let per_file = self.chunks_per_file();
        let mut lens: Vec<u64> = (1..=per_file.min(1024))
            .filter(|n| per_file.is_multiple_of(*n))
            .map(|n| n * self.chunk)
            .collect();
        let n_files = self.len().div_ceil(self.file).max(1);
        // Parts as equal as whole files allow, and those that end where the source's chunks end.
        for n_parts in (1..=16).chain((5..20).map(|power| 1 << power)) {
            lens.push(n_files.div_ceil(n_parts).max(1) * self.file);
        }
        let common = least_common_multiple(self.file, self.source_chunk);
        lens.extend(common.into_iter().filter(|len| *len < n_files * self.file));
        lens.push(self.file);
        lens.sort_unstable();
        lens.dedup();
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for len in lens {
            let n_reads = self.n_reads(len);
            if kept.last().is_none_or(|(_, fewest)| n_reads < *fewest) {
                kept.push((len, n_reads));
            }
        }
        kept.into_iter().map(|(len, _)| len).collect()
    }
}

fn least_common_multiple(one: u64, other: u64) -> Option<u64> {
    let (mut a, mut b) = (one, other);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    one.checked_mul(other / a.max(1))
}

#[cfg(test)]
mod tests {
    use arrays::Run;

    use super::*;

    fn axis(selected: Indices, source_chunk: u64, chunk: u64, file: u64) -> Axis {
        Axis { selected, source_chunk, chunk, file }
    }

    #[test]
    fn parts_are_split_at_the_sources_chunks() {
        let list = axis(Indices::List(vec![5, 6, 1, 9]), 4, 1, 1);
        let run = |src, dst, len| Run { src, dst, len };
        let expected = vec![
            ChunkRuns { chunk: 0, runs: vec![run(1, 1, 1)] },
            ChunkRuns { chunk: 1, runs: vec![run(2, 0, 1)] },
        ];
        assert_eq!(list.runs(&(1..3)), expected);
        let range = axis(Indices::Range(2..11), 4, 3, 6);
        let expected = vec![ChunkRuns { chunk: 2, runs: vec![run(0, 0, 3)] }];
        // Beyond the end there is nothing.
        assert_eq!(range.runs(&(6..12)), expected);
        assert_eq!((range.padded(), range.n_reads(3), range.n_reads(9)), (9, 4, 3));
        assert_eq!(axis(Indices::Range(0..0), 4, 3, 3).runs(&(0..3)), []);
    }

    #[test]
    fn candidates_read_ever_less() {
        // Levels apart: each multiple of a level may be read together.
        let levels = axis(Indices::Range(0..37), 37, 1, 1);
        assert_eq!(levels.candidates().first(), Some(&1));
        assert_eq!(levels.candidates().last(), Some(&37));
        // One step a source chunk: nothing is gained by more than a chunk.
        assert_eq!(axis(Indices::Range(0..1000), 1, 1, 32).candidates(), [1]);
        // Chunks of 24 in files of 32: every 96 steps both end.
        let steps = axis(Indices::Range(0..960), 24, 1, 32).candidates();
        assert!(steps.contains(&96), "{steps:?}");
        for len in steps {
            assert!(32 % len == 0 || len % 32 == 0, "{len}");
        }
        assert_eq!(axis(Indices::Range(0..0), 3, 2, 4).candidates(), [2]);
    }
}
