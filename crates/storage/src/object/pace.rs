//! How requests are sent over a link that was measured: how many at once, how long, and across
//! which gaps between wanted ranges.
//!
//! A request costs the latency of one of the connections, and one of the requests that the store
//! allows in a second. A byte costs time of its connection and of the whole link. Many short
//! requests are limited by the first two, few long ones by the last two.

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

/// Gaps up to this many bytes are bridged over any link: to send and answer a request costs two
/// machines more work than to send and receive these bytes.
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
    /// A machine near its store, before anything was measured: 30 ms, 50 MB/s, 1 GB/s.
    fn default() -> Self {
        Self { latency_secs: 0.03, connection_rate: 50e6, total_rate: 1e9 }
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

    /// The longest gap between two ranges of one file that is read with them: its bytes take no
    /// more of the link's time than another request. Both are compared even if only one of them
    /// limits the link, because both also cost processor time.
    pub(super) fn gap_bytes(&self) -> u64 {
        let bytes = (self.link.total_rate * self.request_secs()) as u64;
        bytes.max(LEAST_GAP_BYTES).min(self.bounds.gap_bytes)
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
    fn longer_gaps_are_bridged_where_bytes_are_cheap() {
        // 5,500 requests a second, or 256 every 80 ms.
        assert_eq!(pace(REFERENCE).gap_bytes(), 181_818);
        assert_eq!(pace(LAPTOP).gap_bytes(), LEAST_GAP_BYTES);
        let far = Link { latency_secs: 0.2, ..REFERENCE };
        assert_eq!(pace(far).gap_bytes(), 781_250);
        let fast = Link { total_rate: 1e12, ..REFERENCE };
        assert_eq!(pace(fast).gap_bytes(), ObjectOptions::default().gap_bytes);
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

    proptest! {
        #[test]
        fn all_stay_within_their_bounds(link in links(), bounds in bounds(), mean in 0.0..1e9) {
            let pace = Pace { link, bounds };
            prop_assert!((1..=bounds.request_bytes.max(1)).contains(&pace.part_bytes()));
            prop_assert!((1..=bounds.max_requests.max(1)).contains(&pace.requests(mean)));
            prop_assert!(pace.gap_bytes() <= bounds.gap_bytes);
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
    }
}
