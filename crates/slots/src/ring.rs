//! A fixed number of slots, allocated once.

use std::sync::{Arc, PoisonError};

use crate::error::Error;
use crate::layout::{ALIGNMENT, Layout};
use crate::memory::{Allocate, SlotMemory};
use crate::slot::Slot;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// A fixed number of slots with several keys each, allocated once.
///
/// The memory of a slot is freed when neither the ring nor the slot is in use any more: slots that
/// were taken stay valid when the ring is dropped.
#[derive(Debug)]
pub struct Ring {
    layout: Layout,
    n_slots: usize,
    is_pinned: bool,
    state: Mutex<State>,
    /// Notified whenever a slot becomes free.
    freed: Condvar,
}

/// What all threads share. A slot that is neither free nor being copied is kept.
#[derive(Debug)]
struct State {
    free: Vec<Numbered>,
    n_copying: usize,
    /// Threads that wait for a slot.
    n_waiting: usize,
    most_in_use: usize,
}

/// The memory of a slot, and the slot's number.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) number: usize,
    pub(crate) memory: Box<dyn SlotMemory>,
}

/// What the slots of a ring are in use for, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Usage {
    /// Slots that can be taken.
    pub free: usize,
    /// Slots that are being filled, wait for the consumer, or are with it.
    pub kept: usize,
    /// Slots that the host is done with and a device still copies.
    pub copying: usize,
    /// The most slots that were in use at once, kept or copying, since the ring was made.
    pub most_in_use: usize,
}

impl Ring {
    /// Allocates `n_slots` slots, each with keys of `key_bytes` bytes. A key may have 0 bytes. Each
    /// begins at a multiple of 64 bytes.
    ///
    /// # Errors
    /// `n_slots` is 0, memory is lacking, or `memory` returns some that is too short or not
    /// aligned.
    pub fn new(
        n_slots: usize,
        key_bytes: &[usize],
        memory: &dyn Allocate,
    ) -> Result<Arc<Self>, Error> {
        if n_slots == 0 {
            return Err(Error::NoSlots);
        }
        let layout = Layout::new(key_bytes)?;
        let mut free = Vec::with_capacity(n_slots);
        // The last one is taken first.
        for number in (0..n_slots).rev() {
            let n_bytes = layout.n_bytes;
            let allocated = memory.allocate(n_bytes);
            let allocated = allocated.ok_or(Error::Allocate { number, n_slots, n_bytes })?;
            check(&*allocated, n_bytes, memory)?;
            free.push(Numbered { number, memory: allocated });
        }
        let is_pinned = free.iter().all(|slot| slot.memory.is_pinned());
        let state = State { free, n_copying: 0, n_waiting: 0, most_in_use: 0 };
        let (state, freed) = (Mutex::new(state), Condvar::new());
        Ok(Arc::new(Self { layout, n_slots, is_pinned, state, freed }))
    }

    /// Takes a free slot: the one that was freed last. Its bytes are arbitrary. Waits if none is
    /// free but one is being copied.
    ///
    /// Never waits for a slot that is kept. If `n` slots are kept at most, those that other threads
    /// wait for included, a ring of `n` slots is large enough for this not to fail.
    ///
    /// The [`CopyGuard`](crate::CopyGuard)s must be dropped by other threads than those that wait
    /// here; [`try_take`](Self::try_take) is for a thread that does both.
    ///
    /// # Errors
    /// No slot is free, and none is being copied ([`Error::AllKept`]).
    pub fn take(self: &Arc<Self>) -> Result<Slot, Error> {
        let mut state = self.lock();
        loop {
            if let Some(slot) = self.take_free(&mut state)? {
                return Ok(slot);
            }
            state.n_waiting += 1;
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.n_waiting -= 1;
        }
    }

    /// Takes a free slot; `None` where [`take`](Self::take) would wait for a copy.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub fn try_take(self: &Arc<Self>) -> Result<Option<Slot>, Error> {
        self.take_free(&mut self.lock())
    }

    fn take_free(self: &Arc<Self>, state: &mut State) -> Result<Option<Slot>, Error> {
        let Some(memory) = state.free.pop() else {
            let needed = self.n_slots + state.n_waiting + 1;
            let all_kept = Error::AllKept { n_slots: self.n_slots, needed };
            return if state.n_copying == 0 { Err(all_kept) } else { Ok(None) };
        };
        state.most_in_use = state.most_in_use.max(self.n_slots - state.free.len());
        Ok(Some(Slot::new(memory, Arc::clone(self))))
    }

    /// Number of slots.
    pub fn n_slots(&self) -> usize {
        self.n_slots
    }

    /// Number of keys of a slot.
    pub fn n_keys(&self) -> usize {
        self.layout.n_keys()
    }

    /// Bytes of a slot: its keys, and the gaps that align them.
    pub fn slot_bytes(&self) -> usize {
        self.layout.n_bytes
    }

    /// Whether the memory of all slots is pinned ([`SlotMemory::is_pinned`]).
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// What the slots are in use for.
    pub fn usage(&self) -> Usage {
        let state = self.lock();
        let (free, copying) = (state.free.len(), state.n_copying);
        let kept = self.n_slots - free - copying;
        Usage { free, kept, copying, most_in_use: state.most_in_use }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Counts a kept slot as being copied.
    pub(crate) fn begin_copy(&self) {
        self.lock().n_copying += 1;
    }

    /// Frees a slot, which was kept or being copied.
    pub(crate) fn release(&self, memory: Numbered, was_copying: bool) {
        let mut state = self.lock();
        state.n_copying -= usize::from(was_copying);
        state.free.push(memory);
        drop(state);
        // All of them: if this was the last copy, those that find no free slot must report it.
        self.freed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the size and the address of allocated memory.
fn check(memory: &dyn SlotMemory, n_bytes: usize, allocator: &dyn Allocate) -> Result<(), Error> {
    let (address, got_bytes) = (memory.bytes().as_ptr().addr(), memory.bytes().len());
    if n_bytes <= got_bytes && address.is_multiple_of(ALIGNMENT) {
        return Ok(());
    }
    let allocator = format!("{allocator:?}");
    Err(Error::Unsuitable { allocator, got_bytes, address, n_bytes, alignment: ALIGNMENT })
}
