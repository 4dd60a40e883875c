//! Bytes of memory per cell, part by part: a table and a picture.

use bench_report::{Bar, BarChart, BarGroup, BarKind, Best, EpochRecord, MeanStd, draw_bars};
use bench_run::{TableStyle, grouped, text_table};

use super::report::{Point, Sized};

/// A part of the memory that grows with the number of cells.
struct Part {
    name: &'static str,
    /// Red, green and blue.
    color: [u8; 3],
    bytes: fn(&EpochRecord) -> Option<u64>,
}

/// The parts, in the order of the table and the bars.
const PARTS: [Part; 6] = [
    Part { name: "joinids", color: [31, 119, 180], bytes: |row| row.measured.joinid_bytes },
    Part { name: "obs", color: [255, 127, 14], bytes: |row| row.measured.obs_bytes },
    Part { name: "codes", color: [44, 160, 44], bytes: |row| row.measured.code_bytes },
    Part { name: "totals", color: [214, 39, 40], bytes: |row| row.measured.total_bytes },
    Part { name: "order", color: [148, 103, 189], bytes: |row| row.measured.order_bytes },
    Part { name: "row index", color: [140, 86, 75], bytes: |row| row.measured.index_bytes },
];

/// Formats a table of the bytes per cell of each part, and of all together; empty if no row has
/// them.
pub(super) fn table(points: &[Point<'_>]) -> String {
    let names = PARTS.iter().map(|part| part.name);
    let header: Vec<&str> =
        ["point", "cells"].into_iter().chain(names).chain(["all parts"]).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for Point { name, sizes, .. } in points {
        for size in sizes {
            let Some(parts) = per_cell(size) else { continue };
            let all = parts.iter().sum::<f64>();
            let figures = parts.iter().chain([&all]).map(|bytes| format!("{bytes:.3}"));
            rows.push([name.clone(), grouped(size.n_cells)].into_iter().chain(figures).collect());
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let table = text_table(TableStyle::Markdown, &header, &header[..1], rows);
    format!(
        "Bytes of memory per cell, of what grows with the number of cells. Row indices grow with the \
         rows that were read, up to a limit.\n\n{table}\n"
    )
}

/// Draws the same as bars; `None` if no row has them.
///
/// # Errors
/// The picture cannot be drawn.
pub(super) fn picture(points: &[Point<'_>]) -> anyhow::Result<Option<String>> {
    let of_point = |point: &Point<'_>| -> Vec<BarGroup> {
        let sizes = point.sizes.iter();
        let groups = sizes.filter_map(|size| Some((size.n_cells, per_cell(size)?)));
        groups
            .map(|(n_cells, parts)| BarGroup {
                name: format!("{} cells, {}", grouped(n_cells), point.block),
                bars: PARTS.iter().zip(parts).map(|(part, bytes)| bar(part, bytes)).collect(),
            })
            .collect()
    };
    let groups: Vec<BarGroup> = points.iter().flat_map(of_point).collect();
    if groups.is_empty() {
        return Ok(None);
    }
    Ok(Some(draw_bars(&BarChart {
        subject: "memory per cell, of what grows with the number of cells".to_owned(),
        unit: "bytes per cell",
        best: Best::Most("the largest part"),
        notes: Vec::new(),
        groups,
    })?))
}

fn bar(part: &Part, bytes: f64) -> Bar {
    Bar {
        color: part.color,
        is_light: false,
        kind: BarKind { name: part.name.to_owned(), color: Some(part.color) },
        value: MeanStd { mean: bytes, std: None },
        floors: Vec::new(),
        published: None,
    }
}

/// Median bytes per cell of each part; `None` if they were not measured.
fn per_cell(size: &Sized<'_>) -> Option<[f64; PARTS.len()]> {
    let mut found = [0.0; PARTS.len()];
    for (found, part) in found.iter_mut().zip(&PARTS) {
        *found = size.median(|row| (part.bytes)(row).map(|bytes| bytes as f64))?
            / size.n_cells.max(1) as f64;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::report::{points, tests::row};
    use super::*;

    #[test]
    fn parts_are_in_the_table_and_the_picture() {
        let mut with_parts = row(1000, 1.0, 1);
        let measured = &mut with_parts.measured;
        (measured.joinid_bytes, measured.obs_bytes, measured.code_bytes) =
            (Some(375), Some(2000), Some(1000));
        (measured.total_bytes, measured.order_bytes, measured.index_bytes) =
            (Some(0), Some(62), Some(4000));
        let rows = [with_parts, row(2000, 2.0, 1)];
        let points = points(&rows);
        let text = table(&points);
        let line = text.lines().find(|line| line.contains(" 1,000 |")).unwrap();
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        assert_eq!(
            cells[2..10],
            ["1,000", "0.375", "2.000", "1.000", "0.000", "0.062", "4.000", "7.437"],
        );
        assert!(!text.contains("2,000 |"), "not measured: {text}");
        let svg = picture(&points).unwrap().unwrap();
        assert!(svg.contains("row index") && svg.contains("1,000 cells"), "{svg}");
    }

    #[test]
    fn rows_without_parts_have_neither() {
        let rows = [row(1000, 1.0, 1)];
        assert_eq!(table(&points(&rows)), "");
        assert!(picture(&points(&rows)).unwrap().is_none());
    }
}
