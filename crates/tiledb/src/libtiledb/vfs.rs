//! Files and folders on every storage that libtiledb reaches: local disks and object stores.

use std::ffi::{c_char, c_void};

use crate::Error;
use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::{c_string, from_c};
use crate::libtiledb::sys;

/// A view of the file systems that libtiledb knows, with a context's configuration.
pub struct Vfs(Handle<sys::Vfs>);

impl std::fmt::Debug for Vfs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Vfs")
    }
}

fn free(functions: &sys::Functions, vfs: &mut *mut sys::Vfs) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_vfs_free)(vfs) }
}

impl Vfs {
    /// Makes a view with the configuration of `context`.
    pub fn new(context: &Context) -> Result<Self, Error> {
        let config = context.raw_config();
        context
            .make("opening the file system", "libtiledb", free, |functions, ctx, out| {
                // SAFETY: context, configuration and out pointer are live.
                unsafe { (functions.tiledb_vfs_alloc)(ctx, config, out) }
            })
            .map(Self)
    }

    fn on(
        &self,
        operation: &'static str,
        uri: &str,
        call: impl FnOnce(&sys::Functions, *mut sys::Ctx, *mut sys::Vfs, *const c_char) -> i32,
    ) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        self.0.context().call(operation, uri, |functions, ctx| {
            call(functions, ctx, self.0.get(), c_uri.as_ptr())
        })
    }

    /// Whether there is a folder at `uri`.
    pub fn is_dir(&self, uri: &str) -> Result<bool, Error> {
        let mut is = 0;
        self.on("looking for a folder", uri, |functions, ctx, vfs, path| {
            // SAFETY: all pointers are live.
            unsafe { (functions.tiledb_vfs_is_dir)(ctx, vfs, path, &raw mut is) }
        })?;
        Ok(is != 0)
    }

    /// Whether there is a file at `uri`.
    pub fn is_file(&self, uri: &str) -> Result<bool, Error> {
        let mut is = 0;
        self.on("looking for a file", uri, |functions, ctx, vfs, path| {
            // SAFETY: all pointers are live.
            unsafe { (functions.tiledb_vfs_is_file)(ctx, vfs, path, &raw mut is) }
        })?;
        Ok(is != 0)
    }

    /// Creates a folder.
    pub fn create_dir(&self, uri: &str) -> Result<(), Error> {
        self.on("making a folder", uri, |functions, ctx, vfs, path| {
            // SAFETY: all pointers are live.
            unsafe { (functions.tiledb_vfs_create_dir)(ctx, vfs, path) }
        })
    }

    /// Removes a folder with all its contents.
    pub fn remove_dir(&self, uri: &str) -> Result<(), Error> {
        self.on("removing a folder", uri, |functions, ctx, vfs, path| {
            // SAFETY: all pointers are live.
            unsafe { (functions.tiledb_vfs_remove_dir)(ctx, vfs, path) }
        })
    }

    /// Lists the full URIs of a folder's entries, sorted.
    pub fn ls(&self, uri: &str) -> Result<Vec<String>, Error> {
        unsafe extern "C" fn push(path: *const c_char, found: *mut c_void) -> i32 {
            // SAFETY: `found` is the vector that was passed below, and `path` a string that ends in
            // zero.
            unsafe { (*found.cast::<Vec<String>>()).push(from_c(path)) };
            1
        }
        let mut found: Vec<String> = Vec::new();
        self.on("listing a folder", uri, |functions, ctx, vfs, path| {
            // SAFETY: all pointers are live, and the vector outlives the call.
            unsafe { (functions.tiledb_vfs_ls)(ctx, vfs, path, push, (&raw mut found).cast()) }
        })?;
        found.sort();
        Ok(found)
    }
}
