//! Tests of `chart`.

use std::collections::BTreeSet;

use super::*;
use crate::picture::labels::Frame;

fn series(n: usize) -> Vec<Series> {
    let one = |idx| Series { name: format!("series {idx}"), shape: 2, points: Vec::new() };
    (0..n).map(one).collect()
}

#[test]
fn no_two_series_look_alike() {
    for n in [3, 7, 8, 28] {
        let looks = looks(&series(n));
        let lines: BTreeSet<String> =
            looks.iter().map(|look| format!("{} {:?}", look.color.hex(), look.dash)).collect();
        let marks: BTreeSet<String> =
            looks.iter().map(|look| format!("{} {}", look.color.hex(), look.shape)).collect();
        assert_eq!((lines.len(), marks.len()), (n, n));
    }
    assert!(looks(&series(7)).iter().all(|look| look.shape == 2 && look.dash.is_empty()));
}

#[test]
fn the_legend_has_room() {
    for name in ["x".to_owned(), "many words ".repeat(30), "M".repeat(100)] {
        let mut all = series(20);
        all[3].name = name;
        let entries: Vec<Vec<String>> = all.iter().map(entry).collect();
        let Size { width, height } = size(&entries);
        let paper = Frame { left: 0.0, upper: 0.0, right: width, lower: height };
        let mut y = PLOT[1] + 8.0;
        for lines in &entries {
            for line in lines {
                let wide = text_width(line, LEGEND_TEXT);
                let left = LEGEND_LEFT + 18.0;
                let frame = Frame { left, upper: y - 8.0, right: left + wide, lower: y + 8.0 };
                assert!(paper.contains(&frame), "{line}");
            }
            y += entry_height(lines);
        }
        assert!(y < height);
    }
}
