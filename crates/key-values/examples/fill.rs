//! Fills a local cluster of three masters with values like those of the benchmark for sequences,
//! then reads them, and prints rates, processor time and memory.
//!
//! `cargo run --release -p somafeed-key-values --example fill -- [VALUES] [BYTES] [PACKED]
//! [PIPELINE BYTES]`
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::time::Instant;

use key_values::local_cluster::{ClusterSpec, LocalCluster};
use key_values::{KeyValues, ServerSpec, balance};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// Positions in a round; each round is a fetch.
const FETCH: usize = 4096;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let numbers: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (n_sequences, n_bytes, n_packed) = (number(0, 130_946), number(1, 1040), number(2, 1));
    let data = letters(n_sequences * n_bytes);
    let cluster = LocalCluster::start(ClusterSpec::default())?;
    let mut spec = ServerSpec::new(cluster.urls(), "seq");
    spec.pipeline_bytes = number(3, spec.pipeline_bytes);
    let store = KeyValues::connect(&spec)?;
    let values: Vec<&[u8]> = data.chunks(n_bytes * n_packed).collect();
    for round in 0..3 {
        fill(&store, &cluster, &values)?;
        fetch(&store, &cluster, &values)?;
        let start = Instant::now();
        let missing = store.which_are_missing(0..values.len() as u64, &|| false)?;
        println!("   which are missing: {missing:?} in {:.3} s", start.elapsed().as_secs_f64());
        if round == 0 {
            memory(&store, &values)?;
        }
        let start = Instant::now();
        let n_removed = store.clear(&|| false)?;
        println!("   clear: {n_removed} in {:.3} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn letters(n_bytes: usize) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut data = vec![0; n_bytes];
    random.fill_bytes(&mut data);
    for byte in &mut data {
        *byte = b"ATCG"[usize::from(*byte & 3)];
    }
    data
}

fn fill(store: &KeyValues, cluster: &LocalCluster, values: &[&[u8]]) -> Outcome {
    let before = processor_seconds(cluster)?;
    let items = (0..).zip(values.iter().copied());
    let report = store.put_all(items, values.len() as u64, &|| false)?;
    println!(
        "fill: {:.0} MB/s ({:.3} s); processor {}",
        report.mb_per_sec(),
        report.duration.as_secs_f64(),
        difference(&before, &processor_seconds(cluster)?)
    );
    Ok(())
}

fn fetch(store: &KeyValues, cluster: &LocalCluster, values: &[&[u8]]) -> Outcome {
    let before = processor_seconds(cluster)?;
    let n_values = values.len() as u64;
    let (mut n_bytes, mut n_wrong) = (0, 0);
    let start = Instant::now();
    // An odd stride visits every number once if it shares no factor with their count.
    let stride =
        (1_000_003..1_001_003).find(|stride| common_factor(*stride, n_values) == 1).unwrap_or(1);
    let order: Vec<u64> = (0..n_values).map(|i| i * stride % n_values).collect();
    for keys in order.chunks(FETCH) {
        store.get_many(keys, &|| false, |at, value| {
            n_bytes += value.len();
            n_wrong += usize::from(value != values[keys[at] as usize]);
        })?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "fetch: {:.0} MB/s ({seconds:.3} s), {n_wrong} wrong; processor {}",
        n_bytes as f64 / 1e6 / seconds,
        difference(&before, &processor_seconds(cluster)?)
    );
    Ok(())
}

fn common_factor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_factor(other, one % other) }
}

fn memory(store: &KeyValues, values: &[&[u8]]) -> Outcome {
    let n_bytes: u64 = values.iter().map(|value| value.len() as u64).sum();
    let (stats, counts) = (store.stats()?, store.count(&|| false)?);
    for (node, count) in stats.iter().zip(&counts) {
        println!(
            "   {} {}: {} keys, {} bytes, {} used, {:.3} bytes per byte",
            node.address,
            node.version,
            node.n_keys,
            count.n_bytes,
            node.used_memory,
            node.bytes_per_byte(count.n_bytes).unwrap_or(0.0)
        );
    }
    let used: u64 = stats.iter().map(|node| node.used_memory).sum();
    let at_start: u64 = stats.iter().map(|node| node.memory_at_start).sum();
    let n_keys: Vec<u64> = stats.iter().map(|node| node.n_keys).collect();
    println!(
        "   all: {:.3} bytes per byte, {:.3} with the empty servers, balance {:.3}",
        (used - at_start) as f64 / n_bytes as f64,
        used as f64 / n_bytes as f64,
        balance(&n_keys).unwrap_or(0.0)
    );
    Ok(())
}

/// User and system time of this process and of the servers.
fn processor_seconds(cluster: &LocalCluster) -> Result<[f64; 4], Box<dyn std::error::Error>> {
    let ours = times("self")?;
    let mut theirs = [0.0; 2];
    for node in cluster.nodes()? {
        if let Some(pid) = node.pid {
            let one = times(&pid.to_string())?;
            theirs = [theirs[0] + one[0], theirs[1] + one[1]];
        }
    }
    Ok([ours[0], ours[1], theirs[0], theirs[1]])
}

/// User and system time of a process in seconds, in steps of 10 ms.
fn times(pid: &str) -> Result<[f64; 2], Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = text.rsplit_once(") ").ok_or("/proc has another form")?.1;
    let words: Vec<&str> = rest.split(' ').collect();
    Ok([words[11].parse::<f64>()? / 100.0, words[12].parse::<f64>()? / 100.0])
}

fn difference(before: &[f64; 4], after: &[f64; 4]) -> String {
    let spent: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    format!(
        "client {:.2} user {:.2} sys, servers {:.2} user {:.2} sys",
        spent[0], spent[1], spent[2], spent[3]
    )
}
