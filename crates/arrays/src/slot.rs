//! Memory of blocks and batches, which goes round.

use std::sync::{Arc, Mutex, PoisonError};

/// Buffers of dropped slots, for reuse by later ones of about the same size.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u64>>>);

impl Pool {
    /// Takes a slot of `n_bytes`, in the smallest memory of a returned one that is large enough, if
    /// there is any. Its bytes are arbitrary. `None` if memory is lacking.
    pub(crate) fn take(self: &Arc<Self>, n_bytes: usize) -> Option<Slot> {
        let n_words = n_bytes.div_ceil(size_of::<u64>());
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sizes = || free.iter().map(Vec::len).enumerate();
        let fitting = sizes().filter(|(_, len)| n_words <= *len).min_by_key(|(_, len)| *len);
        let words = if let Some((at, _)) = fitting {
            free.swap_remove(at)
        } else {
            // One that is too small goes first, so that the pool does not keep both.
            free.pop();
            drop(free);
            bytemuck::allocation::try_zeroed_vec(n_words).ok()?
        };
        Some(Slot { words, n_bytes, pool: Arc::clone(self) })
    }
}

/// Bytes of consecutive rows, aligned for any element.
#[derive(Debug)]
pub(crate) struct Slot {
    words: Vec<u64>,
    n_bytes: usize,
    pool: Arc<Pool>,
}

impl Slot {
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words).get(..self.n_bytes).unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words).get_mut(..self.n_bytes).unwrap_or_default()
    }

    /// Sets the number of bytes. Returns false if its memory is too small.
    pub(crate) fn resize(&mut self, n_bytes: usize) -> bool {
        let fits = n_bytes <= size_of_val(self.words.as_slice());
        if fits {
            self.n_bytes = n_bytes;
        }
        fits
    }

    /// Bytes that its memory takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(words);
    }
}
