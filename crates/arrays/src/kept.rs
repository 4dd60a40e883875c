//! Decoded chunks that stay in memory between reads, as far as the budget leaves room for them.
//!
//! The plan says when the samples of a chunk are read again, in this epoch or the next. Chunks that
//! are needed last make room for others. Without a plan what is there stays.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use slots::{Pool, PooledSlot, SlotMemory as _};
use storage::{Begun, Kept, NextReads, NextUseCache};

use crate::chunk_task::{Task, TaskChunk, Worker};

/// The array's path and the chunk's indices.
type Key = (Arc<str>, Vec<u64>);

/// Chunks of at least this many bytes are kept in large pages: to touch their small pages for the
/// first time costs more than to decode them again.
const LARGE_PAGE: usize = 2 << 20;

/// Bytes that may be left over in the last large page.
const MOST_LEFT: usize = LARGE_PAGE / 8;

/// Pages of dropped chunks that wait for the next ones.
const MOST_FREE: usize = 2;

/// The elements of a decoded chunk, aligned to words.
#[derive(Debug)]
enum DecodedChunk {
    Words(Vec<u64>),
    Pages(PooledSlot),
}

/// The holder of what [`KeptChunks::up_to`] allows, which no loader is.
const OWN: u64 = u64::MAX;

/// Decoded chunks, within the sum of what several loaders allow.
#[derive(Debug)]
pub struct KeptChunks {
    chunks: NextUseCache<Key, DecodedChunk>,
    /// Memory of large chunks.
    pages: Arc<Pool>,
    /// Bytes that each loader allows.
    allowed: Mutex<HashMap<u64, u64>>,
}

impl Default for KeptChunks {
    fn default() -> Self {
        Self {
            chunks: NextUseCache::default(),
            pages: Arc::new(Pool::new(MOST_FREE)),
            allowed: Mutex::default(),
        }
    }
}

/// A read of rows of an array, with the chunks that stay after it.
#[derive(Debug)]
pub struct KeptRead<'a> {
    kept: &'a KeptChunks,
    begun: Begun<'a, Key, DecodedChunk>,
    next_reads: Option<NextReads>,
}

impl<'a> KeptRead<'a> {
    pub(crate) fn kept(&self) -> &'a KeptChunks {
        self.kept
    }

    /// When rows are needed again, if that is known.
    pub(crate) fn next_use(&self, rows: Range<u64>) -> Option<u64> {
        let reads = self.next_reads.as_ref()?;
        Some(self.start().saturating_add(reads.rows_until(rows)))
    }

    /// The time at which the read began.
    pub(crate) fn start(&self) -> u64 {
        self.begun.start()
    }
}

impl KeptChunks {
    /// Keeps at most this many bytes of chunks, beside what loaders allow.
    pub fn up_to(bytes: u64) -> Self {
        let kept = Self::default();
        kept.allow(OWN, bytes);
        kept
    }

    /// Sets what the loader `holder` allows; 0 withdraws it. Chunks beyond the sum are dropped.
    pub fn allow(&self, holder: u64, bytes: u64) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        match bytes {
            0 => allowed.remove(&holder),
            bytes => allowed.insert(holder, bytes),
        };
        self.chunks.set_limit(allowed.values().copied().fold(0, u64::saturating_add));
    }

    /// Whether chunks are or may be kept.
    pub(crate) fn is_used(&self) -> bool {
        self.chunks.is_used()
    }

    /// Bytes of the chunks.
    pub fn n_bytes(&self) -> u64 {
        self.chunks.n_bytes()
    }

    /// Begins a read of `n_rows` rows. `next_reads` says when rows are read again, if that is
    /// known; the chunks that are needed soonest stay.
    pub fn begin(&self, n_rows: u64, next_reads: Option<NextReads>) -> KeptRead<'_> {
        KeptRead { kept: self, begun: self.chunks.begin(n_rows), next_reads }
    }

    /// Whether chunks of so many bytes in all, which are needed again at `next_use`, may be kept.
    pub(crate) fn would_keep(&self, n_bytes: u64, next_use: Option<u64>) -> bool {
        self.is_used() && self.chunks.would_keep(n_bytes, next_use)
    }

    /// Keeps a chunk, if there is room for it.
    pub(crate) fn insert(&self, key: Key, decoded: &[u8], next_use: Option<u64>) {
        let n_bytes = kept_bytes(decoded.len());
        if self.would_keep(n_bytes as u64, next_use) {
            self.chunks.insert(key, self.copied(decoded), n_bytes as u64, next_use);
        }
    }

    /// A copy of a decoded chunk.
    fn copied(&self, bytes: &[u8]) -> DecodedChunk {
        let n_bytes = kept_bytes(bytes.len());
        if LARGE_PAGE <= n_bytes
            && let Some(mut pages) = self.pages.take(n_bytes)
        {
            pages.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            return DecodedChunk::Pages(pages);
        }
        let mut words = vec![0; n_bytes / size_of::<u64>()];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        DecodedChunk::Words(words)
    }
}

/// Bytes of memory of a chunk: it ends with a large page if little of it is left over.
fn kept_bytes(n_bytes: usize) -> usize {
    let in_pages = n_bytes.next_multiple_of(LARGE_PAGE);
    if in_pages - n_bytes <= MOST_LEFT {
        in_pages
    } else {
        n_bytes.next_multiple_of(size_of::<u64>())
    }
}

impl DecodedChunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Words(words) => bytemuck::cast_slice(words),
            Self::Pages(pages) => pages.bytes(),
        }
    }
}

impl Task<'_> {
    /// Delivers the task from chunks that are kept, if all of them are.
    pub(crate) fn put_kept(&mut self, kept: &KeptChunks) -> bool {
        if !kept.is_used() {
            return false;
        }
        let found: Option<Vec<(TaskChunk<'_>, Arc<Kept<DecodedChunk>>)>> = self
            .wanted()
            .map(|chunk| Some((chunk, kept.chunks.get(&self.kept_as(chunk), self.next_use)?)))
            .collect();
        let Some(found) = found else { return false };
        for (chunk, decoded) in found {
            let bytes = &decoded.bytes()[..self.chunks.chunk_bytes()];
            self.scatter(chunk, (bytes, 0));
        }
        true
    }
}

impl Worker {
    /// Delivers a task from chunks that are kept, if all of them are.
    pub(crate) fn put_kept(&mut self, task: &mut Task<'_>, kept: &KeptChunks) -> bool {
        let start = worktime::now();
        let is_put = task.put_kept(kept);
        if is_put {
            self.stats.add_decoded(0, 0, worktime::now() - start);
        }
        is_put
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{DecodedChunk, KeptChunks, LARGE_PAGE, MOST_LEFT, kept_bytes};

    #[test]
    fn large_chunks_come_back_from_large_pages() {
        let kept = KeptChunks::up_to(1 << 30);
        let read = kept.begin(1, None);
        let lens = [0, 1, 9, LARGE_PAGE / 2, LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 3, 5_000_001];
        for (at, len) in lens.into_iter().enumerate() {
            let decoded: Vec<u8> = (0..len).map(|place| (place * 7 + at) as u8).collect();
            let key = || (Arc::from("array"), vec![at as u64]);
            kept.insert(key(), &decoded, None);
            let found = kept.chunks.get(&key(), None).unwrap();
            assert_eq!(found.bytes()[..len], decoded);
            let is_large = LARGE_PAGE - MOST_LEFT <= len;
            assert_eq!(matches!(**found, DecodedChunk::Pages(_)), is_large, "{len} bytes");
            assert!((len..len + MOST_LEFT).contains(&kept_bytes(len)));
        }
        let n_bytes: usize = lens.into_iter().map(kept_bytes).sum();
        assert_eq!(kept.n_bytes(), n_bytes as u64);
        drop(read);
    }
}
