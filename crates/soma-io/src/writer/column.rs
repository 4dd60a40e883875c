//! Types of columns of obs and var, as the writer, Arrow and TileDB describe them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use tiledb::{Datatype, Enumeration, EnumerationValues};

use super::layout::code_type;

/// The type of a column of obs or var.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// UTF-8 text.
    Text,
    /// Bytes of any length.
    Binary,
    /// Text from a list of values, stored as codes with an enumeration of the column's name.
    Categorical {
        /// The values; code `i` stands for the `i`-th.
        values: Vec<String>,
        /// Whether they have an order.
        ordered: bool,
    },
    /// Values of any type from a list, stored as codes of the given type, with an enumeration of
    /// the column's name. Rows must be dictionaries of this type with these values.
    Dictionary {
        /// The type of the codes: an integer type that can represent one value more than there are.
        codes: DataType,
        /// The values, without nulls; code `i` stands for the `i`-th.
        values: ArrayRef,
        /// Whether they have an order.
        ordered: bool,
    },
    /// Booleans.
    Bool,
    /// 8-bit integers.
    Int8,
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// 8-bit unsigned integers.
    UInt8,
    /// 16-bit unsigned integers.
    UInt16,
    /// 32-bit unsigned integers.
    UInt32,
    /// 64-bit unsigned integers.
    UInt64,
    /// 32-bit floats.
    Float32,
    /// 64-bit floats.
    Float64,
    /// Times since 1970 in this unit, without a time zone.
    Timestamp(TimeUnit),
}

/// A column of obs or var other than `soma_joinid`.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnKind,
    /// Whether rows may be null.
    pub nullable: bool,
}

impl ColumnSpec {
    /// Makes a column without nulls.
    pub fn new(name: &str, kind: ColumnKind) -> Self {
        Self { name: name.to_owned(), kind, nullable: false }
    }
}

impl ColumnKind {
    /// The kind of a column without an enumeration for this Arrow type; `None` if no kind has this
    /// type.
    pub fn for_data_type(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Binary,
            DataType::Boolean => Self::Bool,
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::UInt8 => Self::UInt8,
            DataType::UInt16 => Self::UInt16,
            DataType::UInt32 => Self::UInt32,
            DataType::UInt64 => Self::UInt64,
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            DataType::Timestamp(unit, None) => Self::Timestamp(*unit),
            _ => return None,
        })
    }

    /// The type of its attribute: that of the codes if it has an enumeration. `None` if the codes
    /// are not of an integer type.
    pub(super) fn datatype(&self) -> Option<Datatype> {
        Some(match self {
            Self::Text => Datatype::StringUtf8,
            Self::Binary => Datatype::Blob,
            Self::Categorical { values, .. } => code_type(values.len()),
            Self::Dictionary { codes, .. } if codes.is_integer() => {
                Self::for_data_type(codes)?.datatype()?
            }
            Self::Dictionary { .. } => return None,
            Self::Bool => Datatype::Bool,
            Self::Int8 => Datatype::Int8,
            Self::Int16 => Datatype::Int16,
            Self::Int32 => Datatype::Int32,
            Self::Int64 => Datatype::Int64,
            Self::UInt8 => Datatype::UInt8,
            Self::UInt16 => Datatype::UInt16,
            Self::UInt32 => Datatype::UInt32,
            Self::UInt64 => Datatype::UInt64,
            Self::Float32 => Datatype::Float32,
            Self::Float64 => Datatype::Float64,
            Self::Timestamp(TimeUnit::Second) => Datatype::DateTimeSecond,
            Self::Timestamp(TimeUnit::Millisecond) => Datatype::DateTimeMillisecond,
            Self::Timestamp(TimeUnit::Microsecond) => Datatype::DateTimeMicrosecond,
            Self::Timestamp(TimeUnit::Nanosecond) => Datatype::DateTimeNanosecond,
        })
    }

    /// Its values as an enumeration of this name, if it has a list of them.
    ///
    /// # Errors
    /// The reason why the values cannot form an enumeration.
    pub(super) fn enumeration(&self, name: &str) -> Result<Option<Enumeration>, String> {
        let (enumeration, ordered) = match self {
            Self::Categorical { values, ordered } => {
                (Enumeration::of_strings(name, values), *ordered)
            }
            Self::Dictionary { values, ordered, .. } => (enumeration_of(name, values)?, *ordered),
            _ => return Ok(None),
        };
        Ok(Some(Enumeration { ordered, ..enumeration }))
    }
}

fn enumeration_of(name: &str, values: &ArrayRef) -> Result<Enumeration, String> {
    if values.null_count() > 0 {
        return Err("its list of values contains a null".into());
    }
    let unfit = || format!("values of type {} cannot form a dictionary", values.data_type());
    let kind = ColumnKind::for_data_type(values.data_type()).ok_or_else(unfit)?;
    let cast = |to: DataType| {
        arrow_cast::cast(values, &to).map_err(|error| format!("its values: {error}"))
    };
    let values = match kind {
        ColumnKind::Text => EnumerationValues::VarSized(
            cast(DataType::LargeUtf8)?
                .as_string::<i64>()
                .iter()
                .flatten()
                .map(|text| text.as_bytes().to_vec())
                .collect(),
        ),
        ColumnKind::Binary => EnumerationValues::VarSized(
            cast(DataType::LargeBinary)?
                .as_binary::<i64>()
                .iter()
                .flatten()
                .map(<[u8]>::to_vec)
                .collect(),
        ),
        ColumnKind::Bool => EnumerationValues::Fixed(
            values.as_boolean().iter().map(|truth| u8::from(truth.unwrap_or(false))).collect(),
        ),
        _ => EnumerationValues::Fixed(fixed_bytes(values)),
    };
    let datatype = kind.datatype().ok_or_else(unfit)?;
    Ok(Enumeration { name: name.to_owned(), datatype, ordered: false, values })
}

/// The bytes of values of fixed size.
fn fixed_bytes(values: &ArrayRef) -> Vec<u8> {
    let data = values.to_data();
    let width = values.data_type().primitive_width().unwrap_or(0);
    let start = data.offset() * width;
    data.buffers()
        .first()
        .map(|buffer| buffer[start..start + data.len() * width].to_vec())
        .unwrap_or_default()
}
