//! Tests of `comparison`.

use std::collections::BTreeSet;

use super::*;
use crate::{
    EpochRecord, ReportOptions, Source, fixture,
    picture::{
        ACROSS, Key, MARGIN, draw as draw_picture,
        labels::Frame,
        legend,
        mark::{Encoding, shapes},
        place_all,
    },
    series::SeriesNames,
    summarize,
};

fn svg(records: &[EpochRecord]) -> String {
    let source = Source { name: "results".to_owned(), records: records.to_vec() };
    let options = ReportOptions::default();
    draw_picture(&[source], &summarize(records), &options, Convention::FirstBatchCounted).unwrap()
}

/// Width and height that the picture declares.
fn size(svg: &str) -> (f64, f64) {
    let attribute = |name: &str| {
        let (_, after) = svg.split_once(&format!("{name}=\"")).unwrap();
        after.split_once('"').unwrap().0.parse().unwrap()
    };
    (attribute("width"), attribute("height"))
}

#[test]
fn the_picture_of_loaders() {
    insta::assert_snapshot!(svg(&fixture::loaders()));
}

#[test]
fn each_form_has_a_plot_and_speeds_far_apart_a_logarithm() {
    let all = fixture::loaders();
    let text = svg(&all);
    assert!(text.contains("dense batches") && text.contains("CSR batches"));
    assert!(text.contains("first batch counted (logarithmic)"));
    let alike: Vec<EpochRecord> = all
        .into_iter()
        .filter(|record| {
            record.point.form == "csr"
                && record.point.loader.as_deref() != Some("ExperimentDataPipe")
        })
        .collect();
    let text = svg(&alike);
    assert!(!text.contains("CSR batches") && !text.contains("samples/s, first batch counted ("));
}

#[test]
fn gene_subsets_are_not_laid_on_all_genes() {
    let mut records = fixture::loaders();
    for record in records.iter_mut().filter(|record| record.point.chunks_per_block == 128) {
        record.data.n_cols = 5_000;
    }
    let text = svg(&records);
    assert!(text.contains("\ndense batches, 5,000 genes\n"));
    // Four plots, one above the other.
    assert!(size(&text).1 > size(&svg(&fixture::loaders())).1 + 100.0);
}

#[test]
fn no_two_series_look_alike() {
    let mut records = Vec::new();
    for idx in 0..30 {
        let name = format!("loader {idx}");
        records.push(fixture::epoch_of((&name, &name), "csr", 16, (1.0, 1.0)));
    }
    let series = SeriesNames::from_points(&summarize(&records));
    let shapes = shapes(&series);
    let looks: BTreeSet<(usize, String)> = shapes
        .iter()
        .enumerate()
        .map(|(idx, shape)| (shape % 24, crate::picture::mark::category(idx).hex()))
        .collect();
    assert_eq!(looks.len(), 30);
}

#[test]
fn the_legend_stays_in_the_picture_whatever_names_are_called() {
    let long = "a loader with a very long name that goes on ".repeat(8);
    let unbroken = "m".repeat(150);
    for name in ["x", long.as_str(), unbroken.as_str()] {
        let mut records = fixture::loaders();
        for record in
            records.iter_mut().filter(|one| one.point.loader.as_deref() == Some("annbatch"))
        {
            record.point.loader = Some(name.to_owned());
            record.point.chunk_method = name.to_owned();
        }
        let points = summarize(&records);
        let series = SeriesNames::from_points(&points);
        let placed = place_all(&points, &series, Convention::FirstBatchCounted);
        let encoding = Encoding::from_placed(&series, &placed);
        let (width, height) = size(&svg(&records));
        let paper = Frame { left: 0.0, upper: 0.0, right: width, lower: height };
        let rows = legend::rows(&encoding, &placed);
        let top = Key::new(rows.clone(), MARGIN..ACROSS[1], 0.0).bottom();
        let key = Key::new(rows, MARGIN..ACROSS[1], height - MARGIN - top);
        let frames = key.frames();
        for (idx, frame) in frames.iter().enumerate() {
            assert!(paper.contains(frame), "{frame:?} of {name}");
            assert!(!frames[..idx].iter().any(|other| other.overlaps(frame)), "{frame:?}");
        }
    }
}

#[test]
fn the_title_says_by_how_much_the_fastest_leads() {
    let words = svg(&fixture::loaders()).replace('\n', " ");
    let heading: Vec<&str> = words.split("font-weight=\"bold\"").collect();
    let title = heading[1..].iter().filter_map(|one| one.split_once('>')?.1.split('<').next());
    let title = title.map(str::trim).collect::<Vec<_>>().join(" ");
    let start = "dense batches: somafeed, relaid is fastest, 1.4 x annbatch documented, in 0.82 x its memory; CSR";
    assert!(title.starts_with(start), "{title}");
}

#[test]
fn names_stand_beside_marks() {
    let text = svg(&fixture::loaders());
    // In the legend, and beside a mark in each of both plots.
    for name in ["annbatch", "tiledbsoma-ml", "ExperimentDataPipe"] {
        assert!(text.matches(&format!("\n{name}\n")).count() >= 3, "{name}");
    }
}
