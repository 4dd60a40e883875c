//! Faults of a link: which requests they affect, drawn from a seed.
//!
//! Draws do not depend on the order in which requests arrive: they are made of the seed, the path,
//! the range and the number of times that this part was asked for. Faults that begin at a number of
//! requests, or come after every N, count requests as they arrive. All counts start at the server's
//! start, and again at [`LinkFaults::restart`].

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::counts::ask;
use crate::error::{Error, FaultsError};
use crate::spec::time;

/// The path that starts the faults again, at once and without being counted. No bucket has this
/// name.
pub(crate) const RESTART_FAULTS_PATH: &str = "/.link/restart-faults";

/// One in N.
type OneIn = Option<NonZeroU64>;

/// Faults of a link. By default there are none.
///
/// As text: parts with commas between them, in any order. `1/50` is one in fifty.
///
/// | part | fault |
/// |---|---|
/// | `refused=1/50` | a connection is closed at its first request, without an answer |
/// | `slow=1/20:2s` | the first byte of an answer comes so much later |
/// | `cut=1/40` | the connection is closed in the middle of a body |
/// | `storm=300:20` | after every 300 requests the next 20 are answered by 503 |
/// | `replaced=500` | from the 500th request on, every object has another `ETag` |
/// | `expired=1000` | from the 1000th request on, the credentials have expired: 403 |
/// | `seed=7` | the seed of the draws; 0 by default |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkFaults {
    /// Seed of the draws.
    pub seed: u64,
    /// One in N connections is closed at its first request, without an answer.
    pub refused: OneIn,
    /// One in N answers begins later, by this duration.
    pub slow: Option<(NonZeroU64, Duration)>,
    /// One in N bodies ends in the middle, with its connection.
    pub cut: OneIn,
    /// After every N requests, the next M are answered by 503.
    pub storm: Option<(NonZeroU64, NonZeroU64)>,
    /// Number of the request from which every object has another `ETag`.
    pub replaced: OneIn,
    /// Number of the request from which all are refused, for expired credentials.
    pub expired: OneIn,
}

impl LinkFaults {
    /// Whether there are no faults.
    pub fn is_none(&self) -> bool {
        Self { seed: 0, ..*self } == Self::default()
    }

    /// Makes the faults of the server at `address` (host and port) start again, as they started
    /// with the server: its next client meets the same faults as its first one.
    ///
    /// # Errors
    /// Nobody listens there, or the answer is not that of a server of a link.
    pub fn restart(address: &str) -> Result<(), Error> {
        let failed = |source| Error::Faults { address: address.to_owned(), source };
        let answer = ask(address, RESTART_FAULTS_PATH).map_err(failed)?;
        match answer.lines().next() {
            Some(status) if status.contains(" 200 ") => Ok(()),
            status => Err(failed(io::Error::other(status.unwrap_or_default().to_owned()))),
        }
    }
}

/// The fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 403, like S3 with credentials that have expired.
    Expired,
    /// 503, like S3 under too many requests.
    Unavailable,
    /// The answer begins later.
    Slow(Duration),
    /// The body ends in the middle.
    Cut,
}

/// Kinds of draws, so that those of one kind do not depend on those of another.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Refused = 1,
    Slow = 2,
    Cut = 3,
}

/// Draws the faults of a server's requests.
#[derive(Debug)]
pub(crate) struct Draws {
    faults: LinkFaults,
    since: Mutex<Since>,
}

/// The server's past since its faults started.
#[derive(Debug, Default)]
struct Since {
    /// Number of the first request.
    request: u64,
    /// Number of the first connection.
    connection: u64,
    /// How often each part of a file was asked for, by a digest of its name.
    asked: HashMap<u64, u64>,
}

impl Draws {
    pub(crate) fn new(faults: LinkFaults) -> Self {
        Self { faults, since: Mutex::default() }
    }

    /// Starts the faults again; the next request and the next connection have these numbers.
    pub(crate) fn restart(&self, request: u64, connection: u64) {
        *self.since() = Since { request, connection, asked: HashMap::new() };
    }

    /// Whether the connection of this number is closed at its first request.
    pub(crate) fn refuses(&self, connection: u64) -> bool {
        let Some(one_in) = self.faults.refused else { return false };
        let connection = connection.saturating_sub(self.since().connection);
        self.is_drawn(Some(one_in), Kind::Refused, mix(connection))
    }

    /// Whether objects have another tag at the request of this number.
    pub(crate) fn replaces(&self, request: u64) -> bool {
        self.has_begun(self.faults.replaced, request)
    }

    /// Whether a fault has begun that lasts from the N-th request on.
    fn has_begun(&self, from: OneIn, request: u64) -> bool {
        from.is_some_and(|from| from.get() <= self.place(request) + 1)
    }

    /// The place of a request, from 0, among those since the faults started.
    fn place(&self, request: u64) -> u64 {
        request.saturating_sub(self.since().request)
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of the request of this number for a part of a file.
    pub(crate) fn fault(&self, request: u64, path: &str, range: Option<&str>) -> Option<Fault> {
        let LinkFaults { slow, cut, storm, expired, .. } = &self.faults;
        if self.has_begun(*expired, request) {
            return Some(Fault::Expired);
        }
        let in_storm = |(calm, long): &(NonZeroU64, NonZeroU64)| {
            calm.get() <= self.place(request) % calm.get().saturating_add(long.get())
        };
        if storm.as_ref().is_some_and(in_storm) {
            return Some(Fault::Unavailable);
        }
        if slow.is_none() && cut.is_none() {
            return None;
        }
        let drawn = self.draw(path, range);
        if let Some((one_in, by)) = slow
            && self.is_drawn(Some(*one_in), Kind::Slow, drawn)
        {
            return Some(Fault::Slow(*by));
        }
        self.is_drawn(*cut, Kind::Cut, drawn).then_some(Fault::Cut)
    }

    /// A number for this part of a file, another one each time.
    fn draw(&self, path: &str, range: Option<&str>) -> u64 {
        // Without keys of its own, so that each process draws the same.
        let part = BuildHasherDefault::<DefaultHasher>::default().hash_one((path, range));
        let mut since = self.since();
        let n_before = since.asked.entry(part).or_default();
        *n_before += 1;
        mix(part ^ mix(*n_before))
    }

    fn is_drawn(&self, one_in: OneIn, kind: Kind, of: u64) -> bool {
        one_in.is_some_and(|n| {
            mix(of ^ mix(self.faults.seed ^ mix(kind as u64))).is_multiple_of(n.get())
        })
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea and Flood 2014).
fn mix(state: u64) -> u64 {
    let mut state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

impl FromStr for LinkFaults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        for part in text.split(',').map(str::trim) {
            let refused = || FaultsError { part: part.to_owned() };
            let (name, value) = part.split_once('=').ok_or_else(refused)?;
            let number = |text: &str| text.parse::<NonZeroU64>().ok();
            let one_in = |text: &str| text.strip_prefix("1/").and_then(number);
            let pair = value.split_once(':');
            let is_known = match name {
                "seed" => value.parse().map(|seed| faults.seed = seed).is_ok(),
                "refused" => set(&mut faults.refused, one_in(value)),
                "cut" => set(&mut faults.cut, one_in(value)),
                "replaced" => set(&mut faults.replaced, number(value)),
                "expired" => set(&mut faults.expired, number(value)),
                "slow" => {
                    let slow = pair.and_then(|(share, by)| Some((one_in(share)?, time(by)?)));
                    set(&mut faults.slow, slow)
                }
                "storm" => {
                    let storm = pair.and_then(|(calm, long)| Some((number(calm)?, number(long)?)));
                    set(&mut faults.storm, storm)
                }
                _ => false,
            };
            if !is_known {
                return Err(refused());
            }
        }
        Ok(faults)
    }
}

/// Sets a fault; returns whether there was a value.
fn set<T>(fault: &mut Option<T>, value: Option<T>) -> bool {
    *fault = value;
    fault.is_some()
}

impl fmt::Display for LinkFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, refused, slow, cut, storm, replaced, expired } = self;
        let parts = [
            refused.map(|n| format!("refused=1/{n}")),
            slow.map(|(n, by)| format!("slow=1/{n}:{}us", by.as_micros())),
            cut.map(|n| format!("cut=1/{n}")),
            storm.map(|(calm, long)| format!("storm={calm}:{long}")),
            replaced.map(|from| format!("replaced={from}")),
            expired.map(|from| format!("expired={from}")),
            Some(format!("seed={seed}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str =
        "refused=1/50,slow=1/20:2000000us,cut=1/40,storm=300:20,replaced=500,expired=1000,seed=7";

    #[test]
    fn faults_are_written_as_they_are_read() {
        let faults: LinkFaults = ALL.replace("2000000us", "2s").parse().unwrap();
        assert_eq!(faults.to_string(), ALL);
        assert_eq!(ALL.parse::<LinkFaults>().unwrap(), faults);
        let one: LinkFaults = " cut=1/2 , seed=3".parse().unwrap();
        assert_eq!((one.cut.map(NonZeroU64::get), one.seed, one.is_none()), (Some(2), 3, false));
        assert!("seed=3".parse::<LinkFaults>().unwrap().is_none());
        for bad in ["", "cut", "cut=2", "cut=1/0", "slow=1/3", "slow=1/3:2", "storm=5", "x=1/2"] {
            let error = bad.parse::<LinkFaults>().unwrap_err().to_string();
            assert!(error.contains("refused=1/50"), "{bad}: {error}");
        }
    }

    #[test]
    fn faults_that_start_again_are_the_same() {
        for text in ["storm=3:2", "replaced=5", "expired=4", "cut=1/2,slow=1/3:1ms", "refused=1/2"]
        {
            let draws = Draws::new(text.parse().unwrap());
            let sequence = |from: u64| -> Vec<_> {
                let one = |request| {
                    let fault = draws.fault(request, "/link/a", Some("bytes=0-9"));
                    (fault, draws.replaces(request), draws.refuses(request))
                };
                (from..from + 12).map(one).collect()
            };
            let (first, next) = (sequence(0), sequence(12));
            draws.restart(24, 24);
            assert_eq!(sequence(24), first, "{text}");
            assert_ne!(next, first, "{text}");
        }
    }

    #[test]
    fn storms_come_after_every_n_requests() {
        let draws = Draws::new("storm=3:2".parse().unwrap());
        let is_unavailable =
            |request| draws.fault(request, "/link/a", None) == Some(Fault::Unavailable);
        assert_eq!((0..10).map(is_unavailable).filter(|is_fault| *is_fault).count(), 4);
        assert_eq!(
            [0, 2, 3, 4, 5, 8, 9].map(is_unavailable),
            [false, false, true, true, false, true, true]
        );
    }

    #[test]
    fn some_faults_begin_and_stay() {
        let draws = Draws::new("replaced=2,expired=4".parse().unwrap());
        assert_eq!([0, 1, 9].map(|request| draws.replaces(request)), [false, true, true]);
        let fault_at = |request| draws.fault(request, "/link/a", None);
        assert_eq!([2, 3, 9].map(fault_at), [None, Some(Fault::Expired), Some(Fault::Expired)]);
    }

    #[test]
    fn draws_depend_on_the_part_and_not_on_the_order() {
        let faults: LinkFaults = "cut=1/4,slow=1/8:1ms,seed=5".parse().unwrap();
        let fault_of =
            |draws: &Draws, part: u64| draws.fault(part, "/link/a", Some(&part.to_string()));
        let (one, other) = (Draws::new(faults), Draws::new(faults));
        let forwards: Vec<_> = (0..400).map(|part| fault_of(&one, part)).collect();
        let mut backwards: Vec<_> = (0..400).rev().map(|part| fault_of(&other, part)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        let count = |fault| forwards.iter().filter(|one| **one == Some(fault)).count();
        let (n_cut, n_slow) = (count(Fault::Cut), count(Fault::Slow(Duration::from_millis(1))));
        assert!((50..150).contains(&n_cut) && (20..90).contains(&n_slow), "{n_cut} {n_slow}");
        // The same part again is drawn again: what is asked for often enough comes through.
        let tries = (0..100).filter(|_| fault_of(&one, 0) == Some(Fault::Cut)).count();
        assert!((1..100).contains(&tries), "{tries}");
        let refused: LinkFaults = "refused=1/2".parse().unwrap();
        let refuses = (0..100).filter(|n| Draws::new(refused).refuses(*n)).count();
        assert!((20..80).contains(&refuses), "{refuses}");
    }
}
