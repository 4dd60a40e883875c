//! Metadata: named values that stand beside an array or a group.

use crate::{Datatype, Error};

/// The value of a metadata key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MetadataValue {
    /// Text.
    Text(String),
    /// A single integer, of whatever width.
    Integer(i128),
    /// A single float, of whatever width.
    Float(f64),
    /// Anything else, as it is stored.
    Bytes {
        /// The type of the values.
        datatype: Datatype,
        /// How many there are.
        n_values: u32,
        /// Their bytes.
        bytes: Vec<u8>,
    },
}

impl MetadataValue {
    /// The text, when it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, when it is one.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn from_raw(datatype: Datatype, n_values: u32, bytes: &[u8]) -> Self {
        if matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            // A lone zero byte is how an empty text is stored.
            return Self::Text(text.trim_end_matches('\0').to_owned());
        }
        if n_values == 1 {
            if let Some(value) = datatype.integer(bytes) {
                return Self::Integer(value);
            }
            match (datatype, bytes) {
                (Datatype::Float32, [a, b, c, d]) => {
                    return Self::Float(f32::from_le_bytes([*a, *b, *c, *d]).into());
                }
                (Datatype::Float64, _) if bytes.len() == 8 => {
                    let mut eight = [0; 8];
                    eight.copy_from_slice(bytes);
                    return Self::Float(f64::from_le_bytes(eight));
                }
                _ => {}
            }
        }
        Self::Bytes { datatype, n_values, bytes: bytes.to_vec() }
    }

    /// The datatype, the number of values and the bytes to store; integers as 64 bits.
    pub(crate) fn to_raw(&self, key: &str) -> Result<(Datatype, u32, Vec<u8>), Error> {
        Ok(match self {
            Self::Text(text) if text.is_empty() => (Datatype::StringUtf8, 1, vec![0]),
            Self::Text(text) => (Datatype::StringUtf8, text.len() as u32, text.as_bytes().to_vec()),
            Self::Integer(value) => {
                let bytes = Datatype::Int64.integer_bytes(*value).ok_or_else(|| Error::Column {
                    column: key.to_owned(),
                    uri: "metadata".into(),
                    message: format!("{value} does not fit into 64 bits"),
                })?;
                (Datatype::Int64, 1, bytes)
            }
            Self::Float(value) => (Datatype::Float64, 1, value.to_le_bytes().to_vec()),
            Self::Bytes { datatype, n_values, bytes } => (*datatype, *n_values, bytes.clone()),
        })
    }
}

impl From<&str> for MetadataValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for MetadataValue {
    fn from(value: i64) -> Self {
        Self::Integer(value.into())
    }
}
