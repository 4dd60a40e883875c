//! Decoded chunks that stay in memory between reads, as far as the budget leaves room for them.
//!
//! An epoch wants each chunk about once, in an order that the next epoch does not repeat. So what
//! is there stays, and a chunk is kept only where there is room: with room for a third of the
//! chunks, a third of the next epoch's are there. The least recently used would have left first
//! what is wanted soonest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::chunk_task::{Task, TaskChunk, Worker};

/// The elements of a decoded chunk, in words so that they are aligned.
pub(crate) type DecodedChunk = Arc<Vec<u64>>;

/// Decoded chunks, within the sum of what several loaders allow.
#[derive(Debug, Default)]
pub struct KeptChunks(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Bytes that each loader allows.
    allowed: HashMap<u64, u64>,
    /// Bytes of all chunks.
    n_bytes: u64,
    /// Chunks by their array's path and by their indices.
    chunks: HashMap<String, HashMap<Vec<u64>, DecodedChunk>>,
}

impl Kept {
    fn limit(&self) -> u64 {
        self.allowed.values().copied().fold(0, u64::saturating_add)
    }

    fn room(&self) -> u64 {
        self.limit().saturating_sub(self.n_bytes)
    }
}

impl KeptChunks {
    /// Keeps at most this many bytes of chunks.
    pub fn up_to(bytes: u64) -> Self {
        let kept = Self::default();
        kept.allow(0, bytes);
        kept
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what the loader `holder` allows; 0 withdraws it. Chunks beyond the sum are dropped.
    pub(crate) fn allow(&self, holder: u64, bytes: u64) {
        let mut kept = self.lock();
        match bytes {
            0 => kept.allowed.remove(&holder),
            bytes => kept.allowed.insert(holder, bytes),
        };
        let limit = kept.limit();
        let Kept { n_bytes, chunks, .. } = &mut *kept;
        for of_array in chunks.values_mut() {
            of_array.retain(|_, chunk| {
                let stays = *n_bytes <= limit;
                *n_bytes -= if stays { 0 } else { bytes_of(chunk) };
                stays
            });
        }
    }

    /// Whether chunks of so many bytes in all may be kept.
    pub(crate) fn has_room(&self, n_bytes: u64) -> bool {
        n_bytes <= self.lock().room()
    }

    /// A chunk that is kept.
    pub(crate) fn get(&self, array: &str, indices: &[u64]) -> Option<DecodedChunk> {
        self.lock().chunks.get(array)?.get(indices).cloned()
    }

    /// Keeps a chunk, if there is room for it.
    pub(crate) fn insert(&self, array: &str, indices: Vec<u64>, decoded: &[u8]) {
        if !self.has_room(decoded.len() as u64) {
            return;
        }
        let chunk = Arc::new(copied(decoded));
        let n_bytes = bytes_of(&chunk);
        let mut kept = self.lock();
        if kept.room() < n_bytes {
            return;
        }
        let of_array = match kept.chunks.get_mut(array) {
            Some(of_array) => of_array,
            None => kept.chunks.entry(array.to_owned()).or_default(),
        };
        if of_array.insert(indices, chunk).is_none() {
            kept.n_bytes += n_bytes;
        }
        debug_assert!(kept.n_bytes <= kept.limit(), "more is kept than is allowed");
    }
}

/// Bytes of a chunk's memory.
fn bytes_of(chunk: &DecodedChunk) -> u64 {
    size_of_val(chunk.as_slice()) as u64
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
        let found: Option<Vec<(TaskChunk<'_>, DecodedChunk)>> = self
            .wanted()
            .map(|chunk| Some((chunk, kept.get(&self.chunks.kept_as, &self.indices(chunk))?)))
            .collect();
        let Some(found) = found else { return false };
        for (chunk, words) in found {
            let bytes = bytemuck::cast_slice(&words);
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
