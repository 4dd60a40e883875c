//! What can go wrong between obs columns and codes.

use std::path::PathBuf;

use arrow_schema::DataType;

/// An error of encoders: which one, at which column and row, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// obs has no such column.
    #[error(
        "encoder {encoder:?} needs obs column {column:?}, and there is none: there are {}",
        listed(existing)
    )]
    MissingColumn {
        /// The encoder's name.
        encoder: String,
        /// The column that it needs.
        column: String,
        /// The columns that there are.
        existing: Vec<String>,
    },

    /// Two encoders have one name.
    #[error("two encoders are called {name:?}: give each a name of its own, with with_name")]
    DuplicateName {
        /// The name.
        name: String,
    },

    /// A key is made of no columns, or of one column twice.
    #[error(
        "encoder {encoder:?} joins the columns {}: give at least one, and each once",
        listed(columns)
    )]
    KeyColumns {
        /// The encoder's name.
        encoder: String,
        /// The columns that were given.
        columns: Vec<String>,
    },

    /// A column's type has no labels.
    #[error(
        "column {column:?} has type {found}, which cannot be encoded: labels are texts, booleans or integers, plain or in a \
         dictionary; cast it, or write an encoder for it"
    )]
    Type {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
    },

    /// A column is no longer of the kind that the encoder was fitted on.
    #[error(
        "encoder {encoder:?} was fitted on {fitted}, but column {column:?} now has type {found}: cast it, or fit again"
    )]
    KindChanged {
        /// The encoder's name.
        encoder: String,
        /// The column.
        column: String,
        /// What its labels were.
        fitted: &'static str,
        /// Its type now.
        found: DataType,
    },

    /// An integer that is no signed 64-bit integer.
    #[error(
        "column {column:?} holds {value}: integer labels go up to {}; cast it to text",
        i64::MAX
    )]
    LargeInteger {
        /// The column.
        column: String,
        /// What it holds.
        value: String,
    },

    /// There are more rows than can be numbered.
    #[error("{n_rows} rows are more than are encoded at once: encode up to {} at a time", u32::MAX)]
    TooManyRows {
        /// Rows that were given.
        n_rows: usize,
    },

    /// A column is no enumeration.
    #[error(
        "column {column:?} has type {found} and so no enumeration whose codes could be kept: fit its labels instead"
    )]
    NoEnumeration {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
    },

    /// An enumeration has a null among its values.
    #[error(
        "value {code} of the enumeration of column {column:?} is null: fit the column's labels instead"
    )]
    NullInEnumeration {
        /// The column.
        column: String,
        /// The code.
        code: usize,
    },

    /// A label has two codes.
    #[error(
        "encoder {encoder:?} has {label} twice, as code {first} and code {second}: each label has one code"
    )]
    DuplicateLabel {
        /// The encoder's name.
        encoder: String,
        /// The label, or tuple of labels.
        label: String,
        /// Its lower code.
        first: usize,
        /// Its higher code.
        second: usize,
    },

    /// A row has a label that the encoder does not know.
    #[error(
        "encoder {encoder:?} does not know {label} of {columns} at row {row_idx}; it knows {n_known}{known}: fit with such \
         rows, add it with extend, or let it be {} by Unseen::Code",
        super::UNSEEN_CODE
    )]
    UnseenLabel {
        /// The encoder's name.
        encoder: String,
        /// The label, or tuple of labels.
        label: String,
        /// The column or columns.
        columns: String,
        /// The first row that has it.
        row_idx: usize,
        /// How many are known.
        n_known: usize,
        /// The first of them, in words.
        known: String,
    },

    /// A code that stands for nothing.
    #[error(
        "encoder {encoder:?} has no label for code {code} at row {row_idx}: it has the codes from 0 to below {n_classes}"
    )]
    CodeOutOfRange {
        /// The encoder's name.
        encoder: String,
        /// The code.
        code: i64,
        /// The first row that has it.
        row_idx: usize,
        /// How many codes there are.
        n_classes: usize,
    },

    /// No encoder has this name.
    #[error("no encoder is called {name:?}: there are {}", listed(existing))]
    NoEncoder {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        existing: Vec<String>,
    },

    /// An encoder gave codes for more or fewer rows than there are, or a null.
    #[error(
        "encoder {encoder:?} gave {found} codes, {n_nulls} of them null, for {n_rows} rows: its encode does not keep to what \
         Encoder asks for"
    )]
    CodeCount {
        /// The encoder's name.
        encoder: String,
        /// Codes that it gave.
        found: usize,
        /// How many of them are null.
        n_nulls: usize,
        /// Rows of obs.
        n_rows: usize,
    },

    /// Arrays could not be put together.
    #[error("cannot put together {what} of encoder {encoder:?}")]
    Arrow {
        /// The encoder's name.
        encoder: String,
        /// Codes, or labels.
        what: &'static str,
        /// Why not.
        #[source]
        source: arrow_schema::ArrowError,
    },

    /// A text is not an encoder's JSON.
    #[error("cannot read an encoder from this JSON")]
    Json {
        /// Where it differs.
        #[source]
        source: serde_json::Error,
    },

    /// JSON of something else.
    #[error("this is {found}, and {expected} was looked for: restore it as what it is")]
    SavedAsOther {
        /// What is wanted.
        expected: &'static str,
        /// What the JSON says it is.
        found: String,
    },

    /// A version of the format that this release does not know.
    #[error(
        "this encoder was saved in version {found} of the format, and version {supported} is known: take the release that wrote it"
    )]
    Version {
        /// The version in the JSON.
        found: u64,
        /// The version that is written and read.
        supported: u64,
    },

    /// A class in the JSON is not a label of each of the columns.
    #[error(
        "class {code} of saved encoder {encoder:?} is {label}, but its columns have {expected}: the file was changed; fit again"
    )]
    SavedClass {
        /// The encoder's name.
        encoder: String,
        /// Which class.
        code: usize,
        /// What it is.
        label: String,
        /// What it should be.
        expected: String,
    },

    /// A file could not be written or read.
    #[error("cannot {what} encoder file {}", path.display())]
    File {
        /// Write, or read.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },

    /// An encoder that is not of this crate failed.
    #[error("encoder {encoder:?} failed")]
    Custom {
        /// The encoder's name.
        encoder: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
