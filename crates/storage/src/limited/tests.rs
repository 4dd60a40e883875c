//! The bucket against an oracle that checks every window, with a clock that the test drives; and
//! the storage around a folder.

use std::fs;
use std::sync::mpsc;
use std::sync::{Condvar, Mutex};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::LocalStorage;

const SECOND: u64 = 1_000_000_000;

/// A clock for one thread: waiting moves it on, and a little further, as a system that wakes late.
#[derive(Debug, Default)]
struct AloneClock {
    nanos: Mutex<u64>,
    late_nanos: u64,
}

impl AloneClock {
    fn pass(&self, nanos: u64) {
        *self.nanos.lock().unwrap() += nanos;
    }

    fn nanos(&self) -> u64 {
        *self.nanos.lock().unwrap()
    }
}

impl Clock for AloneClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    fn wait_until(&self, time: Duration) {
        let mut nanos = self.nanos.lock().unwrap();
        let until = time.as_nanos() as u64;
        if *nanos < until {
            *nanos = until + self.late_nanos;
        }
    }
}

/// A clock for several threads. It stands still until the test advances it, and counts the threads
/// that wait for it.
#[derive(Debug, Default)]
struct DrivenClock {
    state: Mutex<(u64, Vec<u64>)>,
    changed: Condvar,
}

impl DrivenClock {
    /// Advances to the earliest moment that a thread waits for, if `n_left` threads wait, not
    /// counting those that may go on already.
    fn advance(&self, n_left: usize) {
        let mut state = self.state.lock().unwrap();
        let waiting = state.1.iter().filter(|until| state.0 < **until);
        if waiting.clone().count() == n_left
            && let Some(earliest) = waiting.min().copied()
        {
            state.0 = earliest;
            self.changed.notify_all();
        }
    }
}

impl Clock for DrivenClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.state.lock().unwrap().0)
    }

    fn wait_until(&self, time: Duration) {
        let until = time.as_nanos() as u64;
        let mut state = self.state.lock().unwrap();
        if state.0 < until {
            state.1.push(until);
            while state.0 < until {
                state = self.changed.wait(state).unwrap();
            }
            let at = state.1.iter().position(|waiting| *waiting == until).unwrap();
            state.1.swap_remove(at);
        }
    }
}

/// Fails if a window of time has more bytes than it may have. Moments are whole nanoseconds, so
/// that a window may be one longer than it looks; and it may be as much longer as the first in it
/// was woken late.
fn check_windows(
    grants: &[(u64, u64)],
    rate: u64,
    burst: u64,
    late_nanos: u64,
) -> Result<(), String> {
    for (first, (from, _)) in grants.iter().enumerate() {
        let mut bytes = 0;
        for (until, granted) in &grants[first..] {
            bytes += u128::from(*granted);
            let most = u128::from(rate) * u128::from(until - from + 1 + late_nanos)
                + u128::from(burst) * 1_000_000_000;
            if most < bytes * 1_000_000_000 {
                return Err(format!("{bytes} bytes between {from} and {until}"));
            }
        }
    }
    Ok(())
}

/// The naive bucket: a level in exact units, moved on nanosecond by nanosecond's arithmetic.
struct Oracle {
    rate: u128,
    burst_units: u128,
    level: u128,
    nanos: u64,
}

impl Oracle {
    fn pass(&mut self, nanos: u64) {
        self.nanos += nanos;
        self.level = (self.level + self.rate * u128::from(nanos)).min(self.burst_units);
    }

    /// The moment at which `bytes` bytes, a burst at most, are there.
    fn take(&mut self, bytes: u64) -> u64 {
        let need = u128::from(bytes) * UNITS;
        let missing = need.saturating_sub(self.level);
        let wait = missing.div_ceil(self.rate);
        // What comes while somebody waits is his, and does not run over.
        self.level = self.level + self.rate * wait - need;
        self.nanos += wait as u64;
        self.nanos
    }
}

const UNITS: u128 = 1_000_000_000;

proptest! {
    /// Bytes come at the very moment at which an ideal bucket would have them, and never sooner.
    #[test]
    fn bytes_come_when_the_oracle_has_them(
        rate in 1_u64..3_000_000_000,
        burst in 1_u64..1_000_000,
        takes in proptest::collection::vec((0_u64..2_000_000_000, 1_u64..1_000_000), 1..40),
    ) {
        let clock = Arc::new(AloneClock::default());
        let bucket = TokenBucket::new(NonZeroU64::new(rate).unwrap(), burst, Arc::<AloneClock>::clone(&clock));
        let burst_units = u128::from(burst) * UNITS;
        let mut oracle = Oracle { rate: u128::from(rate), burst_units, level: burst_units, nanos: 0 };
        let mut grants = Vec::new();
        for (pause, bytes) in takes {
            let bytes = bytes.min(burst);
            clock.pass(pause);
            oracle.pass(pause);
            bucket.take(bytes);
            prop_assert_eq!(clock.nanos(), oracle.take(bytes));
            grants.push((clock.nanos(), bytes));
        }
        prop_assert_eq!(check_windows(&grants, rate, burst, 0), Ok(()));
    }

    /// Also if takes are larger than the bucket. A thread that the system wakes late catches up,
    /// and no more.
    #[test]
    fn no_window_has_more_than_its_share(
        rate in 1_000_u64..3_000_000_000,
        burst in 1_u64..1_000_000,
        late_nanos in 0_u64..5_000_000,
        takes in proptest::collection::vec((0_u64..SECOND, 1_u64..80), 1..40),
    ) {
        let clock = Arc::new(AloneClock { late_nanos, ..AloneClock::default() });
        let bucket = TokenBucket::new(NonZeroU64::new(rate).unwrap(), burst, Arc::<AloneClock>::clone(&clock));
        let mut grants = Vec::new();
        for (pause, eighths) in takes {
            clock.pass(pause);
            let mut left = (burst * eighths).div_ceil(8);
            while left > 0 {
                // The bucket cuts a read in the same way.
                let part = left.min(burst);
                let before = clock.nanos();
                bucket.take(part);
                let most = u128::from(part + burst) * UNITS / u128::from(rate) + u128::from(late_nanos) + 1;
                prop_assert!(u128::from(clock.nanos() - before) <= most, "a lone taker waited for others");
                grants.push((clock.nanos(), part));
                left -= part;
            }
        }
        prop_assert_eq!(check_windows(&grants, rate, burst, late_nanos), Ok(()));
    }

    #[test]
    fn parts_are_the_same_bytes_in_the_same_order(
        ranges in proptest::collection::vec((0_u64..100, 0_u64..50), 0..12),
        most in 1_u64..60,
    ) {
        let pieces: Vec<Piece<'_>> =
            ranges.iter().map(|(start, bytes)| Piece { file: "a", range: *start..start + bytes }).collect();
        let bytes = |pieces: &[Piece<'_>]| pieces.iter().flat_map(|piece| piece.range.clone()).collect::<Vec<_>>();
        let parts = parts(&pieces, most);
        prop_assert_eq!(bytes(&parts.concat()), bytes(&pieces));
        let (last, others) = parts.split_last().map_or((None, &[][..]), |(last, others)| (Some(last), others));
        prop_assert!(others.iter().all(|part| bytes(part).len() as u64 == most));
        prop_assert!(last.is_none_or(|part| (1..=most).contains(&(bytes(part).len() as u64))));
    }
}

const RATE: u64 = 1_000_000;
const BURST: u64 = 1_000;
const SMALL: usize = 3;

/// Three threads that take much and one that takes little, at the same time: moment, bytes and
/// thread of each take, by moment. Much is cut into bursts by its taker or, `in_whole`, by the
/// bucket.
fn takes_at_the_same_time(in_whole: bool) -> Vec<(u64, u64, usize)> {
    let clock = Arc::new(DrivenClock::default());
    let rate = NonZeroU64::new(RATE).unwrap();
    let bucket = Arc::new(TokenBucket::new(rate, BURST, Arc::<DrivenClock>::clone(&clock)));
    let (sender, takes) = mpsc::channel();
    let takers: Vec<_> = [(5, 10_000), (5, 10_000), (5, 10_000), (50, 100)]
        .into_iter()
        .enumerate()
        .map(|(idx, (n_takes, bytes))| {
            let (bucket, clock, sender) = (Arc::clone(&bucket), Arc::clone(&clock), sender.clone());
            thread::spawn(move || {
                for _ in 0..n_takes {
                    let mut left: u64 = bytes;
                    while left > 0 {
                        let part = if in_whole { left } else { left.min(BURST) };
                        bucket.take(part);
                        sender.send((clock.now().as_nanos() as u64, part, idx)).unwrap();
                        left -= part;
                    }
                }
            })
        })
        .collect();
    drop(sender);
    while takers.iter().any(|taker| !taker.is_finished()) {
        // Only if all threads left wait: the clock never overtakes a thread that is about to ask.
        let n_left = takers.iter().filter(|taker| !taker.is_finished()).count();
        clock.advance(n_left);
        thread::yield_now();
    }
    for taker in takers {
        taker.join().unwrap();
    }
    let mut takes: Vec<_> = takes.iter().collect();
    takes.sort_unstable();
    takes
}

#[test]
fn takers_at_the_same_time_share_the_rate_and_none_starves() {
    for in_whole in [false, true] {
        let takes = takes_at_the_same_time(in_whole);
        let total: u64 = takes.iter().map(|(_, bytes, _)| bytes).sum();
        assert_eq!(total, 3 * 50_000 + 5_000);
        if !in_whole {
            let windows: Vec<_> = takes.iter().map(|(nanos, bytes, _)| (*nanos, *bytes)).collect();
            check_windows(&windows, RATE, BURST, 0).unwrap();
        }
        // No byte of the rate is lost while somebody waits.
        let end = takes.last().unwrap().0;
        assert_eq!(end, (total - BURST) * (SECOND / RATE));
        // A turn of the one that takes little waits for at most one burst of each of the others.
        let small: Vec<u64> =
            takes.iter().filter(|(_, _, idx)| *idx == SMALL).map(|(nanos, _, _)| *nanos).collect();
        let longest = small.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(longest <= (3 * BURST + 100) * (SECOND / RATE), "{longest}");
    }
}

#[test]
fn a_folder_is_read_in_parts_and_what_was_read_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(folder.path().join("a"), &bytes).unwrap();
    let clock = Arc::new(AloneClock::default());
    let rate = NonZeroU64::new(1_000_000).unwrap();
    let limit = Arc::new(ReadLimit::with_clock(rate, Arc::<AloneClock>::clone(&clock)));
    assert_eq!((limit.bytes_per_second(), limit.burst_bytes()), (1_000_000, 10_000));
    let local = Arc::new(LocalStorage::new(folder.path()));
    let storages: Vec<_> = (0..2)
        .map(|_| LimitedStorage::new(Arc::<LocalStorage>::clone(&local), Arc::clone(&limit)))
        .collect();
    let pieces = [Piece { file: "a", range: 50_000..99_000 }, Piece { file: "a", range: 0..1_000 }];
    for storage in &storages {
        let mut into = vec![0; 50_000];
        storage.read(&pieces, &mut into).unwrap();
        assert_eq!(into, [&bytes[50_000..99_000], &bytes[..1_000]].concat());
    }
    // 100,000 bytes, of which the first 10,000 came at once: both storages go by one limit.
    assert_eq!(clock.nanos(), 90_000_000);
    let used = ReadLimitUse { bytes: 100_000, reading: Duration::from_millis(90) };
    clock.pass(SECOND);
    assert_eq!(limit.used(), used);
    let beyond = [Piece { file: "a", range: 99_000..200_000 }];
    let error = storages[0].read(&beyond, &mut vec![0; 101_000]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(storages[0].size("a").unwrap(), 100_000);
}

/// The content of a bucket after a pause comes at once. The time that it took to fill is counted,
/// and no more.
#[test]
fn pauses_between_reads_count_as_far_as_the_bucket_fills_in_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), vec![7; 10_000]).unwrap();
    let clock = Arc::new(AloneClock::default());
    let rate = NonZeroU64::new(1_000_000).unwrap();
    let limit = Arc::new(ReadLimit::with_clock(rate, Arc::<AloneClock>::clone(&clock)));
    let storage =
        LimitedStorage::new(Arc::new(LocalStorage::new(folder.path())), Arc::clone(&limit));
    for _ in 0..20 {
        storage.read(&[Piece { file: "a", range: 0..10_000 }], &mut vec![0; 10_000]).unwrap();
        clock.pass(SECOND);
    }
    // Each found a full bucket; the first one did from the beginning.
    let used = ReadLimitUse { bytes: 200_000, reading: Duration::from_millis(190) };
    assert_eq!(limit.used(), used);
}

/// A remote storage, which counts the pieces of each read.
#[derive(Debug, Default)]
struct Far {
    reads: Mutex<Vec<usize>>,
}

impl Storage for Far {
    fn place(&self) -> String {
        "far".to_owned()
    }

    fn list(&self, _: &str) -> io::Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn size(&self, _: &str) -> io::Result<u64> {
        Ok(1 << 30)
    }

    fn read(&self, pieces: &[Piece<'_>], _: &mut [u8]) -> io::Result<()> {
        self.reads.lock().unwrap().push(pieces.len());
        Ok(())
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 7, batch_bytes: 8, prefetch_bytes: 9 }
    }

    fn request_counts(&self) -> Option<RequestCounts> {
        Some(RequestCounts { sent: 9, repeated: 10, bytes: 11 })
    }
}

#[test]
fn a_remote_storage_is_asked_once_and_for_nothing_ahead() {
    let (clock, far) = (Arc::new(AloneClock::default()), Arc::new(Far::default()));
    let rate = NonZeroU64::new(1_000_000).unwrap();
    let limit = Arc::new(ReadLimit::with_clock(rate, Arc::<AloneClock>::clone(&clock)));
    let storage = LimitedStorage::new(Arc::<Far>::clone(&far), limit);
    let pieces = [Piece { file: "a", range: 0..100_000 }, Piece { file: "b", range: 5..10_005 }];
    storage.read(&pieces, &mut vec![0; 110_000]).unwrap();
    assert_eq!(*far.reads.lock().unwrap(), [2]);
    assert_eq!(clock.nanos(), 100_000_000);
    let coalesce = Coalesce { gap_bytes: 7, batch_bytes: 8, prefetch_bytes: 0 };
    assert_eq!((storage.coalesce(), storage.request_counts()), (coalesce, far.request_counts()));
}

#[test]
fn the_systems_clock_holds_a_rate() {
    let limit = ReadLimit::new(NonZeroU64::new(10_000_000).unwrap());
    let start = std::time::Instant::now();
    limit.bucket.take(1_100_000);
    // Not how soon, only that it is not too soon: 100,000 come at once.
    assert!(Duration::from_millis(100) <= start.elapsed());
}
