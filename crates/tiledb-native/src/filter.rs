//! Filter pipelines: their form in schemas, and their meaning for a type of values.
//!
//! Specification: `format_spec/filter_pipeline.md` and `tile.md`. A schema or the header of a
//! generic tile contains a pipeline and its options. The integer type that a filter computes with
//! depends on the type of the values and on the filters before it. So a pipeline is *bound* to a
//! type, and to the fragment's format version, before it decodes anything.

mod checksum;
mod compression;
mod description;
mod double_delta;
pub(crate) mod encode;
pub(crate) mod filtered;
mod floats;
mod integers;
pub(crate) mod pipeline;
mod shuffle;
pub(crate) mod texts;

use crate::cursor::Cursor;
use crate::datatype::{Datatype, Number};
use crate::error::Fault;
pub(crate) use pipeline::{Decoded, Decoder, Pipeline};

/// A filter as stored in a schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filter {
    None,
    /// With the compression level for writing.
    Compress(Codec, i32),
    Delta {
        reinterpret: Datatype,
    },
    DoubleDelta {
        reinterpret: Datatype,
    },
    /// With the largest window that the writer may make, in bytes.
    BitWidthReduction {
        max_window: u32,
    },
    Bitshuffle,
    Byteshuffle,
    PositiveDelta,
    Md5,
    Sha256,
    FloatScale {
        scale: f64,
        offset: f64,
        byte_width: u64,
    },
    Xor,
    /// Texts by their indices in a dictionary; only for texts of variable size ([`texts`]).
    Dictionary,
    /// A known filter that this crate does not decode, by its number.
    Named(u8, &'static str),
    Unknown(u8),
}

impl Filter {
    /// Whether it stores run lengths.
    pub(crate) fn is_run_lengths(&self) -> bool {
        matches!(self, Self::Compress(Codec::Rle, _))
    }
}

/// A general compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zstd,
    Lz4,
    Rle,
    Bzip2,
}

/// The first format versions that store the type to which a delta filter reinterprets its input.
const DELTA_REINTERPRETS: u32 = 19;
const DOUBLE_DELTA_REINTERPRETS: u32 = 20;
/// The first format version whose integer filters work on times; earlier ones leave times
/// unchanged.
const INTEGER_FILTERS_ON_TIMES: u32 = 20;

/// Reads a pipeline of format `version`.
pub(crate) fn parse(cursor: &mut Cursor<'_>, version: u32) -> Result<Vec<Filter>, Fault> {
    cursor.u32("the largest chunk")?;
    let n_filters = cursor.u32("the number of filters")?;
    let mut filters = Vec::new();
    for _ in 0..n_filters {
        let code = cursor.u8("a filter's type")?;
        let len = cursor.u32("the length of a filter's options")? as usize;
        let at = cursor.at();
        let mut options = Cursor::new(cursor.take(len, "a filter's options")?);
        filters.push(
            parse_one(code, &mut options, version).map_err(|fault| Fault::at(at, fault.what))?,
        );
    }
    Ok(filters)
}

fn parse_one(code: u8, options: &mut Cursor<'_>, version: u32) -> Result<Filter, Fault> {
    let mut codec = |codec| {
        options.u8("a compressor's type")?;
        Ok(Filter::Compress(codec, options.i32("a compressor's level")?))
    };
    match code {
        0 => Ok(Filter::None),
        1 => codec(Codec::Gzip),
        2 => codec(Codec::Zstd),
        3 => codec(Codec::Lz4),
        4 => codec(Codec::Rle),
        5 => codec(Codec::Bzip2),
        6 => Ok(Filter::DoubleDelta {
            reinterpret: reinterpret(options, version >= DOUBLE_DELTA_REINTERPRETS)?,
        }),
        7 => Ok(Filter::BitWidthReduction { max_window: options.u32("a window")? }),
        8 => Ok(Filter::Bitshuffle),
        9 => Ok(Filter::Byteshuffle),
        10 => Ok(Filter::PositiveDelta),
        12 => Ok(Filter::Md5),
        13 => Ok(Filter::Sha256),
        14 => Ok(Filter::Dictionary),
        15 => Ok(Filter::FloatScale {
            scale: options.f64("a scale")?,
            offset: options.f64("an offset")?,
            byte_width: options.u64("a byte width")?,
        }),
        16 => Ok(Filter::Xor),
        18 => Ok(Filter::Named(code, "WebP")),
        19 => {
            Ok(Filter::Delta { reinterpret: reinterpret(options, version >= DELTA_REINTERPRETS)? })
        }
        other => Ok(Filter::Unknown(other)),
    }
}

fn reinterpret(options: &mut Cursor<'_>, present: bool) -> Result<Datatype, Fault> {
    options.u8("a compressor's type")?;
    options.i32("a compressor's level")?;
    if present { options.u8("the type to reinterpret as").map(Datatype) } else { Ok(Datatype::ANY) }
}

/// A filter with everything needed to decode it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Compress(Codec, i32),
    Delta(Number),
    DoubleDelta(Number),
    BitWidthReduction(Number),
    Bitshuffle { value_bytes: usize },
    Byteshuffle { value_bytes: usize },
    PositiveDelta(Number),
    Md5,
    Sha256,
    FloatScale { scale: f64, offset: f64, stored_bytes: usize, value_bytes: usize },
    Xor { value_bytes: usize },
}

/// Binds `filters` to values of `datatype` in tiles of format `version`.
///
/// # Errors
/// The name of a filter that this crate does not decode, or not for this type.
pub(crate) fn bind(
    filters: &[Filter],
    datatype: Datatype,
    version: u32,
) -> Result<Pipeline, String> {
    let mut datatype = datatype;
    let mut steps = Vec::new();
    for filter in filters {
        let (step, output) = bind_one(filter, datatype, version)?;
        steps.extend(step);
        datatype = output;
    }
    Ok(Pipeline::new(steps))
}

fn bind_one(
    filter: &Filter,
    datatype: Datatype,
    version: u32,
) -> Result<(Option<Step>, Datatype), String> {
    let size = datatype.size().ok_or_else(|| format!("a filter on {}", datatype.name()))?;
    let step = match *filter {
        Filter::None => None,
        Filter::Compress(codec, level) => Some(Step::Compress(codec, level)),
        Filter::Delta { reinterpret } => {
            let output = if reinterpret == Datatype::ANY { datatype } else { reinterpret };
            return Ok((Some(Step::Delta(delta_number(output, "delta")?)), output));
        }
        Filter::DoubleDelta { reinterpret } => {
            let output = if reinterpret == Datatype::ANY { datatype } else { reinterpret };
            return Ok((Some(Step::DoubleDelta(delta_number(output, "double delta")?)), output));
        }
        Filter::BitWidthReduction { .. } => integer(datatype, version)
            .filter(|number| number.size() > 1)
            .map(Step::BitWidthReduction),
        Filter::PositiveDelta => integer(datatype, version).map(Step::PositiveDelta),
        Filter::Bitshuffle => Some(Step::Bitshuffle { value_bytes: size }),
        Filter::Byteshuffle => Some(Step::Byteshuffle { value_bytes: size }),
        Filter::Md5 => Some(Step::Md5),
        Filter::Sha256 => Some(Step::Sha256),
        Filter::FloatScale { scale, offset, byte_width } => {
            let (stored_bytes, output) = match byte_width {
                1 => (1, Datatype::INT8),
                2 => (2, Datatype::INT16),
                4 => (4, Datatype::INT32),
                8 => (8, Datatype::INT64),
                _ => return Err(format!("float scaling to {byte_width} bytes")),
            };
            if !matches!(size, 4 | 8) {
                return Err(format!("float scaling of {}", datatype.name()));
            }
            return Ok((
                Some(Step::FloatScale { scale, offset, stored_bytes, value_bytes: size }),
                output,
            ));
        }
        Filter::Xor => {
            // For any input it outputs integers of the same size, which the next filter sees.
            let output = match size {
                1 => Datatype::INT8,
                2 => Datatype::INT16,
                4 => Datatype::INT32,
                _ => Datatype::INT64,
            };
            return Ok((Some(Step::Xor { value_bytes: size }), output));
        }
        Filter::Dictionary => return Err("a dictionary".to_owned()),
        Filter::Named(_, name) => return Err(name.to_owned()),
        Filter::Unknown(code) => return Err(format!("filter type {code}")),
    };
    Ok((step, datatype))
}

fn delta_number(datatype: Datatype, what: &str) -> Result<Number, String> {
    match datatype.number() {
        Some(Number::F32 | Number::F64) | None => Err(format!("{what} of {}", datatype.name())),
        Some(number) => Ok(number),
    }
}

/// The type that bit-width reduction and positive delta compute with; `None` if they leave the
/// values unchanged.
fn integer(datatype: Datatype, version: u32) -> Option<Number> {
    if datatype.is_time() {
        return (version >= INTEGER_FILTERS_ON_TIMES).then_some(Number::I64);
    }
    // `char` and strings, which also have one byte, are left unchanged.
    matches!(datatype.0, 0 | 1 | 5..=10 | 40..=43).then(|| datatype.number()).flatten()
}
