//! Tests of `picture`.

use super::*;
use crate::{EpochRecord, MarkedPoint, fixture, summarize};

fn options() -> ReportOptions {
    let marked = MarkedPoint {
        label: "default".to_owned(),
        chunk_size: 64,
        chunks_per_block: 256,
        chunk_method: None,
    };
    ReportOptions { marked: Some(marked), ..ReportOptions::default() }
}

fn draw_all(records: &[EpochRecord], options: &ReportOptions, convention: Convention) -> String {
    let source = Source { name: "results".to_owned(), records: records.to_vec() };
    draw(&[source], &summarize(records), options, convention).unwrap()
}

#[test]
fn the_picture_of_a_grid() {
    insta::assert_snapshot!(draw_all(&fixture::grid(), &options(), Convention::FirstBatchCounted));
}

#[test]
fn both_conventions_say_which_they_are() {
    let records = fixture::grid();
    let counted = draw_all(&records, &options(), Convention::FirstBatchCounted);
    let left_out = draw_all(&records, &options(), Convention::FirstBatchLeftOut);
    assert!(counted.contains("first batch counted") && !counted.contains("first batch left out"));
    assert!(left_out.contains("first batch left out") && !left_out.contains("first batch counted"));
}

#[test]
fn with_nothing_measured_the_picture_says_so() {
    let svg =
        draw_all(&[fixture::killed("native", (64, 16))], &options(), Convention::FirstBatchCounted);
    assert!(svg.contains("no epoch ended well"), "{svg}");
    assert!(svg.contains("1 of 1 points failed"), "{svg}");
}

#[test]
fn text_of_others_is_text_in_the_picture() {
    let mut record = fixture::epoch("<b>&\"native\u{1}", (64, 16), 0.5);
    record.host.host = "</svg><script>alert(1)</script>".to_owned();
    let svg = draw_all(&[record], &ReportOptions::default(), Convention::FirstBatchCounted);
    assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains('\u{1}'), "{svg}");
    assert_eq!(svg.matches("</svg>").count(), 1);
}

#[test]
fn long_words_are_cut_to_the_picture() {
    let mut record = fixture::epoch("native", (64, 16), 0.5);
    record.host.host = "many words ".repeat(100);
    let svg = draw_all(&[record], &ReportOptions::default(), Convention::FirstBatchCounted);
    assert!(svg.lines().all(|line| line.chars().count() < 300) && svg.contains('…'));
}

#[test]
fn marks_and_their_bars_stay_in_the_plot() {
    let records = fixture::grid();
    let points = summarize(&records);
    let series = SeriesNames::from_points(&points);
    let placed = place_all(&points, &series, Convention::FirstBatchCounted);
    assert_eq!(placed.len(), points.len() - 1);
    let encoding = Encoding::from_placed(&series, &placed);
    let radii: Vec<f64> = [1024, 4096, 16_384].map(|rows| encoding.radius(rows)).to_vec();
    assert!(radii.is_sorted() && radii[0] > 3.0, "{radii:?}");
    // Area is proportional to rows: a quarter of the rows, half the radius.
    assert!((radii[1] * 2.0 - radii[2]).abs() < 1e-9, "{radii:?}");
    let [least, most] = [1, 256].map(|chunks| encoding.color(chunks).hex());
    assert_eq!((least.as_str(), most.as_str()), ("#440154", "#b8de29"));
}
