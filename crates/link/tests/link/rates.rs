//! The latency and the rates: lower bounds of time, since a busy machine may take any longer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use link::LinkServer;

use crate::plain::request;
use crate::{folder, serve};

/// Reads the file `a` on several connections at once; returns each one's bytes and time.
fn read_at_once(server: &Arc<LinkServer>, n: usize) -> Vec<(usize, Duration)> {
    let start = Instant::now();
    let threads: Vec<_> = (0..n)
        .map(|_| {
            let server = Arc::clone(server);
            std::thread::spawn(move || {
                let len = request(&server, "GET /link/a", "").1.len();
                (len, start.elapsed())
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn every_answer_waits_for_the_latency() {
    let folder = folder(&[("a", 10)]);
    let server = serve(folder.path(), "50ms");
    for line in ["GET /link/a", "HEAD /link/a", "GET /link/absent", "GET /link?list-type=2"] {
        let start = Instant::now();
        request(&server, line, "");
        assert!(Duration::from_millis(50) <= start.elapsed(), "{line}");
    }
}

#[test]
fn all_connections_together_keep_their_rate() {
    let folder = folder(&[("a", 500_000)]);
    let server = Arc::new(serve(folder.path(), "10MB/s"));
    let start = Instant::now();
    let reads = read_at_once(&server, 4);
    // 2 MB, of which 20 ms worth may come at once.
    assert!(Duration::from_millis(180) <= start.elapsed(), "{:?}", start.elapsed());
    assert!(reads.iter().all(|(len, _)| *len == 500_000), "{reads:?}");
    // They take turns: none is done when the others have a small part.
    for (_, time) in &reads {
        assert!(Duration::from_millis(100) <= *time, "{reads:?}");
    }
    assert_eq!(server.counts().bytes_sent, 2_000_000);
    assert_eq!((server.counts().requests, server.counts().connections), (4, 4));
}

#[test]
fn each_connection_keeps_its_rate() {
    let folder = folder(&[("a", 500_000)]);
    let server = Arc::new(serve(folder.path(), "0,5MB/s,unlimited"));
    for (len, time) in read_at_once(&server, 3) {
        assert_eq!(len, 500_000);
        assert!(Duration::from_millis(80) <= time, "{time:?}");
    }
}
