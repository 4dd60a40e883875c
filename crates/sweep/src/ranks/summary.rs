//! Tables at the end of a run of ranks.

use bench_report::{
    EpochRecord, RANK_HEADER, RANKS_HEADER, RANKS_LEGEND, most_ranks_lines, rank_rows, ranks_rows,
    summarize,
};

use bench_run::{TableStyle, text_table};

/// Columns with words. All others hold numbers.
const WORDS: [&str; 3] = ["method", "chunks × rows", "machine"];

/// Formats a table with a row for each number of ranks, one with a row for each rank, and, if a
/// consumer computed, the largest number of ranks that have the utilisation `least`.
pub(crate) fn tables(records: &[EpochRecord], least: f64) -> String {
    let points = summarize(records);
    let together = text_table(TableStyle::Terminal, &RANKS_HEADER, &WORDS, ranks_rows(&points));
    let each = text_table(TableStyle::Terminal, &RANK_HEADER, &WORDS, rank_rows(&points));
    let lines = most_ranks_lines(&points, least).into_iter();
    let lines = lines.fold(String::new(), |text, line| text + "\n" + &line);
    format!("{together}\n{RANKS_LEGEND}\n\n{each}{lines}")
}
