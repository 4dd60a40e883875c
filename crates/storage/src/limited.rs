//! A limit on the rate of reads, around another storage: simulates a slower disk.
//!
//! The bytes that a reader asks for are counted, wherever they come from: a disk, the system's page
//! cache, an object store. So the limit is the same with a warm and a cold page cache. The kernel's
//! own limits are not: they count only what the device reads.

mod bucket;
mod clock;

use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::bucket::TokenBucket;
use self::clock::{Clock, SystemClock};
use crate::storage::{
    Coalesce, Entry, Expected, FileVersion, ListedFile, Piece, RequestCounts, Storage,
    read_files_by_size,
};

/// This part of the bytes per second may come at once after a pause.
const BURSTS_A_SECOND: u64 = 100;
/// Least bytes at once; fewer would be a system call for every few values.
const LEAST_BURST_BYTES: u64 = 4 << 10;

/// A rate that all storages given it share, whichever threads read. In any window of time at most
/// rate times length bytes are read, and one burst: a hundredth of a second of bytes, at least 4
/// KiB. A thread that the system wakes late catches up on what was due by then.
///
/// Threads get their turns in the order in which they ask, one burst of bytes at a time, so none
/// waits longer than for the bytes that were asked for before.
#[derive(Debug)]
pub struct ReadLimit {
    bucket: TokenBucket,
    meter: Mutex<Meter>,
}

/// Bytes read under a limit, and the time of reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadLimitUse {
    /// Bytes that were read.
    pub bytes: u64,
    /// The time in which at least one read was under way, waiting for the limit included. A
    /// pause between reads counts as long as the bucket fills up meanwhile, since those bytes come
    /// beside the rate.
    pub reading: Duration,
}

#[derive(Debug, Default)]
struct Meter {
    past: ReadLimitUse,
    n_reads: usize,
    /// Begin of the first of the reads under way.
    since: Duration,
    /// End of the last read before them.
    ended: Option<Duration>,
}

impl ReadLimit {
    /// A limit of `bytes_per_second`.
    pub fn new(bytes_per_second: NonZeroU64) -> Self {
        Self::with_clock(bytes_per_second, Arc::new(SystemClock::default()))
    }

    fn with_clock(bytes_per_second: NonZeroU64, clock: Arc<dyn Clock>) -> Self {
        let burst = (bytes_per_second.get() / BURSTS_A_SECOND).max(LEAST_BURST_BYTES);
        Self { bucket: TokenBucket::new(bytes_per_second, burst, clock), meter: Mutex::default() }
    }

    /// The rate.
    pub fn bytes_per_second(&self) -> u64 {
        self.bucket.bytes_per_second()
    }

    /// Bytes that may come at once after a pause.
    pub fn burst_bytes(&self) -> u64 {
        self.bucket.burst_bytes()
    }

    /// Bytes read so far. The time is measured around the reads, independently of the clock of the
    /// limit.
    pub fn used(&self) -> ReadLimitUse {
        let now = self.bucket.now();
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way =
            if meter.n_reads == 0 { Duration::ZERO } else { now.saturating_sub(meter.since) };
        ReadLimitUse { reading: meter.past.reading + under_way, ..meter.past }
    }

    fn begin(&self) -> Reading<'_> {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        if meter.n_reads == 0 {
            meter.since = self.bucket.now();
            if let Some(ended) = meter.ended {
                let pause = meter.since.saturating_sub(ended);
                let filling = self.burst_bytes() as f64 / self.bytes_per_second() as f64;
                meter.past.reading += pause.min(Duration::from_secs_f64(filling));
            }
        }
        meter.n_reads += 1;
        Reading { limit: self }
    }

    fn count(&self, bytes: u64) {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).past.bytes += bytes;
    }
}

/// A read under way.
struct Reading<'a> {
    limit: &'a ReadLimit,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut meter = self.limit.meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.n_reads -= 1;
        if meter.n_reads == 0 {
            let (since, now) = (meter.since, self.limit.bucket.now());
            meter.past.reading += now.saturating_sub(since);
            meter.ended = Some(now);
        }
    }
}

/// A storage whose reads keep a [`ReadLimit`]. Listings and sizes do not count.
///
/// A folder is read in parts of one burst at most, each in its turn. For a remote storage each part
/// would be a request, so a read waits until all of it is allowed and is then sent as it is.
/// Nothing is fetched ahead ([`Coalesce::prefetch_bytes`]): those bytes would come beside the
/// limit.
#[derive(Debug)]
pub struct LimitedStorage {
    inner: Arc<dyn Storage>,
    limit: Arc<ReadLimit>,
    in_parts: bool,
}

impl LimitedStorage {
    /// `inner`, limited by `limit`, which other storages may share.
    pub fn new(inner: Arc<dyn Storage>, limit: Arc<ReadLimit>) -> Self {
        let in_parts = !inner.coalesce().prefetches();
        Self { inner, limit, in_parts }
    }

    /// `inner`, limited if there is a limit.
    pub(crate) fn around(
        inner: Arc<dyn Storage>,
        limit: Option<&Arc<ReadLimit>>,
    ) -> Arc<dyn Storage> {
        match limit {
            Some(limit) => Arc::new(Self::new(inner, Arc::clone(limit))),
            None => inner,
        }
    }

    fn read_part(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.limit.bucket.take(into.len() as u64);
        self.inner.read(pieces, into)?;
        self.limit.count(into.len() as u64);
        Ok(())
    }
}

#[deny(clippy::missing_trait_methods)]
impl Storage for LimitedStorage {
    crate::forward! { inner:
        fn place() -> String;
        fn list(folder: &str) -> io::Result<Vec<Entry>>;
        fn list_each(folders: &[&str]) -> Vec<io::Result<Vec<Entry>>>;
        fn list_all(most: usize) -> io::Result<Option<Vec<ListedFile>>>;
        fn size(file: &str) -> io::Result<u64>;
        fn sizes(files: &[&str]) -> Vec<io::Result<u64>>;
        fn versions(files: &[&str]) -> Vec<io::Result<FileVersion>>;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let _reading = self.limit.begin();
        if !self.in_parts {
            return self.read_part(pieces, into);
        }
        let mut rest = into;
        for part in parts(pieces, self.limit.burst_bytes()) {
            let bytes = part.iter().map(piece_bytes).sum::<u64>();
            let (slot, after) = usize::try_from(bytes)
                .ok()
                .and_then(|bytes| rest.split_at_mut_checked(bytes))
                .ok_or(io::ErrorKind::InvalidInput)?;
            self.read_part(&part, slot)?;
            rest = after;
        }
        Ok(())
    }

    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        read_files_by_size(self, files)
    }

    /// Does nothing: bytes that are fetched ahead and never read would count, too.
    fn prefetch(&self, _pieces: &[Piece<'_>], _read: Expected) {}

    fn coalesce(&self) -> Coalesce {
        Coalesce { prefetch_bytes: 0, ..self.inner.coalesce() }
    }
}

fn piece_bytes(piece: &Piece<'_>) -> u64 {
    piece.range.end.saturating_sub(piece.range.start)
}

/// The same bytes in the same order, in parts of at most `most` bytes.
fn parts<'a>(pieces: &[Piece<'a>], most: u64) -> Vec<Vec<Piece<'a>>> {
    let (mut parts, mut part, mut room) = (Vec::new(), Vec::new(), most);
    for piece in pieces {
        let (mut start, end) = (piece.range.start, piece.range.end);
        while start < end {
            let bytes = room.min(end - start);
            part.push(Piece { file: piece.file, range: start..start + bytes });
            start += bytes;
            room -= bytes;
            if room == 0 {
                parts.push(std::mem::take(&mut part));
                room = most;
            }
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests;
