//! Metadata: named values stored with an array or a group.

use crate::Datatype;

/// The value of a metadata key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MetadataValue {
    /// Text.
    Text(String),
    /// A single integer of any width.
    Integer(i128),
    /// A single float of any width.
    Float(f64),
    /// Any other value, as stored.
    Bytes {
        /// The type of the values.
        datatype: Datatype,
        /// Number of values.
        n_values: u32,
        /// Their bytes: `n_values` times the size of the datatype. Empty when read as
        /// [`Datatype::Other`], whose size is not known; such a value cannot be written.
        bytes: Vec<u8>,
    },
}

impl MetadataValue {
    /// The text, if the value is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if the value is one.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The value that is stored as `n_values` values of `datatype` with these bytes.
    pub fn from_stored(datatype: Datatype, n_values: u32, bytes: &[u8]) -> Self {
        if matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Self::Text(text.to_owned());
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

    /// The datatype, the number of values and the bytes to store. Integers take 64 bits; an empty
    /// text has no values.
    ///
    /// # Errors
    /// The reason why the value cannot be stored.
    pub fn to_stored(&self) -> Result<(Datatype, u32, Vec<u8>), String> {
        Ok(match self {
            Self::Text(text) => {
                let n_bytes = u32::try_from(text.len())
                    .map_err(|_| format!("a text of {} bytes is too long", text.len()))?;
                (Datatype::StringUtf8, n_bytes, text.as_bytes().to_vec())
            }
            Self::Integer(value) => {
                let bytes = Datatype::Int64
                    .integer_bytes(*value)
                    .ok_or_else(|| format!("{value} does not fit into 64 bits"))?;
                (Datatype::Int64, 1, bytes)
            }
            Self::Float(value) => (Datatype::Float64, 1, value.to_le_bytes().to_vec()),
            Self::Bytes { datatype, n_values, bytes } => {
                let size = datatype
                    .size()
                    .ok_or_else(|| format!("the size of type {datatype:?} is not known"))?;
                // TileDB derives the number of bytes to read from the number of values.
                if (*n_values as usize).checked_mul(size) != Some(bytes.len()) {
                    return Err(format!(
                        "{n_values} values of type {datatype:?} are not {} bytes",
                        bytes.len()
                    ));
                }
                (*datatype, *n_values, bytes.clone())
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_another_length_than_their_values_are_refused() {
        let value = |datatype, n_values, n_bytes| MetadataValue::Bytes {
            datatype,
            n_values,
            bytes: vec![7; n_bytes],
        };
        for (datatype, n_values, n_bytes) in [
            (Datatype::Int64, 64, 8),
            (Datatype::Int64, 1, 9),
            (Datatype::Blob, 1, 0),
            (Datatype::Float32, 0, 4),
            (Datatype::Other(33), 1, 8),
        ] {
            assert!(value(datatype, n_values, n_bytes).to_stored().is_err(), "{datatype:?}");
        }
        let (_, n_values, bytes) = value(Datatype::Int64, 2, 16).to_stored().unwrap();
        assert_eq!((n_values, bytes.len()), (2, 16));
        assert!(MetadataValue::Integer(1 << 64).to_stored().is_err());
    }

    #[test]
    fn an_empty_text_is_no_values() {
        let (datatype, n_values, bytes) = MetadataValue::from("").to_stored().unwrap();
        assert_eq!((datatype, n_values), (Datatype::StringUtf8, 0));
        assert!(bytes.is_empty());
    }
}
