//! Tables at the end of a sweep, and the point that the picture's arrow marks.

use std::fmt::Write as _;

use bench_report::{
    Advice, ENTROPY_HEADER, EpochRecord, LINK_HEADER, LINK_LEGEND, MarkedPoint, ReportOptions,
    STAGE_HEADER, STAGE_LEGEND, TABLE_HEADER, TABLE_LEGEND, UTILIZATION_HEADER, link_rows,
    stage_rows, summarize, table_rows,
};
use bench_run::{TableStyle, text_table};
use grid_point::Point;

/// Columns with words. All others hold numbers, or the reason for their absence.
const WORDS: [&str; 6] =
    ["method", "form", "chunks × rows", "reader, cache", "link", ENTROPY_HEADER];

/// Columns that are left out of the table if all points share one value.
const OFTEN_ALIKE: [&str; 4] = ["form", "batch", "reader, cache", "epochs"];

/// Formats a table with a row per point. Shared values follow below it, then what each column is.
pub(crate) fn table(records: &[EpochRecord]) -> String {
    let rows = table_rows(&summarize(records));
    let alike = |idx: usize| {
        let first =
            rows.first().filter(|_| OFTEN_ALIKE.contains(&TABLE_HEADER[idx])).map(|row| &row[idx]);
        first.filter(|first| rows.iter().all(|row| row[idx] == **first))
    };
    let has_utilization =
        records.iter().any(|record| record.measured.accelerator_utilization.is_some());
    let has_entropy = records.iter().any(|record| !record.measured.order_entropy.is_empty());
    let (common, shown): (Vec<usize>, Vec<usize>) = (0..TABLE_HEADER.len())
        .filter(|idx| has_entropy || TABLE_HEADER[*idx] != ENTROPY_HEADER)
        .filter(|idx| has_utilization || TABLE_HEADER[*idx] != UTILIZATION_HEADER)
        .partition(|idx| alike(*idx).is_some());
    let mut text = String::new();
    for idx in common {
        if let Some(value) = alike(idx) {
            // Writing to a string cannot fail.
            let _written = write!(
                text,
                "{}{} {value}",
                if text.is_empty() { "all: " } else { "; " },
                TABLE_HEADER[idx]
            );
        }
    }
    let header: Vec<&str> = shown.iter().map(|idx| TABLE_HEADER[*idx]).collect();
    let shown_rows = rows.iter().map(|row| shown.iter().map(move |idx| row[*idx].as_str()));
    let table = text_table(TableStyle::Terminal, &header, &WORDS, shown_rows);
    let columns =
        shown.iter().map(|idx| format!("  {}: {}", TABLE_HEADER[*idx], TABLE_LEGEND[*idx]));
    let legend = columns.collect::<Vec<_>>().join("\n");
    let text = if text.is_empty() { text } else { format!("{text}\n") };
    format!(
        "{table}\n{text}medians over epochs, with the range in brackets; the columns are\n{legend}"
    )
}

/// Formats why the figures may mislead, and what they recommend, a sentence per line.
pub(crate) fn advice(records: &[EpochRecord]) -> String {
    let Advice { cautions, recommendations } = Advice::from_records(records);
    let cautions = cautions.into_iter().map(|text| format!("warning: {text}"));
    cautions.chain(recommendations).collect::<Vec<_>>().join("\n")
}

/// Formats a table of the time per stage, with a row per point.
pub(crate) fn stages(records: &[EpochRecord]) -> String {
    let rows = stage_rows(&summarize(records));
    let table = text_table(TableStyle::Terminal, &STAGE_HEADER, &WORDS, rows);
    format!("{table}\n{STAGE_LEGEND}")
}

/// Formats a table of the requests over the link; empty without a link.
pub(crate) fn over_link(records: &[EpochRecord]) -> String {
    let rows = link_rows(&summarize(records));
    if rows.is_empty() {
        return String::new();
    }
    let table = text_table(TableStyle::Terminal, &LINK_HEADER, &WORDS, rows);
    format!("\n{table}\n{LINK_LEGEND}")
}

/// Returns report options that mark the Census loaders' default: chunks of 64 rows.
pub(crate) fn report_options(points: &[Point]) -> ReportOptions {
    let has = |chunks_per_block| {
        points
            .iter()
            .map(|point| &point.spec.pipeline)
            .any(|spec| spec.chunk_rows == 64 && spec.chunks_per_block == chunks_per_block)
    };
    ReportOptions { marked: marked(has), ..ReportOptions::default() }
}

/// Returns the original's marked point, or the nearest one that `has` accepts.
///
/// `has` gets the number of chunks per block; chunks have 64 rows.
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
    use bench_report::{OrderEntropy, Status};
    use bench_run::BlockSpec;

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
    fn what_all_points_share_stands_once() {
        let same = table(&[record("native", "dense"), record("np.array", "dense")]);
        assert_eq!(
            same.lines().filter(|line| line.starts_with("all: form dense; batch ")).count(),
            1,
            "{same}"
        );
        assert!(!same.lines().next().unwrap_or_default().contains("form"), "{same}");
        let differing = table(&[record("native", "dense"), record("native", "csr")]);
        assert!(differing.contains("form") && differing.contains("csr"), "{differing}");
    }

    #[test]
    fn each_column_that_is_shown_has_a_legend() {
        let text = table(&[record("native", "dense"), record("np.array", "dense")]);
        assert!(text.contains("\n  peak GB: most memory of the process, in 10^9 bytes"), "{text}");
        assert!(text.contains("\n  samples/s: samples a second"), "{text}");
        // A column that is not shown has none.
        for hidden in ["  batch:", "  AU %:", "  entropy / expected:"] {
            assert!(!text.contains(hidden), "{hidden}");
        }
    }

    #[test]
    fn warnings_come_before_recommendations() {
        let records = [16, 32, 64].map(|chunks| {
            let mut record = record("native", "dense");
            record.point.chunks_per_block = chunks;
            record.point.block_size = 64 * chunks;
            record.data.total_rows = 4096;
            record.measured.elapsed = Some(2.0);
            record
        });
        let text = advice(&records);
        assert!(
            text.starts_with("warning: 1 of 3 settings have blocks as large as the data"),
            "{text}"
        );
        assert!(text.contains("\nthe fastest is native, "), "{text}");
    }

    #[test]
    fn entropy_has_a_column_where_it_was_measured() {
        let mut measured = record("native", "dense");
        assert!(!table(std::slice::from_ref(&measured)).contains(ENTROPY_HEADER));
        measured.measured.order_entropy = vec![cell_types()];
        let text = table(&[measured, record("np.array", "dense")]);
        assert!(text.contains(ENTROPY_HEADER) && text.contains("cell_type 3.41 / 3.42"), "{text}");
    }

    #[test]
    fn utilization_has_a_column_where_a_consumer_computed() {
        let mut measured = record("native", "dense");
        assert!(!table(std::slice::from_ref(&measured)).contains(UTILIZATION_HEADER));
        measured.measured.accelerator_utilization = Some(0.875);
        let shown = table(&[measured, record("np.array", "dense")]);
        assert!(shown.contains(UTILIZATION_HEADER) && shown.contains("87.5"), "{shown}");
    }

    #[test]
    fn the_arrow_is_for_chunks_of_64_rows() {
        let point = |chunk_rows, chunks_per_block| {
            Point::default().with_blocks(BlockSpec { chunk_rows, chunks_per_block })
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
