//! The context of every call, its configuration, and handles that free themselves.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::Arc;

use crate::libtiledb::config::{OwnedConfig, take_error, with_fixed};
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::load::{Loaded, loaded};
use crate::libtiledb::sys::{self, Functions};
use crate::{Config, Error, ObjectType};

/// A libtiledb context: its threads, caches and configuration. Clones share it.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    library: &'static Loaded,
    ctx: *mut sys::Ctx,
    // Freed after the context by `drop`.
    config: OwnedConfig,
    parameters: Config,
}

// SAFETY: TileDB documents a tiledb_ctx_t as thread-safe; the configuration does not change after
// construction.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: allocated by the library and freed once; no handle remains, since each keeps a
        // clone of the context.
        unsafe { (self.library.functions.tiledb_ctx_free)(&raw mut self.ctx) }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Context")
            .field("library", &self.0.library.path)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// Makes a context with TileDB's defaults, changed by `config`. Loads libtiledb if this is the
    /// first context of the process.
    ///
    /// A value that TileDB rejects is an error. An unknown name is not, since programs share
    /// configurations. The parameters `sm.var_offsets.*` are always set to the form that this crate
    /// reads, whatever `config` contains: 64-bit offsets in bytes, one for each cell.
    /// `sm.query.sparse_global_order.preprocess_tile_merge` is always 0: consolidation crashed in
    /// the code that it turns on. `sm.enable_signal_handlers` is always false: signals are the
    /// program's, and libtiledb's handler crashes where SIGINT is ignored.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let library = loaded()?;
        let functions = &library.functions;
        let parameters = with_fixed(config);
        let config = OwnedConfig::new(functions, &parameters)?;
        let (mut ctx, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the configuration is live, the out pointers too.
        let status = unsafe {
            (functions.tiledb_ctx_alloc_with_error)(config.raw(), &raw mut ctx, &raw mut error)
        };
        let inner = Inner { library, ctx, config, parameters };
        if status != 0 {
            let message = take_error(functions, error);
            return Err(Error::Call {
                operation: "creating a context",
                uri: "libtiledb".into(),
                message,
            });
        }
        Ok(Self(Arc::new(inner)))
    }

    /// The parameters of the context, including those that are always set.
    pub fn config(&self) -> &Config {
        &self.0.parameters
    }

    /// Makes a context like this one with some parameters changed.
    pub fn with(&self, changes: &[(&str, String)]) -> Result<Self, Error> {
        Self::new(&self.changed(changes))
    }

    /// Bytes read from storage through this context so far, according to libtiledb's statistics.
    pub fn bytes_read(&self) -> Result<u64, Error> {
        let mut text: *mut c_char = ptr::null_mut();
        self.call("reading statistics", "libtiledb", |functions, ctx| {
            // SAFETY: the context is live and the out pointer too.
            unsafe { (functions.tiledb_ctx_get_stats)(ctx, &raw mut text) }
        })?;
        // SAFETY: on success the text is a string that ends in zero, to be freed by its own
        // function.
        let statistics = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: as above.
        unsafe { (self.functions().tiledb_stats_free_str)(&raw mut text) };
        Ok(counter(&statistics, "Context.VFS.read_byte_num"))
    }

    /// Whether an array, a group or neither is at `uri`.
    pub fn object_type(&self, uri: &str) -> Result<Option<ObjectType>, Error> {
        let c_uri = c_string("a URI", uri)?;
        let mut kind = 0;
        self.call("looking up", uri, |functions, ctx| {
            // SAFETY: context, string and out pointer are live.
            unsafe { (functions.tiledb_object_type)(ctx, c_uri.as_ptr(), &raw mut kind) }
        })?;
        Ok(ObjectType::from_number(kind))
    }

    pub(crate) fn functions(&self) -> &'static Functions {
        &self.0.library.functions
    }

    pub(crate) fn raw_config(&self) -> *mut sys::Config {
        self.0.config.raw()
    }

    /// Makes a configuration like the context's with some parameters changed, for one object.
    pub(crate) fn config_with(&self, changes: &[(&str, String)]) -> Result<OwnedConfig, Error> {
        let changed = self.changed(changes);
        OwnedConfig::new(self.functions(), &with_fixed(&changed))
    }

    fn changed(&self, changes: &[(&str, String)]) -> Config {
        let mut config = self.config().clone();
        config.extend(changes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        config
    }

    /// Runs a call and turns its status into a result; the error has libtiledb's message, the
    /// operation and the URI.
    pub(crate) fn call(
        &self,
        operation: &'static str,
        uri: &str,
        call: impl FnOnce(&Functions, *mut sys::Ctx) -> i32,
    ) -> Result<(), Error> {
        let functions = self.functions();
        if call(functions, self.0.ctx) == 0 {
            return Ok(());
        }
        let mut error = ptr::null_mut();
        // SAFETY: context and out pointer are live.
        unsafe { (functions.tiledb_ctx_get_last_error)(self.0.ctx, &raw mut error) };
        Err(Error::Call { operation, uri: uri.to_owned(), message: take_error(functions, error) })
    }

    /// Runs a call that creates an object, and wraps the object in a handle.
    pub(crate) fn make<T>(
        &self,
        operation: &'static str,
        uri: &str,
        free: fn(&Functions, &mut *mut T),
        call: impl FnOnce(&Functions, *mut sys::Ctx, *mut *mut T) -> i32,
    ) -> Result<Handle<T>, Error> {
        let mut pointer = ptr::null_mut();
        self.call(operation, uri, |functions, ctx| call(functions, ctx, &raw mut pointer))?;
        Ok(Handle { pointer, context: self.clone(), free })
    }
}

/// A libtiledb object that is freed when dropped, before its context.
pub(crate) struct Handle<T> {
    pointer: *mut T,
    context: Context,
    free: fn(&Functions, &mut *mut T),
}

// SAFETY: libtiledb's objects are not bound to a thread; a handle is used by one thread at a time,
// or only for calls that read it.
unsafe impl<T> Send for Handle<T> {}

impl<T> Handle<T> {
    pub(crate) fn get(&self) -> *mut T {
        self.pointer
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        (self.free)(self.context.functions(), &mut self.pointer);
    }
}

/// The number after `"name": ` in libtiledb's statistics; 0 if it is absent, for example before the
/// first read.
fn counter(statistics: &str, name: &str) -> u64 {
    let key = format!("\"{name}\":");
    let Some(at) = statistics.find(&key) else { return 0 };
    let digits = statistics[at + key.len()..].trim_start();
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())]
        .parse()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_parameter_is_an_error_with_its_name() {
        let config = Config::from([("sm.compute_concurrency_level".to_owned(), "many".to_owned())]);
        let message = Context::new(&config).unwrap_err().to_string();
        assert!(message.contains("for sm.compute_concurrency_level:"), "{message}");
    }

    #[test]
    fn parameters_of_offsets_are_not_the_users_to_set() {
        let config = Config::from([
            ("sm.var_offsets.bitsize".to_owned(), "32".to_owned()),
            ("sm.memory_budget".to_owned(), "1000000".to_owned()),
        ]);
        let context = Context::new(&config).unwrap();
        let changed = context.with(&[("sm.var_offsets.mode", "elements".to_owned())]).unwrap();
        assert_eq!(changed.config()["sm.var_offsets.bitsize"], "64");
        assert_eq!(changed.config()["sm.var_offsets.mode"], "bytes");
        assert_eq!(changed.config()["sm.memory_budget"], "1000000");
    }

    #[test]
    fn nothing_is_at_a_missing_path() {
        let context = Context::new(&Config::new()).unwrap();
        assert_eq!(context.object_type("/nowhere/at/all").unwrap(), None);
    }

    #[test]
    fn a_counter_is_found_in_the_statistics() {
        let text = "{\n \"Context.VFS.read_byte_num\": 1234,\n \"Context.VFS.read_ops_num\": 5\n}";
        assert_eq!(counter(text, "Context.VFS.read_byte_num"), 1234);
        assert_eq!(counter(text, "absent"), 0);
    }
}
