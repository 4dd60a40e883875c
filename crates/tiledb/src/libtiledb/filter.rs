//! Builds pipelines of filters, and reads them.

use std::ffi::c_void;

use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::sys;
use crate::{Datatype, Error, Filter};

const COMPRESSION_LEVEL: i32 = 0;
const BIT_WIDTH_MAX_WINDOW: i32 = 1;
const SCALE_FLOAT_BYTE_WIDTH: i32 = 3;
const SCALE_FLOAT_FACTOR: i32 = 4;
const SCALE_FLOAT_OFFSET: i32 = 5;
const COMPRESSION_REINTERPRET: i32 = 9;
/// libtiledb's default window for bit-width reduction.
const DEFAULT_WINDOW_BYTES: u32 = 256;
/// `TILEDB_ANY`: the value that means no reinterpretation.
const NO_REINTERPRETATION: u8 = 17;

fn free_filter(functions: &sys::Functions, filter: &mut *mut sys::Filter) {
    // SAFETY: the handle owns the filter and frees it once.
    unsafe { (functions.tiledb_filter_free)(filter) }
}

fn free_list(functions: &sys::Functions, list: &mut *mut sys::FilterList) {
    // SAFETY: the handle owns the list and frees it once.
    unsafe { (functions.tiledb_filter_list_free)(list) }
}

/// Builds a pipeline.
pub(crate) fn build(
    context: &Context,
    filters: &[Filter],
) -> Result<Handle<sys::FilterList>, Error> {
    let list =
        context.make("making a filter list", "a schema", free_list, |functions, ctx, out| {
            // SAFETY: context and out pointer are live.
            unsafe { (functions.tiledb_filter_list_alloc)(ctx, out) }
        })?;
    for filter in filters {
        let raw =
            context.make("making a filter", "a schema", free_filter, |functions, ctx, out| {
                // SAFETY: context and out pointer are live.
                unsafe { (functions.tiledb_filter_alloc)(ctx, filter.number(), out) }
            })?;
        set_options(context, &raw, *filter)?;
        context.call("adding a filter", "a schema", |functions, ctx| {
            // SAFETY: both handles are live; the list keeps a copy.
            unsafe { (functions.tiledb_filter_list_add_filter)(ctx, list.get(), raw.get()) }
        })?;
    }
    Ok(list)
}

fn set_options(context: &Context, raw: &Handle<sys::Filter>, filter: Filter) -> Result<(), Error> {
    let set = |option: i32, value: *const c_void| {
        context.call("setting a filter's option", "a schema", |functions, ctx| {
            // SAFETY: the filter is live and `value` points to a value of the option's type.
            unsafe { (functions.tiledb_filter_set_option)(ctx, raw.get(), option, value) }
        })
    };
    match filter {
        Filter::Gzip(level) | Filter::Zstd(level) | Filter::Lz4(level) | Filter::Bzip2(level) => {
            set(COMPRESSION_LEVEL, (&raw const level).cast())
        }
        Filter::DoubleDelta(Some(datatype)) | Filter::Delta(Some(datatype)) => {
            let number = datatype.number() as u8;
            set(COMPRESSION_REINTERPRET, (&raw const number).cast())
        }
        Filter::BitWidthReductionWithin(n_bytes) => {
            set(BIT_WIDTH_MAX_WINDOW, (&raw const n_bytes).cast())
        }
        Filter::ScaleFloat { byte_width, factor, offset } => {
            set(SCALE_FLOAT_BYTE_WIDTH, (&raw const byte_width).cast())?;
            set(SCALE_FLOAT_FACTOR, (&raw const factor).cast())?;
            set(SCALE_FLOAT_OFFSET, (&raw const offset).cast())
        }
        _ => Ok(()),
    }
}

/// Reads the pipeline that `get` returns.
pub(crate) fn read(
    context: &Context,
    uri: &str,
    get: impl FnOnce(&sys::Functions, *mut sys::Ctx, *mut *mut sys::FilterList) -> i32,
) -> Result<Vec<Filter>, Error> {
    let list = context.make("reading filters", uri, free_list, get)?;
    let mut n_filters = 0;
    context.call("reading filters", uri, |functions, ctx| {
        // SAFETY: handle and out pointer are live.
        unsafe { (functions.tiledb_filter_list_get_nfilters)(ctx, list.get(), &raw mut n_filters) }
    })?;
    (0..n_filters)
        .map(|filter_idx| {
            let filter =
                context.make("reading a filter", uri, free_filter, |functions, ctx, out| {
                    // SAFETY: handle and out pointer are live, and the index is below the count.
                    unsafe {
                        (functions.tiledb_filter_list_get_filter_from_index)(
                            ctx,
                            list.get(),
                            filter_idx,
                            out,
                        )
                    }
                })?;
            read_one(context, uri, &filter)
        })
        .collect()
}

fn read_one(context: &Context, uri: &str, filter: &Handle<sys::Filter>) -> Result<Filter, Error> {
    let mut number = 0;
    context.call("reading a filter", uri, |functions, ctx| {
        // SAFETY: handle and out pointer are live.
        unsafe { (functions.tiledb_filter_get_type)(ctx, filter.get(), &raw mut number) }
    })?;
    let get = |option: i32, value: *mut c_void| {
        context.call("reading a filter's option", uri, |functions, ctx| {
            // SAFETY: the filter is live and `value` points to room for a value of the option's
            // type.
            unsafe { (functions.tiledb_filter_get_option)(ctx, filter.get(), option, value) }
        })
    };
    let level = || {
        let mut level = 0_i32;
        get(COMPRESSION_LEVEL, (&raw mut level).cast()).map(|()| level)
    };
    let reinterpretation = || {
        let mut datatype = 0_u8;
        get(COMPRESSION_REINTERPRET, (&raw mut datatype).cast())?;
        Ok::<_, Error>(
            (datatype != NO_REINTERPRETATION).then(|| Datatype::from_number(datatype.into())),
        )
    };
    Ok(match number {
        0 => Filter::None,
        1 => Filter::Gzip(level()?),
        2 => Filter::Zstd(level()?),
        3 => Filter::Lz4(level()?),
        4 => Filter::Rle,
        5 => Filter::Bzip2(level()?),
        6 => Filter::DoubleDelta(reinterpretation()?),
        7 => {
            let mut n_bytes = 0_u32;
            get(BIT_WIDTH_MAX_WINDOW, (&raw mut n_bytes).cast())?;
            match n_bytes {
                DEFAULT_WINDOW_BYTES => Filter::BitWidthReduction,
                n_bytes => Filter::BitWidthReductionWithin(n_bytes),
            }
        }
        8 => Filter::BitShuffle,
        9 => Filter::ByteShuffle,
        10 => Filter::PositiveDelta,
        12 => Filter::ChecksumMd5,
        13 => Filter::ChecksumSha256,
        14 => Filter::Dictionary,
        15 => {
            let (mut byte_width, mut factor, mut offset) = (0_u64, 0_f64, 0_f64);
            get(SCALE_FLOAT_BYTE_WIDTH, (&raw mut byte_width).cast())?;
            get(SCALE_FLOAT_FACTOR, (&raw mut factor).cast())?;
            get(SCALE_FLOAT_OFFSET, (&raw mut offset).cast())?;
            Filter::ScaleFloat { byte_width, factor, offset }
        }
        16 => Filter::Xor,
        19 => Filter::Delta(reinterpretation()?),
        other => Filter::Other(other),
    })
}
