//! What is written is read, and nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use key_values::{Error, KeyValues, ServerSpec, balance};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{ask, check, connect, fill, shared, value};

fn nothing_stops() -> bool {
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_is_read_is_what_was_written(
        fills in vec(vec((0..200_u64, vec(any::<u8>(), 0..300)), 0..150), 1..4),
        pipeline_bytes in 1..20_000_usize,
        pipeline_keys in 1..100_usize,
    ) {
        static CASES: AtomicU64 = AtomicU64::new(0);
        let Some(cluster) = shared() else { return Ok(()) };
        let name = format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed));
        let mut spec = ServerSpec::new(cluster.urls(), name);
        (spec.pipeline_bytes, spec.pipeline_keys) = (pipeline_bytes, pipeline_keys);
        let store = KeyValues::connect(&spec).unwrap();
        let mut oracle = HashMap::new();
        for items in fills {
            // The numbers of one fill differ.
            let items: HashMap<u64, Vec<u8>> = items.into_iter().collect();
            let report = store
                .put_all(items.iter().map(|(key, value)| (*key, value)), 0, &nothing_stops)
                .unwrap();
            prop_assert_eq!(report.n_keys, items.len() as u64);
            prop_assert!(!report.masters_changed);
            oracle.extend(items);
        }
        let keys: Vec<u64> = oracle.keys().copied().collect();
        let mut found = HashMap::new();
        store.get_many(&keys, &nothing_stops, |at, value| {
            found.insert(keys[at], value.to_vec());
        }).unwrap();
        prop_assert_eq!(&found, &oracle);
        let missing = store.which_are_missing(0..200, &nothing_stops).unwrap();
        let missing: Vec<u64> = missing.into_iter().flatten().collect();
        let expect: Vec<u64> = (0..200).filter(|key| !oracle.contains_key(key)).collect();
        prop_assert_eq!(missing, expect);
        let counts = store.count(&nothing_stops).unwrap();
        prop_assert_eq!(counts.iter().map(|node| node.n_keys).sum::<u64>(), oracle.len() as u64);
        let n_bytes: usize = oracle.values().map(Vec::len).sum();
        prop_assert_eq!(counts.iter().map(|node| node.n_bytes).sum::<u64>(), n_bytes as u64);
        prop_assert_eq!(store.clear(&nothing_stops).unwrap(), oracle.len() as u64);
    }
}

#[test]
fn namespaces_do_not_see_each_other() {
    let Some(cluster) = shared() else { return };
    // One name is the beginning of the other.
    let (one, other) = (connect(cluster, "name"), connect(cluster, "name-2"));
    fill(&one, 300);
    assert!(one.put_new_manifest(b"one").unwrap());
    assert!(!one.put_new_manifest(b"another").unwrap());
    assert_eq!(one.manifest().unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(other.manifest().unwrap(), None);
    assert_eq!(other.which_are_missing(0..300, &|| false).unwrap(), [0..300]);
    let items = [(7_u64, "seven")];
    other.put_all(items, 1, &|| false).unwrap();
    check(&one, &[7, 8]).unwrap();
    assert_eq!(one.clear(&|| false).unwrap(), 301);
    assert_eq!(one.manifest().unwrap(), None);
    let mut seen = Vec::new();
    other.get_many(&[7], &|| false, |_, value| seen.push(value.to_vec())).unwrap();
    assert_eq!(seen, [b"seven"]);
    assert_eq!(other.clear(&|| false).unwrap(), 1);
}

#[test]
fn a_missing_value_is_named() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "missing");
    fill(&store, 50);
    let error = check(&store, &[3, 50, 4]).unwrap_err();
    assert!(matches!(&error, Error::MissingValue { key: 50, .. }), "{error:?}");
    assert!(error.to_string().contains("value 50") && error.to_string().contains("`missing`"));
    // The connections of the failed call are not used again.
    check(&store, &[3, 4]).unwrap();
    store.get_many(&[], &|| false, |_, _| panic!("no value was asked for")).unwrap();
}

#[test]
fn a_second_fill_writes_only_what_is_missing() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "second");
    let present = [0..400, 401..700, 900..1000];
    for range in present {
        let n_values = range.end - range.start;
        store.put_all(range.map(|i| (i, value(i))), n_values, &|| false).unwrap();
    }
    let store = connect(cluster, "second");
    let missing = store.which_are_missing(0..1000, &|| false).unwrap();
    assert_eq!(missing, [400..401, 700..900]);
    let items = missing.into_iter().flatten().map(|i| (i, value(i)));
    assert_eq!(store.put_all(items, 201, &|| false).unwrap().n_keys, 201);
    assert_eq!(store.which_are_missing(0..1000, &|| false).unwrap(), []);
    check(&store, &(0..1000).rev().collect::<Vec<_>>()).unwrap();
}

#[test]
fn manifests_are_replaced_and_of_any_length() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "manifest");
    assert_eq!(store.manifest().unwrap(), None);
    for manifest in [&b"{}"[..], &vec![0; 100_000], b"", b"\r\n"] {
        store.put_manifest(manifest).unwrap();
        assert_eq!(store.manifest().unwrap().as_deref(), Some(manifest));
    }
}

#[test]
fn statistics_are_those_of_the_nodes() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "stats");
    fill(&store, 2000);
    let (stats, nodes) = (store.stats().unwrap(), cluster.nodes().unwrap());
    assert!(store.is_cluster() && stats.len() == 3);
    for node in &nodes {
        let stats = stats.iter().find(|one| one.id == node.id).unwrap();
        assert_eq!((stats.address.port, stats.n_slots), (node.port, usize::from(node.n_slots)));
        assert!(0 < stats.memory_at_start && stats.memory_at_start < stats.used_memory);
        assert!(stats.max_memory.is_none() && stats.version.contains('.'), "{stats:?}");
    }
    let counts: Vec<u64> = store.count(&|| false).unwrap().iter().map(|node| node.n_keys).collect();
    assert_eq!(counts.iter().sum::<u64>(), 2000);
    assert!(balance(&counts).unwrap() < 1.2, "{counts:?}");
}

#[test]
fn keys_are_where_the_server_says() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "slots");
    fill(&store, 20);
    let urls = cluster.urls();
    for number in 0..20 {
        // The server itself finds the key's owner.
        let slot: usize = ask(&urls[0], &format!("CLUSTER KEYSLOT slots:{number}"));
        let owner = slot * 3 / 16_384;
        let length: usize = ask(&urls[owner], &format!("STRLEN slots:{number}"));
        assert_eq!(length, value(number).len());
    }
}

#[test]
fn threads_share_a_store() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "threads");
    fill(&store, 1000);
    std::thread::scope(|scope| {
        for start in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let keys: Vec<u64> = (start * 200..start * 200 + 400).collect();
                (0..5).for_each(|_| check(store, &keys).unwrap());
            });
        }
    });
}

#[test]
fn a_caller_can_stop() {
    let Some(cluster) = shared() else { return };
    let store = connect(cluster, "stop");
    fill(&store, 10);
    let keys: Vec<u64> = (0..10).collect();
    let stopped = store.get_many(&keys, &|| true, |_, _| panic!("nothing is delivered"));
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    let endless = (1000..).map(|i: u64| (i, vec![0; 1000]));
    let stopped = store.put_all(endless, u64::MAX, &|| true);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    check(&store, &keys).unwrap_or_else(|error| panic!("{error}"));
}
