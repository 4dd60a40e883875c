//! The bytes of a schema and of its enumerations.
//!
//! Specification: `format_spec/array_schema.md`, `enumeration.md`, `filter_pipeline.md`. Defaults
//! are libtiledb's: filters of lists that are empty, fill values, the version of a current domain.

use tiledb::{
    ArrayType, Attribute, Datatype, Dimension, Enumeration, EnumerationValues, Filter, Schema,
};

/// The format version that is written.
pub(super) const VERSION: u32 = 22;
/// The largest chunk of a pipeline. Readers take the lengths of chunks from the chunks.
const CHUNK_BYTES: u32 = 1 << 16;
/// `u32::MAX` values per cell mean a variable number.
const VARIABLE: u32 = u32::MAX;
/// The number that stands for no reinterpretation, that of the datatype any.
const NO_REINTERPRETATION: u8 = 17;
/// The default windows of bit-width reduction and positive delta.
const BIT_WIDTH_WINDOW: u32 = 256;
const POSITIVE_DELTA_WINDOW: u32 = 1024;
/// The versions of the formats of enumerations and current domains.
const ENUMERATION_VERSION: u32 = 0;
const CURRENT_DOMAIN_VERSION: u32 = 0;

/// The content of a schema file; `enumeration_files` are the names of the files of the schema's
/// enumerations.
///
/// # Errors
/// The part that cannot be stored, and why.
pub(super) fn schema(schema: &Schema, enumeration_files: &[String]) -> Result<Vec<u8>, String> {
    let mut out = VERSION.to_le_bytes().to_vec();
    out.push(schema.allows_duplicates.into());
    out.push(u8::from(schema.array_type == ArrayType::Sparse));
    out.push(schema.tile_order.number() as u8);
    out.push(schema.cell_order.number() as u8);
    out.extend_from_slice(&schema.capacity.to_le_bytes());
    let zstd = [Filter::Zstd(-1)];
    for (filters, default) in [
        (&schema.coords_filters, zstd),
        (&schema.offsets_filters, zstd),
        (&schema.validity_filters, [Filter::Rle]),
    ] {
        pipeline(if filters.is_empty() { &default } else { filters }, &mut out)?;
    }
    put_count(schema.dimensions.len(), &mut out);
    for part in &schema.dimensions {
        dimension(part, &mut out)
            .map_err(|problem| format!("dimension {:?}: {problem}", part.name))?;
    }
    put_count(schema.attributes.len(), &mut out);
    for part in &schema.attributes {
        attribute(part, &mut out)
            .map_err(|problem| format!("attribute {:?}: {problem}", part.name))?;
    }
    // No dimension labels.
    put_count(0, &mut out);
    put_count(schema.enumerations.len(), &mut out);
    for (enumeration, file) in schema.enumerations.iter().zip(enumeration_files) {
        put_name(&enumeration.name, &mut out);
        put_name(file, &mut out);
    }
    current_domain(schema, &mut out)?;
    Ok(out)
}

fn dimension(dimension: &Dimension, out: &mut Vec<u8>) -> Result<(), String> {
    put_name(&dimension.name, out);
    out.push(number(dimension.datatype)?);
    // Values per coordinate.
    out.extend_from_slice(&1_u32.to_le_bytes());
    pipeline(&dimension.filters, out)?;
    let (least, greatest) = dimension.domain.ok_or("it has no domain of integers")?;
    let bounds = [coordinate(dimension, least)?, coordinate(dimension, greatest)?].concat();
    out.extend_from_slice(&(bounds.len() as u64).to_le_bytes());
    out.extend_from_slice(&bounds);
    // There is an extent: without one, a tile is the whole domain.
    out.push(0);
    let extent = dimension.tile_extent.unwrap_or(greatest - least + 1);
    out.extend_from_slice(&coordinate(dimension, extent)?);
    Ok(())
}

fn coordinate(dimension: &Dimension, value: i128) -> Result<Vec<u8>, String> {
    dimension
        .datatype
        .integer_bytes(value)
        .ok_or_else(|| format!("{value} is not a coordinate of type {:?}", dimension.datatype))
}

fn attribute(attribute: &Attribute, out: &mut Vec<u8>) -> Result<(), String> {
    put_name(&attribute.name, out);
    out.push(number(attribute.datatype)?);
    let n_values = if attribute.var_sized { VARIABLE } else { attribute.values_per_cell };
    out.extend_from_slice(&n_values.to_le_bytes());
    pipeline(&attribute.filters, out)?;
    let fill = fill_value(attribute.datatype)?;
    let n_fills = if attribute.var_sized { 1 } else { attribute.values_per_cell };
    out.extend_from_slice(&(fill.len() as u64 * u64::from(n_fills)).to_le_bytes());
    (0..n_fills).for_each(|_| out.extend_from_slice(&fill));
    out.push(attribute.nullable.into());
    // The fill value is null; values are in no order.
    out.extend_from_slice(&[0, 0]);
    put_name(attribute.enumeration.as_deref().unwrap_or(""), out);
    Ok(())
}

/// The value of a cell that was not written.
fn fill_value(datatype: Datatype) -> Result<Vec<u8>, String> {
    Ok(match datatype {
        Datatype::Int8 | Datatype::Char => i8::MIN.to_le_bytes().to_vec(),
        Datatype::UInt8 => vec![u8::MAX],
        Datatype::Int16 => i16::MIN.to_le_bytes().to_vec(),
        Datatype::UInt16 => u16::MAX.to_le_bytes().to_vec(),
        Datatype::Int32 => i32::MIN.to_le_bytes().to_vec(),
        Datatype::UInt32 => u32::MAX.to_le_bytes().to_vec(),
        Datatype::Int64
        | Datatype::DateTimeSecond
        | Datatype::DateTimeMillisecond
        | Datatype::DateTimeMicrosecond
        | Datatype::DateTimeNanosecond => i64::MIN.to_le_bytes().to_vec(),
        Datatype::UInt64 => u64::MAX.to_le_bytes().to_vec(),
        Datatype::Float32 => f32::NAN.to_le_bytes().to_vec(),
        Datatype::Float64 => f64::NAN.to_le_bytes().to_vec(),
        Datatype::StringAscii
        | Datatype::StringUtf8
        | Datatype::Any
        | Datatype::Blob
        | Datatype::Bool => vec![0],
        other => return Err(format!("the fill value of {other:?} is not known")),
    })
}

fn current_domain(schema: &Schema, out: &mut Vec<u8>) -> Result<(), String> {
    out.extend_from_slice(&CURRENT_DOMAIN_VERSION.to_le_bytes());
    out.push(u8::from(schema.current_domain.is_none()));
    let Some(bounds) = &schema.current_domain else { return Ok(()) };
    // A rectangle.
    out.push(0);
    for (dimension, (least, greatest)) in schema.dimensions.iter().zip(bounds) {
        for value in [*least, *greatest] {
            out.extend_from_slice(&coordinate(dimension, value)?);
        }
    }
    Ok(())
}

/// Bytes of an enumeration's values and of their offsets, the parts of its file that may be large.
pub(super) fn enumeration_bytes(enumeration: &Enumeration) -> u64 {
    match &enumeration.values {
        EnumerationValues::Fixed(bytes) => bytes.len() as u64,
        EnumerationValues::VarSized(values) => {
            values.iter().map(|value| value.len() as u64 + size_of::<u64>() as u64).sum()
        }
    }
}

/// The content of the file of an enumeration; `file` is the file's name.
///
/// # Errors
/// The reason why it cannot be stored.
pub(super) fn enumeration(enumeration: &Enumeration, file: &str) -> Result<Vec<u8>, String> {
    let mut out = ENUMERATION_VERSION.to_le_bytes().to_vec();
    put_name(&enumeration.name, &mut out);
    put_name(file, &mut out);
    out.push(number(enumeration.datatype)?);
    let (n_values, data, offsets) = match &enumeration.values {
        EnumerationValues::Fixed(bytes) => (1, bytes.clone(), None),
        EnumerationValues::VarSized(values) => {
            let starts = values.iter().scan(0_u64, |end, value| {
                let start = *end;
                *end += value.len() as u64;
                Some(start)
            });
            let offsets: Vec<u8> = starts.flat_map(u64::to_le_bytes).collect();
            (VARIABLE, values.concat(), Some(offsets))
        }
    };
    out.extend_from_slice(&n_values.to_le_bytes());
    out.push(enumeration.ordered.into());
    for bytes in [Some(data), offsets].into_iter().flatten() {
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(&bytes);
    }
    Ok(out)
}

/// Appends a pipeline: the largest chunk, the number of filters, then each filter's number, the
/// length of its options, and these.
fn pipeline(filters: &[Filter], out: &mut Vec<u8>) -> Result<(), String> {
    out.extend_from_slice(&CHUNK_BYTES.to_le_bytes());
    put_count(filters.len(), out);
    for filter in filters {
        let number = filter.number() as u8;
        let options = options(*filter)?;
        out.push(number);
        put_count(options.len(), out);
        out.extend_from_slice(&options);
    }
    Ok(())
}

fn options(filter: Filter) -> Result<Vec<u8>, String> {
    let compressor = |number: u8, level: i32| [&[number], level.to_le_bytes().as_slice()].concat();
    let delta = |number_of: u8, datatype: Option<Datatype>| {
        let reinterpret = datatype.map_or(Ok(NO_REINTERPRETATION), number)?;
        Ok::<_, String>([compressor(number_of, -1), vec![reinterpret]].concat())
    };
    // Compressors have numbers of their own: most are those of their filters.
    Ok(match filter {
        Filter::None
        | Filter::BitShuffle
        | Filter::ByteShuffle
        | Filter::ChecksumMd5
        | Filter::ChecksumSha256
        | Filter::Xor => Vec::new(),
        Filter::Gzip(level) => compressor(1, level),
        Filter::Zstd(level) => compressor(2, level),
        Filter::Lz4(level) => compressor(3, level),
        Filter::Rle => compressor(4, -1),
        Filter::Bzip2(level) => compressor(5, level),
        Filter::DoubleDelta(datatype) => delta(6, datatype)?,
        Filter::Dictionary => compressor(7, -1),
        Filter::Delta(datatype) => delta(8, datatype)?,
        Filter::BitWidthReduction => BIT_WIDTH_WINDOW.to_le_bytes().to_vec(),
        Filter::BitWidthReductionWithin(window) => window.to_le_bytes().to_vec(),
        Filter::PositiveDelta => POSITIVE_DELTA_WINDOW.to_le_bytes().to_vec(),
        Filter::ScaleFloat { byte_width, factor, offset } => {
            [factor.to_le_bytes(), offset.to_le_bytes(), byte_width.to_le_bytes()].concat()
        }
        other => return Err(format!("the options of {other:?} are not known")),
    })
}

/// The number of a datatype.
pub(super) fn number(datatype: Datatype) -> Result<u8, String> {
    u8::try_from(datatype.number()).map_err(|_| format!("{datatype:?} is not a datatype"))
}

fn put_count(n: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(n as u32).to_le_bytes());
}

/// Appends a name after its length.
fn put_name(name: &str, out: &mut Vec<u8>) {
    put_count(name.len(), out);
    out.extend_from_slice(name.as_bytes());
}
