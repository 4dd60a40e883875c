//! Random sequences of taking, filling, sharing, copying and dropping, against a naive model.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use slots::{CopyGuard, Error, Mapped, Ring, Slot, Usage};

/// What is done next. Numbers choose among what is there, modulo how many there are.
#[derive(Debug, Clone)]
enum Step {
    Take,
    TryTake,
    Fill(usize),
    Share(usize),
    Copy(usize),
    Drop(usize),
    DropRing,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Take),
        2 => Just(Step::TryTake),
        3 => any::<usize>().prop_map(Step::Fill),
        2 => any::<usize>().prop_map(Step::Share),
        3 => any::<usize>().prop_map(Step::Copy),
        4 => any::<usize>().prop_map(Step::Drop),
        1 => Just(Step::DropRing),
    ]
}

/// A user of a slot.
#[derive(Debug)]
enum User {
    Owner(Slot),
    Reader(Arc<Slot>),
    Copy(CopyGuard),
}

impl User {
    fn slot(&self) -> &Slot {
        match self {
            Self::Owner(slot) => slot,
            Self::Reader(slot) => slot,
            Self::Copy(copy) => copy.slot(),
        }
    }
}

/// The users of a ring's slots, and the bytes that their slots must have.
#[derive(Debug)]
struct Users {
    n_slots: usize,
    key_bytes: Vec<usize>,
    all: Vec<User>,
    /// By a slot's number.
    bytes: HashMap<usize, u8>,
    addresses: HashMap<usize, usize>,
    n_filled: u8,
    most_in_use: usize,
}

impl Users {
    /// Slots that are kept, and those that are being copied.
    fn n_in_use(&self) -> [usize; 2] {
        let numbers = |is_copy: bool| {
            let of_kind = self.all.iter().filter(|user| matches!(user, User::Copy(_)) == is_copy);
            let mut numbers: Vec<usize> = of_kind.map(|user| user.slot().number()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers.len()
        };
        [numbers(false), numbers(true)]
    }

    /// Adds a slot that the ring gave out.
    fn add(&mut self, slot: Slot) {
        let in_use = self.all.iter().any(|user| user.slot().number() == slot.number());
        assert!(!in_use, "slot {} has two users", slot.number());
        if slot.n_keys() != 0 {
            let address = slot.key(0).as_ptr().addr();
            let before = *self.addresses.entry(slot.number()).or_insert(address);
            assert_eq!(address, before, "the memory of slot {} moved", slot.number());
        }
        self.all.push(User::Owner(slot));
        let at = self.all.len() - 1;
        self.fill(at);
    }

    /// Fills each key of a slot with another byte.
    fn fill(&mut self, at: usize) {
        if let Some(User::Owner(slot)) = self.all.get_mut(at) {
            self.n_filled = self.n_filled.wrapping_add(1);
            for (key, bytes) in slot.keys_mut().into_iter().enumerate() {
                assert_eq!(bytes.len(), self.key_bytes[key]);
                bytes.fill(self.n_filled.wrapping_add(key as u8));
            }
            self.bytes.insert(slot.number(), self.n_filled);
        }
    }

    /// The user of a random number.
    fn at(&self, number: usize) -> Option<usize> {
        number.checked_rem(self.all.len())
    }

    /// Takes a user out, to be replaced by others of the same slot.
    fn replace(&mut self, at: usize, with: impl FnOnce(User) -> Vec<User>) {
        let user = self.all.swap_remove(at);
        self.all.extend(with(user));
    }

    fn check(&mut self, ring: Option<&Ring>) {
        for user in &self.all {
            let slot = user.slot();
            assert_eq!(slot.n_keys(), self.key_bytes.len());
            for key in 0..slot.n_keys() {
                let expected = self.bytes[&slot.number()].wrapping_add(key as u8);
                assert!(slot.key(key).iter().all(|byte| *byte == expected));
                assert!(slot.key(key).as_ptr().addr().is_multiple_of(64));
                assert_eq!(slot.key(key).len(), self.key_bytes[key]);
            }
        }
        let [kept, copying] = self.n_in_use();
        self.most_in_use = self.most_in_use.max(kept + copying);
        let free = self.n_slots - kept - copying;
        let expected = Usage { free, kept, copying, most_in_use: self.most_in_use };
        assert_eq!(ring.map_or(expected, Ring::usage), expected);
    }
}

fn share(user: User) -> Vec<User> {
    match user {
        User::Owner(slot) => vec![User::Reader(Arc::new(slot))],
        User::Reader(slot) => vec![User::Reader(Arc::clone(&slot)), User::Reader(slot)],
        User::Copy(copy) => vec![User::Copy(copy)],
    }
}

fn copy(user: User) -> Vec<User> {
    match user {
        User::Owner(slot) => vec![User::Copy(slot.copying())],
        // Only the last reader has the slot; this one ends.
        User::Reader(slot) => {
            Arc::into_inner(slot).map(|slot| User::Copy(slot.copying())).into_iter().collect()
        }
        User::Copy(copy) => vec![User::Copy(copy)],
    }
}

fn take(ring: &Arc<Ring>, users: &mut Users, waits: bool) {
    let [kept, copying] = users.n_in_use();
    let n_slots = users.n_slots;
    if kept == n_slots {
        let expected = Error::AllKept { n_slots, needed: n_slots + 1 };
        assert_eq!(ring.try_take().unwrap_err(), expected);
        assert_eq!(ring.take().unwrap_err(), expected);
    } else if kept + copying == n_slots {
        // `take` would wait for this thread.
        assert!(ring.try_take().unwrap().is_none());
    } else {
        let slot = if waits { ring.take().unwrap() } else { ring.try_take().unwrap().unwrap() };
        users.add(slot);
    }
}

proptest! {
    #[test]
    fn slots_go_round_as_in_a_naive_model(
        n_slots in 1..5_usize,
        key_bytes in prop::collection::vec(prop_oneof![Just(0), 0..200_usize], 0..5),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let ring = Ring::new(n_slots, &key_bytes, &Mapped).unwrap();
        prop_assert_eq!((ring.n_slots(), ring.n_keys()), (n_slots, key_bytes.len()));
        prop_assert!(key_bytes.iter().sum::<usize>() <= ring.slot_bytes());
        prop_assert!(!ring.is_pinned());
        let mut ring = Some(ring);
        let mut users = Users {
            n_slots,
            key_bytes,
            all: Vec::new(),
            bytes: HashMap::new(),
            addresses: HashMap::new(),
            n_filled: 0,
            most_in_use: 0,
        };
        for step in steps {
            match (step, &ring) {
                (Step::Take, Some(ring)) => take(ring, &mut users, true),
                (Step::TryTake, Some(ring)) => take(ring, &mut users, false),
                (Step::Take | Step::TryTake, None) => {}
                (Step::Fill(number), _) => if let Some(at) = users.at(number) { users.fill(at); },
                (Step::Share(number), _) => {
                    if let Some(at) = users.at(number) { users.replace(at, share); }
                }
                (Step::Copy(number), _) => {
                    if let Some(at) = users.at(number) { users.replace(at, copy); }
                }
                (Step::Drop(number), _) => {
                    if let Some(at) = users.at(number) { users.replace(at, |_| Vec::new()); }
                }
                (Step::DropRing, _) => ring = None,
            }
            users.check(ring.as_deref());
        }
    }
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn a_key_that_does_not_exist_panics() {
    let ring = Ring::new(1, &[8], &Mapped).unwrap();
    ring.take().unwrap().key(1);
}
