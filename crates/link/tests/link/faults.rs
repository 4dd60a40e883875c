//! Faults, as any HTTP client sees them, and the counts of a server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use link::{LinkCounts, LinkFaults, LinkServer, ServeOptions};

use crate::folder;
use crate::plain::request;
use crate::s3::open_with;

fn serve(link: &str, faults: &str) -> (tempfile::TempDir, LinkServer) {
    let folder = folder(&[("a", 100_000)]);
    let options = ServeOptions {
        spec: link.parse().unwrap(),
        faults: faults.parse().unwrap(),
        name: "data".to_owned(),
    };
    let server = LinkServer::start_with(folder.path(), &options).unwrap();
    (folder, server)
}

const GET: &str = "GET /link/data/a";

#[test]
fn a_named_folder_is_below_its_name() {
    let (folder, server) = serve("0", "seed=1");
    let (head, body) = request(&server, GET, "");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body == std::fs::read(folder.path().join("a")).unwrap());
    for beside in ["GET /link/a", "GET /link/data/", "GET /link/database/a"] {
        assert!(request(&server, beside, "").0.starts_with("HTTP/1.1 404"), "{beside}");
    }
}

#[test]
fn statuses_and_tags_change_with_the_number_of_requests() {
    let (_folder, server) = serve("0", "storm=2:1,replaced=4,expired=6");
    let answers: Vec<(String, String)> = (0..7)
        .map(|_| {
            let (head, body) = request(&server, GET, "Range: bytes=0-9\r\n");
            (head.to_lowercase(), String::from_utf8_lossy(&body).into_owned())
        })
        .collect();
    let statuses: Vec<&str> = answers.iter().map(|(head, _)| &head[9..12]).collect();
    assert_eq!(statuses, ["206", "206", "503", "206", "206", "403", "403"]);
    assert!(answers[2].1.contains("<Code>SlowDown</Code>"), "{answers:?}");
    assert!(answers[5].1.contains("<Code>ExpiredToken</Code>"), "{answers:?}");
    let is_replaced = |idx: usize| answers[idx].0.contains("etag: \"replaced-");
    assert_eq!([0, 1, 3, 4].map(is_replaced), [false, false, true, true]);
    assert_eq!(server.counts().faults, 3);
}

#[test]
fn faults_that_start_again_are_the_same() {
    let (_folder, server) = serve("0", "storm=2:1,replaced=4,expired=6");
    let answers = || -> Vec<(String, bool)> {
        let answer = || {
            let head = request(&server, GET, "").0.to_lowercase();
            (head[9..12].to_owned(), head.contains("etag: \"replaced-"))
        };
        (0..7).map(|_| answer()).collect()
    };
    let first = answers();
    assert!(answers().iter().all(|(status, _)| status == "403"));
    LinkFaults::restart(&server.address().to_string()).unwrap();
    assert_eq!(answers(), first);
    // Starting again is not a request that counts.
    assert_eq!(server.counts().requests, 21);
    let gone = server.address().to_string();
    drop(server);
    let error = LinkFaults::restart(&gone).unwrap_err().to_string();
    assert!(error.contains(&gone) && error.contains("start its faults again"), "{error}");
}

#[test]
fn bodies_are_cut_and_connections_closed() {
    let (_folder, server) = serve("0", "cut=1/1");
    assert_eq!(request(&server, GET, "").1.len(), 50_000);
    let (_folder, server) = serve("0", "refused=1/1");
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "{GET} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The connection ends or is reset.
    drop(stream.read_to_end(&mut answer));
    assert!(answer.is_empty());
    let counts = LinkCounts::take(&server.address().to_string()).unwrap();
    assert_eq!((counts.requests, counts.connections, counts.faults), (1, 1, 1));
}

/// The client repeats other requests by itself.
#[test]
fn a_list_that_is_cut_is_tried_as_often_as_the_settings_say() {
    for (setting, tries) in
        [(("vfs.s3.connect_max_tries", "3"), 3), (("soma.retry_limit_ms", "1"), 1)]
    {
        let (_folder, server) = serve("0", "cut=1/1");
        let storage = open_with(&server, "data", &[setting]);
        assert!(storage.list("").is_err());
        assert_eq!(server.counts().requests, tries, "{setting:?}");
        assert!(storage.list_all(10).is_err());
        assert_eq!(server.counts().requests, 2 * tries, "{setting:?}");
    }
}

#[test]
fn slow_answers_come_later() {
    let (_folder, server) = serve("0", "slow=1/1:80ms");
    let start = Instant::now();
    request(&server, GET, "");
    assert!(Duration::from_millis(80) <= start.elapsed());
}

#[test]
fn the_counts_have_the_most_requests_at_once() {
    let (_folder, server) = serve("100ms", "seed=0");
    let address = server.address().to_string();
    let server = Arc::new(server);
    let before = LinkCounts::take(&address).unwrap();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || request(&server, GET, "").1.len())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 100_000);
    }
    let since = LinkCounts::take(&address).unwrap().since(&before);
    assert_eq!((since.requests, since.connections, since.bytes_sent), (3, 3, 300_000));
    assert!((1..=3).contains(&since.most_under_way), "{since:?}");
    request(&server, GET, "");
    assert!(1 <= LinkCounts::take(&address).unwrap().most_under_way);
    drop(server);
    let error = LinkCounts::take(&address).unwrap_err().to_string();
    assert!(error.contains(&address), "{error}");
}
