//! Tables at the end of a run of ranks.

use bench_report::{
    EpochRecord, RANK_HEADER, RANKS_HEADER, RANKS_LEGEND, most_ranks_lines, rank_rows, ranks_rows,
    summarize,
};
use comfy_table::{CellAlignment, Table, presets};

/// Columns with words. All others hold numbers.
const WORDS: [&str; 3] = ["method", "chunks × rows", "machine"];

/// Formats a table with a row for each number of ranks, one with a row for each rank, and, if a
/// consumer computed, the largest number of ranks that have the utilisation `least`.
pub(crate) fn tables(records: &[EpochRecord], least: f64) -> String {
    let points = summarize(records);
    let together = table(&RANKS_HEADER, ranks_rows(&points).into_iter().map(Vec::from));
    let each = table(&RANK_HEADER, rank_rows(&points).into_iter().map(Vec::from));
    let lines = most_ranks_lines(&points, least).into_iter();
    let lines = lines.fold(String::new(), |text, line| text + "\n" + &line);
    format!("{together}\n{RANKS_LEGEND}\n\n{each}{lines}")
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for (name, column) in header.iter().zip(table.column_iter_mut()) {
        if !WORDS.contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
