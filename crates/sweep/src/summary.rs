//! What is said of the measurements: a line for each, the table at the end, and what the picture's arrow points at.

use std::fmt::Write as _;

use bench_report::{
    ENTROPY_HEADER, EpochRecord, GridPoint, MarkedPoint, ReportOptions, STAGE_HEADER, STAGE_LEGEND,
    Status, TABLE_HEADER, stage_rows, summarize, table_rows,
};
use comfy_table::{CellAlignment, Table, presets};

use crate::display::grouped;
use crate::io_limit;
use crate::job::Point;

/// Columns with words; the others are numbers, or say why there is none.
const WORDS: [&str; 5] = ["method", "form", "chunks × rows", "reader, cache", ENTROPY_HEADER];

/// Columns that may be left out of the table where they say the same of each point.
const OFTEN_ALIKE: [&str; 4] = ["form", "batch", "reader, cache", "epochs"];

/// One record in a line, of a sweep that measures its grid so often.
pub(crate) fn told(record: &EpochRecord, n_repeats: u64) -> String {
    let GridPoint { chunk_method, chunks_per_block, chunk_size, .. } = &record.point;
    let measured = &record.measured;
    let round = measured
        .repeat
        .filter(|_| n_repeats > 1)
        .map_or_else(String::new, |repeat| format!(" ({} of {n_repeats})", repeat + 1));
    let name = format!("{chunk_method} {chunks_per_block}x{chunk_size}{round}");
    let gigabytes = measured
        .max_mem
        .map_or_else(String::new, |bytes| format!(", {:.2} GB peak", bytes as f64 / 1e9));
    match (measured.status, measured.samples_per_sec) {
        (Status::Ok, Some(rate)) => {
            let epoch = measured
                .epoch
                .filter(|epoch| *epoch != 0)
                .map_or_else(String::new, |epoch| format!(" epoch {epoch}"));
            let rate = grouped(rate.round() as u64);
            let (read, entropy) = (read_rate(record), entropy(record));
            format!("{name}{epoch}: {rate} samples/s{gigabytes}{read}{entropy}")
        }
        (status, _) => format!(
            "{name}: {}{gigabytes}: {}",
            status.name(),
            measured.message.clone().unwrap_or_default()
        ),
    }
}

/// The rate that came of a limit, and what is to be said of it.
fn read_rate(record: &EpochRecord) -> String {
    let measured = &record.measured;
    let Some(rate) = measured.io_bytes_per_sec else { return String::new() };
    let warning = measured.message.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
    format!(", read at {}{warning}", io_limit::told_rate(rate))
}

/// How random the order was, by the first label.
fn entropy(record: &EpochRecord) -> String {
    let first = record.measured.order_entropy.first();
    match first.map(|one| (&one.label, one.mean, one.expected)) {
        Some((label, Some(mean), Some(expected))) => {
            format!(", {label} entropy {mean:.2} of {expected:.2} bits expected")
        }
        _ => String::new(),
    }
}

/// A row for each point. What is the same for all stands once, above.
pub(crate) fn table(records: &[EpochRecord]) -> String {
    let rows = table_rows(&summarize(records));
    let alike = |idx: usize| {
        let first =
            rows.first().filter(|_| OFTEN_ALIKE.contains(&TABLE_HEADER[idx])).map(|row| &row[idx]);
        first.filter(|first| rows.iter().all(|row| row[idx] == **first))
    };
    let has_entropy = records.iter().any(|record| !record.measured.order_entropy.is_empty());
    let (common, shown): (Vec<usize>, Vec<usize>) = (0..TABLE_HEADER.len())
        .filter(|idx| has_entropy || TABLE_HEADER[*idx] != ENTROPY_HEADER)
        .partition(|idx| alike(*idx).is_some());
    let mut text = String::new();
    for idx in common {
        if let Some(value) = alike(idx) {
            // A string takes any text.
            let _written = write!(
                text,
                "{}{} {value}",
                if text.is_empty() { "all: " } else { "; " },
                TABLE_HEADER[idx]
            );
        }
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(shown.iter().map(|idx| TABLE_HEADER[*idx]));
    for row in &rows {
        table.add_row(shown.iter().map(|idx| row[*idx].as_str()));
    }
    for (idx, column) in shown.iter().zip(table.column_iter_mut()) {
        if !WORDS.contains(&TABLE_HEADER[*idx]) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if text.is_empty() { table.to_string() } else { format!("{table}\n{text}") }
}

/// Where the time went, a row for each point.
pub(crate) fn stages(records: &[EpochRecord]) -> String {
    let rows = stage_rows(&summarize(records));
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(STAGE_HEADER);
    for row in rows {
        table.add_row(row);
    }
    for (name, column) in STAGE_HEADER.iter().zip(table.column_iter_mut()) {
        if !WORDS.contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n{STAGE_LEGEND}")
}

/// The arrow points at the granularity that the Census loaders made the default: chunks of 64 rows.
pub(crate) fn report_options(points: &[Point]) -> ReportOptions {
    let has = |chunks_per_block| {
        points
            .iter()
            .any(|point| point.chunk_rows == 64 && point.chunks_per_block == chunks_per_block)
    };
    ReportOptions { marked: marked(has), ..ReportOptions::default() }
}

/// The point that the original's arrow points at, or the nearest to it that was measured: chunks of 64 rows, so many of them that `has`
/// is true of.
pub(crate) fn marked(has: impl Fn(u64) -> bool) -> Option<MarkedPoint> {
    let chunks_per_block = [2048, 2000, 1024, 128].into_iter().find(|&n| has(n))?;
    Some(MarkedPoint {
        label: format!("default: {chunks_per_block} x 64"),
        chunk_size: 64,
        chunks_per_block,
        chunk_method: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_report::{Measured, OrderEntropy};

    fn record(method: &str, form: &str) -> EpochRecord {
        let mut record = EpochRecord::default();
        record.point.chunk_method = method.into();
        record.point.form = form.into();
        (record.point.chunks_per_block, record.point.chunk_size) = (128, 64);
        record.measured.status = Status::Ok;
        record.measured.samples_per_sec = Some(12_345.6);
        record.measured.max_mem = Some(1_234_000_000);
        record
    }

    fn cell_types() -> OrderEntropy {
        OrderEntropy {
            label: "cell_type".into(),
            mean: Some(3.41),
            expected: Some(3.42),
            ..OrderEntropy::default()
        }
    }

    #[test]
    fn records_are_told_in_a_line() {
        let mut record = record("native", "dense");
        assert_eq!(told(&record, 1), "native 128x64: 12,346 samples/s, 1.23 GB peak");
        record.measured.epoch = Some(2);
        assert_eq!(told(&record, 1), "native 128x64 epoch 2: 12,346 samples/s, 1.23 GB peak");
        record.measured.order_entropy = vec![cell_types()];
        let with_entropy = told(&record, 1);
        assert!(
            with_entropy.ends_with("1.23 GB peak, cell_type entropy 3.41 of 3.42 bits expected"),
            "{with_entropy}"
        );
        record.measured = Measured::failed(Status::Oom, "killed");
        assert_eq!(told(&record, 1), "native 128x64: oom: killed");
        record.measured.repeat = Some(1);
        assert_eq!(told(&record, 3), "native 128x64 (2 of 3): oom: killed");
    }

    #[test]
    fn what_all_points_share_stands_once() {
        let same = table(&[record("native", "dense"), record("np.array", "dense")]);
        assert!(
            same.lines().last().is_some_and(|line| line.starts_with("all: form dense; batch ")),
            "{same}"
        );
        assert!(!same.lines().next().unwrap_or_default().contains("form"), "{same}");
        let differing = table(&[record("native", "dense"), record("native", "csr")]);
        assert!(differing.contains("form") && differing.contains("csr"), "{differing}");
    }

    #[test]
    fn entropy_has_a_column_where_it_was_measured() {
        let mut measured = record("native", "dense");
        assert!(!table(std::slice::from_ref(&measured)).contains(ENTROPY_HEADER));
        measured.measured.order_entropy = vec![cell_types()];
        let told = table(&[measured, record("np.array", "dense")]);
        assert!(told.contains(ENTROPY_HEADER) && told.contains("cell_type 3.41 / 3.42"), "{told}");
    }

    #[test]
    fn the_arrow_is_for_chunks_of_64_rows() {
        let point = |chunk_rows, chunks_per_block| Point {
            chunk_rows,
            chunks_per_block,
            batch_rows: 1,
            method: "native".into(),
            transform: crate::job::PointTransform::default(),
            form: "dense".into(),
            shuffled: true,
            seed: 0,
            drop_last: false,
            prefetch_blocks: 1,
            prefetch_batches: 1,
            keep_decoded: None,
            n_epochs: 1,
            max_batches: None,
            consumer: crate::consumer::Consumer::None,
            memory_limit: None,
            process_limit: None,
            cold: None,
        };
        let marked = |points: &[Point]| report_options(points).marked.map(|marked| marked.label);
        assert_eq!(
            marked(&[point(64, 128), point(64, 2048)]).as_deref(),
            Some("default: 2048 x 64")
        );
        assert_eq!(
            marked(&[point(64, 128), point(2048, 64)]).as_deref(),
            Some("default: 128 x 64")
        );
        assert_eq!(marked(&[point(32, 128)]), None);
    }
}
