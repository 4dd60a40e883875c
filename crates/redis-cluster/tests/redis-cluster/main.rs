//! Real clusters: how they start, change and end.
//!
//! Without a server's program the tests report that nothing was tested, or fail if
//! `SOMAFEED_REQUIRE_REDIS` is set, which `cargo xtask test` does.
#![expect(clippy::unwrap_used, reason = "a failing test panics where it fails")]

mod changes;
mod ends;

use redis_cluster::{ClusterSpec, LocalCluster, find_server};

/// A cluster of this shape; `None` if there is no server to start.
#[expect(clippy::print_stderr, reason = "a test that tested nothing says so")]
fn start(spec: ClusterSpec) -> Option<LocalCluster> {
    if let Err(absent) = find_server() {
        assert!(std::env::var_os("SOMAFEED_REQUIRE_REDIS").is_none(), "{absent}");
        eprintln!("not tested: {absent}; `cargo xtask test` installs it");
        return None;
    }
    Some(LocalCluster::start(spec).unwrap())
}

/// Runs a command on a node.
fn ask<T: redis::FromRedisValue>(url: &str, words: &str) -> redis::RedisResult<T> {
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let mut command = redis::Cmd::new();
    words.split(' ').for_each(|word| {
        command.arg(word);
    });
    command.query(&mut connection)
}
