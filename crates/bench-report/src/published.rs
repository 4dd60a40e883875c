//! Figures that arrayloader-benchmarks published in 2024, shown behind our points. They are from
//! other machines, so no ratio is computed from them.
//!
//! The folder `published` has the file and its origin.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Serialize};

use crate::statistics::percentile;

const CSV: &str = include_str!("published/arrayloader-benchmarks-2024.csv");

/// Origin and method of these figures, shown on the page.
pub(crate) const NOTE: &str = "arrayloader-benchmarks, June 2024: another machine. Memory was sampled at the ends of blocks, so it is not the \
    true peak, and the speed leaves out the first batch, with the whole first block";

/// The columns of the file that are shown.
#[derive(Debug, Deserialize)]
struct Row {
    instance_type: String,
    source: String,
    start_idx: u64,
    end_idx: u64,
    sorted_datasets: String,
    max_batches: u64,
    total_rows: u64,
    chunk_method: String,
    chunk_size: u64,
    chunks_per_block: u64,
    block_size: u64,
    max_mem: f64,
    samples_per_sec: f64,
}

/// Points of one machine, one source and one selection of cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Slice {
    pub(crate) name: String,
    pub(crate) points: Vec<PublishedPoint>,
}

/// A grid point; figures are medians of its epochs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PublishedPoint {
    pub(crate) chunk_method: String,
    pub(crate) chunk_size: u64,
    pub(crate) chunks_per_block: u64,
    pub(crate) block_size: u64,
    /// Bytes, as sampled.
    pub(crate) max_mem: f64,
    /// Without the first batch.
    pub(crate) samples_per_sec: f64,
    pub(crate) n_epochs: usize,
}

type PointKey = (String, u64, u64);

/// All slices: first the one of the original's headline picture, then those with the most cells.
pub(crate) fn slices() -> &'static [Slice] {
    static SLICES: LazyLock<Vec<Slice>> = LazyLock::new(|| group(parse(CSV).unwrap_or_default()));
    &SLICES
}

fn parse(text: &str) -> Result<Vec<Row>, csv::Error> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect()
}

fn group(rows: Vec<Row>) -> Vec<Slice> {
    let mut slices: BTreeMap<_, (String, BTreeMap<PointKey, Vec<Row>>)> = BTreeMap::new();
    for row in rows {
        let is_headline = row.instance_type == "g4dn.8xlarge" && row.max_batches == 4096;
        let order = (!is_headline, u64::MAX - row.total_rows, u64::MAX - row.max_batches);
        let name = name(&row);
        let (_, points) =
            slices.entry((order, name.clone())).or_insert_with(|| (name, BTreeMap::new()));
        let key = (row.chunk_method.clone(), row.chunk_size, row.chunks_per_block);
        points.entry(key).or_default().push(row);
    }
    slices
        .into_values()
        .map(|(name, points)| Slice {
            name,
            points: points.values().map(|rows| point(rows)).collect(),
        })
        .collect()
}

fn name(row: &Row) -> String {
    let Row { instance_type, source, start_idx, end_idx, .. } = row;
    let place = match source.as_str() {
        "census-s3" => "Census on S3",
        "pre-sliced-s3" => "slice on S3",
        "pre-sliced-local" => "slice on local disk",
        other => other,
    };
    let cells = crate::table::grouped(row.total_rows);
    let sorted = if row.sorted_datasets == "True" { ", sorted" } else { "" };
    let cut = match row.max_batches {
        0 => String::new(),
        n => format!(", {} batches", crate::table::grouped(n)),
    };
    format!(
        "{instance_type}, {place}, {cells} cells (data sets {start_idx}–{end_idx}{sorted}){cut}"
    )
}

fn point(rows: &[Row]) -> PublishedPoint {
    let median = |figure: fn(&Row) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        percentile(&values, 50.0).unwrap_or_default()
    };
    PublishedPoint {
        chunk_method: rows[0].chunk_method.clone(),
        chunk_size: rows[0].chunk_size,
        chunks_per_block: rows[0].chunks_per_block,
        block_size: rows[0].block_size,
        max_mem: median(|row| row.max_mem),
        samples_per_sec: median(|row| row.samples_per_sec),
        n_epochs: rows.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_row_is_read() {
        assert_eq!(parse(CSV).unwrap().len(), 2074);
        let n: usize =
            slices().iter().flat_map(|slice| &slice.points).map(|point| point.n_epochs).sum();
        assert_eq!(n, 2074);
    }

    #[test]
    fn the_headline_comes_first_with_the_figures_that_are_quoted() {
        let headline = &slices()[0];
        assert!(
            headline.name.starts_with("g4dn.8xlarge, Census on S3, 10,107,657 cells"),
            "{}",
            headline.name
        );
        let default = headline
            .points
            .iter()
            .find(|point| {
                (point.chunk_method.as_str(), point.chunk_size, point.chunks_per_block)
                    == ("np.array", 64, 2048)
            })
            .unwrap();
        assert_eq!((default.samples_per_sec.round(), default.block_size), (2700.0, 131_072));
        assert!((26.5e9..26.7e9).contains(&default.max_mem), "{}", default.max_mem);
    }

    #[test]
    fn slices_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> =
            slices().iter().map(|slice| &slice.name).collect();
        assert_eq!((names.len(), slices().len()), (16, 16));
    }
}
