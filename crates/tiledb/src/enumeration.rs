//! Enumerations: the values that an attribute's codes stand for.

use crate::Datatype;

/// An enumeration: code `i` stands for value `i`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// Whether its values have an order.
    pub ordered: bool,
    /// The values.
    pub values: EnumerationValues,
}

/// The values of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnumerationValues {
    /// Texts or bytes of any length.
    VarSized(Vec<Vec<u8>>),
    /// Values of the datatype's size, one after another.
    Fixed(Vec<u8>),
}

impl Enumeration {
    /// Makes an unordered enumeration of UTF-8 strings.
    pub fn of_strings<S: AsRef<str>>(name: &str, values: impl IntoIterator<Item = S>) -> Self {
        Self {
            name: name.to_owned(),
            datatype: Datatype::StringUtf8,
            ordered: false,
            values: EnumerationValues::VarSized(
                values.into_iter().map(|value| value.as_ref().as_bytes().to_vec()).collect(),
            ),
        }
    }

    /// The values as text; `None` if they are not text.
    pub fn strings(&self) -> Option<Vec<&str>> {
        match &self.values {
            EnumerationValues::VarSized(values) if self.datatype.is_string() => {
                values.iter().map(|value| std::str::from_utf8(value).ok()).collect()
            }
            _ => None,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.values {
            EnumerationValues::VarSized(values) => values.len(),
            EnumerationValues::Fixed(bytes) => bytes.len() / self.datatype.size().unwrap_or(1),
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
