//! Host memory for reuse, which is never written while a copy to a device reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tch::TchError;

use crate::device::{CopyDevice, Ticket};
use crate::memory::{Memory, ValueType};

/// Memory of batches: with its users, being copied to the device, or free.
///
/// New memory is allocated only if none is free and fewer than `most` pieces are being copied;
/// otherwise [`take`](Self::take) waits for the oldest copy. So there are at most `most` pieces
/// more than were ever in use at once.
#[derive(Debug)]
pub(crate) struct Pool {
    device: Arc<dyn CopyDevice>,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Memory>,
    /// Pieces being copied from, each until its ticket is done.
    on_the_way: Vec<(Ticket, Memory)>,
}

impl State {
    /// Frees the pieces whose copies are done, as far as `most` allows.
    fn reclaim(&mut self, done: Ticket, most: usize) {
        for (_, memory) in self.on_the_way.extract_if(.., |(ticket, _)| *ticket <= done) {
            if self.free.len() < most {
                self.free.push(memory);
            }
        }
    }

    /// The piece of this type that fits `n_values` best: the smallest that is large enough, so that
    /// the matrices of a batch keep memory of their own sizes, or else the largest. The most
    /// recently returned one of equals.
    fn free_of(&mut self, value_type: ValueType, n_values: usize) -> Option<Memory> {
        let unfitness = |memory: &Memory| match memory.n_values() {
            enough if enough >= n_values => (false, enough),
            too_few => (true, n_values - too_few),
        };
        let of_type = self.free.iter().enumerate().rev();
        let of_type = of_type.filter(|(_, memory)| memory.value_type() == value_type);
        let (place, _) = of_type.min_by_key(|(_, memory)| unfitness(memory))?;
        Some(self.free.remove(place))
    }
}

impl Pool {
    /// Makes a pool of memory that is copied to this device; `most` is at least 1.
    pub(crate) fn new(device: Arc<dyn CopyDevice>, most: usize) -> Self {
        Self { device, most: most.max(1), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of free pieces.
    pub(crate) fn n_free(&self) -> usize {
        self.lock().free.len()
    }

    /// Number of pieces being copied, as far as is known.
    #[cfg(test)]
    pub(crate) fn n_on_the_way(&self) -> usize {
        self.lock().on_the_way.len()
    }

    /// Returns memory for at least `n_values` values, with any contents.
    ///
    /// # Errors
    /// torch's errors, if there is no memory.
    pub(crate) fn take(&self, n_values: usize, value_type: ValueType) -> Result<Memory, TchError> {
        // A piece that is too small is freed: it would displace those that fit.
        match self.reused(value_type, n_values).filter(|memory| memory.n_values() >= n_values) {
            Some(memory) => Ok(memory),
            None => Memory::zeros(n_values, value_type, self.device.pinned_for()),
        }
    }

    fn reused(&self, value_type: ValueType, n_values: usize) -> Option<Memory> {
        let oldest = {
            let mut state = self.lock();
            state.reclaim(self.device.done(), self.most);
            if let Some(memory) = state.free_of(value_type, n_values) {
                return Some(memory);
            }
            if state.on_the_way.len() < self.most {
                return None;
            }
            state.on_the_way.iter().map(|(ticket, _)| *ticket).min()?
        };
        // Waits without the lock, so that returning memory need not wait for the device.
        let done = self.device.wait(oldest);
        let mut state = self.lock();
        state.reclaim(done, self.most);
        state.free_of(value_type, n_values)
    }

    /// Takes back memory that is not being copied from.
    pub(crate) fn give_back(&self, memory: Memory) {
        let mut state = self.lock();
        if state.free.len() < self.most {
            state.free.push(memory);
        }
    }

    /// Takes back memory that is being copied from until this ticket is done.
    pub(crate) fn give_back_after(&self, memory: Memory, ticket: Ticket) {
        self.lock().on_the_way.push((ticket, memory));
    }
}

impl Drop for Pool {
    /// Frees memory only when no copy reads it any more.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = state.on_the_way.iter().map(|(ticket, _)| *ticket).max() {
            self.device.wait(last);
        }
    }
}
