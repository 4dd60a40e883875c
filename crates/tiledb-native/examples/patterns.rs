//! Measures how fast an array is read in the patterns of loaders:
//! `patterns <array folder> [threads] [repetitions] [pattern]`.
//!
//! First the whole array is read once, so that row indices, the places of chunks and the system's
//! page cache are warm for all patterns; the time for that is printed, too. A fixed generator draws
//! the rows, so that runs are comparable. The first read of a pattern fills the buffers and is not
//! counted; each figure is the median.
#![expect(clippy::print_stdout, reason = "it is a program that reports")]

use std::ops::Range;
use std::time::Instant;

use tiledb_native::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions};

/// Rows per read of the warm-up.
const WARM_UP_ROWS: u64 = 8192;

/// Distinct starts of `n` chunks of `chunk_rows` rows, aligned, in random order.
fn chunks(n_rows: u64, chunk_rows: u64, n: usize, seed: &mut u64) -> Vec<Range<u64>> {
    let n_chunks = n_rows / chunk_rows;
    let mut starts: Vec<u64> = (0..n_chunks).collect();
    for idx in 0..n.min(starts.len()) {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = idx + (*seed >> 33) as usize % (starts.len() - idx);
        starts.swap(idx, other);
    }
    starts.into_iter().take(n).map(|start| start * chunk_rows..(start + 1) * chunk_rows).collect()
}

/// Processor seconds that the process has used, in user mode and in total.
fn cpu_secs() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    // After the name the state, which is not a number, then the file's fourth and later fields;
    // times are in hundredths of a second.
    let at = |idx: usize| fields.get(idx).copied().unwrap_or(0.0) / 100.0;
    (at(10), at(10) + at(11))
}

/// Reads all rows once; returns the seconds.
fn warm_up(array: &Array, out: &mut CsrBuffers) -> Result<f64, Error> {
    let started = Instant::now();
    let mut start = 0;
    while start < array.n_rows() {
        let end = array.n_rows().min(start + WARM_UP_ROWS);
        array.read_csr(&[start..end], &ColumnSelection::All, out)?;
        start = end;
    }
    Ok(started.elapsed().as_secs_f64())
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_default();
    let mut number =
        |default: usize| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (n_threads, n_repetitions) = (number(2), number(5));
    let only = arguments.next();
    let opened = Instant::now();
    let array = Array::open_local(&folder, &OpenOptions::new(n_threads))?;
    let opened = opened.elapsed().as_secs_f64();
    let mut out = CsrBuffers::new();
    let warmed_up = warm_up(&array, &mut out)?;
    println!(
        "{} x {}, {} cells, opened in {opened:.3} s, read once in {warmed_up:.1} s",
        array.n_rows(),
        array.n_columns(),
        array.n_cells(),
    );
    let n_rows = array.n_rows();
    let patterns: [(&str, u64, usize); 5] = [
        ("16 chunks of 64", 64, 16),
        ("256 chunks of 64", 64, 256),
        ("1024 chunks of 64", 64, 1024),
        ("1024 rows", 1, 1024),
        ("whole", n_rows, 1),
    ];
    let mut seed = 42;
    for (name, chunk_rows, n) in patterns {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut rates = Vec::new();
        let mut last = None;
        let mut used = (0.0, 0.0, 0.0);
        for _ in 0..=n_repetitions {
            let rows = chunks(n_rows, chunk_rows, n, &mut seed);
            let before = cpu_secs();
            let started = Instant::now();
            let stats = array.read_csr(&rows, &ColumnSelection::All, &mut out)?;
            let secs = started.elapsed().as_secs_f64();
            rates.push((out.n_rows() as f64 / secs, stats.values as f64 / secs / 1e6));
            if last.is_some() {
                let after = cpu_secs();
                used = (
                    used.0 + after.0 - before.0,
                    used.1 + after.1 - before.1,
                    used.2 + out.n_rows() as f64,
                );
            }
            last = Some(stats);
        }
        let first = rates.remove(0).0;
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (rows, nnz) = rates[rates.len() / 2];
        if let Some(stats) = last {
            println!(
                "{name:18} {rows:9.0} rows/s {nnz:6.1} M nnz/s, first {first:9.0}; {:9.0} rows a processor second, system {:.0} %; decoded {:.2} x, {:.2} bytes/nnz, indices {:.1} MB",
                used.2 / used.1.max(1e-9),
                100.0 * (used.1 - used.0) / used.1.max(1e-9),
                stats.values_decoded.unwrap_or(0) as f64 / stats.values.max(1) as f64,
                stats.bytes_read.unwrap_or(0) as f64 / stats.values.max(1) as f64,
                array.index_bytes() as f64 / 1e6
            );
        }
    }
    Ok(())
}
