//! Tables of words and numbers, for the terminal and as Markdown.

use comfy_table::{CellAlignment, Table, presets};

/// Where a table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStyle {
    /// In a terminal, with lines around it.
    Terminal,
    /// As Markdown.
    Markdown,
}

/// Formats a table. The columns that `words` names are aligned to the left; all others hold numbers
/// and are aligned to the right.
pub fn text_table<Cell: AsRef<str>>(
    style: TableStyle,
    header: &[&str],
    words: &[&str],
    rows: impl IntoIterator<Item: IntoIterator<Item = Cell>>,
) -> String {
    let mut table = Table::new();
    table.load_style(match style {
        TableStyle::Terminal => presets::UTF8_FULL_CONDENSED,
        TableStyle::Markdown => presets::ASCII_MARKDOWN,
    });
    table.set_header(header);
    for row in rows {
        table.add_row(row.into_iter().map(|cell| match style {
            TableStyle::Terminal => cell.as_ref().to_owned(),
            // A message of another program must not break its table cell.
            TableStyle::Markdown => cell.as_ref().replace('|', "\\|").replace('\n', " "),
        }));
    }
    for (name, column) in header.iter().zip(table.column_iter_mut()) {
        if !words.contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}
