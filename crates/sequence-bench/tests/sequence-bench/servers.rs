//! Stores that are copied to servers.
//!
//! Without a server's program the tests report that nothing was tested, or fail if
//! `SOMAFEED_REQUIRE_REDIS` is set, which `cargo xtask test` does.

use key_values::local_cluster::{ClusterSpec, LocalCluster, find_server};

use crate::{run, store};

#[expect(clippy::print_stderr, reason = "a test that tested nothing says so")]
fn has_server() -> bool {
    let found = find_server();
    if let Err(absent) = &found {
        assert!(std::env::var_os("SOMAFEED_REQUIRE_REDIS").is_none(), "{absent}");
        eprintln!("not tested: {absent}; `cargo xtask test` installs it");
    }
    found.is_ok()
}

#[test]
fn a_cluster_is_started_filled_and_compared() {
    if !has_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let arguments = "fill store --cluster 2 --namespace dna --per-key 5 --check -q";
    let (code, out, messages) = run(folder.path(), arguments);
    assert_eq!((code, messages.as_str()), (Some(0), ""), "{out}");
    for part in [
        "namespace dna: 48 sequences",
        "5 in a value; 0 values were there, 10 written",
        "| server | id |",
        "fullest server over the mean: ",
        "bytes of memory for each byte of letters and names",
        "an epoch in random order: 48 sequences in ",
        "all are those of the store",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // A server has some megabytes for itself, and refuses what is beyond its limit.
    let arguments = "fill store --cluster 1 --max-memory 1KB -q";
    let (code, out, messages) = run(folder.path(), arguments);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(messages.starts_with("error: ") && messages.contains("memory"), "{messages}");
}

#[test]
fn a_second_fill_finds_what_is_there() {
    if !has_server() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let cluster = LocalCluster::start(ClusterSpec::default()).unwrap();
    let servers = format!("--servers {}", cluster.urls().join(","));
    let (code, _, messages) = run(folder, &format!("stats {servers}"));
    assert_eq!(code, Some(1));
    assert!(messages.contains("fill it first"), "{messages}");
    for expected in ["0 values were there, 48 written", "48 values were there, nothing to write"] {
        let (code, out, messages) = run(folder, &format!("fill store {servers} -q"));
        assert_eq!((code, messages.as_str()), (Some(0), ""));
        assert!(out.contains(expected), "{out}");
    }
    let (code, out, _) = run(folder, &format!("stats {servers}"));
    assert_eq!(code, Some(0));
    assert_eq!(out.matches("| 127.0.0.1:").count(), 3, "{out}");

    // Another data set does not replace it.
    for arguments in ["generate other.txt --size 20KB -q", "import other.txt other -q"] {
        assert_eq!(run(folder, arguments).0, Some(0));
    }
    let (code, _, messages) = run(folder, &format!("fill other {servers} -q"));
    assert_eq!(code, Some(1));
    assert!(messages.contains("other sequences") && messages.lines().count() == 1, "{messages}");
}

#[test]
fn a_password_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let arguments = "fill store --servers redis://me:s3cret@127.0.0.1:1 -q";
    let (code, out, messages) = run(folder.path(), arguments);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(messages.contains("127.0.0.1:1") && !messages.contains("s3cret"), "{messages}");
}
