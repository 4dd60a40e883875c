//! TileDB's configuration, as plain data and as libtiledb's object.

use std::collections::BTreeMap;
use std::ptr;

use crate::libtiledb::Error;
use crate::libtiledb::ffi::{c_string, from_c};
use crate::libtiledb::sys::{self, Functions};

/// TileDB's configuration: parameter names and values as in TileDB's own documentation, for example
/// `vfs.s3.region`.
pub type Config = BTreeMap<String, String>;

/// Parameters that users cannot set: the form of this crate's buffers, and what crashes.
const FIXED: [(&str, &str); 5] = [
    // libtiledb would take SIGINT from the program, and pass it on to the handler before by calling
    // that: in a process that ignores SIGINT, as one in a shell's background does, a call of the
    // address 1.
    ("sm.enable_signal_handlers", "false"),
    // 0 turns off a merge in which consolidation with 2.30.0 crashed; TileDB pull request 5723
    // describes a race in it.
    ("sm.query.sparse_global_order.preprocess_tile_merge", "0"),
    ("sm.var_offsets.bitsize", "64"),
    ("sm.var_offsets.extra_element", "false"),
    ("sm.var_offsets.mode", "bytes"),
];

/// Returns `config` with the fixed parameters set.
pub(crate) fn with_fixed(config: &Config) -> Config {
    let mut config = config.clone();
    config.extend(FIXED.map(|(key, value)| (key.to_owned(), value.to_owned())));
    config
}

/// A configuration of libtiledb, freed when dropped.
pub(crate) struct OwnedConfig {
    functions: &'static Functions,
    config: *mut sys::Config,
}

impl OwnedConfig {
    /// Makes libtiledb's defaults, changed by `parameters`.
    pub(crate) fn new(functions: &'static Functions, parameters: &Config) -> Result<Self, Error> {
        let failed = |uri: &str, error| Error::Call {
            operation: "setting a TileDB parameter",
            uri: uri.to_owned(),
            message: take_error(functions, error),
        };
        let (mut config, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: both out pointers are live.
        if unsafe { (functions.tiledb_config_alloc)(&raw mut config, &raw mut error) } != 0 {
            return Err(failed("libtiledb", error));
        }
        let owned = Self { functions, config };
        for (key, value) in parameters {
            let c_key = c_string("a TileDB parameter", key)?;
            // The value may be a secret, so an error names only its parameter.
            let c_value = c_string("a TileDB parameter", value).map_err(|_| Error::ZeroByte {
                what: "the value of a TileDB parameter",
                text: key.clone(),
            })?;
            // SAFETY: the configuration, both strings and the out pointer are live.
            let status = unsafe {
                (functions.tiledb_config_set)(
                    owned.config,
                    c_key.as_ptr(),
                    c_value.as_ptr(),
                    &raw mut error,
                )
            };
            if status != 0 {
                return Err(failed(key, error));
            }
        }
        Ok(owned)
    }

    pub(crate) fn raw(&self) -> *mut sys::Config {
        self.config
    }
}

impl Drop for OwnedConfig {
    fn drop(&mut self) {
        // SAFETY: allocated by the library and freed once; objects made with it keep copies.
        unsafe { (self.functions.tiledb_config_free)(&raw mut self.config) }
    }
}

/// The text of an error, which is freed.
pub(crate) fn take_error(functions: &Functions, mut error: *mut sys::Error) -> String {
    if error.is_null() {
        return "libtiledb gave no reason".into();
    }
    let mut text = ptr::null();
    // SAFETY: the error is live; its text lives until it is freed, and is copied before.
    unsafe {
        (functions.tiledb_error_message)(error, &raw mut text);
        let message = from_c(text);
        (functions.tiledb_error_free)(&raw mut error);
        message.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
