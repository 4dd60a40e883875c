//! Tables of a growth run: time per cell and memory of each point by size, and fitted lines.

use bench_report::{EpochRecord, Spread, Status};
use bench_run::{TableStyle, grouped, text_table};

use super::line::Line;

const HEADER: [&str; 8] = [
    "point",
    "cells",
    "values",
    "epoch s",
    "µs per cell",
    "ns per value",
    "first batch s",
    "peak MB",
];

/// A point of the grid, on data of several sizes.
pub(super) struct Point<'a> {
    /// The settings in which points of a run differ.
    pub(super) name: String,
    /// Chunks and rows of a block, for labels.
    pub(super) block: String,
    /// By ascending number of cells.
    pub(super) sizes: Vec<Sized<'a>>,
}

/// The epochs of one point on data of one size.
pub(super) struct Sized<'a> {
    pub(super) n_cells: u64,
    rows: Vec<&'a EpochRecord>,
}

/// Groups rows by point, in the order of their first rows, and by size.
pub(super) fn points(rows: &[EpochRecord]) -> Vec<Point<'_>> {
    let mut points: Vec<Point<'_>> = Vec::new();
    for row in rows {
        let (name, n_cells) = (name(row), row.data.total_rows);
        let at = points.iter().position(|known| known.name == name).unwrap_or_else(|| {
            let block = format!("{}x{}", row.point.chunks_per_block, row.point.chunk_size);
            points.push(Point { name, block, sizes: Vec::new() });
            points.len() - 1
        });
        let sizes = &mut points[at].sizes;
        match sizes.binary_search_by_key(&n_cells, |size| size.n_cells) {
            Ok(size) => sizes[size].rows.push(row),
            Err(size) => sizes.insert(size, Sized { n_cells, rows: vec![row] }),
        }
    }
    points
}

/// Formats a table of each point's sizes, and the lines through time and memory.
///
/// Figures are medians over epochs. A point without a successful epoch shows its status.
pub(super) fn tables(points: &[Point<'_>]) -> String {
    let (mut rows, mut lines) = (Vec::new(), String::new());
    for Point { name, sizes, .. } in points {
        rows.extend(sizes.iter().map(|size| size.cells(name)));
        lines.push_str(&told_lines(name, sizes));
    }
    let table = text_table(TableStyle::Markdown, &HEADER, &HEADER[..1], rows);
    format!("{table}\n{lines}")
}

/// Names a point by the settings in which points of a run differ.
fn name(row: &EpochRecord) -> String {
    let point = &row.point;
    let (form, reader, cache) = (&point.form, &point.reader, &point.cache);
    let chunks = format!("{}x{}", point.chunks_per_block, point.chunk_size);
    let link = point.format_link().map_or_else(String::new, |link| format!(", over {link}"));
    let (method, batch) = (&point.chunk_method, point.batch_size);
    format!("{method} {chunks} b{batch} {form}, {reader}, {cache}{link}")
}

impl Sized<'_> {
    pub(super) fn median(&self, figure: impl Fn(&EpochRecord) -> Option<f64>) -> Option<f64> {
        let well = self.rows.iter().filter(|row| row.measured.status == Status::Ok);
        Spread::from_values(well.filter_map(|row| figure(row))).map(|spread| spread.median)
    }

    /// Returns the median seconds of an epoch over all cells.
    fn secs(&self) -> Option<f64> {
        self.median(|row| {
            let measured = &row.measured;
            let (rate, n_rows) = (measured.samples_per_sec?, measured.n_rows?);
            // Scales an epoch that was cut off to all cells.
            (0 < n_rows && 0.0 < rate).then(|| self.n_cells as f64 / rate)
        })
    }

    fn megabytes(&self) -> Option<f64> {
        self.median(|row| row.measured.max_mem.map(|bytes| bytes as f64 / 1e6))
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let values = self.rows.iter().find_map(|row| row.data.total_nnz);
        let secs = self.secs();
        let failure = self.rows.iter().find(|row| row.measured.status != Status::Ok);
        let epoch = match (secs, failure) {
            (None, Some(row)) => row.measured.status.name().to_owned(),
            _ => number(secs, 2),
        };
        let per = |n: u64, unit: f64| secs.filter(|_| n != 0).map(|secs| secs / n as f64 / unit);
        vec![
            name.to_owned(),
            grouped(self.n_cells),
            values.map_or_else(|| "–".to_owned(), grouped),
            epoch,
            number(per(self.n_cells, 1e-6), 2),
            number(per(values.unwrap_or(0), 1e-9), 2),
            number(self.median(|row| row.measured.time_to_first_batch_secs), 2),
            number(self.megabytes(), 0),
        ]
    }
}

/// Formats one line for time and one for memory, each if there are at least two sizes.
fn told_lines(name: &str, sizes: &[Sized<'_>]) -> String {
    let points = |figure: &dyn Fn(&Sized<'_>) -> Option<f64>| -> Vec<(f64, f64)> {
        let known = sizes.iter().filter_map(|size| Some((size.n_cells as f64, figure(size)?)));
        known.collect()
    };
    let mut lines = Vec::new();
    if let Some(line) = Line::through(&points(&|size| size.secs())) {
        lines.push(format!(
            "\n- {name}: an epoch takes {:.2} s + {:.2} µs per cell; the sizes lie within {:.1} % of that line",
            line.intercept,
            line.slope * 1e6,
            line.farthest * 100.0
        ));
    }
    if let Some(line) = Line::through(&points(&|size| size.megabytes())) {
        lines.push(format!(
            "\n- {name}: the peak is {:.0} MB + {:.1} bytes per cell; the sizes lie within {:.1} % of that line",
            line.intercept,
            line.slope * 1e6,
            line.farthest * 100.0
        ));
    }
    lines.concat()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bench_report::Measured;

    pub(in crate::growth) fn row(n_cells: u64, secs: f64, bytes: u64) -> EpochRecord {
        let mut row = EpochRecord::default();
        row.point.chunk_method = "native".into();
        (row.point.chunks_per_block, row.point.chunk_size, row.point.batch_size) = (8, 64, 16);
        row.data.total_rows = n_cells;
        row.data.total_nnz = Some(n_cells * 1_000);
        row.measured.status = Status::Ok;
        row.measured.n_rows = Some(n_cells);
        row.measured.samples_per_sec = Some(n_cells as f64 / secs);
        row.measured.max_mem = Some(bytes);
        row
    }

    #[test]
    fn time_per_cell_and_the_lines_are_told() {
        let rows = [
            row(1_000_000, 21.0, 600_000_000),
            row(100_000, 3.0, 510_000_000),
            row(100_000, 3.0, 510_000_000),
        ];
        let text = tables(&points(&rows));
        let cells_of = |cells: &str| {
            let line = text.lines().find(|line| line.contains(&format!(" {cells} |"))).unwrap();
            line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(cells_of("100,000")[4..7], ["3.00", "30.00", "30.00"]);
        assert_eq!(cells_of("1,000,000")[4..7], ["21.00", "21.00", "21.00"]);
        assert!(
            text.contains("takes 1.00 s + 20.00 µs per cell; the sizes lie within 0.0 %"),
            "{text}"
        );
        assert!(text.contains("the peak is 500 MB + 100.0 bytes per cell"), "{text}");
    }

    #[test]
    fn what_failed_says_so_and_has_no_line() {
        let mut failed = row(500, 1.0, 1);
        failed.measured = Measured::failed(Status::Oom, "no memory".to_owned());
        let rows = [row(100, 1.0, 1_000_000), failed];
        let text = tables(&points(&rows));
        assert!(text.contains("oom") && !text.contains("per cell;"), "{text}");
        assert!(tables(&points(&[])).contains("µs per cell"));
    }
}
