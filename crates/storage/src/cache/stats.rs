//! Counts of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a [`CachedStorage`](super::CachedStorage) since it was made. Other storages and
/// processes that share its folder count for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Blocks that reads found in the folder, whole.
    pub hits: u64,
    /// Blocks that reads fetched because they were not in the folder.
    pub misses: u64,
    /// Blocks that reads took from another read that was fetching them.
    pub shared: u64,
    /// Bytes that reads took from the folder.
    pub bytes_from_cache: u64,
    /// Bytes fetched from the storage behind, for whole blocks and for files that are not cached.
    pub bytes_fetched: u64,
    /// Blocks removed to make room.
    pub evictions: u64,
    /// Misses with a file of the block's name that was cut short, damaged or foreign.
    pub damaged: u64,
    /// Misses after which the block was not kept: it could not be written
    /// ([`CachedStorage::problem`](super::CachedStorage::problem)), writing was not tried for a
    /// while after such a failure, or others locked the folder for too long.
    pub not_kept: u64,
}

/// Counts of a cache, and its last problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheUse {
    /// The counts.
    pub stats: CacheStats,
    /// Why the last block that could not be kept was not; reading goes on without the cache then.
    pub problem: Option<String>,
}

/// The counts while they grow.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) hits: Counter,
    pub(super) misses: Counter,
    pub(super) shared: Counter,
    pub(super) bytes_from_cache: Counter,
    pub(super) bytes_fetched: Counter,
    pub(super) evictions: Counter,
    pub(super) damaged: Counter,
    pub(super) not_kept: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            shared: self.shared.get(),
            bytes_from_cache: self.bytes_from_cache.get(),
            bytes_fetched: self.bytes_fetched.get(),
            evictions: self.evictions.get(),
            damaged: self.damaged.get(),
            not_kept: self.not_kept.get(),
        }
    }
}
