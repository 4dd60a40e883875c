//! Selection by index or by coordinate.

use crate::selection::Indices;

/// The selected part of a dimension.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Selection {
    /// By index.
    Indices(Indices),
    /// By coordinate, in this order. Each label equals one coordinate exactly.
    Labels(Vec<Label>),
}

impl Selection {
    /// Selects the coordinates that equal `labels`: names of channels, pressure levels.
    pub fn labels<T: Into<Label>>(labels: impl IntoIterator<Item = T>) -> Self {
        Self::Labels(labels.into_iter().map(Into::into).collect())
    }
}

impl From<Indices> for Selection {
    fn from(indices: Indices) -> Self {
        Self::Indices(indices)
    }
}

impl<const N: usize> From<[&str; N]> for Selection {
    fn from(labels: [&str; N]) -> Self {
        Self::labels(labels)
    }
}

impl From<Vec<String>> for Selection {
    fn from(labels: Vec<String>) -> Self {
        Self::labels(labels)
    }
}

/// A value that a coordinate is compared with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Label {
    /// For coordinates that are strings.
    Text(String),
    /// For coordinates that are numbers. Coordinates stored as `f32` are compared as `f64`, so 0.1
    /// equals none of them.
    Number(f64),
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Label {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Label {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}
