//! Tests of `chart`.

use std::collections::BTreeSet;

use super::*;
use crate::picture::labels::Frame;

fn series(n: usize) -> Vec<LineSeries> {
    let one = |idx| LineSeries {
        shape: 2,
        ..LineSeries::new(format!("series {idx}"), LineStyle::LinesWithMarks, Vec::new())
    };
    (0..n).map(one).collect()
}

#[test]
fn no_two_series_look_alike() {
    for n in [3, 7, 8, 28] {
        let all = series(n);
        let looks = looks(&all.iter().collect::<Vec<_>>());
        let lines: BTreeSet<String> =
            looks.iter().map(|look| format!("{} {:?}", look.color.hex(), look.dash)).collect();
        let marks: BTreeSet<String> =
            looks.iter().map(|look| format!("{} {}", look.color.hex(), look.shape)).collect();
        assert_eq!((lines.len(), marks.len()), (n, n));
    }
    let few = series(7);
    let looks = looks(&few.iter().collect::<Vec<_>>());
    assert!(looks.iter().all(|look| look.shape == 2 && look.dash.is_empty()));
}

#[test]
fn the_legend_has_room() {
    for name in ["x".to_owned(), "many words ".repeat(30), "M".repeat(100)] {
        let mut all = series(20);
        all[3].name = name;
        let all: Vec<&LineSeries> = all.iter().collect();
        let key = Key::new(vec![entries(&all, &looks(&all))], MARGIN..ACROSS[1], 400.0);
        let paper = Frame { left: 0.0, upper: 400.0, right: WIDTH, lower: key.bottom() };
        let frames = key.frames();
        assert_eq!(frames.len(), 20);
        for (idx, frame) in frames.iter().enumerate() {
            assert!(paper.contains(frame), "{frame:?}");
            assert!(!frames[..idx].iter().any(|other| other.overlaps(frame)), "{frame:?}");
        }
    }
}

#[test]
fn series_of_one_name_are_in_the_legend_once_and_look_alike() {
    let line = |y| {
        LineSeries::new(
            "ours",
            LineStyle::Lines,
            vec![LinePoint::new(0.0, y), LinePoint::new(1.0, y)],
        )
    };
    let panel = |title: &str, y| LinePanel { title: title.to_owned(), series: vec![line(y)] };
    let chart = LineChart {
        title: "ours is alone".to_owned(),
        notes: vec!["a note".to_owned()],
        x: Dimension::linear("step"),
        y: Dimension::linear("loss, nats"),
        panels: vec![panel("one", 1.0), panel("two", 2.0)],
    };
    let svg = draw_lines(&chart).unwrap();
    assert_eq!(svg.matches("\nours\n").count(), 1, "{svg}");
    for words in ["ours is alone", "a note", "step", "loss, nats", "one", "two"] {
        assert!(svg.contains(&format!("\n{words}\n")), "{words}");
    }
    // Two lines and the sample in the legend.
    assert_eq!(
        svg.matches(&format!("stroke=\"{}\"", category(0).hex().to_uppercase())).count(),
        3,
        "{svg}"
    );
    let empty = LineChart { panels: Vec::new(), ..chart };
    assert!(draw_lines(&empty).unwrap().starts_with("<svg"));
}

#[test]
fn letters_are_legible_400_pixels_wide() {
    let chart = LineChart {
        title: "a title".to_owned(),
        notes: Vec::new(),
        x: Dimension::linear("x, s"),
        y: Dimension::linear("y, s"),
        panels: vec![LinePanel { title: String::new(), series: series(3) }],
    };
    let svg = draw_lines(&chart).unwrap();
    let (_, box_) = svg.split_once("viewBox=\"0 0 ").unwrap();
    let width: f64 = box_.split(' ').next().unwrap().parse().unwrap();
    let sizes = svg.split("font-size=\"").skip(1).map(|after| after.split('"').next().unwrap());
    let sizes: Vec<f64> = sizes.map(|size| size.parse().unwrap()).collect();
    assert!(!sizes.is_empty());
    for size in sizes {
        assert!(size * 400.0 / width >= 8.0, "{size} of {width}");
    }
}
