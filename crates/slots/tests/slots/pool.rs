//! The pool that grows.

use std::sync::Arc;

use proptest::prelude::*;
use slots::{Pool, PooledSlot, SlotMemory as _};

proptest! {
    /// Slots have the size that was asked for, and nothing else writes to them.
    #[test]
    fn slots_of_any_size_keep_their_bytes(
        steps in prop::collection::vec((any::<bool>(), any::<usize>(), 0..20_000_usize), 0..40),
    ) {
        let pool = Arc::new(Pool::default());
        let mut slots: Vec<(PooledSlot, u8)> = Vec::new();
        for (step, (is_taken, which, n_bytes)) in steps.into_iter().enumerate() {
            if is_taken || slots.is_empty() {
                let mut slot = pool.take(n_bytes).unwrap();
                prop_assert_eq!(slot.bytes().len(), n_bytes);
                prop_assert!(slot.bytes().as_ptr().addr().is_multiple_of(64));
                prop_assert!(n_bytes as u64 <= slot.memory_bytes());
                slot.bytes_mut().fill(step as u8);
                slots.push((slot, step as u8));
            } else if n_bytes % 3 == 0 {
                let at = which % slots.len();
                let (slot, filled) = &mut slots[at];
                let (before, fits) = (slot.bytes().len(), n_bytes as u64 <= slot.memory_bytes());
                prop_assert_eq!(slot.resize(n_bytes), fits);
                prop_assert_eq!(slot.bytes().len(), if fits { n_bytes } else { before });
                slot.bytes_mut().fill(*filled);
            } else {
                slots.swap_remove(which % slots.len());
            }
            for (slot, filled) in &slots {
                prop_assert!(slot.bytes().iter().all(|byte| byte == filled));
            }
        }
    }
}

#[test]
fn memory_is_used_again_if_it_is_large_enough() {
    let pool = Arc::new(Pool::default());
    let slot = pool.take(5000).unwrap();
    let address = slot.bytes().as_ptr();
    drop(slot);
    let smaller = pool.take(10).unwrap();
    assert_eq!((smaller.bytes().as_ptr(), smaller.memory_bytes()), (address, 5000));
    drop(smaller);
    // Replaced by a larger one: the pool does not keep both.
    drop(pool.take(9000).unwrap());
    let [one, other] = [pool.take(10).unwrap(), pool.take(10).unwrap()];
    assert_eq!([one.memory_bytes(), other.memory_bytes()], [9000, 10]);
}

#[test]
fn memory_that_is_lacking_is_reported() {
    assert!(Arc::new(Pool::default()).take(isize::MAX as usize - 4096).is_none());
}

#[test]
fn memory_that_fits_best_is_taken() {
    let pool = Arc::new(Pool::default());
    let sizes = [3 << 20, 1 << 20, 2 << 20];
    let slots: Vec<PooledSlot> = sizes.iter().map(|n_bytes| pool.take(*n_bytes).unwrap()).collect();
    let addresses: Vec<usize> = slots.iter().map(|slot| slot.bytes().as_ptr().addr()).collect();
    drop(slots);
    let address = |n_bytes| {
        let slot = pool.take(n_bytes).unwrap();
        assert_eq!(slot.bytes().len(), n_bytes);
        (slot.bytes().as_ptr().addr(), slot)
    };
    let (two, _two) = address((1 << 20) + 1);
    let (one, _one) = address(5);
    let (three, _three) = address(6);
    assert_eq!([three, one, two], addresses[..]);
}

#[test]
fn only_the_allowed_number_is_kept() {
    let pool = Arc::new(Pool::new(1));
    let first = pool.take(1 << 20).unwrap();
    let second = pool.take(2 << 20).unwrap();
    drop(first);
    drop(second);
    // The second was freed, so the first, which is too small, makes place for new memory.
    let taken = pool.take(2 << 20).unwrap();
    assert_eq!(taken.memory_bytes(), 2 << 20);
    drop(taken);
    let smaller = pool.take(1 << 20).unwrap();
    assert_eq!(smaller.memory_bytes(), 2 << 20);
}
