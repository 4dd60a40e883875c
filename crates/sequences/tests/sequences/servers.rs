//! Stores in servers.
//!
//! Without a server's program the tests report that nothing was tested, or fail if
//! `SOMAFEED_REQUIRE_REDIS` is set, which `cargo xtask test` does.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use key_values::local_cluster::{ClusterSpec, LocalCluster, Role, find_server};
use pipeline::{Epoch, Pipeline, PipelineSpec, Stop};
use sequences::key_values::ServerSpec;
use sequences::{
    Error, SequenceBatch, SequenceFiles, SequenceList, SequenceSamples, SequenceServers,
    SequenceSpec, SequenceStore as _,
};
use tempfile::TempDir;

use crate::bed::{random, store};

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

/// The cluster that several tests share, each with a namespace of its own.
fn shared() -> Option<&'static LocalCluster> {
    static SHARED: OnceLock<Option<LocalCluster>> = OnceLock::new();
    SHARED.get_or_init(|| start(ClusterSpec::default())).as_ref()
}

const N: usize = 2000;

fn sequences() -> Vec<Vec<u8>> {
    (0..N).map(|number| random(b"ACGT", (number * 37) % 200, number as u64)).collect()
}

fn files() -> (TempDir, Arc<SequenceFiles>) {
    store(&sequences())
}

fn fill(
    spec: &ServerSpec,
    source: &SequenceFiles,
    per_key: u64,
) -> Result<(SequenceServers, sequences::ServerFill), Error> {
    SequenceServers::fill(spec, source, per_key, &mut |_| {}, &Stop::default())
}

#[test]
fn servers_have_the_sequences_of_the_files() {
    let Some(cluster) = shared() else { return };
    let (_folder, files) = files();
    for per_key in [1, 7, 5000] {
        let spec = ServerSpec::new(cluster.urls(), format!("same-{per_key}"));
        let error = SequenceServers::open(&spec).unwrap_err();
        assert!(matches!(error, Error::NotAStore { .. }), "{error:?}");
        let (filled, fill) = fill(&spec, &files, per_key).unwrap();
        let n_values = (N as u64).div_ceil(per_key);
        assert_eq!((fill.n_found, fill.written[0].n_keys), (0, n_values));
        let opened = SequenceServers::open(&spec).unwrap();
        assert_eq!(opened.summary(), files.summary());
        for store in [filled, opened] {
            let (mut here, mut there) = (SequenceList::default(), SequenceList::default());
            let rows = [0..3, 5..6, 6..6, 13..200, 1990..2000];
            let stop = Stop::default();
            for with_names in [true, false] {
                files.read(&rows, with_names, &mut here, &stop).unwrap();
                store.read(&rows, with_names, &mut there, &stop).unwrap();
                assert_eq!(here, there);
                here.clear();
                there.clear();
            }
            let beyond = store.read(&[1999..2001], false, &mut there, &stop);
            assert!(matches!(beyond, Err(Error::Settings { .. })));
        }
    }
}

#[test]
fn a_second_fill_writes_what_is_missing() {
    let Some(cluster) = shared() else { return };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "again");
    let (store, _) = fill(&spec, &files, 4).unwrap();
    let (_, second) = fill(&spec, &files, 4).unwrap();
    assert_eq!((second.n_found, second.written.len()), (500, 0));
    // Now the fill looks as if it had ended early.
    store.values().put_manifest(&early(&store)).unwrap();
    let error = SequenceServers::open(&spec).unwrap_err().to_string();
    assert!(error.contains("not filled to its end"), "{error}");
    let ports: Vec<String> = cluster.urls();
    delete(&ports, &["again:17", "again:400"]);
    let (store, third) = fill(&spec, &files, 4).unwrap();
    assert_eq!((third.n_found, third.written[0].n_keys), (498, 2));
    let mut list = SequenceList::default();
    store.read(&[68..72], false, &mut list, &Stop::default()).unwrap();
    let expected = &sequences()[68..72];
    assert!(list.letters().eq(expected.iter().map(Vec::as_slice)));
    // A value that is gone is an error that names it.
    delete(&ports, &["again:17"]);
    let error = store.read(&[69..70], false, &mut list, &Stop::default()).unwrap_err();
    assert!(format!("{error}").contains("17"), "{error}");
}

/// Values that nothing describes may be of another store.
#[test]
fn values_without_a_description_are_not_trusted() {
    let Some(cluster) = shared() else { return };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "orphans");
    fill(&spec, &files, 4).unwrap();
    delete(&cluster.urls(), &["orphans:manifest"]);
    let error = fill(&spec, &files, 4).unwrap_err();
    assert!(matches!(error, Error::OtherData { .. }), "{error:?}");
    assert!(error.to_string().contains("no description"), "{error}");
}

/// A number of sequences that the servers do not have is an error, not an endless epoch.
#[test]
fn a_description_that_lies_is_damage() {
    let Some(cluster) = shared() else { return };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "lies");
    let (store, _) = fill(&spec, &files, 4).unwrap();
    let manifest = String::from_utf8(store.values().manifest().unwrap().unwrap()).unwrap();
    for n in ["2001", "1152921504606846976", "18446744073709551615"] {
        let lie = manifest.replace("\"n_sequences\":2000", &format!("\"n_sequences\":{n}"));
        assert_ne!(lie, manifest);
        store.values().put_manifest(lie.as_bytes()).unwrap();
        let error = SequenceServers::open(&spec).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{n}: {error:?}");
    }
}

/// Ranks that fill and open at the same time all find the store.
#[test]
fn fills_at_the_same_time_agree() {
    let Some(cluster) = shared() else { return };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "together");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                fill(&spec, &files, 3).unwrap();
                // The store is complete now, whatever the other fills still do.
                SequenceServers::open(&spec).unwrap();
            });
        }
    });
    let (_other_folder, other) = store(&["ACGT", "GGG"]);
    let spec = ServerSpec::new(cluster.urls(), "one-of-two");
    let filled = std::thread::scope(|scope| {
        let fills = [&files, &other].map(|source| scope.spawn(|| fill(&spec, source, 3)));
        fills.map(|fill| fill.join().unwrap())
    });
    let (won, lost): (Vec<_>, Vec<_>) = filled.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    assert!(lost.iter().all(|lost| matches!(lost, Err(Error::OtherData { .. }))), "{lost:?}");
    let store = SequenceServers::open(&spec).unwrap();
    let mut list = SequenceList::default();
    let n = store.summary().n_sequences;
    store.read(&[0..n], false, &mut list, &Stop::default()).unwrap();
    assert_eq!(list.len() as u64, n);
}

/// The manifest of a store that is not complete.
fn early(store: &SequenceServers) -> Vec<u8> {
    let manifest = store.values().manifest().unwrap().unwrap();
    let text = String::from_utf8(manifest).unwrap();
    assert!(text.contains("\"is_complete\":true"), "{text}");
    text.replace("\"is_complete\":true", "\"is_complete\":false").into_bytes()
}

/// Removes keys, wherever they are.
fn delete(urls: &[String], keys: &[&str]) {
    for key in keys {
        let deleted = urls.iter().any(|url| {
            let client = redis::Client::open(url.as_str()).unwrap();
            let mut connection = client.get_connection().unwrap();
            redis::cmd("DEL").arg(key).query::<u64>(&mut connection) == Ok(1)
        });
        assert!(deleted, "{key}");
    }
}

#[test]
fn other_data_are_not_replaced() {
    let Some(cluster) = shared() else { return };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "mine");
    fill(&spec, &files, 4).unwrap();
    let error = fill(&spec, &files, 5).unwrap_err().to_string();
    assert!(error.contains("4 sequences in a value, not 5"), "{error}");
    let (_other_folder, other) = store(&["ACGT", "GGG"]);
    let error = fill(&spec, &other, 4).unwrap_err();
    assert!(matches!(error, Error::OtherData { .. }), "{error:?}");
    assert!(error.to_string().contains("2000 other sequences"), "{error}");
    SequenceServers::open(&spec).unwrap();
}

fn pipeline(store: SequenceServers) -> Pipeline<SequenceSamples> {
    let spec = SequenceSpec { letters: true, ..SequenceSpec::default() };
    let samples = SequenceSamples::new(Arc::new(store), spec).unwrap();
    let sizes = PipelineSpec { chunk_rows: 8, chunks_per_block: 8, ..PipelineSpec::default() };
    let spec = PipelineSpec { batch_rows: 32, read_threads: 2, prefetch_blocks: 2, ..sizes };
    Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences).unwrap()
}

/// Takes an epoch's batches, calling `between` after each with its number, and checks that each
/// sequence came once.
fn each_once(epoch: Epoch<SequenceSamples>, mut between: impl FnMut(usize)) {
    let sequences = sequences();
    let mut seen = vec![0; N];
    for (number, batch) in epoch.enumerate() {
        let batch = batch.unwrap();
        for (idx, row) in batch.rows().iter().enumerate() {
            seen[*row as usize] += 1;
            assert_eq!(batch.letters(idx), Some(&sequences[*row as usize][..]));
        }
        between(number);
    }
    assert_eq!(seen, [1; N]);
}

#[test]
fn an_epoch_goes_on_while_slots_move() {
    let Some(mut cluster) = start(ClusterSpec { n_masters: 2, ..ClusterSpec::default() }) else {
        return;
    };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "moving");
    let pipeline = pipeline(fill(&spec, &files, 2).unwrap().0);
    let added = cluster.add_master().unwrap();
    each_once(pipeline.epoch(0).unwrap(), |number| {
        if number.is_multiple_of(8) {
            let slots = number as u16 * 20..number as u16 * 20 + 100;
            cluster.move_slots(slots, 0, added).unwrap();
        }
    });
    each_once(pipeline.epoch(1).unwrap(), |_| {});
}

#[test]
fn an_epoch_goes_on_when_a_replica_takes_over() {
    let spec = ClusterSpec {
        n_replicas_per_master: 1,
        node_timeout: Duration::from_secs(1),
        ..ClusterSpec::default()
    };
    let Some(mut cluster) = start(spec) else { return };
    let (_folder, files) = files();
    let spec = ServerSpec::new(cluster.urls(), "replaced");
    let pipeline = pipeline(fill(&spec, &files, 2).unwrap().0);
    let masters: Vec<usize> = cluster
        .nodes()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, node)| node.role == Role::Master)
        .map(|(at, _)| at)
        .collect();
    each_once(pipeline.epoch(0).unwrap(), |number| match number {
        5 => {
            cluster.failover(masters[0]).unwrap();
        }
        // A master dies without a word.
        20 => cluster.kill(masters[1]).unwrap(),
        _ => {}
    });
}

#[test]
fn a_node_that_dies_for_good_ends_the_epoch_with_an_error() {
    let Some(mut cluster) = start(ClusterSpec { n_masters: 2, ..ClusterSpec::default() }) else {
        return;
    };
    let (_folder, files) = files();
    let retry_for = Duration::from_secs(2);
    let spec = ServerSpec { retry_for, ..ServerSpec::new(cluster.urls(), "dying") };
    let pipeline = pipeline(fill(&spec, &files, 2).unwrap().0);
    let mut epoch = pipeline.epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    cluster.kill(1).unwrap();
    let error = epoch.find_map(Result::err).unwrap();
    assert!(matches!(error, Error::Servers(_)), "{error:?}");
    assert!(error.to_string().contains("dying:"), "names the key: {error}");
    assert!(epoch.next().is_none());
}
