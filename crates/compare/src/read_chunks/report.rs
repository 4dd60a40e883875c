//! Output of `read-chunks`: a table of medians, or a line of JSON per run.

use std::collections::BTreeMap;

use bench_report::Spread;
use bench_run::{TableStyle, grouped, print_line, text_table};
use serde::Serialize;

use super::reads::ChunksRead;
use super::rounds::Run;
use super::way::Way;

/// Data, order and chunks that all runs share.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Described {
    pub(crate) uri: String,
    pub(crate) shuffle: &'static str,
    pub(crate) seed: u64,
    pub(crate) chunk_rows: u64,
    pub(crate) n_genes: u64,
    pub(crate) n_cells: u64,
    pub(crate) cache: &'static str,
}

/// A run as JSON. Seconds and bytes.
#[derive(Serialize)]
struct Line<'a> {
    way: Way,
    repetition: u64,
    #[serde(flatten)]
    described: &'a Described,
    n_values: u64,
    sum: f64,
    checksum: u64,
    secs: f64,
    cells_per_sec: f64,
    values_per_sec: f64,
    cpu_secs: f64,
    open_secs: f64,
    max_mem: u64,
    start_mem_bytes: u64,
    versions: &'a BTreeMap<String, String>,
}

pub(crate) fn print_json(described: &Described, runs: &[Run]) -> anyhow::Result<()> {
    for run in runs {
        print_line!("{}", json(described, run)?);
    }
    Ok(())
}

fn json(described: &Described, run: &Run) -> anyhow::Result<String> {
    let read = &run.read;
    Ok(serde_json::to_string(&Line {
        way: run.way,
        repetition: run.repetition,
        described,
        n_values: read.tally.n_values,
        sum: read.tally.sum(),
        checksum: read.tally.checksum,
        secs: read.read_secs,
        cells_per_sec: read.n_cells as f64 / read.read_secs,
        values_per_sec: read.tally.n_values as f64 / read.read_secs,
        cpu_secs: read.cpu_secs,
        open_secs: read.open_secs,
        max_mem: read.max_mem,
        start_mem_bytes: read.start_mem_bytes,
        versions: &read.versions,
    })?)
}

const HEADER: [&str; 7] =
    ["way", "seconds", "cells/s", "million values/s", "CPU s", "peak MB", "MB before reading"];

/// Formats a table with a row per way, and below it the data that all have read.
pub(crate) fn table(described: &Described, ways: &[Way], runs: &[Run]) -> String {
    let rows = ways.iter().map(|way| {
        let of_way: Vec<&ChunksRead> =
            runs.iter().filter(|run| run.way == *way).map(|run| &run.read).collect();
        row(*way, described.n_cells, &of_way)
    });
    let mut text = text_table(TableStyle::Markdown, &HEADER, &HEADER[..1], rows);
    if let Some(first) = runs.first() {
        let tally = &first.read.tally;
        let summary = format!(
            "\nAll read the same: {} values that add up to {} (checksum {:016x}).\n{LEGEND}",
            grouped(tally.n_values),
            tally.sum(),
            tally.checksum
        );
        text.push_str(&summary);
        text.push_str(&format_versions(ways, runs));
    }
    text
}

const LEGEND: &str = "\
Medians of the runs (the least to the most), each in a process of its own. Seconds and CPU seconds are of reading, without opening.
Peak: the most memory of the process in all its life, interpreter and libraries among it.";

fn row(way: Way, n_cells: u64, reads: &[&ChunksRead]) -> Vec<String> {
    let format = |figure: &dyn Fn(&ChunksRead) -> f64, number: &dyn Fn(f64) -> String| {
        Spread::from_values(reads.iter().map(|read| figure(read))).map_or_else(
            String::new,
            |spread| {
                let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
                if min == max { median } else { format!("{median} ({min} to {max})") }
            },
        )
    };
    let digits = |digits: usize| move |value: f64| format!("{value:.digits$}");
    vec![
        way.to_string(),
        format(&|read| read.read_secs, &digits(2)),
        format(&|read| n_cells as f64 / read.read_secs, &|rate| grouped(rate.round() as u64)),
        format(&|read| read.tally.n_values as f64 / read.read_secs / 1e6, &digits(1)),
        format(&|read| read.cpu_secs, &digits(2)),
        format(&|read| read.max_mem as f64 / 1e6, &digits(0)),
        format(&|read| read.start_mem_bytes as f64 / 1e6, &digits(0)),
    ]
}

/// Formats a line of versions for each group of ways with the same versions.
fn format_versions(ways: &[Way], runs: &[Run]) -> String {
    let mut lines: Vec<(Vec<&str>, &BTreeMap<String, String>)> = Vec::new();
    for way in ways {
        let Some(run) = runs.iter().find(|run| run.way == *way) else { continue };
        let versions = &run.read.versions;
        match lines.iter_mut().find(|(_, known)| *known == versions) {
            Some((names, _)) => names.push(way.name()),
            None => lines.push((vec![way.name()], versions)),
        }
    }
    let formatted = lines.iter().map(|(names, versions)| {
        let versions = versions.iter().map(|(name, version)| format!("{name} {version}"));
        format!("\n{}: {}", names.join(", "), versions.collect::<Vec<_>>().join(", "))
    });
    formatted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(way: Way, repetition: u64, secs: f64) -> Run {
        let mut read = ChunksRead { read_secs: secs, n_cells: 100, ..ChunksRead::default() };
        read.max_mem = 5_000_000;
        read.tally.add_row(0, &[0, 1], &[1.0, 2.0]);
        read.versions.insert("x".to_owned(), "1.0".to_owned());
        Run { way, repetition, read }
    }

    fn described() -> Described {
        Described {
            uri: "x".to_owned(),
            shuffle: "global",
            seed: 1,
            chunk_rows: 10,
            n_genes: 5,
            n_cells: 100,
            cache: "warm",
        }
    }

    #[test]
    fn a_way_has_a_row_of_medians() {
        let runs = [run(Way::Table, 1, 0.5), run(Way::Csr, 1, 4.0), run(Way::Table, 2, 0.25)];
        let text = table(&described(), &[Way::Table, Way::Csr], &runs);
        let row = text.lines().find(|line| line.starts_with("| table")).unwrap();
        assert!(row.contains("0.38 (0.25 to 0.50)") && row.contains("300 (200 to 400)"), "{row}");
        assert!(text.contains("| csr") && text.contains("4.00"), "{text}");
        assert!(
            text.contains("2 values that add up to 3 ") && text.contains("table, csr: x 1.0"),
            "{text}"
        );
    }

    #[test]
    fn a_run_is_a_line_of_json() {
        let line = json(&described(), &run(Way::BlockwiseTable, 2, 0.5)).unwrap();
        assert_eq!(line.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["way"], "blockwise-table");
        assert_eq!((&value["repetition"], &value["chunk_rows"]), (&2.into(), &10.into()));
        assert_eq!((&value["n_values"], &value["cells_per_sec"]), (&2.into(), &200.0.into()));
    }
}
