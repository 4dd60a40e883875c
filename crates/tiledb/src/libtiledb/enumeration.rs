//! Makes enumerations, and reads them.

use std::ffi::c_void;
use std::ptr;

use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::{bytes, c_string};
use crate::libtiledb::sys;
use crate::libtiledb::sys::Functions;
use crate::{Datatype, Enumeration, EnumerationValues, Error};

fn free(functions: &Functions, enumeration: &mut *mut sys::Enumeration) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_enumeration_free)(enumeration) }
}

/// Makes libtiledb's object of an enumeration.
pub(crate) fn build(
    enumeration: &Enumeration,
    context: &Context,
    uri: &str,
) -> Result<Handle<sys::Enumeration>, Error> {
    let name = c_string("an enumeration's name", &enumeration.name)?;
    let (data, offsets, n_values) = match &enumeration.values {
        EnumerationValues::Fixed(bytes) => (bytes.clone(), Vec::new(), 1),
        EnumerationValues::VarSized(values) => {
            let offsets: Vec<u64> = values
                .iter()
                .scan(0, |at, value| {
                    let start = *at;
                    *at += value.len() as u64;
                    Some(start)
                })
                .collect();
            (values.concat(), offsets, u32::MAX)
        }
    };
    let pointer = |empty: bool, start: *const c_void| if empty { ptr::null() } else { start };
    context.make("making an enumeration", uri, free, |functions, ctx, out| {
        // SAFETY: name, data and offsets are live with the sizes given; libtiledb copies them.
        unsafe {
            (functions.tiledb_enumeration_alloc)(
                ctx,
                name.as_ptr(),
                enumeration.datatype.number(),
                n_values,
                enumeration.ordered.into(),
                // libtiledb needs a pointer even if all values are empty strings.
                pointer(offsets.is_empty() && data.is_empty(), data.as_ptr().cast()),
                data.len() as u64,
                pointer(offsets.is_empty(), offsets.as_ptr().cast()),
                size_of_val(offsets.as_slice()) as u64,
                out,
            )
        }
    })
}

/// Reads the enumeration that `get` returns.
pub(crate) fn read(
    context: &Context,
    uri: &str,
    name: &str,
    get: impl FnOnce(&Functions, *mut sys::Ctx, *mut *mut sys::Enumeration) -> i32,
) -> Result<Enumeration, Error> {
    let raw = context.make("reading an enumeration", uri, free, get)?;
    let (mut number, mut ordered, mut n_values) = (0, 0, 0);
    let (mut data, mut data_size, mut offsets, mut offsets_size) = (ptr::null(), 0, ptr::null(), 0);
    context.call("reading an enumeration", uri, |functions, ctx| {
        // SAFETY: the enumeration and the out pointers are live.
        unsafe {
            (functions.tiledb_enumeration_get_type)(ctx, raw.get(), &raw mut number)
                | (functions.tiledb_enumeration_get_ordered)(ctx, raw.get(), &raw mut ordered)
                | (functions.tiledb_enumeration_get_cell_val_num)(ctx, raw.get(), &raw mut n_values)
                | (functions.tiledb_enumeration_get_data)(
                    ctx,
                    raw.get(),
                    &raw mut data,
                    &raw mut data_size,
                )
                | (functions.tiledb_enumeration_get_offsets)(
                    ctx,
                    raw.get(),
                    &raw mut offsets,
                    &raw mut offsets_size,
                )
        }
    })?;
    // SAFETY: both are as long as libtiledb says, and live as long as the enumeration.
    let (data, offsets) = unsafe {
        (bytes(data.cast(), data_size as usize), bytes(offsets.cast(), offsets_size as usize))
    };
    let values = if n_values == u32::MAX {
        let starts: Vec<usize> = offsets
            .as_chunks::<8>()
            .0
            .iter()
            .map(|start| u64::from_le_bytes(*start) as usize)
            .collect();
        let ends = starts.iter().skip(1).copied().chain([data.len()]);
        let value =
            |(start, end): (&usize, usize)| data.get(*start..end).unwrap_or_default().to_vec();
        EnumerationValues::VarSized(starts.iter().zip(ends).map(value).collect())
    } else {
        EnumerationValues::Fixed(data.to_vec())
    };
    Ok(Enumeration {
        name: name.to_owned(),
        datatype: Datatype::from_number(number),
        ordered: ordered != 0,
        values,
    })
}
