//! Errors between obs columns and codes. Their messages name the encoder, the column and row, and
//! what to do.

use std::path::PathBuf;

use arrow_schema::{ArrowError, DataType};

/// Columns whose labels cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabelsError {
    /// obs lacks a column.
    #[error(
        "encoder {encoder:?} needs obs column {column:?}, which is missing: there are {}",
        listed(existing)
    )]
    MissingColumn {
        /// The encoder's name.
        encoder: String,
        /// The missing column.
        column: String,
        /// The existing columns.
        existing: Vec<String>,
    },

    /// A column's type has no labels.
    #[error(
        "column {column:?} has type {found}, which cannot be encoded: labels are texts, booleans or \
         integers, plain or in a dictionary; cast it, or write an encoder for it"
    )]
    Type {
        /// The column.
        column: String,
        /// The column's type.
        found: DataType,
    },

    /// A column has labels of another kind than the encoder was fitted on.
    #[error(
        "encoder {encoder:?} was fitted on {fitted}, but column {column:?} now has type {found}: \
         cast it, or fit again"
    )]
    KindChanged {
        /// The encoder's name.
        encoder: String,
        /// The column.
        column: String,
        /// The kind of labels that the encoder was fitted on.
        fitted: &'static str,
        /// The column's type now.
        found: DataType,
    },

    /// An integer does not fit into a signed 64-bit integer.
    #[error(
        "column {column:?} holds {value}: integer labels go up to {}; cast it to text",
        i64::MAX
    )]
    LargeInteger {
        /// The column.
        column: String,
        /// The integer.
        value: String,
    },

    /// There are more rows than 32-bit numbers can count.
    #[error("{n_rows} rows are too many to encode at once: encode up to {} at a time", u32::MAX)]
    TooManyRows {
        /// Number of rows.
        n_rows: usize,
    },

    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error(transparent)]
    Stopped(#[from] shuffle::Stopped),
}

/// Columns or labels that are no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key has no columns, or repeats a column.
    #[error(
        "encoder {encoder:?} is for the columns {}: give at least one, and each once",
        listed(columns)
    )]
    Columns {
        /// The encoder's name.
        encoder: String,
        /// The columns.
        columns: Vec<String>,
    },

    /// A label has two codes.
    #[error(
        "encoder {encoder:?} has {label} twice, as code {first} and code {second}: each label has \
         one code"
    )]
    Twice {
        /// The encoder's name.
        encoder: String,
        /// The label, or tuple of labels.
        label: String,
        /// The lower code.
        first: usize,
        /// The higher code.
        second: usize,
    },
}

/// An encoder that cannot be fitted or extended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The labels of columns cannot be read.
    #[error(transparent)]
    Labels(#[from] LabelsError),

    /// A key does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),

    /// A column is not an enumeration, which Arrow stores as a dictionary.
    #[error(
        "column {column:?} has type {found}, not a dictionary, so it has no enumeration: fit its \
         labels instead"
    )]
    NoEnumeration {
        /// The column.
        column: String,
        /// The column's type.
        found: DataType,
    },

    /// A value of an enumeration is null.
    #[error(
        "value {code} of the enumeration of column {column:?} is null: fit the column's labels \
         instead"
    )]
    NullInEnumeration {
        /// The column.
        column: String,
        /// The value's code.
        code: usize,
    },
}

/// Rows that cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The labels of columns cannot be read.
    #[error(transparent)]
    Labels(#[from] LabelsError),

    /// A row has a label that the encoder does not know.
    #[error(
        "encoder {encoder:?} does not know {label} of {columns} at row {row_idx}; it knows \
         {n_known} labels{advice}"
    )]
    UnseenLabel {
        /// The encoder's name.
        encoder: String,
        /// The label, or tuple of labels.
        label: String,
        /// The column or columns.
        columns: String,
        /// The first row with the label.
        row_idx: usize,
        /// Number of known labels.
        n_known: usize,
        /// The first known labels in parentheses, after a space, and what to do, after a colon.
        advice: String,
    },

    /// An encoder returned a null, or another number of codes than rows.
    #[error(
        "encoder {encoder:?} returned {found} codes, {n_nulls} of them null, for {n_rows} rows: \
         Encoder::encode must return one code for each row"
    )]
    CodeCount {
        /// The encoder's name.
        encoder: String,
        /// Number of returned codes.
        found: usize,
        /// Number of nulls among them.
        n_nulls: usize,
        /// Number of rows.
        n_rows: usize,
    },

    /// Arrow could not build an array.
    #[error("cannot build {what} of encoder {encoder:?}")]
    Arrow {
        /// The encoder's name.
        encoder: String,
        /// The array: codes, labels or keys.
        what: &'static str,
        /// The reason.
        #[source]
        source: ArrowError,
    },

    /// An encoder from outside this crate failed.
    #[error("encoder {encoder:?} failed")]
    Custom {
        /// The encoder's name.
        encoder: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Codes whose labels cannot be returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InverseError {
    /// A code has no label.
    #[error(
        "encoder {encoder:?} has no label for code {code} at row {row_idx}: its codes are \
         0..{n_classes}"
    )]
    CodeOutOfRange {
        /// The encoder's name.
        encoder: String,
        /// The code.
        code: i64,
        /// The first row with the code.
        row_idx: usize,
        /// Number of codes.
        n_classes: usize,
    },

    /// No encoder has the requested name.
    #[error(transparent)]
    NoEncoder(#[from] NoEncoder),

    /// Arrow could not build an array.
    #[error("cannot build {what} of encoder {encoder:?}")]
    Arrow {
        /// The encoder's name.
        encoder: String,
        /// The array: codes, labels or keys.
        what: &'static str,
        /// The reason.
        #[source]
        source: ArrowError,
    },

    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error(transparent)]
    Stopped(#[from] shuffle::Stopped),

    /// An encoder from outside this crate failed.
    #[error("encoder {encoder:?} failed")]
    Custom {
        /// The encoder's name.
        encoder: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An encoder that cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// A text is not the JSON of an encoder.
    #[error("cannot read an encoder from this JSON")]
    Json {
        /// The reason.
        #[source]
        source: serde_json::Error,
    },

    /// The JSON is of something else.
    #[error("this JSON is {found}, not {expected}: restore it as the encoder that was saved")]
    Other {
        /// The expected kind of encoder.
        expected: &'static str,
        /// The JSON's own kind.
        found: String,
    },

    /// The JSON has a version that this release does not know.
    #[error(
        "this encoder was saved in version {found} of the format, but this release knows version \
         {supported}: use the release that wrote it"
    )]
    Version {
        /// The version in the JSON.
        found: u64,
        /// The version that is written and read.
        supported: u64,
    },

    /// A class in the JSON does not have one label of each column's kind.
    #[error(
        "class {code} of saved encoder {encoder:?} is {label}, but its columns have {expected}: \
         the file was changed; fit again"
    )]
    Class {
        /// The encoder's name.
        encoder: String,
        /// Index of the class.
        code: usize,
        /// The class, as a label or tuple of labels.
        label: String,
        /// The kinds of the columns.
        expected: String,
    },

    /// A key does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),

    /// A file could not be written or read.
    #[error("cannot {what} encoder file {}", path.display())]
    File {
        /// The attempt: write or read.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
}

/// Two encoders have the same name.
#[derive(Debug, thiserror::Error)]
#[error("two encoders are called {name:?}: give each a name of its own, with with_name")]
pub struct DuplicateName {
    /// The name.
    pub name: String,
}

/// No encoder has this name.
#[derive(Debug, thiserror::Error)]
#[error("no encoder is called {name:?}: there are {}", listed(existing))]
pub struct NoEncoder {
    /// The requested name.
    pub name: String,
    /// The existing names.
    pub existing: Vec<String>,
}

impl EncodeError {
    /// The error of rows that begin at `first` of all rows, with the row counted from the first.
    pub(super) fn in_window(mut self, first: usize) -> Self {
        if let Self::UnseenLabel { row_idx, .. } = &mut self {
            *row_idx += first;
        }
        self
    }
}

/// What to do with a label that is not known, or with a null.
pub(super) fn unseen_advice(has_null: bool) -> String {
    let code = super::UNSEEN_CODE;
    let code = format!("encode it as {code} (Unseen::Code, in Python unseen=\"code\")");
    if has_null {
        return format!(
            "a null is no label: make it a class (Nulls::Class, in Python nulls=\"class\" of \
             LabelEncoder.fit and BatchKeyEncoder.fit), leave the rows out, or {code}"
        );
    }
    format!("fit it on rows with that label, add the label with extend, or {code}")
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
