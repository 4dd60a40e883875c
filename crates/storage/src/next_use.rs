//! Decoded values that stay in memory while no other value of the same size is needed sooner.
//!
//! The order in which rows are read is planned ahead, so the next use of each value is known. A
//! value is kept if there is room, or if values with a later next use make room for it (Bélády's
//! algorithm). If all values are equally large, no other choice decodes fewer of them.
//!
//! Time is counted in rows that are read. A read begins with [`NextUseCache::begin`], and uses lie
//! as many rows after it as [`NextReads::rows_until`] returns.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::Hash;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The next use of a value that the plan does not need again, as far as it is known.
const NEVER: u64 = u64::MAX;

/// When rows will be read again, by the plan of whoever reads them.
#[derive(Clone)]
pub struct NextReads(Arc<dyn Fn(Range<u64>) -> u64 + Send + Sync>);

impl NextReads {
    /// Makes it of a function that returns [`rows_until`](Self::rows_until).
    pub fn new(rows_until: impl Fn(Range<u64>) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(rows_until))
    }

    /// Number of rows that are read from the beginning of the present read until any of `rows` is
    /// read again after it. `u64::MAX` if the plan does not read them again.
    pub fn rows_until(&self, rows: Range<u64>) -> u64 {
        (self.0)(rows)
    }
}

impl fmt::Debug for NextReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NextReads(..)")
    }
}

/// Values by key, within a limit of bytes, of which those are evicted that are needed last.
#[derive(Debug)]
pub struct NextUseCache<K, V> {
    limit: AtomicU64,
    /// Bytes of all values, including those that were evicted and are still in use.
    bytes: Arc<AtomicU64>,
    state: Mutex<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    /// Each value with its next use.
    values: HashMap<K, (u64, Arc<Kept<V>>)>,
    /// The same, by their next use.
    by_use: BTreeSet<(u64, K)>,
    /// Bytes of these values.
    bytes: u64,
    /// Rows of all reads that began.
    n_rows: u64,
    /// Where each read that has not ended began.
    reading: Vec<u64>,
}

/// A value of a [`NextUseCache`]. Its memory counts until it is dropped everywhere.
#[derive(Debug)]
pub struct Kept<V> {
    value: V,
    n_bytes: u64,
    all: Arc<AtomicU64>,
}

/// A read that has begun; it ends when this is dropped.
#[derive(Debug)]
pub struct Begun<'a, K, V> {
    cache: &'a NextUseCache<K, V>,
    start: u64,
}

impl<V> Deref for Kept<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V> Drop for Kept<V> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

impl<K, V> Begun<'_, K, V> {
    /// The time at which the read began, in rows of all reads before it.
    pub fn start(&self) -> u64 {
        self.start
    }
}

impl<K, V> Drop for Begun<'_, K, V> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if let Some(idx) = state.reading.iter().position(|start| *start == self.start) {
            state.reading.swap_remove(idx);
        }
    }
}

impl<K, V> Default for NextUseCache<K, V> {
    /// Keeps nothing until a limit is set.
    fn default() -> Self {
        let state = State {
            values: HashMap::new(),
            by_use: BTreeSet::new(),
            bytes: 0,
            n_rows: 0,
            reading: Vec::new(),
        };
        Self { limit: AtomicU64::new(0), bytes: Arc::default(), state: Mutex::new(state) }
    }
}

impl<K, V> NextUseCache<K, V> {
    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether values are or may be kept.
    pub fn is_used(&self) -> bool {
        self.limit() > 0
    }

    /// Bytes of the values, including those that were evicted and are still in use.
    pub fn n_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Begins a read of `n_rows` rows.
    pub fn begin(&self, n_rows: u64) -> Begun<'_, K, V> {
        let mut state = self.lock();
        let start = state.n_rows;
        state.n_rows = start.saturating_add(n_rows);
        state.reading.push(start);
        Begun { cache: self, start }
    }
}

impl<K: Clone + Eq + Hash + Ord, V> NextUseCache<K, V> {
    /// Keeps at most this many bytes from now on.
    pub fn set_limit(&self, n_bytes: u64) {
        let mut state = self.lock();
        self.limit.store(n_bytes, Ordering::Relaxed);
        while n_bytes < state.bytes {
            let Some((_, key)) = state.by_use.pop_last() else { break };
            state.forget(&key);
        }
    }

    /// The value of `key`, whose next use from now on is at `next_use`; `None` leaves it as it is.
    pub fn get(&self, key: &K, next_use: Option<u64>) -> Option<Arc<Kept<V>>> {
        self.lock().get(key, next_use)
    }

    /// Whether a value of `n_bytes` bytes whose next use is at `next_use` would be kept, or perhaps
    /// a smaller one.
    pub fn would_keep(&self, n_bytes: u64, next_use: Option<u64>) -> bool {
        let state = self.lock();
        let after = state.bytes.saturating_add(n_bytes);
        n_bytes <= self.limit()
            && (after <= self.limit()
                || state.last_use() > next_use.unwrap_or(NEVER)
                || state.by_use.first().is_some_and(|(first, _)| *first < state.now()))
    }

    /// Keeps a value of `n_bytes` bytes whose next use is at `next_use`, if there is room or if
    /// values that are needed later make room. `None` for `next_use` is as late as possible. If the
    /// key has a value, that one stays.
    pub fn insert(
        &self,
        key: K,
        value: V,
        n_bytes: u64,
        next_use: Option<u64>,
    ) -> Option<Arc<Kept<V>>> {
        let next_use = next_use.unwrap_or(NEVER);
        let mut state = self.lock();
        if let Some((_, kept)) = state.values.get(&key) {
            return Some(Arc::clone(kept));
        }
        let limit = self.limit();
        if !state.make_room(n_bytes, next_use, limit) {
            return None;
        }
        // Evicted values that are still in use take memory, too.
        let counted = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
            bytes.checked_add(n_bytes).filter(|bytes| *bytes <= limit)
        });
        counted.ok()?;
        let kept = Arc::new(Kept { value, n_bytes, all: Arc::clone(&self.bytes) });
        state.bytes += n_bytes;
        state.by_use.insert((next_use, key.clone()));
        state.values.insert(key, (next_use, Arc::clone(&kept)));
        Some(kept)
    }
}

impl<K, V> State<K, V> {
    /// The beginning of the oldest read. Uses before it did not come.
    fn now(&self) -> u64 {
        self.reading.iter().copied().min().unwrap_or(self.n_rows)
    }
}

impl<K: Clone + Eq + Hash + Ord, V> State<K, V> {
    /// The latest next use.
    fn last_use(&self) -> u64 {
        self.by_use.last().map_or(0, |(last, _)| *last)
    }

    fn get(&mut self, key: &K, next_use: Option<u64>) -> Option<Arc<Kept<V>>> {
        let (known, kept) = self.values.get_mut(key)?;
        let kept = Arc::clone(kept);
        if let Some(next_use) = next_use
            && next_use != *known
        {
            let before = std::mem::replace(known, next_use);
            self.by_use.remove(&(before, key.clone()));
            self.by_use.insert((next_use, key.clone()));
        }
        Some(kept)
    }

    /// Removes a value that is no longer in `by_use`.
    fn forget(&mut self, key: &K) {
        if let Some((_, kept)) = self.values.remove(key) {
            self.bytes -= kept.n_bytes;
        }
    }

    /// Evicts as many values as make room for `n_bytes` bytes: first those whose use did not come,
    /// then the latest ones after `next_use`. Returns false and evicts none if they do not suffice.
    fn make_room(&mut self, n_bytes: u64, next_use: u64, limit: u64) -> bool {
        if limit < n_bytes {
            return false;
        }
        let mut over = self.bytes.saturating_add(n_bytes).saturating_sub(limit);
        if over == 0 {
            return true;
        }
        let now = self.now();
        let overdue = self.by_use.iter().take_while(|(at, _)| *at < now);
        let later = self.by_use.iter().rev().take_while(|(at, _)| *at > next_use && *at >= now);
        let mut evicted = Vec::new();
        for entry in overdue.chain(later) {
            if over == 0 {
                break;
            }
            let of_value = self.values.get(&entry.1).map_or(0, |(_, kept)| kept.n_bytes);
            over = over.saturating_sub(of_value);
            evicted.push(entry.clone());
        }
        if over > 0 {
            return false;
        }
        for entry in evicted {
            self.by_use.remove(&entry);
            self.forget(&entry.1);
        }
        true
    }
}

#[cfg(test)]
mod tests;
