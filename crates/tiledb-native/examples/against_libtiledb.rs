//! Compares both readers on one array, values and speed:
//! `against_libtiledb <array folder> [threads] [repetitions]`.
//!
//! A fixed generator draws the rows. Each pattern is read by one reader, then by the other,
//! repeatedly; the first pair is a warm-up. libtiledb returns coordinates (COO), which is less work
//! than the CSR of this crate.
#![expect(clippy::print_stdout, reason = "it is a program that reports")]

use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::time::Instant;

use tiledb::{Config, Context, Layout, ReadQuery};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions};

/// libtiledb's buffer for each of the three columns, in bytes.
const BUFFER_BYTES: usize = 256 << 20;

fn chunks(n_rows: u64, chunk_rows: u64, n: usize, seed: &mut u64) -> Vec<Range<u64>> {
    let mut starts: Vec<u64> = (0..n_rows / chunk_rows).collect();
    for idx in 0..n.min(starts.len()) {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = idx + (*seed >> 33) as usize % (starts.len() - idx);
        starts.swap(idx, other);
    }
    let mut starts: Vec<u64> = starts.into_iter().take(n).collect();
    starts.sort_unstable();
    starts.into_iter().map(|start| start * chunk_rows..(start + 1) * chunk_rows).collect()
}

/// Processor seconds that the process has used.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    fields.get(10..12).map_or(0.0, |both| both.iter().sum::<f64>() / 100.0)
}

/// Reads `rows` with libtiledb, and compares each cell with `csr` if given; returns the number of
/// cells.
fn libtiledb(
    array: &tiledb::Array,
    rows: &[Range<u64>],
    csr: Option<&CsrBuffers>,
) -> Result<usize, Box<dyn Error>> {
    let ranges: Vec<(i64, i64)> =
        rows.iter().map(|range| (range.start as i64, range.end as i64 - 1)).collect();
    let mut query = ReadQuery::new(
        array,
        Layout::Unordered,
        &[&ranges],
        &["soma_dim_0", "soma_dim_1", "soma_data"],
        BUFFER_BYTES,
    )?;
    let mut place = HashMap::new();
    let mut n_before = 0;
    for range in rows {
        place.insert(range.start, n_before);
        n_before += range.end - range.start;
    }
    let mut n_cells = 0;
    while let Some(piece) = query.next_piece()? {
        n_cells += piece.n_cells();
        let Some(csr) = csr else { continue };
        let (of_rows, columns) =
            (piece.column(0).values::<i64>()?, piece.column(1).values::<i64>()?);
        let values = piece.column(2).values::<f32>()?;
        for ((&row, &column), &value) in of_rows.iter().zip(columns).zip(values) {
            let range = rows.partition_point(|range| range.end <= row as u64);
            let start = rows[range].start;
            let (columns, found) = csr.row((place[&start] + row as u64 - start) as usize);
            let at = columns.partition_point(|&one| i64::from(one) < column);
            if columns.get(at).copied().map(i64::from) != Some(column)
                || found[at].to_bits() != value.to_bits()
            {
                return Err(format!("cell {row}, {column} differs").into());
            }
        }
    }
    Ok(n_cells)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_default();
    let mut number =
        |default: usize| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (n_threads, n_repetitions) = (number(2), number(3));
    let levels = ["sm.compute_concurrency_level", "sm.io_concurrency_level"];
    let config: Config =
        levels.iter().map(|level| ((*level).to_owned(), n_threads.to_string())).collect();
    let context = Context::new(&config)?;
    let theirs = tiledb::Array::open(&context, &folder, None)?;
    let ours = Array::open_local(&folder, &OpenOptions::new(n_threads))?;
    let mut out = CsrBuffers::new();
    let mut seed = 42;
    let patterns: [(&str, u64, usize); 5] = [
        ("16 chunks of 64", 64, 16),
        ("256 chunks of 64", 64, 256),
        ("1024 chunks of 64", 64, 1024),
        ("1024 rows", 1, 1024),
        ("whole", ours.n_rows(), 1),
    ];
    for (name, chunk_rows, n) in patterns {
        let (mut wall, mut cpu) = ([0.0, 0.0], [0.0, 0.0]);
        let mut n_rows = 0;
        for repetition in 0..=n_repetitions {
            let rows = chunks(ours.n_rows(), chunk_rows, n, &mut seed);
            let before = (Instant::now(), cpu_secs());
            ours.read_csr(&rows, &ColumnSelection::All, &mut out)?;
            let between = (Instant::now(), cpu_secs());
            let n_cells = libtiledb(&theirs, &rows, None)?;
            let after = (Instant::now(), cpu_secs());
            if n_cells != out.nnz() {
                return Err(format!("{n_cells} cells there, {} here", out.nnz()).into());
            }
            if repetition == 0 {
                libtiledb(&theirs, &rows, Some(&out))?;
                continue;
            }
            n_rows += out.n_rows();
            wall[0] += (between.0 - before.0).as_secs_f64();
            wall[1] += (after.0 - between.0).as_secs_f64();
            cpu[0] += between.1 - before.1;
            cpu[1] += after.1 - between.1;
        }
        let rate = |secs: f64| n_rows as f64 / secs.max(1e-9);
        println!(
            "{name:18} here {:8.0} rows/s, libtiledb {:8.0}: {:5.1} x; by processor time {:8.0} and {:8.0}: {:5.1} x",
            rate(wall[0]),
            rate(wall[1]),
            wall[1] / wall[0],
            rate(cpu[0]),
            rate(cpu[1]),
            cpu[1] / cpu[0].max(0.01)
        );
    }
    Ok(())
}
