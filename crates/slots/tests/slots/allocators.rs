//! Memory of other kinds, and allocators that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use slots::{Allocate, Error, Mapped, Ring, SlotMemory};

/// Allocates up to `n_slots` slots, `missing` bytes too short and `shift` bytes behind an aligned
/// address.
#[derive(Debug)]
struct Limited {
    n_slots: AtomicUsize,
    missing: usize,
    shift: usize,
    n_alive: Arc<AtomicUsize>,
}

impl Limited {
    fn new(n_slots: usize) -> Self {
        let n_alive = Arc::default();
        Self { n_slots: AtomicUsize::new(n_slots), missing: 0, shift: 0, n_alive }
    }
}

/// Claims to be pinned.
#[derive(Debug)]
struct Pinned {
    memory: Box<dyn SlotMemory>,
    start: usize,
    len: usize,
    n_alive: Arc<AtomicUsize>,
}

impl Allocate for Limited {
    fn allocate(&self, n_bytes: usize) -> Option<Box<dyn SlotMemory>> {
        let left = self.n_slots.load(Ordering::Relaxed).checked_sub(1)?;
        self.n_slots.store(left, Ordering::Relaxed);
        let memory = Mapped.allocate(n_bytes + self.shift)?;
        self.n_alive.fetch_add(1, Ordering::Relaxed);
        let (start, len) = (self.shift, n_bytes - self.missing);
        Some(Box::new(Pinned { memory, start, len, n_alive: Arc::clone(&self.n_alive) }))
    }
}

impl SlotMemory for Pinned {
    fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[self.start..][..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[self.start..][..self.len]
    }

    fn is_pinned(&self) -> bool {
        true
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.n_alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn slots_know_that_they_are_pinned() {
    let ring = Ring::new(2, &[100, 3], &Limited::new(2)).unwrap();
    assert!(ring.is_pinned());
    assert!(ring.take().unwrap().is_pinned());
    assert_eq!((ring.slot_bytes(), ring.take().unwrap().n_bytes()), (131, 131));
}

#[test]
fn memory_is_allocated_once_and_freed_with_the_last_user() {
    let memory = Limited::new(3);
    let ring = Ring::new(3, &[64], &memory).unwrap();
    for _ in 0..10 {
        drop((ring.take().unwrap(), ring.take().unwrap().copying()));
    }
    let (slot, copy) = (ring.take().unwrap(), ring.take().unwrap().copying());
    assert_eq!(memory.n_alive.load(Ordering::Relaxed), 3);
    drop(ring);
    drop(copy);
    assert_eq!(slot.key(0).len(), 64);
    drop(slot);
    assert_eq!(memory.n_alive.load(Ordering::Relaxed), 0);
}

#[test]
fn memory_that_is_lacking_is_an_error() {
    let memory = Limited::new(2);
    let error = Ring::new(3, &[10, 1], &memory).unwrap_err();
    // The last slot is allocated first.
    assert_eq!(error, Error::Allocate { number: 0, n_slots: 3, n_bytes: 65 });
    assert_eq!(memory.n_alive.load(Ordering::Relaxed), 0);
    assert_eq!(Ring::new(0, &[10], &memory).unwrap_err(), Error::NoSlots);
    let key_bytes = vec![1, usize::MAX - 10];
    let error = Ring::new(1, &key_bytes, &memory).unwrap_err();
    assert_eq!(error, Error::TooLarge { key_bytes });
    assert!(Mapped.allocate(isize::MAX as usize - 4096).is_none());
}

#[test]
fn memory_that_does_not_fit_is_an_error() {
    for (missing, shift) in [(1, 0), (0, 32)] {
        let memory = Limited { missing, shift, ..Limited::new(1) };
        let error = Ring::new(1, &[10], &memory).unwrap_err();
        let Error::Unsuitable { allocator, got_bytes, address, n_bytes, alignment } = error else {
            unreachable!("{error}")
        };
        assert!(allocator.starts_with("Limited"), "{allocator}");
        assert_eq!((got_bytes, n_bytes), (10 - missing, 10));
        assert_eq!(address % alignment, shift);
    }
}
