//! Row indices that are kept, within a bound of memory; the least recently used goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::row_index::TileIndex;

/// Fragment and tile.
pub(crate) type Key = (usize, usize);

/// A bounded cache, shared by the threads of all reads of an array.
#[derive(Debug)]
pub(crate) struct IndexCache {
    limit_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    by_use: BTreeMap<u64, Key>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    index: Arc<TileIndex>,
    bytes: usize,
    used: u64,
}

impl IndexCache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, kept: Mutex::default() }
    }

    /// The indices of `keys` that are there, each marked as used.
    pub(crate) fn get_all(&self, keys: impl Iterator<Item = Key>) -> Vec<Option<Arc<TileIndex>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        keys.map(|key| kept.touch(key)).collect()
    }

    /// Keeps `index`, of `bytes`, and lets go of what is no longer within the bound.
    pub(crate) fn insert(&self, key: Key, index: &Arc<TileIndex>, bytes: usize) {
        if bytes > self.limit_bytes {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(key);
        let used = kept.tick(key);
        kept.entries.insert(key, Entry { index: Arc::clone(index), bytes, used });
        kept.bytes += bytes;
        while kept.bytes > self.limit_bytes {
            let Some((_, oldest)) = kept.by_use.first_key_value() else { break };
            let oldest = *oldest;
            kept.remove(oldest);
        }
    }

    /// Bytes of the indices that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl Kept {
    fn tick(&mut self, key: Key) -> u64 {
        self.clock += 1;
        self.by_use.insert(self.clock, key);
        self.clock
    }

    fn touch(&mut self, key: Key) -> Option<Arc<TileIndex>> {
        let used = self.entries.get(&key)?.used;
        self.by_use.remove(&used);
        let used = self.tick(key);
        let entry = self.entries.get_mut(&key)?;
        entry.used = used;
        Some(Arc::clone(&entry.index))
    }

    fn remove(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = IndexCache::new(30);
        let index = Arc::new(TileIndex::default());
        for tile in 0..3 {
            cache.insert((0, tile), &index, 10);
        }
        assert!(cache.get_all([(0, 0)].into_iter())[0].is_some());
        cache.insert((1, 0), &index, 10);
        let there: Vec<_> = cache
            .get_all([(0, 0), (0, 1), (0, 2), (1, 0)].into_iter())
            .iter()
            .map(Option::is_some)
            .collect();
        assert_eq!(there, [true, false, true, true]);
        cache.insert((2, 0), &index, 31);
        assert_eq!(cache.bytes(), 30);
        cache.insert((1, 0), &index, 20);
        assert!(cache.bytes() <= 30);
    }
}
