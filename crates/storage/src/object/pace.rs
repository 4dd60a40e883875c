//! How requests are sent over a link that was measured: how many at once, how long, and across
//! which gaps between wanted ranges.
//!
//! A request costs the latency of one of the connections, and one of the requests that the store
//! allows in a second. A byte costs time of its connection and of the whole link. Many short
//! requests are limited by the first two, few long ones by the last two; the functions here keep
//! both about equal.

use super::ObjectOptions;

/// A part takes this many latencies at the rate of a connection, so that connections spend most of
/// their time sending.
const PART_LATENCIES: f64 = 2.0;

/// The least bytes at which a range is split: shorter parts would cost more in requests than they
/// gain.
const LEAST_PART_BYTES: f64 = (1 << 20) as f64;

/// Requests under way beyond those that fill the link, so that some are always there to be answered
/// next, and so that a rate that was measured with too few of them can grow.
const SPARE: f64 = 2.0;

/// The least requests under way, as far as [`ObjectOptions::max_requests`] allows.
const LEAST_REQUESTS: usize = 32;

/// Gaps up to this many bytes are always bridged: to send and answer a request costs two machines
/// about as much work as to send and receive these bytes.
const LEAST_GAP_BYTES: u64 = 32 << 10;

/// What was measured of a link to a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    /// Seconds from a request to the first byte of its answer.
    pub(super) latency_secs: f64,
    /// Bytes per second of one connection.
    pub(super) connection_rate: f64,
    /// Bytes per second of all connections together.
    pub(super) total_rate: f64,
}

impl Default for Link {
    /// A machine near its store, before anything was measured: 30 ms, 50 MB/s, 500 MB/s.
    fn default() -> Self {
        Self { latency_secs: 0.03, connection_rate: 50e6, total_rate: 500e6 }
    }
}

/// How requests are sent over a link within bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    pub(super) link: Link,
    pub(super) bounds: ObjectOptions,
}

impl Pace {
    /// Bytes at which a range is split into several requests.
    pub(super) fn part_bytes(&self) -> u64 {
        let Link { latency_secs, connection_rate, .. } = self.link;
        let bytes = (PART_LATENCIES * latency_secs * connection_rate).max(LEAST_PART_BYTES);
        (bytes as u64).min(self.bounds.request_bytes).max(1)
    }

    /// Requests of about `mean_bytes` to be under way at once: as many as fill the link, or as the
    /// store allows.
    pub(super) fn requests(&self, mean_bytes: f64) -> usize {
        let mean_bytes = mean_bytes.max(1.0);
        let Link { latency_secs, connection_rate, total_rate } = self.link;
        let request_secs = latency_secs + mean_bytes / connection_rate.max(1.0);
        let per_sec = (total_rate / mean_bytes).min(self.requests_per_sec());
        let wanted = (SPARE * per_sec * request_secs).ceil() as usize;
        wanted.max(LEAST_REQUESTS).min(self.bounds.max_requests).max(1)
    }

    /// Seconds that each of many short requests takes of the link's time.
    fn request_secs(&self) -> f64 {
        let by_latency = self.link.latency_secs / self.bounds.max_requests.max(1) as f64;
        by_latency.max(1.0 / self.requests_per_sec())
    }

    fn requests_per_sec(&self) -> f64 {
        f64::from(self.bounds.max_requests_per_sec.max(1))
    }

    /// The longest gap between two ranges that is read with them, of `gaps` between ranges of
    /// `wanted_bytes` in all, if `rate_share` of the link's rate is used. The longest gaps are left
    /// out while that makes the whole faster: it is as fast as the slower of all requests, by their
    /// number, and all bytes.
    pub(super) fn gap_bytes(&self, wanted_bytes: u64, gaps: &[u64], rate_share: f64) -> u64 {
        let most = self.bounds.gap_bytes;
        let mut gaps: Vec<u64> = gaps.iter().copied().filter(|gap| *gap <= most).collect();
        gaps.sort_unstable();
        let least = LEAST_GAP_BYTES.min(most);
        let (request_secs, rate) = (self.request_secs(), self.link.total_rate * rate_share);
        let time =
            |bytes: f64, n_requests: f64| (bytes / rate.max(1.0)).max(n_requests * request_secs);
        let mut bytes = wanted_bytes.saturating_add(gaps.iter().sum()) as f64;
        let mut n_requests = bytes / self.part_bytes() as f64;
        while let Some(longest) = gaps.pop() {
            let without = bytes - longest as f64;
            if longest <= least || time(bytes, n_requests) <= time(without, n_requests + 1.0) {
                return longest.max(least);
            }
            (bytes, n_requests) = (without, n_requests + 1.0);
        }
        LEAST_GAP_BYTES.min(most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REFERENCE: Link = Link { latency_secs: 0.03, connection_rate: 90e6, total_rate: 1e9 };
    const LAPTOP: Link = Link { latency_secs: 0.08, connection_rate: 25e6, total_rate: 100e6 };

    fn pace(link: Link) -> Pace {
        Pace { link, bounds: ObjectOptions::default() }
    }

    #[test]
    fn links_of_two_kinds() {
        let (near, far) = (pace(REFERENCE), pace(LAPTOP));
        assert_eq!((near.part_bytes(), far.part_bytes()), (5_400_000, 4_000_000));
        // Short requests are limited by their number, long ones by the rate.
        assert_eq!(near.requests(10_000.0), ObjectOptions::default().max_requests);
        assert_eq!((near.requests(5.4e6), far.requests(4e6)), (34, LEAST_REQUESTS));
        assert_eq!(far.requests(100_000.0), 168);
    }

    #[test]
    fn scattered_ranges_are_bridged_where_bytes_are_cheap() {
        let gaps: Vec<u64> = (0..7_000).map(|idx| 60_000 + idx * 5).collect();
        // With gaps up to about 84 kB, 5,000 of 7,000, requests take as long as bytes.
        let near = pace(REFERENCE).gap_bytes(70_000_000, &gaps, 1.0);
        assert!((80_000..88_000).contains(&near), "{near}");
        // With a slower link, or a reader that takes less, fewer gaps are worth their bytes.
        let far = pace(LAPTOP).gap_bytes(70_000_000, &gaps, 1.0);
        assert!((66_000..70_000).contains(&far), "{far}");
        let slow = pace(REFERENCE).gap_bytes(70_000_000, &gaps, 0.1);
        assert!((62_000..66_000).contains(&slow), "{slow}");
        let most = pace(Link { total_rate: 1e12, ..REFERENCE }).gap_bytes(1000, &gaps, 1.0);
        assert_eq!(most, gaps[gaps.len() - 1]);
        let slowest = pace(Link { total_rate: 1e6, ..REFERENCE });
        let least = slowest.gap_bytes(70_000_000, &gaps, 1.0);
        assert_eq!(least, LEAST_GAP_BYTES);
    }

    fn links() -> impl Strategy<Value = Link> {
        (1e-5..2.0, 1e4..1e10, 1e4..1e11).prop_map(|(latency_secs, connection_rate, total_rate)| {
            Link { latency_secs, connection_rate, total_rate }
        })
    }

    fn bounds() -> impl Strategy<Value = ObjectOptions> {
        (0..600_usize, 0..9_000_u32, 0..1_u64 << 25, 0..1_u64 << 22).prop_map(
            |(max_requests, max_requests_per_sec, request_bytes, gap_bytes)| ObjectOptions {
                max_requests,
                max_requests_per_sec,
                request_bytes,
                gap_bytes,
                ..ObjectOptions::default()
            },
        )
    }

    /// Seconds by the model if gaps longer than `gap` are left out.
    fn seconds(pace: &Pace, wanted: u64, gaps: &[u64], gap: u64) -> f64 {
        let most = pace.bounds.gap_bytes;
        let bridged = gaps.iter().filter(|one| **one <= most && **one <= gap).sum::<u64>();
        let out = gaps.iter().filter(|one| **one <= most && **one > gap).count();
        let all = wanted + gaps.iter().filter(|one| **one <= most).sum::<u64>();
        let n_requests = all as f64 / pace.part_bytes() as f64 + out as f64;
        let bytes_secs = (wanted + bridged) as f64 / pace.link.total_rate;
        bytes_secs.max(n_requests * pace.request_secs())
    }

    proptest! {
        #[test]
        fn all_stay_within_their_bounds(link in links(), bounds in bounds(), mean in 0.0..1e9) {
            let pace = Pace { link, bounds };
            prop_assert!((1..=bounds.request_bytes.max(1)).contains(&pace.part_bytes()));
            prop_assert!((1..=bounds.max_requests.max(1)).contains(&pace.requests(mean)));
        }

        #[test]
        fn a_longer_latency_splits_less_and_sends_more(
            link in links(), bounds in bounds(), mean in 1.0..1e8, longer in 1.0..50.0,
        ) {
            let near = Pace { link, bounds };
            let latency_secs = link.latency_secs * longer;
            let far = Pace { link: Link { latency_secs, ..link }, bounds };
            prop_assert!(near.part_bytes() <= far.part_bytes());
            prop_assert!(near.requests(mean) <= far.requests(mean));
        }

        /// No gap of those left out, or taken in, would make the whole faster.
        #[test]
        fn no_other_gap_is_faster(
            link in links(), bounds in bounds(), wanted in 1_u64..1 << 30,
            gaps in prop::collection::btree_set(1_u64..1 << 21, 0..60),
        ) {
            let pace = Pace { link, bounds };
            let gaps: Vec<u64> = gaps.into_iter().collect();
            let chosen = pace.gap_bytes(wanted, &gaps, 1.0);
            prop_assert!(chosen <= bounds.gap_bytes);
            let time = |gap| seconds(&pace, wanted, &gaps, gap);
            let least = LEAST_GAP_BYTES.min(bounds.gap_bytes);
            for other in gaps.iter().copied().filter(|gap| (least..=bounds.gap_bytes).contains(gap)) {
                prop_assert!(time(chosen) <= time(other) * (1.0 + 1e-9), "{chosen} {other}");
            }
        }
    }
}
