//! Samples that were read together.

use std::sync::Arc;

use slots::{Pool, PooledSlot};

/// Samples that were read together, decoded, in the order in which they will be delivered.
///
/// Batches that lie within a block share its memory; the next read then takes other memory, until
/// they are dropped.
#[derive(Debug, Default)]
pub struct ArrayBlock {
    /// One for each variable.
    pub(crate) slots: Vec<Arc<PooledSlot>>,
    /// The sample numbers.
    pub(crate) samples: Vec<u64>,
    /// The epoch that it is read for, which says how many steps samples have.
    pub(crate) epoch: u64,
}

impl ArrayBlock {
    /// Makes the slot at `at` `n_bytes` long, in its own memory if no batch shares it, and returns
    /// it. `None` if memory is lacking.
    pub(crate) fn slot(&mut self, at: usize, n_bytes: usize, pool: &Arc<Pool>) -> Option<()> {
        if let Some(slot) = self.slots.get_mut(at).and_then(Arc::get_mut)
            && slot.resize(n_bytes)
        {
            return Some(());
        }
        if at < self.slots.len() {
            // Returned first, so that the pool can hand it out again if it is large enough.
            self.slots.truncate(at);
        }
        self.slots.push(Arc::new(pool.take(n_bytes)?));
        Some(())
    }

    /// Bytes that the block takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let slots: u64 = self.slots.iter().map(|slot| slot.memory_bytes()).sum();
        slots + size_of_val(self.samples.as_slice()) as u64
    }
}
