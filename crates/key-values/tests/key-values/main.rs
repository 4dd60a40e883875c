//! The store over real servers.
//!
//! Without a server's program the tests report that nothing was tested, or fail if
//! `SOMAFEED_REQUIRE_REDIS` is set, which `cargo xtask test` does.
#![expect(clippy::unwrap_used, reason = "a failing test panics where it fails")]

mod changing;
mod limits;
mod local_cluster;
mod login;
mod store;
mod tls;

use std::sync::OnceLock;

use key_values::local_cluster::{ClusterSpec, LocalCluster, find_server};
use key_values::{KeyValues, ServerSpec};

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

/// A server that is not in a cluster, which starts sooner.
fn single() -> ClusterSpec {
    ClusterSpec { n_masters: 1, is_cluster: false, ..ClusterSpec::default() }
}

/// The cluster of three masters that several tests share, each with a namespace of its own. It ends
/// with the process.
fn shared() -> Option<&'static LocalCluster> {
    static SHARED: OnceLock<Option<LocalCluster>> = OnceLock::new();
    SHARED.get_or_init(|| start(ClusterSpec::default())).as_ref()
}

fn connect(cluster: &LocalCluster, namespace: &str) -> KeyValues {
    KeyValues::connect(&ServerSpec::new(cluster.urls(), namespace)).unwrap()
}

/// Value `number`: bytes that another value does not have, of several lengths.
fn value(number: u64) -> Vec<u8> {
    let len = 1 + (number * 37 % 1500) as usize;
    (0..len).map(|at| (number.wrapping_mul(131) >> (at % 8)) as u8 ^ at as u8).collect()
}

fn fill(store: &KeyValues, n_values: u64) {
    let report = store.put_all((0..n_values).map(|i| (i, value(i))), n_values, &|| false).unwrap();
    assert_eq!(report.n_keys, n_values);
    let n_bytes: usize = (0..n_values).map(|number| value(number).len()).sum();
    assert_eq!(report.n_bytes, n_bytes as u64);
    assert_eq!(report.nodes.iter().map(|node| node.n_keys).sum::<u64>(), n_values);
}

/// Reads these values and checks each.
fn check(store: &KeyValues, keys: &[u64]) -> Result<(), key_values::Error> {
    let mut n_times = vec![0; keys.len()];
    store.get_many(keys, &|| false, |at, found| {
        n_times[at] += 1;
        assert_eq!(found, value(keys[at]), "value {}", keys[at]);
    })?;
    assert!(n_times.iter().all(|n| *n == 1), "each value comes once");
    Ok(())
}

/// Runs a command on a server.
fn ask<T: redis::FromRedisValue>(url: &str, words: &str) -> T {
    try_ask(url, words).unwrap()
}

fn try_ask<T: redis::FromRedisValue>(url: &str, words: &str) -> redis::RedisResult<T> {
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let mut command = redis::Cmd::new();
    words.split(' ').for_each(|word| {
        command.arg(word);
    });
    command.query(&mut connection)
}
