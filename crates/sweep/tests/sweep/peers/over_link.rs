//! `peers --link`: all loaders read over the same link, or are left out.

use bench_report::Status;

use super::{Bed, Succeeds as _, loader};

const LINK: [&str; 6] =
    ["--repetitions", "1", "--work", "csr-all-8x4", "--link", "1ms,90MB/s,1GB/s"];

#[test]
fn peers_read_over_the_link_too() {
    let bed = Bed::new();
    bed.peers(&["OVER_LINK=1"], &LINK).output_ok();
    let rows = bed.rows();
    assert_eq!(rows.iter().map(loader).collect::<Vec<_>>(), ["somafeed", "fake"]);
    for row in &rows {
        assert_eq!(row.measured.status, Status::Ok, "{row:?}");
        assert_eq!(row.point.settings.get("link"), Some("1ms,90MB/s,1GB/s"));
        assert!(row.data.uri.ends_with("experiment"), "{}", row.data.uri);
        let [requests, opening, bytes] =
            [row.measured.link_requests, row.measured.link_open_requests, row.measured.link_bytes];
        assert!([requests, opening, bytes].iter().all(|count| Some(0) < *count), "{row:?}");
        // Both need all of the stored X.
        assert_eq!(row.measured.link_needed_bytes, rows[0].measured.link_needed_bytes);
    }
    let readme = bed.readme();
    assert!(readme.contains("Over a link of 1ms,90MB/s,1GB/s: "), "{readme}");
    assert!(readme.contains("server's cores used"), "{readme}");
}

#[test]
fn copies_are_made_here_and_read_over_the_link() {
    let bed = Bed::new();
    bed.peers(&["OVER_LINK=1", "CONVERTS=1"], &LINK).output_ok();
    let rows = bed.rows();
    let names: Vec<&str> = rows.iter().map(|row| row.point.chunk_method.as_str()).collect();
    assert_eq!(names, ["csr", "csr", "fake", "fake documented"]);
    let needed: Vec<_> = rows.iter().map(|row| row.measured.link_needed_bytes).collect();
    // The relaid copy is another one than the experiment. A peer's script reports the needed
    // bytes of its copy, or they are unknown.
    assert!(needed[0].is_some() && needed[1].is_some() && needed[0] != needed[1], "{needed:?}");
    assert_eq!(needed[2..], [Some(12_345_000), None]);
    assert!(bed.readme().contains("(12.3"), "{}", bed.readme());
    assert!(rows.iter().all(|row| row.point.settings.get("link").is_some()), "{rows:?}");
}

#[test]
fn a_peer_that_reads_local_files_only_is_left_out() {
    let bed = Bed::new();
    let output = bed.peers(&["CONVERTS=1"], &LINK).output().unwrap();
    let printed = super::stderr(&output);
    assert!(printed.contains("skipped: fake: it reads a local disk only"), "{printed}");
    assert!(!bed.path("copies").exists(), "a copy was made for nothing");
}
