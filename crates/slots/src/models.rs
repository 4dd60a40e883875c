//! Models of threads that share a ring. Loom runs each through every order of its events: a lost
//! wake-up shows as a deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use loom::model::Builder;
use loom::sync::mpsc::channel;
use loom::thread;

use crate::{Allocate, CopyGuard, Error, Ring, Slot, SlotMemory, Usage};

/// Allocates and counts what is not freed yet. The counter is not loom's, so it adds no events.
#[derive(Debug, Default)]
struct Counted(Arc<AtomicUsize>);

#[derive(Debug)]
struct CountedMemory {
    bytes: Vec<u8>,
    start: usize,
    n_alive: Arc<AtomicUsize>,
}

impl Allocate for Counted {
    fn allocate(&self, n_bytes: usize) -> Option<Box<dyn SlotMemory>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let bytes = vec![0; n_bytes + 64];
        let start = bytes.as_ptr().align_offset(64);
        Some(Box::new(CountedMemory { bytes, start, n_alive: Arc::clone(&self.0) }))
    }
}

impl SlotMemory for CountedMemory {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

impl Drop for CountedMemory {
    fn drop(&mut self) {
        self.n_alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a model of a ring of `n_slots` slots through every order of its events, or with at most
/// `most_switches` switches away from a thread that could go on. Afterwards all memory must be
/// free.
fn check_every_order(
    n_slots: usize,
    most_switches: Option<usize>,
    model: impl Fn(Arc<Ring>) + Sync + Send + 'static,
) {
    let mut builder = Builder::new();
    builder.preemption_bound = most_switches;
    builder.check(move || {
        let memory = Counted::default();
        let ring = Ring::new(n_slots, &[1, 1], &memory).unwrap();
        model(ring);
        assert_eq!(memory.0.load(Ordering::Relaxed), 0, "all memory is freed with the last user");
    });
}

/// What is in use, by the number of the slot.
#[derive(Debug, Default)]
struct Owners([AtomicBool; 2]);

impl Owners {
    fn begin(&self, slot: &Slot) {
        assert!(!self.0[slot.number()].swap(true, Ordering::Relaxed), "a slot has two owners");
    }

    fn end(&self, slot: &Slot) {
        assert!(self.0[slot.number()].swap(false, Ordering::Relaxed), "a slot was freed early");
    }
}

/// Two decoders, a consumer and a copier share two slots. The first decoder begins its second batch
/// when its first one went to the copier, so at most two slots are kept: no `take` may fail.
#[test]
fn batches_go_round_through_decoders_consumer_and_copier() {
    check_every_order(2, Some(2), |ring| {
        let owners = Arc::new(Owners::default());
        let (to_consumer, decoded) = channel::<(u8, Slot)>();
        let (to_copier, delivered) = channel::<CopyGuard>();
        let (permit, permitted) = channel::<()>();
        let decode = {
            let (ring, owners) = (Arc::clone(&ring), Arc::clone(&owners));
            move |batch: u8| {
                let mut slot = ring.take().unwrap();
                owners.begin(&slot);
                slot.keys_mut().into_iter().for_each(|key| key.fill(batch));
                to_consumer.send((batch, slot)).unwrap();
            }
        };
        let first = thread::spawn({
            let decode = decode.clone();
            move || {
                decode(0);
                permitted.recv().unwrap();
                decode(2);
            }
        });
        let second = thread::spawn(move || decode(1));
        let copier = thread::spawn(move || {
            for _ in 0..3 {
                let copy = delivered.recv().unwrap();
                assert_eq!(copy.slot().key(0), copy.slot().key(1));
                owners.end(copy.slot());
            }
        });
        for _ in 0..3 {
            let (batch, slot) = decoded.recv().unwrap();
            assert_eq!((slot.key(0), slot.key(1)), (&[batch][..], &[batch][..]));
            to_copier.send(slot.copying()).unwrap();
            if batch == 0 {
                permit.send(()).unwrap();
            }
        }
        for thread in [first, second, copier] {
            thread.join().unwrap();
        }
        let usage = ring.usage();
        assert_eq!((usage.free, usage.kept, usage.copying), (2, 0, 0));
        assert!((1..=2).contains(&usage.most_in_use));
    });
}

#[test]
fn a_copy_that_ends_wakes_the_thread_that_waits_for_its_slot() {
    check_every_order(1, None, |ring| {
        let copy = ring.take().unwrap().copying();
        let copier = thread::spawn(move || drop(copy));
        assert_eq!(ring.take().unwrap().number(), 0);
        copier.join().unwrap();
    });
}

/// The thread waits because of the copy of one slot, which outlasts the model; the other slot is
/// freed without a copy.
#[test]
fn a_slot_that_is_dropped_wakes_a_thread_that_waits_for_a_copy() {
    check_every_order(2, None, |ring| {
        let copy = ring.take().unwrap().copying();
        let kept = ring.take().unwrap();
        let consumer = thread::spawn(move || drop(kept));
        match ring.take() {
            Ok(slot) => assert_eq!(slot.number(), 1),
            Err(error) => unreachable!("{error}"),
        }
        consumer.join().unwrap();
        drop(copy);
    });
}

/// The end of the first copy wakes both threads; the one that gets nothing waits for the second.
#[test]
fn two_threads_wait_for_two_copies() {
    check_every_order(2, Some(2), |ring| {
        let copies = [ring.take().unwrap().copying(), ring.take().unwrap().copying()];
        let copier = thread::spawn(move || copies.into_iter().for_each(drop));
        let other = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.take().unwrap()
        });
        let mine = ring.take().unwrap();
        assert_ne!(other.join().unwrap().number(), mine.number());
        copier.join().unwrap();
    });
}

/// Two threads wait for one copy and keep what they get: one gets the slot, the other the error.
#[test]
fn a_copy_that_ends_wakes_those_who_get_nothing_too() {
    check_every_order(1, None, |ring| {
        let copy = ring.take().unwrap().copying();
        let copier = thread::spawn(move || drop(copy));
        let other = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.take()
        });
        let mine = ring.take();
        let taken = [other.join().unwrap(), mine];
        copier.join().unwrap();
        let n_taken = taken.iter().flatten().count();
        assert_eq!(n_taken, 1);
        for error in taken.iter().filter_map(|taken| taken.as_ref().err()) {
            let Error::AllKept { n_slots: 1, needed } = error else { unreachable!("{error}") };
            assert_eq!(*needed, 2);
        }
    });
}

#[test]
fn a_consumer_that_keeps_all_slots_gets_an_error_and_does_not_wait() {
    check_every_order(2, None, |ring| {
        let decoder = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.take()
        });
        let kept = [ring.take(), ring.take()];
        let taken = decoder.join().unwrap();
        let errors: Vec<_> =
            kept.iter().chain([&taken]).filter_map(|of| of.as_ref().err()).collect();
        assert_eq!(errors, [&Error::AllKept { n_slots: 2, needed: 3 }]);
    });
}

/// The consumer gives a slot to a copy while another thread takes slots: that thread either comes
/// too early and gets the error, or waits for the copy.
#[test]
fn a_copy_that_begins_while_slots_are_taken() {
    check_every_order(1, None, |ring| {
        let slot = ring.take().unwrap();
        let decoder = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.take()
        });
        drop(slot.copying());
        match decoder.join().unwrap() {
            Ok(slot) => assert_eq!(slot.number(), 0),
            Err(error) => assert_eq!(error, Error::AllKept { n_slots: 1, needed: 2 }),
        }
        assert_eq!(ring.usage(), Usage { free: 1, kept: 0, copying: 0, most_in_use: 1 });
    });
}

#[test]
fn a_ring_that_is_dropped_while_a_thread_waits() {
    check_every_order(1, None, |ring| {
        let copy = ring.take().unwrap().copying();
        let decoder = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.take().map(|slot| slot.number())
        });
        let copier = thread::spawn(move || drop(copy));
        drop(ring);
        assert_eq!(decoder.join().unwrap(), Ok(0));
        copier.join().unwrap();
    });
}

/// Readers share a batch; the last one to drop it frees it.
#[test]
fn a_shared_slot_is_freed_by_its_last_reader() {
    check_every_order(2, None, |ring| {
        let copy = ring.take().unwrap().copying();
        let mut slot = ring.take().unwrap();
        slot.key_mut(1).fill(9);
        let shared = Arc::new(slot);
        let reader = thread::spawn({
            let shared = Arc::clone(&shared);
            move || assert_eq!(shared.key(1), [9])
        });
        drop(shared);
        let again = ring.take().unwrap();
        assert_eq!(again.number(), 1);
        reader.join().unwrap();
        drop(copy);
    });
}

#[test]
fn try_take_waits_for_nothing() {
    check_every_order(1, None, |ring| {
        let copy = ring.take().unwrap().copying();
        let copier = thread::spawn(move || drop(copy));
        let taken = ring.try_take().unwrap();
        copier.join().unwrap();
        let is_taken = taken.is_some();
        assert_eq!(ring.usage().kept, usize::from(is_taken));
        assert_eq!(ring.try_take().is_err(), is_taken);
    });
}
