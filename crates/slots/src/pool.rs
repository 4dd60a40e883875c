//! Memory that grows as needed.

use std::sync::{Arc, PoisonError};

use crate::memory::{MappedMemory, SlotMemory};
use crate::sync::Mutex;

/// Memory of dropped slots, for reuse by later ones. Grows as needed.
#[derive(Debug)]
pub struct Pool {
    free: Mutex<Vec<MappedMemory>>,
    most_free: usize,
}

impl Default for Pool {
    /// A pool that keeps the memory of all dropped slots.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Pool {
    /// Makes a pool that keeps the memory of at most `most_free` dropped slots; that of further
    /// ones is freed.
    pub fn new(most_free: usize) -> Self {
        Self { free: Mutex::default(), most_free }
    }

    /// Takes a slot of `n_bytes` bytes, in the memory of a returned one if there is any that is
    /// large enough: the smallest of them, so that slots of several sizes keep memory of their own.
    /// Its bytes are arbitrary. `None` if memory is lacking.
    pub fn take(self: &Arc<Self>, n_bytes: usize) -> Option<PooledSlot> {
        let memory = match self.reused(n_bytes) {
            Some(memory) if n_bytes <= memory.bytes().len() => memory,
            too_small => {
                // Goes first, so that the process does not have both.
                drop(too_small);
                MappedMemory::new(n_bytes)?
            }
        };
        Some(PooledSlot { memory: Some(memory), n_bytes, pool: Arc::clone(self) })
    }

    /// The free memory that fits best: the smallest that is large enough, or else the largest. The
    /// one that was returned last of equals.
    fn reused(&self, n_bytes: usize) -> Option<MappedMemory> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let unfitness = |memory: &MappedMemory| match memory.bytes().len() {
            enough if n_bytes <= enough => (false, enough),
            too_few => (true, n_bytes - too_few),
        };
        let best = (0..free.len()).rev().min_by_key(|at| unfitness(&free[*at]))?;
        Some(free.remove(best))
    }
}

/// Bytes from a pool, aligned to 64 bytes or more. Dropping it returns its memory to the pool.
#[derive(Debug)]
pub struct PooledSlot {
    /// Present until it is dropped.
    memory: Option<MappedMemory>,
    n_bytes: usize,
    pool: Arc<Pool>,
}

impl PooledSlot {
    /// Sets the number of bytes. Returns false if its memory is too small.
    #[must_use]
    pub fn resize(&mut self, n_bytes: usize) -> bool {
        let fits = n_bytes as u64 <= self.memory_bytes();
        if fits {
            self.n_bytes = n_bytes;
        }
        fits
    }

    /// Bytes that its memory takes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.bytes().len() as u64)
    }
}

impl SlotMemory for PooledSlot {
    fn bytes(&self) -> &[u8] {
        let memory = self.memory.as_ref().and_then(|memory| memory.bytes().get(..self.n_bytes));
        memory.unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let n_bytes = self.n_bytes;
        let memory = self.memory.as_mut().and_then(|memory| memory.bytes_mut().get_mut(..n_bytes));
        memory.unwrap_or_default()
    }

    fn is_pinned(&self) -> bool {
        self.memory.as_ref().is_some_and(SlotMemory::is_pinned)
    }

    /// The memory stays pinned for later slots.
    fn pin(&mut self, gpu: usize) -> bool {
        self.memory.as_mut().is_some_and(|memory| memory.pin(gpu))
    }
}

impl Drop for PooledSlot {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.pool.most_free {
            free.extend(self.memory.take());
        }
    }
}
