//! Strings and bytes on their way to C and back.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use crate::libtiledb::Error;
use crate::libtiledb::sys::{self, Functions};

/// Converts a string for C.
pub(crate) fn c_string(what: &'static str, text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::ZeroByte { what, text: text.to_owned() })
}

/// Copies a string of libtiledb; a null pointer gives an empty string.
///
/// # Safety
/// `text` is null or a string that ends in zero.
pub(crate) unsafe fn from_c(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Copies the text of a string handle, and frees the handle.
///
/// # Safety
/// `handle` is null or a live string handle that nothing else uses.
pub(crate) unsafe fn take_string(
    functions: &Functions,
    mut handle: *mut sys::StringHandle,
) -> Option<String> {
    if handle.is_null() {
        return None;
    }
    let (mut data, mut length) = (ptr::null(), 0);
    // SAFETY: the handle is live; on success the bytes live until it is freed, below.
    let text = unsafe {
        ((functions.tiledb_string_view)(handle, &raw mut data, &raw mut length) == 0)
            .then(|| String::from_utf8_lossy(bytes(data.cast(), length)).into_owned())
    };
    // SAFETY: as above.
    unsafe { (functions.tiledb_string_free)(&raw mut handle) };
    text
}

/// Borrows libtiledb's bytes; a null pointer gives none.
///
/// # Safety
/// `data` is null or points to `length` bytes that outlive `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(data, length) }
}
