//! A limit on the rate at which bytes are read from storage, around another storage: what a slower
//! disk would do to a reader.
//!
//! Counted are the bytes that a reader asks for, wherever they come from: a disk, the system's page
//! cache, an object store. So a limit holds alike with a warm and with a cold page cache, which the
//! kernel's own limits do not: those see only what the device reads.

mod bucket;
mod clock;

use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::bucket::TokenBucket;
use self::clock::{Clock, SystemClock};
use crate::storage::{Coalesce, Entry, FileVersion, Piece, Storage};

/// So much of a second's bytes may come at once after a pause.
const BURSTS_A_SECOND: u64 = 100;
/// And at least so many: less would be a call to the system for each few values.
const LEAST_BURST_BYTES: u64 = 4 << 10;

/// A rate that all storages given it keep together, whichever threads read: in any window of time
/// no more bytes than rate times length, and a burst of a hundredth of a second (4 KiB at least). A
/// thread that the system wakes late catches up on what was due by then: the limit is the rate's,
/// not the scheduler's.
///
/// Threads get their turns in the order in which they ask, a burst's bytes a turn, so that none
/// waits for longer than what was asked for before takes.
#[derive(Debug)]
pub struct ReadLimit {
    bucket: TokenBucket,
    meter: Mutex<Meter>,
}

/// What was read under a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadLimitUse {
    /// Bytes that were read.
    pub bytes: u64,
    /// The time in which at least one read was under way, waits for the limit among it; and of each
    /// pause between reads as much as the bucket fills up in, since what it then holds comes beside
    /// the rate.
    pub reading: Duration,
}

#[derive(Debug, Default)]
struct Meter {
    past: ReadLimitUse,
    n_reads: usize,
    /// When the first of the reads under way began.
    since: Duration,
    /// When the last of those before ended.
    ended: Option<Duration>,
}

impl ReadLimit {
    /// Holds reads to `bytes_per_second`.
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

    /// What was read so far. The time is measured around the reads, apart from what the limit is
    /// reckoned by.
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

/// A storage whose reads a [`ReadLimit`] holds to its rate. Listings and sizes are not counted.
///
/// From a folder bytes are read in parts of a burst at most, each when its turn has come. Of a
/// storage far away that would be a request a part, so a read waits until all of it has been
/// allowed for and is then asked for as it is; and nothing is fetched ahead of being asked for
/// ([`Coalesce::prefetch`]), for that would come beside the limit.
#[derive(Debug)]
pub struct LimitedStorage {
    inner: Arc<dyn Storage>,
    limit: Arc<ReadLimit>,
    in_parts: bool,
}

impl LimitedStorage {
    /// What `inner` reads, held to `limit`, which other storages may be held to, too.
    pub fn new(inner: Arc<dyn Storage>, limit: Arc<ReadLimit>) -> Self {
        let in_parts = !inner.coalesce().prefetch;
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
    fn place(&self) -> String {
        self.inner.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.inner.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.inner.size(file)
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        self.inner.sizes(files)
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        self.inner.versions(files)
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

    /// Nothing: what is fetched ahead and never read would count, too.
    fn prefetch(&self, _pieces: &[Piece<'_>]) {}

    fn coalesce(&self) -> Coalesce {
        Coalesce { prefetch: false, ..self.inner.coalesce() }
    }

    fn requests(&self) -> Option<u64> {
        self.inner.requests()
    }
}

fn piece_bytes(piece: &Piece<'_>) -> u64 {
    piece.range.end.saturating_sub(piece.range.start)
}

/// The same bytes in the same order, in parts of `most` bytes at most.
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
