//! Memory that grows as needed.

use std::sync::{Arc, PoisonError};

use crate::memory::{MappedMemory, SlotMemory};
use crate::sync::Mutex;

/// Memory of dropped slots, for reuse by later ones. Grows as needed.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<MappedMemory>>);

impl Pool {
    /// Takes a slot of `n_bytes` bytes, in the memory of a returned one if there is any that is
    /// large enough. Its bytes are arbitrary. `None` if memory is lacking.
    pub fn take(self: &Arc<Self>, n_bytes: usize) -> Option<PooledSlot> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let large_enough = free.iter().position(|memory| n_bytes <= memory.bytes().len());
        let memory = if let Some(at) = large_enough {
            free.swap_remove(at)
        } else {
            // One that is too small goes first, so that the pool does not keep both.
            let too_small = free.pop();
            drop(free);
            drop(too_small);
            MappedMemory::new(n_bytes)?
        };
        Some(PooledSlot { memory: Some(memory), n_bytes, pool: Arc::clone(self) })
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
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let memory = self.memory.as_ref().and_then(|memory| memory.bytes().get(..self.n_bytes));
        memory.unwrap_or_default()
    }

    /// The bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let n_bytes = self.n_bytes;
        let memory = self.memory.as_mut().and_then(|memory| memory.bytes_mut().get_mut(..n_bytes));
        memory.unwrap_or_default()
    }

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
        self.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl Drop for PooledSlot {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        }
    }
}
