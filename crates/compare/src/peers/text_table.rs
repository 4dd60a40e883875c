//! Tables of words and numbers, as Markdown.

use comfy_table::{CellAlignment, Table, presets};

/// A table whose first `words` columns hold words, the others numbers.
pub(super) fn table<const N: usize>(
    header: &[&str; N],
    words: usize,
    rows: impl Iterator<Item = [String; N]>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header);
    for row in rows {
        // A message of another program must not break its table cell.
        table.add_row(row.map(|cell| cell.replace('|', "\\|").replace('\n', " ")));
    }
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
