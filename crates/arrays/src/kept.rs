//! Decoded chunks that stay in memory between reads, as far as the budget leaves room for them.
//!
//! The plan says when the samples of a chunk are read again, in this epoch or the next. Chunks that
//! are needed last make room for others. Without a plan what is there stays.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use storage::{Begun, Kept, NextReads, NextUseCache};

use crate::chunk_task::{Task, TaskChunk, Worker};

/// The array's path and the chunk's indices.
type Key = (Arc<str>, Vec<u64>);

/// The elements of a decoded chunk, in words so that they are aligned.
type DecodedChunk = Vec<u64>;

/// The holder of what [`KeptChunks::up_to`] allows, which no loader is.
const OWN: u64 = u64::MAX;

/// Decoded chunks, within the sum of what several loaders allow.
#[derive(Debug, Default)]
pub struct KeptChunks {
    chunks: NextUseCache<Key, DecodedChunk>,
    /// Bytes that each loader allows.
    allowed: Mutex<HashMap<u64, u64>>,
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
        let n_bytes = size_of_val(decoded).next_multiple_of(size_of::<u64>()) as u64;
        if self.would_keep(n_bytes, next_use) {
            self.chunks.insert(key, copied(decoded), n_bytes, next_use);
        }
    }
}

/// A copy of a decoded chunk.
fn copied(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(size_of::<u64>())];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
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
        for (chunk, words) in found {
            let bytes = bytemuck::cast_slice(words.as_slice());
            self.scatter(chunk, (&bytes[..self.chunks.chunk_bytes()], 0));
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
