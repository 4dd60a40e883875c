//! A slot of a ring, and a slot that is being copied.

use std::sync::Arc;

use crate::ring::{Numbered, Ring};

/// A slot of a ring: the bytes of each key. Dropping it frees it.
///
/// It has one owner, so nothing else reads or writes it; put it in an [`Arc`] to share it for
/// reading. The owner of the last `Arc` gets it back with [`Arc::into_inner`].
#[derive(Debug)]
pub struct Slot {
    /// Present until it is dropped.
    memory: Option<Numbered>,
    is_copying: bool,
    ring: Arc<Ring>,
}

impl Slot {
    pub(crate) fn new(memory: Numbered, ring: Arc<Ring>) -> Self {
        Self { memory: Some(memory), is_copying: false, ring }
    }

    /// The slot's number in its ring, from 0. Every number stands for the same memory at any time.
    pub fn number(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.number)
    }

    /// Number of keys.
    pub fn n_keys(&self) -> usize {
        self.ring.n_keys()
    }

    /// The bytes of a key, counted from 0 in the order of [`Ring::new`].
    ///
    /// # Panics
    /// There is no key `idx`.
    pub fn key(&self, idx: usize) -> &[u8] {
        let place = self.ring.layout().key(idx);
        self.memory.as_ref().map_or(&[], |memory| &memory.memory.bytes()[place])
    }

    /// The bytes of a key, for writing.
    ///
    /// # Panics
    /// There is no key `idx`.
    pub fn key_mut(&mut self, idx: usize) -> &mut [u8] {
        let place = self.ring.layout().key(idx);
        self.memory.as_mut().map_or(&mut [], |memory| &mut memory.memory.bytes_mut()[place])
    }

    /// The bytes of all keys, for writing. They are disjoint, so threads may fill parts of them at
    /// the same time.
    pub fn keys_mut(&mut self) -> Vec<&mut [u8]> {
        let memory = self.memory.as_mut().map_or(&mut [][..], |memory| memory.memory.bytes_mut());
        self.ring.layout().split(memory)
    }

    /// Bytes of the slot: its keys, and the gaps that align them.
    pub fn n_bytes(&self) -> usize {
        self.ring.slot_bytes()
    }

    /// Whether the memory is pinned.
    pub fn is_pinned(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.memory.is_pinned())
    }

    /// Ends the host's use of the slot while a device still copies from it: dropping the guard
    /// frees it. Until then, [`Ring::take`] waits instead of failing.
    pub fn copying(mut self) -> CopyGuard {
        self.ring.begin_copy();
        self.is_copying = true;
        CopyGuard { slot: self }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.ring.release(memory, self.is_copying);
        }
    }
}

/// A slot that the host is done with and a device still copies. Dropping it frees the slot, so drop
/// it when the copy has ended, and not before.
#[derive(Debug)]
pub struct CopyGuard {
    slot: Slot,
}

impl CopyGuard {
    /// The slot that is being copied, for reading.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }
}
