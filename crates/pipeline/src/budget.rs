//! A memory budget that several loaders share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes from which loaders take leases. Clones share one budget.
///
/// Every epoch leases memory for its blocks, batches and reading, and returns it when it is
/// dropped. The rest is granted, in equal parts, to sources for values that they keep between
/// reads. A grant shrinks as soon as a lease needs its bytes.
///
/// ```
/// use pipeline::Budget;
///
/// let budget = Budget::new(1000);
/// let lease = budget.lease(600).expect("nothing is leased yet");
/// assert!(budget.lease(600).is_none());
/// drop(lease);
/// assert_eq!(budget.available(), 1000);
/// ```
#[derive(Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

struct Shared {
    /// `u64::MAX` means no limit.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    leased: u64,
    /// Bytes that no other lease may take; they are granted until their lease needs them.
    reserved: u64,
    grants: Vec<Granted>,
}

struct Granted {
    holder: u64,
    most: u64,
    keep: Arc<dyn Fn(u64) + Send + Sync>,
    /// Bytes passed to `keep` in the last call.
    bytes: u64,
}

impl Budget {
    /// Makes a budget of this many bytes.
    pub fn new(bytes: u64) -> Self {
        Self { shared: Arc::new(Shared { limit: bytes, state: Mutex::default() }) }
    }

    /// Makes a budget without a limit. Leases are counted all the same.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// The size in bytes; `None` without a limit.
    pub fn limit(&self) -> Option<u64> {
        (self.shared.limit != u64::MAX).then_some(self.shared.limit)
    }

    /// Bytes leased at present.
    pub fn leased(&self) -> u64 {
        self.shared.lock().leased
    }

    /// Bytes available for leases at present.
    pub fn available(&self) -> u64 {
        let state = self.shared.lock();
        self.shared.limit.saturating_sub(state.leased).saturating_sub(state.reserved)
    }

    /// Takes a lease of `bytes`; `None` if fewer are available.
    pub fn lease(&self, bytes: u64) -> Option<Lease> {
        self.lease_with_reserve(bytes, 0)
    }

    /// Takes a lease of `bytes` and reserves `reserve` bytes more, which other leases cannot take;
    /// `None` if fewer are available.
    pub(crate) fn lease_with_reserve(&self, bytes: u64, reserve: u64) -> Option<Lease> {
        let mut lease = Lease { budget: self.clone(), bytes: 0, reserve: 0 };
        lease.set_with_reserve(bytes, reserve).then_some(lease)
    }

    /// Grants a part of the unleased bytes, at most `most`. Calls `keep` with the number of bytes
    /// now, and again whenever it changes.
    pub(crate) fn grant(&self, most: u64, keep: Arc<dyn Fn(u64) + Send + Sync>) -> Grant {
        let holder = next_holder();
        let mut state = self.shared.lock();
        state.grants.push(Granted { holder, most, keep, bytes: 0 });
        self.shared.distribute(&mut state);
        Grant { budget: self.clone(), holder }
    }
}

/// A number that no other holder in this process has.
pub(crate) fn next_holder() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Distributes the unleased bytes among the grants: equal parts, and the excess of one goes to
    /// the others.
    fn distribute(&self, state: &mut State) {
        let mut spare = self.limit.saturating_sub(state.leased);
        let mut by_size: Vec<usize> = (0..state.grants.len()).collect();
        by_size.sort_by_key(|idx| state.grants[*idx].most);
        let mut n_left = by_size.len() as u64;
        for idx in by_size {
            let granted = &mut state.grants[idx];
            let bytes = (spare / n_left).min(granted.most);
            spare -= bytes;
            n_left -= 1;
            if granted.bytes != bytes {
                granted.bytes = bytes;
                (granted.keep)(bytes);
            }
        }
    }
}

/// Two budgets are equal if they are the same one, or if both have no limit.
impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
            || (self.limit().is_none() && other.limit().is_none())
    }
}

/// The limit alone: a budget that is read back is another one of the same size.
impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.limit().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or_else(Self::unlimited, Self::new))
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit() {
            Some(limit) => write!(f, "Budget({} of {limit} bytes leased)", self.leased()),
            None => f.write_str("Budget(no limit)"),
        }
    }
}

/// Bytes leased from a [`Budget`]; dropping it returns them.
pub struct Lease {
    budget: Budget,
    bytes: u64,
    reserve: u64,
}

impl Lease {
    /// The bytes leased.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the lease to `bytes`. Returns false and changes nothing if the additional bytes are
    /// not available.
    pub fn set(&mut self, bytes: u64) -> bool {
        self.set_with_reserve(bytes, self.reserve)
    }

    /// Changes the lease to `bytes` and reserves `reserve` bytes more, which other leases cannot
    /// take.
    pub(crate) fn set_with_reserve(&mut self, bytes: u64, reserve: u64) -> bool {
        let shared = &self.budget.shared;
        let mut state = shared.lock();
        let (leased, reserved) = (state.leased - self.bytes, state.reserved - self.reserve);
        let all = [leased, reserved, bytes, reserve]
            .iter()
            .try_fold(0, |sum: u64, n| sum.checked_add(*n));
        if all.is_none_or(|all| shared.limit < all) {
            return false;
        }
        (state.leased, state.reserved) = (leased + bytes, reserved + reserve);
        (self.bytes, self.reserve) = (bytes, reserve);
        shared.distribute(&mut state);
        true
    }

    /// The most bytes that it could be set to now, including its reserve.
    pub fn most(&self) -> u64 {
        self.budget.available().saturating_add(self.bytes).saturating_add(self.reserve)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} bytes)", self.bytes)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.set_with_reserve(0, 0);
    }
}

/// A share of what a budget has not leased. Dropping it withdraws the share.
pub(crate) struct Grant {
    budget: Budget,
    holder: u64,
}

impl Drop for Grant {
    fn drop(&mut self) {
        let shared = &self.budget.shared;
        let mut state = shared.lock();
        let found = state.grants.iter().position(|one| one.holder == self.holder);
        let granted = found.map(|idx| state.grants.swap_remove(idx));
        if let Some(granted) = granted.as_ref().filter(|granted| granted.bytes != 0) {
            (granted.keep)(0);
        }
        shared.distribute(&mut state);
        // Dropping the grant may drop the source, and with it a lease of the source's own.
        drop(state);
        drop(granted);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A grant, and the bytes that it last received.
    fn grant(budget: &Budget, most: u64) -> (Grant, Arc<AtomicU64>) {
        let bytes = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&bytes);
        let keep = Arc::new(move |bytes| seen.store(bytes, Ordering::Relaxed));
        (budget.grant(most, keep), bytes)
    }

    #[test]
    fn what_is_not_leased_is_shared_out_and_taken_back() {
        let budget = Budget::new(1000);
        let (first, first_bytes) = grant(&budget, u64::MAX);
        let (second, second_bytes) = grant(&budget, 100);
        let now = || [&first_bytes, &second_bytes].map(|bytes| bytes.load(Ordering::Relaxed));
        assert_eq!(now(), [900, 100]);
        let mut lease = budget.lease(900).unwrap();
        assert_eq!(now(), [50, 50]);
        assert!(!lease.set(1001));
        assert_eq!((lease.bytes(), lease.most(), budget.available()), (900, 1000, 100));
        drop(second);
        assert_eq!(now(), [100, 0]);
        drop(lease);
        assert_eq!(now(), [1000, 0]);
        drop(first);
        assert_eq!(now(), [0, 0]);
    }

    #[test]
    fn without_a_limit_everything_is_available() {
        let budget = Budget::unlimited();
        let (_grant, bytes) = grant(&budget, 70);
        let lease = budget.lease(1 << 60).unwrap();
        assert_eq!(bytes.load(Ordering::Relaxed), 70);
        assert_eq!((budget.limit(), budget.leased(), lease.bytes()), (None, 1 << 60, 1 << 60));
    }
}
