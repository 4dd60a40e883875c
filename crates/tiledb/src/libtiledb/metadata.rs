//! Reads and writes the metadata of arrays and groups.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::libtiledb::ffi::{bytes, from_c};
use crate::{Datatype, Error, MetadataValue};

/// The datatype, the number of values and the bytes with which libtiledb stores a value.
pub(crate) fn stored(key: &str, value: &MetadataValue) -> Result<(Datatype, u32, Vec<u8>), Error> {
    value.to_stored().map_err(|message| Error::Metadata { key: key.to_owned(), message })
}

/// The pointer for libtiledb: null if there is no value.
pub(crate) fn data_pointer(data: &[u8]) -> *const c_void {
    if data.is_empty() { ptr::null() } else { data.as_ptr().cast() }
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
        let datatype = Datatype::from_number(self.datatype);
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
        (key, MetadataValue::from_stored(datatype, n_values, data))
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
    fn no_data_have_no_address() {
        assert!(data_pointer(&[]).is_null() && !data_pointer(&[0]).is_null());
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
