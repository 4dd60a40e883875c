//! Memory of blocks and batches, which goes round.

use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapMut;

/// Memory of one variable's dropped slots, for reuse by later ones.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<MmapMut>>);

impl Pool {
    /// Takes a slot of `n_bytes`, in the memory of a returned one if there is any that is large
    /// enough. Its bytes are arbitrary. `None` if memory is lacking.
    pub(crate) fn take(self: &Arc<Self>, n_bytes: usize) -> Option<Slot> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = if let Some(at) = free.iter().position(|memory| n_bytes <= memory.len()) {
            free.swap_remove(at)
        } else {
            // One that is too small goes first, so that the pool does not keep both.
            free.pop();
            drop(free);
            mapped(n_bytes)?
        };
        Some(Slot { memory: Some(memory), n_bytes, pool: Arc::clone(self) })
    }
}

/// Memory of the operating system, in large pages where it has them: a batch of fields has hundreds
/// of megabytes, and the first touch of each page costs more than decoding into it.
fn mapped(n_bytes: usize) -> Option<MmapMut> {
    // An empty mapping is an error.
    let memory = MmapMut::map_anon(n_bytes.max(1)).ok()?;
    #[cfg(target_os = "linux")]
    {
        // Without large pages the memory is as good, only slower at first.
        drop(memory.advise(memmap2::Advice::HugePage));
    }
    Some(memory)
}

/// Bytes of consecutive rows, aligned for any element.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Present until it is dropped.
    memory: Option<MmapMut>,
    n_bytes: usize,
    pool: Arc<Pool>,
}

impl Slot {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.as_ref().and_then(|memory| memory.get(..self.n_bytes)).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let n_bytes = self.n_bytes;
        self.memory.as_mut().and_then(|memory| memory.get_mut(..n_bytes)).unwrap_or_default()
    }

    /// Sets the number of bytes. Returns false if its memory is too small.
    pub(crate) fn resize(&mut self, n_bytes: usize) -> bool {
        let fits = n_bytes as u64 <= self.memory_bytes();
        if fits {
            self.n_bytes = n_bytes;
        }
        fits
    }

    /// Bytes that its memory takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.len() as u64)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        }
    }
}
