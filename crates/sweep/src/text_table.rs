//! Tables of words and numbers for the terminal.

use comfy_table::{CellAlignment, Row, Table, presets};

/// Formats a table. The columns that `words` names are aligned to the left; all others hold numbers
/// and are aligned to the right.
pub(crate) fn table(
    header: &[&str],
    words: &[&str],
    rows: impl IntoIterator<Item: Into<Row>>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header);
    table.add_rows(rows);
    for (name, column) in header.iter().zip(table.column_iter_mut()) {
        if !words.contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
