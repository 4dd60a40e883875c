//! Counts of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a cache of rows since it was opened. Others that share its folder
/// count for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RowCacheStats {
    /// Pages whose wanted rows were in the folder.
    pub hits: u64,
    /// Pages whose wanted rows were not all there, and were read from the matrix.
    pub misses: u64,
    /// Pages that were written.
    pub written: u64,
    /// Misses with a file of the page's name that was cut short, damaged or foreign.
    pub damaged: u64,
    /// Misses after which the page was not written: there was no room, writing failed
    /// ([`RowCacheUse::problem`]) or was not tried for a while after that, others locked the folder
    /// for too long, or a few more rows were not worth writing the page once more.
    pub not_written: u64,
    /// Pages of other matrices that were removed to make room.
    pub evictions: u64,
}

/// Counts of a cache, its size, and its last problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCacheUse {
    /// The counts.
    pub stats: RowCacheStats,
    /// Bytes on disk, of all matrices, if they are known.
    pub disk_bytes: Option<u64>,
    /// Most bytes on disk.
    pub limit_bytes: u64,
    /// Why the last page that could not be written was not. Reading goes on without it.
    pub problem: Option<String>,
}

/// The counts while they grow.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) written: Counter,
    pub(crate) damaged: Counter,
    pub(crate) not_written: Counter,
    pub(crate) evictions: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn stats(&self) -> RowCacheStats {
        RowCacheStats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            written: self.written.get(),
            damaged: self.damaged.get(),
            not_written: self.not_written.get(),
            evictions: self.evictions.get(),
        }
    }
}
