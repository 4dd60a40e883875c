//! Metadata: named values stored with an array or a group.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::ffi::{bytes, from_c};
use crate::{Datatype, Error};

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

    pub(crate) fn from_raw(datatype: Datatype, n_values: u32, bytes: &[u8]) -> Self {
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
    pub(crate) fn to_raw(&self, key: &str) -> Result<(Datatype, u32, Vec<u8>), Error> {
        let failed = |message: String| Error::Metadata { key: key.to_owned(), message };
        Ok(match self {
            Self::Text(text) => {
                let n_bytes = u32::try_from(text.len())
                    .map_err(|_| failed(format!("a text of {} bytes is too long", text.len())))?;
                (Datatype::StringUtf8, n_bytes, text.as_bytes().to_vec())
            }
            Self::Integer(value) => {
                let bytes = Datatype::Int64
                    .integer_bytes(*value)
                    .ok_or_else(|| failed(format!("{value} does not fit into 64 bits")))?;
                (Datatype::Int64, 1, bytes)
            }
            Self::Float(value) => (Datatype::Float64, 1, value.to_le_bytes().to_vec()),
            Self::Bytes { datatype, n_values, bytes } => {
                let size = datatype
                    .size()
                    .ok_or_else(|| failed(format!("the size of type {datatype:?} is not known")))?;
                // libtiledb derives the number of bytes to read from the number of values.
                if (*n_values as usize).checked_mul(size) != Some(bytes.len()) {
                    return Err(failed(format!(
                        "{n_values} values of type {datatype:?} are not {} bytes",
                        bytes.len()
                    )));
                }
                (*datatype, *n_values, bytes.clone())
            }
        })
    }
}

/// The pointer for libtiledb: null if there is no value.
pub(crate) fn data_pointer(data: &[u8]) -> *const c_void {
    if data.is_empty() { ptr::null() } else { data.as_ptr().cast() }
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

/// A metadata entry in libtiledb's memory.
pub(crate) struct RawEntry {
    pub(crate) key: *const c_char,
    pub(crate) key_length: u32,
    pub(crate) datatype: i32,
    pub(crate) n_values: u32,
    pub(crate) data: *const c_void,
}

impl Default for RawEntry {
    fn default() -> Self {
        Self { key: ptr::null(), key_length: 0, datatype: 0, n_values: 0, data: ptr::null() }
    }
}

impl RawEntry {
    /// Copies the entry.
    ///
    /// # Safety
    /// libtiledb filled in the pointers, and their memory is still live.
    pub(crate) unsafe fn read(&self) -> (String, MetadataValue) {
        let datatype = Datatype::from_raw(self.datatype);
        // The size of an unnamed type is unknown, so none of its data are read.
        let length = datatype.size().map_or(0, |size| self.n_values as usize * size);
        // SAFETY: guaranteed by the caller; the key has `key_length` bytes and the data `n_values`
        // values.
        let (key, data) = unsafe {
            (bytes(self.key.cast(), self.key_length as usize), bytes(self.data.cast(), length))
        };
        let key = if key.is_empty() {
            // SAFETY: a key without a length is a string that ends in zero.
            unsafe { from_c(self.key) }
        } else {
            String::from_utf8_lossy(key).into_owned()
        };
        let n_values = if self.data.is_null() { 0 } else { self.n_values };
        (key, MetadataValue::from_raw(datatype, n_values, data))
    }
}

/// All metadata of an open object: `count` writes the number of entries, and `entry` fills each by
/// its index.
///
/// # Safety
/// `entry` leaves the entry as libtiledb fills it, and libtiledb's memory lives until this returns.
pub(crate) unsafe fn read_all(
    count: impl FnOnce(&mut u64) -> Result<(), Error>,
    entry: impl Fn(u64, &mut RawEntry) -> Result<(), Error>,
) -> Result<Vec<(String, MetadataValue)>, Error> {
    let mut n_keys = 0;
    count(&mut n_keys)?;
    (0..n_keys)
        .map(|key_idx| {
            let mut raw = RawEntry::default();
            entry(key_idx, &mut raw)?;
            // SAFETY: as the caller vouches.
            Ok(unsafe { raw.read() })
        })
        .collect()
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
            let error = value(datatype, n_values, n_bytes).to_raw("key").unwrap_err();
            assert!(matches!(&error, Error::Metadata { key, .. } if key == "key"), "{error}");
        }
        let (_, n_values, bytes) = value(Datatype::Int64, 2, 16).to_raw("key").unwrap();
        assert_eq!((n_values, bytes.len()), (2, 16));
        assert!(MetadataValue::Integer(1 << 64).to_raw("key").is_err());
    }

    #[test]
    fn an_empty_text_is_no_values() {
        let (datatype, n_values, bytes) = MetadataValue::from("").to_raw("key").unwrap();
        assert_eq!((datatype, n_values), (Datatype::StringUtf8, 0));
        assert!(data_pointer(&bytes).is_null());
    }

    #[test]
    fn data_of_an_unnamed_type_are_not_read() {
        let (key, data) = (*b"key", [1_u8; 1]);
        let entry = RawEntry {
            key: key.as_ptr().cast(),
            key_length: 3,
            datatype: 33,
            n_values: 1000,
            data: data.as_ptr().cast(),
        };
        // SAFETY: the key has the stated length, and no data are read.
        let (key, value) = unsafe { entry.read() };
        assert_eq!(key, "key");
        let expected =
            MetadataValue::Bytes { datatype: Datatype::Other(33), n_values: 1000, bytes: vec![] };
        assert_eq!(value, expected);
    }
}
