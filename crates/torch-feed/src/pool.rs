//! Host memory that is used again and again, and that no copy to a device reads any more when it is written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tch::TchError;

use crate::device::{CopyDevice, Ticket};
use crate::memory::{Memory, ValueType};

/// Memory of batches: with those who took it, on its way to the device, or free.
///
/// More is made only where none is free and fewer than `most` are on their way; else [`take`](Self::take) waits for the oldest. So
/// there are never more than `most` besides as many as were ever taken at once.
#[derive(Debug)]
pub(crate) struct Pool {
    device: Arc<dyn CopyDevice>,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Memory>,
    /// Being copied from, each until its ticket is done.
    on_the_way: Vec<(Ticket, Memory)>,
}

impl State {
    /// Frees what was copied, as far as `most` allows.
    fn reclaim(&mut self, done: Ticket, most: usize) {
        for (_, memory) in self.on_the_way.extract_if(.., |(ticket, _)| *ticket <= done) {
            if self.free.len() < most {
                self.free.push(memory);
            }
        }
    }

    /// The last of this type that came back.
    fn free_of(&mut self, value_type: ValueType) -> Option<Memory> {
        let place = self.free.iter().rposition(|memory| memory.value_type() == value_type)?;
        Some(self.free.remove(place))
    }
}

impl Pool {
    /// A pool of memory that is copied to this device; `most` is at least 1.
    pub(crate) fn new(device: Arc<dyn CopyDevice>, most: usize) -> Self {
        Self { device, most: most.max(1), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are free now.
    pub(crate) fn n_free(&self) -> usize {
        self.lock().free.len()
    }

    /// How many are on their way, or were, as far as is known.
    #[cfg(test)]
    pub(crate) fn n_on_the_way(&self) -> usize {
        self.lock().on_the_way.len()
    }

    /// Memory of at least so many values, whatever they are.
    ///
    /// # Errors
    /// torch's, where there is no memory to be had.
    pub(crate) fn take(&self, n_values: usize, value_type: ValueType) -> Result<Memory, TchError> {
        // One that is too small is let go: it would be in the way of those that fit.
        match self.reused(value_type).filter(|memory| memory.n_values() >= n_values) {
            Some(memory) => Ok(memory),
            None => Memory::zeros(n_values, value_type, self.device.pinned_for()),
        }
    }

    fn reused(&self, value_type: ValueType) -> Option<Memory> {
        let oldest = {
            let mut state = self.lock();
            state.reclaim(self.device.done(), self.most);
            if let Some(memory) = state.free_of(value_type) {
                return Some(memory);
            }
            if state.on_the_way.len() < self.most {
                return None;
            }
            state.on_the_way.iter().map(|(ticket, _)| *ticket).min()?
        };
        // Without the lock: who gives memory back does not wait for the device.
        let done = self.device.wait(oldest);
        let mut state = self.lock();
        state.reclaim(done, self.most);
        state.free_of(value_type)
    }

    /// Takes back memory that nothing is copied from.
    pub(crate) fn give_back(&self, memory: Memory) {
        let mut state = self.lock();
        if state.free.len() < self.most {
            state.free.push(memory);
        }
    }

    /// Takes back memory that is copied from until this ticket is done.
    pub(crate) fn give_back_after(&self, memory: Memory, ticket: Ticket) {
        self.lock().on_the_way.push((ticket, memory));
    }
}

impl Drop for Pool {
    /// Memory is freed when nothing is copied from it any more.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = state.on_the_way.iter().map(|(ticket, _)| *ticket).max() {
            self.device.wait(last);
        }
    }
}
