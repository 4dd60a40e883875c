//! The cluster changes while it is used.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use key_values::local_cluster::{ClusterSpec, N_SLOTS, Role};
use key_values::{Error, KeyValues, ServerSpec};

use crate::{ask, check, connect, fill, single, start, value};

const N_VALUES: u64 = 6000;

/// Reads all values over and over, from two threads, until `change` has returned and each has read
/// them once more. Every value must be right.
fn read_during<T>(store: &KeyValues, change: impl FnOnce() -> T) -> T {
    let (is_over, n_rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let keys: Vec<u64> = (0..N_VALUES).collect();
    std::thread::scope(|scope| {
        let readers = [&keys[..], &keys[..keys.len() / 3]].map(|keys| {
            let (is_over, n_rounds) = (&is_over, &n_rounds);
            scope.spawn(move || {
                loop {
                    let is_last = is_over.load(Ordering::Relaxed);
                    check(store, keys).unwrap();
                    n_rounds.fetch_add(1, Ordering::Relaxed);
                    if is_last {
                        break;
                    }
                }
            })
        });
        while n_rounds.load(Ordering::Relaxed) < 2
            && !readers.iter().any(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::yield_now();
        }
        let changed = change();
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
        changed
    })
}

#[test]
fn slots_move_while_values_are_read_and_written() {
    let Some(mut cluster) = start(ClusterSpec { n_masters: 2, ..ClusterSpec::default() }) else {
        return;
    };
    let store = connect(&cluster, "moving");
    fill(&store, N_VALUES);
    let added = cluster.add_master().unwrap();
    // To a node that the store does not know yet, and between two that it knows.
    read_during(&store, || {
        cluster.move_slots(0..60, 0, added).unwrap();
        cluster.move_slots(60..100, 0, 1).unwrap();
    });
    assert_eq!(store.stats().unwrap().len(), 3);
    let fills_report = std::thread::scope(|scope| {
        let mover = scope.spawn(|| cluster.move_slots(100..200, 0, added).unwrap());
        let filler = connect(&cluster, "filling");
        let mut reports = Vec::new();
        while reports.is_empty() || !mover.is_finished() {
            let items = (0..N_VALUES).map(|i| (i, value(i)));
            reports.push(filler.put_all(items, N_VALUES, &|| false).unwrap());
            check(&filler, &(0..N_VALUES).collect::<Vec<_>>()).unwrap();
        }
        reports
    });
    assert!(fills_report.iter().all(|report| report.n_keys == N_VALUES));
    let filler = connect(&cluster, "filling");
    assert_eq!(filler.which_are_missing(0..N_VALUES, &|| false).unwrap(), []);
    assert_eq!(filler.clear(&|| false).unwrap(), N_VALUES);
    check(&store, &(0..N_VALUES).collect::<Vec<_>>()).unwrap();
}

#[test]
fn a_slot_that_is_half_moved_is_read_and_written() {
    let Some(cluster) = start(ClusterSpec { n_masters: 2, ..ClusterSpec::default() }) else {
        return;
    };
    let (store, urls, nodes) =
        (connect(&cluster, "half"), cluster.urls(), cluster.nodes().unwrap());
    fill(&store, 50);
    let slot: u16 = ask(&urls[0], "CLUSTER KEYSLOT half:7");
    let (from, to) = if slot < N_SLOTS / 2 { (0, 1) } else { (1, 0) };
    let set_slot = |node: usize, state: &str, other: usize| {
        ask::<()>(&urls[node], &format!("CLUSTER SETSLOT {slot} {state} {}", nodes[other].id));
    };
    set_slot(to, "IMPORTING", from);
    set_slot(from, "MIGRATING", to);
    // The value is there still, then it has moved before its slot.
    check(&store, &[7]).unwrap();
    ask::<()>(&urls[from], &format!("MIGRATE 127.0.0.1 {} half:7 0 5000", nodes[to].port));
    check(&store, &(0..50).collect::<Vec<_>>()).unwrap();
    assert_eq!(store.which_are_missing(0..50, &|| false).unwrap(), []);
    store.put_all([(7_u64, "another")], 1, &|| false).unwrap();
    let mut found = Vec::new();
    store.get_many(&[7], &|| false, |_, value| found = value.to_vec()).unwrap();
    assert_eq!(found, b"another");
    let counts = store.count(&|| false).unwrap();
    assert_eq!(counts.iter().map(|node| node.n_keys).sum::<u64>(), 50);
    set_slot(to, "NODE", to);
    set_slot(from, "NODE", to);
    store.put_all([(7_u64, value(7))], 1, &|| false).unwrap();
    check(&store, &(0..50).collect::<Vec<_>>()).unwrap();
    assert_eq!(store.clear(&|| false).unwrap(), 50);
}

#[test]
fn replicas_take_over_and_without_one_there_is_an_error_in_time() {
    let spec = ClusterSpec {
        n_masters: 3,
        n_replicas_per_master: 1,
        node_timeout: Duration::from_secs(1),
        ..ClusterSpec::default()
    };
    let Some(mut cluster) = start(spec) else { return };
    let mut spec = ServerSpec::new(cluster.urls(), "failing");
    spec.retry_for = Duration::from_secs(30);
    let store = KeyValues::connect(&spec).unwrap();
    // Nodes hear from each other once a second how far a replica is, and list it then.
    let start = Instant::now();
    while !store.stats().unwrap().iter().all(|node| node.replicas.len() == 1) {
        assert!(start.elapsed() < Duration::from_mins(1), "replicas are not listed");
        store.put_manifest(b"a write gives replicas something to be listed for").unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let store = KeyValues::connect(&spec).unwrap();
    let items = (0..N_VALUES).map(|i| (i, value(i)));
    let report = store.put_all(items, N_VALUES, &|| false).unwrap();
    assert_eq!((report.masters_changed, report.n_replicas_behind), (false, 0));

    // A master hands over; another one dies, and the cluster finds out by itself.
    read_during(&store, || {
        assert_eq!(cluster.failover(0).unwrap(), 3);
        cluster.wait_until_ok().unwrap();
    });
    read_during(&store, || {
        cluster.kill(1).unwrap();
        let start = Instant::now();
        while cluster.nodes().unwrap()[4].role != Role::Master {
            assert!(start.elapsed() < Duration::from_mins(1), "nobody took over");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let items = (0..N_VALUES).map(|i| (i, value(i)));
    assert_eq!(store.put_all(items, N_VALUES, &|| false).unwrap().n_keys, N_VALUES);

    // The last one that has these slots dies.
    let port = cluster.nodes().unwrap()[4].port;
    cluster.kill(4).unwrap();
    spec.retry_for = Duration::from_secs(1);
    spec.urls = cluster.urls();
    let store = KeyValues::connect(&spec).unwrap();
    let start = Instant::now();
    let error = check(&store, &(0..N_VALUES).collect::<Vec<_>>()).unwrap_err();
    assert!(start.elapsed() < Duration::from_mins(1));
    assert!(matches!(error, Error::GaveUp { .. }), "{error:?}");
    assert!(error.to_string().starts_with("failing:"), "{error}");
    let (node, state) = (format!("127.0.0.1:{port}"), "CLUSTERDOWN");
    assert!(error.to_string().contains(&node) || error.to_string().contains(state), "{error}");
    let items = (0..N_VALUES).map(|i| (i, value(i)));
    let error = store.put_all(items, N_VALUES, &|| false).unwrap_err();
    assert!(matches!(error, Error::GaveUp { .. } | Error::Connect { .. }), "{error:?}");
}

#[test]
fn a_server_that_does_not_answer_is_given_up_in_time() {
    let Some(cluster) = start(single()) else { return };
    let mut spec = ServerSpec::new(cluster.urls(), "stopped");
    spec.connect_timeout = Duration::from_millis(500);
    spec.response_timeout = Duration::from_millis(500);
    spec.retry_for = Duration::from_secs(1);
    let store = KeyValues::connect(&spec).unwrap();
    fill(&store, 100);
    let pid = cluster.nodes().unwrap()[0].pid.unwrap().to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    let error = check(&store, &[5]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::GaveUp { .. }), "{error:?}");
    assert!(text.contains("stopped:5") && text.contains("no answer in time"), "{text}");
    let error = KeyValues::connect(&spec).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    signal("-CONT");
    check(&store, &(0..100).collect::<Vec<_>>()).unwrap();
}
