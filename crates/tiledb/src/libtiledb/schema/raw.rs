//! libtiledb's objects that make up a schema, and how to free each.

use crate::Error;
use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::sys;
use crate::libtiledb::sys::Functions;

pub(super) fn free_schema(functions: &Functions, schema: &mut *mut sys::ArraySchema) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_array_schema_free)(schema) }
}

pub(super) fn free_domain(functions: &Functions, domain: &mut *mut sys::Domain) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_domain_free)(domain) }
}

pub(super) fn free_dimension(functions: &Functions, dimension: &mut *mut sys::Dimension) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_dimension_free)(dimension) }
}

pub(super) fn free_attribute(functions: &Functions, attribute: &mut *mut sys::Attribute) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_attribute_free)(attribute) }
}

pub(super) fn free_current_domain(functions: &Functions, domain: &mut *mut sys::CurrentDomain) {
    // SAFETY: the handle owns the object and frees it once. Nothing could be done about a failure.
    let _ = unsafe { (functions.tiledb_current_domain_free)(domain) };
}

pub(super) fn free_rectangle(functions: &Functions, rectangle: &mut *mut sys::NdRectangle) {
    // SAFETY: the handle owns the object and frees it once. Nothing could be done about a failure.
    let _ = unsafe { (functions.tiledb_ndrectangle_free)(rectangle) };
}

/// A libtiledb schema, with its array's URI for messages.
pub(super) struct Raw<'a> {
    pub(super) context: &'a Context,
    pub(super) handle: Handle<sys::ArraySchema>,
    pub(super) uri: &'a str,
}

impl Raw<'_> {
    pub(super) fn call(
        &self,
        call: impl FnOnce(&Functions, *mut sys::Ctx, *mut sys::ArraySchema) -> i32,
    ) -> Result<(), Error> {
        self.context.call("reading or making a schema", self.uri, |functions, ctx| {
            call(functions, ctx, self.handle.get())
        })
    }

    /// One number of the schema.
    pub(super) fn number<N: Default>(
        &self,
        get: impl FnOnce(
            &Functions,
        )
            -> unsafe extern "C" fn(*mut sys::Ctx, *mut sys::ArraySchema, *mut N) -> i32,
    ) -> Result<N, Error> {
        let mut number = N::default();
        // SAFETY: the schema is live, the out pointer too.
        self.call(|functions, ctx, schema| unsafe {
            get(functions)(ctx, schema, &raw mut number)
        })?;
        Ok(number)
    }
}
