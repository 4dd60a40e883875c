//! Changes the schema of an existing array.

use super::build::{build_attribute, build_current_domain, build_domain};
use crate::libtiledb::context::Context;
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::sys;
use crate::{Array, Attribute, Error};

/// Changes to the schema of an array. Existing cells get the fill value of new attributes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evolution {
    /// Attributes to add.
    pub added: Vec<Attribute>,
    /// Names of attributes to drop.
    pub dropped: Vec<String>,
    /// The new current domain, which must contain the present one: for each dimension the least and
    /// the greatest coordinate, both included.
    pub current_domain: Option<Vec<(i128, i128)>>,
    /// The time from which the schema applies, in milliseconds since 1970; `None` means now.
    pub timestamp: Option<u64>,
}

fn free(functions: &sys::Functions, evolution: &mut *mut sys::ArraySchemaEvolution) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_array_schema_evolution_free)(evolution) }
}

/// Writes a new schema for the array at `uri`.
pub(crate) fn evolve(context: &Context, uri: &str, evolution: &Evolution) -> Result<(), Error> {
    const OPERATION: &str = "changing a schema";
    let c_uri = c_string("a URI", uri)?;
    let raw = context.make(OPERATION, uri, free, |functions, ctx, out| {
        // SAFETY: context and out pointer are live.
        unsafe { (functions.tiledb_array_schema_evolution_alloc)(ctx, out) }
    })?;
    for attribute in &evolution.added {
        let handle = build_attribute(context, uri, attribute)?;
        context.call(OPERATION, uri, |functions, ctx| {
            // SAFETY: both handles are live; a copy is taken.
            unsafe {
                (functions.tiledb_array_schema_evolution_add_attribute)(
                    ctx,
                    raw.get(),
                    handle.get(),
                )
            }
        })?;
    }
    for name in &evolution.dropped {
        let c_name = c_string("an attribute's name", name)?;
        context.call(OPERATION, uri, |functions, ctx| {
            // SAFETY: handle and string are live; a copy is taken.
            unsafe {
                (functions.tiledb_array_schema_evolution_drop_attribute)(
                    ctx,
                    raw.get(),
                    c_name.as_ptr(),
                )
            }
        })?;
    }
    if let Some(bounds) = &evolution.current_domain {
        let array = Array::open(context, uri, None)?;
        let dimensions = &array.schema().dimensions;
        let domain = build_domain(context, uri, dimensions)?;
        let current = build_current_domain((context, uri), &domain, dimensions, bounds)?;
        context.call(OPERATION, uri, |functions, ctx| {
            // SAFETY: both handles are live; a copy is taken.
            unsafe {
                (functions.tiledb_array_schema_evolution_expand_current_domain)(
                    ctx,
                    raw.get(),
                    current.get(),
                )
            }
        })?;
    }
    if let Some(time) = evolution.timestamp {
        context.call(OPERATION, uri, |functions, ctx| {
            // SAFETY: the handle is live.
            unsafe {
                (functions.tiledb_array_schema_evolution_set_timestamp_range)(
                    ctx,
                    raw.get(),
                    time,
                    time,
                )
            }
        })?;
    }
    context.call(OPERATION, uri, |functions, ctx| {
        // SAFETY: handle and string are live.
        unsafe { (functions.tiledb_array_evolve)(ctx, c_uri.as_ptr(), raw.get()) }
    })
}
