//! Counts of a server, and how a measured process asks for them.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The path that answers with the counts, at once and without being counted. No bucket has this
/// name.
pub const COUNTS_PATH: &str = "/.link/counts";

/// A server in the same machine answers sooner than this.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of an answer with counts.
const MOST_ANSWER_BYTES: u64 = 1 << 16;

/// Counts of a server so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkCounts {
    /// Requests received.
    pub requests: u64,
    /// Bytes of bodies sent.
    pub bytes_sent: u64,
    /// Connections on which a request came.
    pub connections: u64,
    /// The most requests under way at once since the counts were last taken: from the end of the
    /// request to the end of its answer's body.
    pub most_under_way: u64,
    /// The longest chain of requests of which each came after the one before was answered. If the
    /// latency is longer than a client takes to send all that it sends at once, these are the
    /// client's round trips.
    pub rounds: u64,
    /// Requests and connections that a fault affected.
    pub faults: u64,
    /// User and system seconds of the server's process.
    pub cpu_secs: f64,
}

impl LinkCounts {
    /// Asks the server at `address` (host and port) for its counts. The next counts have the most
    /// requests under way from now on.
    ///
    /// # Errors
    /// Nobody listens there, or the answer is not that of a server of a link.
    pub fn take(address: &str) -> Result<Self, Error> {
        let failed = |source| Error::Counts { address: address.to_owned(), source };
        let text = ask(address, COUNTS_PATH).map_err(failed)?;
        Self::of_answer(&text).map_err(|problem| failed(io::Error::other(problem)))
    }

    /// The counts in an HTTP answer, all of them and nothing else.
    fn of_answer(text: &str) -> Result<Self, String> {
        let (head, body) = text.split_once("\r\n\r\n").ok_or("the answer ends within its head")?;
        let mut status = head.lines().next().unwrap_or_default().split_ascii_whitespace();
        match (status.next(), status.next()) {
            (Some(version), Some("200")) if version.starts_with("HTTP/1.") => {}
            _ => {
                return Err(format!("the answer is {:?}", head.lines().next().unwrap_or_default()));
            }
        }
        serde_json::from_str(body).map_err(|error| format!("the answer has no counts: {error}"))
    }

    /// The counts of the time between `before` and these.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes_sent: self.bytes_sent.saturating_sub(before.bytes_sent),
            connections: self.connections.saturating_sub(before.connections),
            most_under_way: self.most_under_way,
            rounds: self.rounds.saturating_sub(before.rounds),
            faults: self.faults.saturating_sub(before.faults),
            cpu_secs: (self.cpu_secs - before.cpu_secs).max(0.0),
        }
    }
}

/// Asks the server at `address` for `path`; returns its answer with the head.
pub(crate) fn ask(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: link\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.take(MOST_ANSWER_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    connections: AtomicU64,
    under_way: AtomicU64,
    most_under_way: AtomicU64,
    /// The longest chain among the answered requests.
    rounds: AtomicU64,
    faults: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    counters: Arc<Counters>,
    /// Its place in the longest chain of requests that it can follow.
    round: u64,
}

impl UnderWay {
    /// Notes that its answer begins: requests that come from now on may follow from it.
    pub(crate) fn answered(&self) {
        self.counters.rounds.fetch_max(self.round, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.counters.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// Counts a request; returns its number, from 0.
    pub(crate) fn begin(self: &Arc<Self>) -> (u64, UnderWay) {
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_under_way.fetch_max(now, Ordering::Relaxed);
        let round = 1 + self.rounds.load(Ordering::Relaxed);
        let under_way = UnderWay { counters: Arc::clone(self), round };
        (self.requests.fetch_add(1, Ordering::Relaxed), under_way)
    }

    /// Counts a connection; returns its number, from 0.
    pub(crate) fn connected(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a fault.
    pub(crate) fn failed(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> LinkCounts {
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        LinkCounts {
            requests: counted(&self.requests),
            bytes_sent: counted(&self.bytes_sent),
            connections: counted(&self.connections),
            most_under_way: counted(&self.most_under_way),
            rounds: counted(&self.rounds),
            faults: counted(&self.faults),
            cpu_secs: cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9,
        }
    }

    /// The counts so far; begins anew with the most requests under way.
    pub(crate) fn take(&self) -> LinkCounts {
        let counts = self.counts();
        self.most_under_way.store(self.under_way.load(Ordering::Relaxed), Ordering::Relaxed);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_under_way_until_they_are_dropped() {
        let counters = Arc::new(Counters::default());
        let ((first, one), (second, other)) = (counters.begin(), counters.begin());
        assert_eq!(counters.connected(), 0);
        assert_eq!((first, second), (0, 1));
        drop(one);
        let counts = counters.take();
        assert_eq!((counts.requests, counts.connections, counts.most_under_way), (2, 1, 2));
        assert_eq!(counters.counts().most_under_way, 1);
        drop(other);
        assert_eq!((counters.take().most_under_way, counters.take().most_under_way), (1, 0));
    }

    #[test]
    fn a_round_follows_an_answer() {
        let counters = Arc::new(Counters::default());
        let (one, other) = (counters.begin().1, counters.begin().1);
        assert_eq!(counters.counts().rounds, 0);
        one.answered();
        other.answered();
        assert_eq!(counters.counts().rounds, 1);
        counters.begin().1.answered();
        assert_eq!(counters.counts().rounds, 2);
    }

    #[test]
    fn only_all_counts_are_counts() {
        let counts = LinkCounts { requests: 7, cpu_secs: 0.5, ..LinkCounts::default() };
        let body = serde_json::to_string(&counts).unwrap();
        let ok = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{body}");
        assert_eq!(LinkCounts::of_answer(&ok), Ok(counts));
        for other in [
            ok.replace("200 OK", "404 Not Found"),
            ok.replace("HTTP/1.1 ", "ICY "),
            ok.replace("\r\n\r\n", "\r\n"),
            ok.replace("\"faults\":0,", ""),
            ok.replace("\"faults\":0", "\"faults\":0,\"more\":1"),
            ok.replace("\"faults\":0", "\"faults\":-1"),
            ok.replace(&body, "{}"),
            ok.replace(&body, "[]"),
            format!("{ok}{body}"),
        ] {
            assert!(LinkCounts::of_answer(&other).is_err(), "{other}");
        }
    }

    #[test]
    fn counts_are_of_the_time_between() {
        let before =
            LinkCounts { requests: 2, most_under_way: 9, cpu_secs: 1.5, ..LinkCounts::default() };
        let now = LinkCounts { requests: 7, most_under_way: 3, cpu_secs: 2.0, ..before };
        let since = now.since(&before);
        assert_eq!((since.requests, since.most_under_way, since.cpu_secs), (5, 3, 0.5));
    }
}
