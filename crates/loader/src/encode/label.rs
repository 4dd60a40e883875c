//! Labels: values of obs columns that are encoded.

use std::fmt;

use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

/// A value of an obs column. Labels of one column have one kind or are null; null sorts last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Label<Text> {
    Boolean(bool),
    Integer(i64),
    Text(Text),
    Null,
}

impl Label<String> {
    pub(super) fn borrowed(&self) -> Label<&str> {
        match self {
            Self::Boolean(value) => Label::Boolean(*value),
            Self::Integer(value) => Label::Integer(*value),
            Self::Text(value) => Label::Text(value),
            Self::Null => Label::Null,
        }
    }
}

impl<Text> Label<Text> {
    pub(super) fn boolean(self) -> Option<bool> {
        if let Self::Boolean(value) = self { Some(value) } else { None }
    }

    pub(super) fn integer(self) -> Option<i64> {
        if let Self::Integer(value) = self { Some(value) } else { None }
    }

    pub(super) fn text(self) -> Option<Text> {
        if let Self::Text(value) = self { Some(value) } else { None }
    }

    /// The label's kind; `None` for null, which fits every kind.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Boolean(_) => Some(Kind::Boolean),
            Self::Integer(_) => Some(Kind::Integer),
            Self::Text(_) => Some(Kind::Text),
            Self::Null => None,
        }
    }
}

impl Label<&str> {
    pub(super) fn owned(self) -> Label<String> {
        match self {
            Self::Boolean(value) => Label::Boolean(value),
            Self::Integer(value) => Label::Integer(value),
            Self::Text(value) => Label::Text(value.to_owned()),
            Self::Null => Label::Null,
        }
    }
}

impl fmt::Display for Label<&str> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// Formats a key for an error message: one label plainly, several as a tuple.
pub(super) fn format_key<'a>(key: impl IntoIterator<Item = Label<&'a str>>) -> String {
    let labels: Vec<String> = key.into_iter().map(|label| label.to_string()).collect();
    if labels.len() == 1 { labels.concat() } else { format!("({})", labels.join(", ")) }
}

/// The kind of a column's labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Boolean,
    Integer,
    Text,
}

impl Kind {
    /// The kind of labels in a column of this type, or in a dictionary of such values; `None` if it
    /// has no labels.
    pub(super) fn for_data_type(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Boolean => Some(Self::Boolean),
            integer if integer.is_integer() => Some(Self::Integer),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Self::Text),
            DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
                Self::for_data_type(values)
            }
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::Integer => "integers",
            Self::Text => "texts",
        }
    }
}
