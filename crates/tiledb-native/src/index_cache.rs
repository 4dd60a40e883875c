//! Caches row indices within a memory limit; the least recently used are evicted first.
//!
//! Reads look up every tile that they touch here, and rarely insert. So an index only stores the
//! time of its last use; when room is needed, the oldest are found, and an eighth of the limit is
//! freed at once.

use std::collections::HashMap;
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

    /// The indices of `keys` that are cached, each marked as used.
    pub(crate) fn get_all(&self, keys: impl Iterator<Item = Key>) -> Vec<Option<Arc<TileIndex>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        keys.map(|key| kept.touch(key)).collect()
    }

    /// Caches `index`, of `bytes` bytes, and evicts indices beyond the limit.
    pub(crate) fn insert(&self, key: Key, index: &Arc<TileIndex>, bytes: usize) {
        if bytes > self.limit_bytes {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let entry = Entry { index: Arc::clone(index), bytes, used: kept.clock };
        let before = kept.entries.insert(key, entry);
        kept.bytes += bytes;
        kept.bytes -= before.map_or(0, |before| before.bytes);
        if kept.bytes > self.limit_bytes {
            kept.make_room(self.limit_bytes);
        }
    }

    /// The most bytes of indices to keep.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    pub(crate) fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl Kept {
    fn touch(&mut self, key: Key) -> Option<Arc<TileIndex>> {
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.index))
    }

    /// Evicts the oldest until an eighth of `limit_bytes` is free; always keeps the latest.
    fn make_room(&mut self, limit_bytes: usize) {
        let mut by_use: Vec<(u64, Key)> =
            self.entries.iter().map(|(key, entry)| (entry.used, *key)).collect();
        by_use.sort_unstable();
        by_use.pop();
        for (_, key) in by_use {
            if self.bytes <= limit_bytes - limit_bytes / 8 {
                break;
            }
            self.bytes -= self.entries.remove(&key).map_or(0, |entry| entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_go_first() {
        let cache = IndexCache::new(32);
        let index = Arc::new(TileIndex::default());
        for tile in 0..3 {
            cache.insert((0, tile), &index, 9);
        }
        assert!(cache.get_all([(0, 0)].into_iter())[0].is_some());
        cache.insert((1, 0), &index, 9);
        let there: Vec<_> = cache
            .get_all([(0, 0), (0, 1), (0, 2), (1, 0)].into_iter())
            .iter()
            .map(Option::is_some)
            .collect();
        assert_eq!(there, [true, false, true, true]);
        cache.insert((2, 0), &index, 33);
        assert_eq!(cache.bytes(), 27, "too large to be kept");
        cache.insert((1, 0), &index, 14);
        assert_eq!(cache.bytes(), 32, "in the place of the one before");
        cache.insert((2, 0), &index, 1);
        assert_eq!(cache.bytes(), 24, "an eighth is free");
        cache.insert((2, 0), &index, 32);
        assert_eq!(cache.bytes(), 32, "the latest stays");
    }
}
