//! The summary as a table for people: for a terminal, and as Markdown.
//!
//! A figure is a median. With several epochs, speed and memory also have their range, like `6,480
//! (6,000–6,720)`.

use std::fmt::Write as _;

use crate::{
    EntropySummary, GridPoint, IO_LIMIT, IO_LIMIT_BY, PointSummary, Spread,
    series::{data_names, loader},
};

/// The column of [`TABLE_HEADER`] with the measured and expected entropy of each label.
pub const ENTROPY_HEADER: &str = "entropy / expected";

/// The column of [`TABLE_HEADER`] with the accelerator utilisation.
pub const UTILIZATION_HEADER: &str = "AU %";

/// Columns of the table.
pub const TABLE_HEADER: [&str; 14] = [
    "method",
    "form",
    "chunks × rows",
    "batch",
    "reader, cache",
    "epochs",
    "samples/s",
    "without first batch",
    "peak GB",
    "first batch s",
    "wait p99 ms",
    "stalled %",
    UTILIZATION_HEADER,
    ENTROPY_HEADER,
];

/// What each column of [`TABLE_HEADER`] is, and its unit.
pub const TABLE_LEGEND: [&str; TABLE_HEADER.len()] = [
    "how a block becomes batches",
    "form of X in a batch",
    "chunks in a block × rows in a chunk",
    "rows in a batch",
    "what read X, and the page cache before an epoch",
    "epochs measured",
    "samples a second, over the whole epoch",
    "samples a second, from the second batch on",
    "most memory of the process, in 10^9 bytes",
    "seconds until the first batch",
    "milliseconds that 99 % of the waits for a batch did not exceed",
    "share of the epoch in which the consumer waited",
    "accelerator utilisation: share of the time after the first batch in which the consumer computed",
    "bits of a label within a batch, measured / expected by the settings; more is more random",
];

/// Columns with words, from the first on.
const N_WORDS: usize = 5;

/// One row per grid point under [`TABLE_HEADER`]. GB are 10^9 bytes. A point without successful
/// epochs has its failure in place of its speed.
pub fn table_rows(points: &[PointSummary]) -> Vec<[String; TABLE_HEADER.len()]> {
    points.iter().map(row).collect()
}

fn row(summary: &PointSummary) -> [String; TABLE_HEADER.len()] {
    let point = &summary.point;
    let epochs = match (summary.n_ok, summary.n_failed) {
        (ok, 0) => ok.to_string(),
        (ok, failed) => format!("{ok} + {failed} failed"),
    };
    let speed = match (summary.n_ok, &summary.failure) {
        (0, Some(failure)) => failure.lines().next().unwrap_or_default().to_owned(),
        _ => figure(summary.samples_per_sec, 1.0, 0),
    };
    [
        point.chunk_method.clone(),
        point.form.clone(),
        format!("{} × {}", grouped(point.chunks_per_block), grouped(point.chunk_size)),
        grouped(point.batch_size),
        reader(point),
        epochs,
        speed,
        median(summary.samples_per_sec_after_first, 1.0, 0),
        figure(summary.max_mem, 1e-9, 2),
        median(summary.time_to_first_batch_secs, 1.0, 2),
        median(summary.wait_p99_secs, 1e3, 1),
        median(summary.stall_share, 100.0, 0),
        median(summary.accelerator_utilization, 100.0, 1),
        entropies(&summary.order_entropy),
    ]
}

/// The reader and page cache like `native, warm`, the limit on reading and the link.
fn reader(point: &GridPoint) -> String {
    let settings = &point.settings;
    let limit = settings.number(IO_LIMIT).map_or_else(String::new, |rate| {
        let by = settings.get(IO_LIMIT_BY).unwrap_or("?");
        format!(", {} MB/s by {by}", decimal(rate as f64 / 1e6, 1))
    });
    let link = point.format_link().map_or_else(String::new, |link| format!(", over {link}"));
    let ranks = point.world_size.map_or_else(String::new, |n| format!(", {n} ranks"));
    format!("{}, {}{limit}{link}{ranks}", point.reader, point.cache)
}

/// Entropies like `cell_type 3.41 / 3.43`, for each label.
fn entropies(labels: &[EntropySummary]) -> String {
    let entries: Vec<String> = labels
        .iter()
        .map(|one| {
            let [measured, expected] =
                [one.mean, one.expected].map(|spread| median(spread, 1.0, 2));
            format!("{} {measured} / {expected}", one.label)
        })
        .collect();
    if entries.is_empty() { "–".to_owned() } else { entries.join(", ") }
}

/// Columns in front of the settings that distinguish rows: results folder, machine, loader, data
/// and number of genes, each if there are several. Each has a heading and one cell per point.
pub(crate) fn leading_columns(points: &[PointSummary]) -> Vec<(&'static str, Vec<String>)> {
    let folder = |point: &PointSummary| point.folder.clone().unwrap_or_default();
    let data = data_names(points).into_iter().zip(points);
    // Here the data that all loaders read is named, too.
    let data = data.map(|(name, point)| {
        let parts = point.data.uri.trim_end_matches('/').rsplit('/').next();
        if name.is_empty() { parts.unwrap_or_default().to_owned() } else { name }
    });
    let columns = [
        ("results", points.iter().map(folder).collect()),
        ("machine", points.iter().map(|point| point.hostname.clone()).collect()),
        ("loader", points.iter().map(|point| loader(point).to_owned()).collect()),
        ("data", data.collect::<Vec<String>>()),
        ("genes", points.iter().map(|point| grouped(point.data.n_cols)).collect()),
    ];
    let several = |cells: &Vec<String>| cells.iter().any(|cell| *cell != cells[0]);
    let distinguishes = |(name, cells): &(&str, Vec<String>)| {
        several(cells) || (*name == "results" && cells.iter().any(|cell| !cell.is_empty()))
    };
    columns.into_iter().filter(distinguishes).collect()
}

/// The table as Markdown. Results folder, machine, loader, data and genes come first, each if there
/// are several.
pub fn markdown(points: &[PointSummary]) -> String {
    markdown_table(points, &TABLE_HEADER, N_WORDS, table_rows(points).into_iter().map(Vec::from))
}

/// A table as Markdown with a row for each of `points`, which their leading columns begin. The
/// first `n_words` columns of `header` hold words, the others numbers.
pub(crate) fn markdown_table(
    points: &[PointSummary],
    header: &[&str],
    n_words: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let leading = leading_columns(points);
    let names: Vec<&str> =
        leading.iter().map(|(name, _)| *name).chain(header.iter().copied()).collect();
    let rows = rows.enumerate().map(|(idx, row)| {
        let cells = leading.iter().map(|(_, cells)| cells[idx].clone());
        cells.chain(row).collect()
    });
    markdown_rows(&names, leading.len() + n_words, rows)
}

/// A table as Markdown. The first `n_words` columns of `header` hold words, the others numbers.
pub(crate) fn markdown_rows(
    header: &[&str],
    n_words: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut text = String::new();
    push_row(&mut text, &header.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    text.push('|');
    for idx in 0..header.len() {
        text.push_str(if idx < n_words { " --- |" } else { " ---: |" });
    }
    text.push('\n');
    for cells in rows {
        push_row(&mut text, &cells);
    }
    text
}

fn push_row(text: &mut String, cells: &[String]) {
    text.push('|');
    for cell in cells {
        text.push(' ');
        text.push_str(&escape(cell));
        text.push_str(" |");
    }
    text.push('\n');
}

/// Escapes a cell, so that text of users or files cannot break out of it.
pub(crate) fn escape(cell: &str) -> String {
    let mut escaped = String::with_capacity(cell.len());
    for character in cell.chars() {
        match character {
            '|' | '\\' | '<' | '*' | '_' | '`' | '[' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

pub(crate) fn median(spread: Option<Spread>, factor: f64, digits: usize) -> String {
    spread.map_or_else(|| "–".to_owned(), |spread| decimal(spread.median * factor, digits))
}

fn figure(spread: Option<Spread>, factor: f64, digits: usize) -> String {
    let Some(spread) = spread else {
        return "–".to_owned();
    };
    let [median, min, max] =
        [spread.median, spread.min, spread.max].map(|value| decimal(value * factor, digits));
    if min == max { median } else { format!("{median} ({min}–{max})") }
}

/// `value` with `digits` decimals and thousands separators.
pub(crate) fn decimal(value: f64, digits: usize) -> String {
    let plain = format!("{:.digits$}", value.abs());
    let (whole, fraction) =
        plain.split_once('.').map_or((plain.as_str(), None), |(a, b)| (a, Some(b)));
    let mut text = String::new();
    if value < 0.0 && plain.contains(|digit| matches!(digit, '1'..='9')) {
        text.push('-');
    }
    for (idx, digit) in whole.chars().enumerate() {
        if idx > 0 && (whole.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        write!(text, ".{fraction}").expect("a string takes any text");
    }
    text
}

/// `count` with thousands separators.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_that_is_none_to_the_eye_is_left_out() {
        let spread = |max| Spread::from_values([1.0, max]);
        assert_eq!(figure(spread(1.001), 1.0, 2), "1.00");
        assert_eq!(figure(spread(1.5), 1.0, 1), "1.2 (1.0–1.5)");
        assert_eq!(figure(None, 1.0, 1), "–");
    }

    #[test]
    fn a_message_stays_in_its_cell() {
        assert_eq!(
            escape("a|b\nc <i> *d* `e` [f](g) _h_ \\"),
            "a\\|b c \\<i> \\*d\\* \\`e\\` \\[f](g) \\_h\\_ \\\\"
        );
    }

    #[test]
    fn numbers_are_set_apart_by_thousands() {
        assert_eq!(decimal(1_234_567.891, 2), "1,234,567.89");
        assert_eq!(decimal(999.96, 1), "1,000.0");
        assert_eq!(decimal(-1234.5, 0), "-1,234");
        assert_eq!(decimal(-0.001, 1), "0.0");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    proptest! {
        #[test]
        fn taking_the_commas_away_gives_the_number_back(count in any::<u64>(), value in -1e12_f64..1e12) {
            prop_assert_eq!(grouped(count).replace(',', "").parse::<u64>().unwrap(), count);
            let back: f64 = decimal(value, 3).replace(',', "").parse().unwrap();
            prop_assert!((back - value).abs() <= 0.000_500_1 + 1e-12 * value.abs());
        }
    }
}
