//! Filters: how the cells of a dimension or an attribute are compressed and checked.

use std::ffi::c_void;

use crate::context::{Context, Handle};
use crate::{Datatype, Error, sys};

/// One filter of a pipeline, with its options.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Filter {
    /// Does nothing.
    None,
    /// Gzip at a level; -1 is the default level, here and below.
    Gzip(i32),
    /// Zstandard at a level.
    Zstd(i32),
    /// LZ4 at a level.
    Lz4(i32),
    /// Run lengths.
    Rle,
    /// Bzip2 at a level.
    Bzip2(i32),
    /// Differences of differences. The type, if set, overrides how the bytes are read.
    DoubleDelta(Option<Datatype>),
    /// Fewer bits for small integers, in windows of 256 bytes.
    BitWidthReduction,
    /// Fewer bits for small integers, in windows of this many bytes.
    BitWidthReductionWithin(u32),
    /// Groups the bits of the values by their significance.
    BitShuffle,
    /// Groups the bytes of the values by their significance.
    ByteShuffle,
    /// Differences, none of which may be negative.
    PositiveDelta,
    /// Appends an MD5 sum.
    ChecksumMd5,
    /// Appends a SHA-256 sum.
    ChecksumSha256,
    /// Replaces strings by their index in a dictionary.
    Dictionary,
    /// Floats as integers: `round((value - offset) / factor)` in `byte_width` bytes.
    ScaleFloat {
        /// Bytes of the integer.
        byte_width: u64,
        /// The factor.
        factor: f64,
        /// The offset.
        offset: f64,
    },
    /// Exclusive or with the previous value.
    Xor,
    /// Differences. The type, if set, overrides how the bytes are read.
    Delta(Option<Datatype>),
    /// A filter without a name in this crate, by its number in `tiledb_filter_type_t`.
    Other(i32),
}

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

impl Filter {
    fn raw(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Gzip(_) => 1,
            Self::Zstd(_) => 2,
            Self::Lz4(_) => 3,
            Self::Rle => 4,
            Self::Bzip2(_) => 5,
            Self::DoubleDelta(_) => 6,
            Self::BitWidthReduction | Self::BitWidthReductionWithin(_) => 7,
            Self::BitShuffle => 8,
            Self::ByteShuffle => 9,
            Self::PositiveDelta => 10,
            Self::ChecksumMd5 => 12,
            Self::ChecksumSha256 => 13,
            Self::Dictionary => 14,
            Self::ScaleFloat { .. } => 15,
            Self::Xor => 16,
            Self::Delta(_) => 19,
            Self::Other(number) => number,
        }
    }
}

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
                unsafe { (functions.tiledb_filter_alloc)(ctx, filter.raw(), out) }
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
            let number = datatype.raw() as u8;
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
            (datatype != NO_REINTERPRETATION).then(|| Datatype::from_raw(datatype.into())),
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
