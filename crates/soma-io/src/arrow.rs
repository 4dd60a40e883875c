//! Converts TileDB's columns to Arrow arrays.

use std::sync::Arc;

use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, TimeUnit};
use tiledb::{Attribute, Datatype, Enumeration, EnumerationValues};

use crate::Error;
use crate::soma_object::StoredColumn;

/// A column of TileDB whose validity is in Arrow's form.
#[derive(Debug)]
pub(crate) struct ColumnParts {
    pub(crate) bytes: Vec<u8>,
    /// Start of each cell of a var-sized column, followed by the total number of bytes.
    pub(crate) offsets: Option<Vec<i64>>,
    pub(crate) nulls: Option<NullBuffer>,
}

impl From<StoredColumn> for ColumnParts {
    fn from(column: StoredColumn) -> Self {
        let nulls = column.validity.map(|valid| NullBuffer::new(BooleanBuffer::from(valid)));
        Self { bytes: column.bytes, offsets: column.offsets, nulls }
    }
}

/// The Arrow type for values of a TileDB datatype, as in tiledbsoma.
pub(crate) fn data_type(datatype: Datatype, var_sized: bool) -> Option<DataType> {
    Some(match datatype {
        Datatype::StringAscii | Datatype::StringUtf8 if var_sized => DataType::LargeUtf8,
        Datatype::Char | Datatype::Blob | Datatype::Any | Datatype::UInt8 if var_sized => {
            DataType::LargeBinary
        }
        _ if var_sized => return None,
        Datatype::Bool => DataType::Boolean,
        Datatype::Int8 => DataType::Int8,
        Datatype::UInt8 => DataType::UInt8,
        Datatype::Int16 => DataType::Int16,
        Datatype::UInt16 => DataType::UInt16,
        Datatype::Int32 => DataType::Int32,
        Datatype::UInt32 => DataType::UInt32,
        Datatype::Int64 => DataType::Int64,
        Datatype::UInt64 => DataType::UInt64,
        Datatype::Float32 => DataType::Float32,
        Datatype::Float64 => DataType::Float64,
        Datatype::DateTimeSecond => DataType::Timestamp(TimeUnit::Second, None),
        Datatype::DateTimeMillisecond => DataType::Timestamp(TimeUnit::Millisecond, None),
        Datatype::DateTimeMicrosecond => DataType::Timestamp(TimeUnit::Microsecond, None),
        Datatype::DateTimeNanosecond => DataType::Timestamp(TimeUnit::Nanosecond, None),
        _ => return None,
    })
}

/// The Arrow field of an attribute, with its enumeration if it has one.
pub(crate) fn field(
    attribute: &Attribute,
    enumeration: Option<&Enumeration>,
    uri: &str,
) -> Result<Field, Error> {
    let unknown = |datatype: Datatype| {
        let problem = format!("values of type {datatype:?} have no Arrow type here");
        Error::broken_column(uri, &attribute.name, problem)
    };
    let keys = data_type(attribute.datatype, attribute.var_sized)
        .ok_or_else(|| unknown(attribute.datatype))?;
    let data_type = match enumeration {
        None => keys,
        Some(enumeration) => {
            let var_sized = matches!(enumeration.values, EnumerationValues::VarSized(_));
            let values = data_type(enumeration.datatype, var_sized)
                .ok_or_else(|| unknown(enumeration.datatype))?;
            DataType::Dictionary(Box::new(keys), Box::new(values))
        }
    };
    let field = Field::new(&attribute.name, data_type, attribute.nullable);
    Ok(if enumeration.is_some_and(|enumeration| enumeration.ordered) {
        field.with_dict_is_ordered(true)
    } else {
        field
    })
}

/// Converts a column to an Arrow array of the type of `field`. `categories` are the values of its
/// enumeration.
pub(crate) fn column_array(
    column: ColumnParts,
    field: &Field,
    categories: Option<&ArrayRef>,
    uri: &str,
) -> Result<ArrayRef, Error> {
    let broken = |problem: String| Error::broken_column(uri, field.name(), problem);
    let nulls = column.nulls;
    let bytes = Buffer::from_vec(column.bytes);
    match (field.data_type(), categories) {
        (DataType::Dictionary(keys, _), Some(categories)) => {
            dictionary(keys, bytes, nulls, Arc::clone(categories), &broken)
        }
        (DataType::LargeUtf8 | DataType::LargeBinary, _) => {
            let offsets =
                column.offsets.ok_or_else(|| broken("texts came without offsets".into()))?;
            if !offsets.is_sorted()
                || offsets.last().is_none_or(|last| *last as usize != bytes.len())
            {
                return Err(broken("the offsets of its texts do not ascend".into()));
            }
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            if *field.data_type() == DataType::LargeUtf8 {
                let texts = LargeStringArray::try_new(offsets, bytes, nulls)
                    .map_err(|error| broken(error.to_string()))?;
                Ok(Arc::new(texts))
            } else {
                let binary = LargeBinaryArray::try_new(offsets, bytes, nulls)
                    .map_err(|error| broken(error.to_string()))?;
                Ok(Arc::new(binary))
            }
        }
        (data_type, _) => fixed(data_type, bytes, nulls, &broken),
    }
}

/// Makes an array of values of fixed size.
pub(crate) fn fixed(
    data_type: &DataType,
    bytes: Buffer,
    nulls: Option<NullBuffer>,
    broken: &dyn Fn(String) -> Error,
) -> Result<ArrayRef, Error> {
    match data_type {
        DataType::Boolean => {
            let truths: BooleanBuffer = bytes.iter().map(|byte| *byte != 0).collect();
            Ok(Arc::new(BooleanArray::new(truths, nulls)))
        }
        DataType::Int8 => primitive::<Int8Type>(bytes, nulls, broken),
        DataType::UInt8 => primitive::<UInt8Type>(bytes, nulls, broken),
        DataType::Int16 => primitive::<Int16Type>(bytes, nulls, broken),
        DataType::UInt16 => primitive::<UInt16Type>(bytes, nulls, broken),
        DataType::Int32 => primitive::<Int32Type>(bytes, nulls, broken),
        DataType::UInt32 => primitive::<UInt32Type>(bytes, nulls, broken),
        DataType::Int64 => primitive::<Int64Type>(bytes, nulls, broken),
        DataType::UInt64 => primitive::<UInt64Type>(bytes, nulls, broken),
        DataType::Float32 => primitive::<Float32Type>(bytes, nulls, broken),
        DataType::Float64 => primitive::<Float64Type>(bytes, nulls, broken),
        DataType::Timestamp(TimeUnit::Second, None) => {
            primitive::<TimestampSecondType>(bytes, nulls, broken)
        }
        DataType::Timestamp(TimeUnit::Millisecond, None) => {
            primitive::<TimestampMillisecondType>(bytes, nulls, broken)
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            primitive::<TimestampMicrosecondType>(bytes, nulls, broken)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            primitive::<TimestampNanosecondType>(bytes, nulls, broken)
        }
        other => Err(broken(format!("values of type {other} cannot be read"))),
    }
}

fn primitive_array<T: ArrowPrimitiveType>(
    bytes: Buffer,
    nulls: Option<NullBuffer>,
    broken: &dyn Fn(String) -> Error,
) -> Result<PrimitiveArray<T>, Error> {
    let n_values = bytes.len() / size_of::<T::Native>();
    PrimitiveArray::try_new(ScalarBuffer::new(aligned(bytes), 0, n_values), nulls)
        .map_err(|error| broken(error.to_string()))
}

/// Aligns bytes for values of every type: Arrow aligns its own allocations, but a vector of bytes
/// may be unaligned.
fn aligned(bytes: Buffer) -> Buffer {
    if bytes.as_ptr().align_offset(size_of::<u64>()) == 0 {
        bytes
    } else {
        Buffer::from_slice_ref(bytes.as_slice())
    }
}

fn primitive<T: ArrowPrimitiveType>(
    bytes: Buffer,
    nulls: Option<NullBuffer>,
    broken: &dyn Fn(String) -> Error,
) -> Result<ArrayRef, Error> {
    Ok(Arc::new(primitive_array::<T>(bytes, nulls, broken)?))
}

/// Converts the values of an enumeration to an Arrow array of this type.
pub(crate) fn enumeration_values(
    enumeration: &Enumeration,
    data_type: &DataType,
    broken: &dyn Fn(String) -> Error,
) -> Result<ArrayRef, Error> {
    match &enumeration.values {
        EnumerationValues::Fixed(bytes) => {
            fixed(data_type, Buffer::from_slice_ref(bytes), None, broken)
        }
        EnumerationValues::VarSized(values) if *data_type == DataType::LargeBinary => {
            Ok(Arc::new(LargeBinaryArray::from_iter_values(values)))
        }
        EnumerationValues::VarSized(values) => {
            let texts = enumeration.strings().ok_or_else(|| {
                broken(format!(
                    "the {} values of its enumeration {} are not UTF-8 text",
                    values.len(),
                    enumeration.name
                ))
            })?;
            Ok(Arc::new(LargeStringArray::from_iter_values(texts)))
        }
    }
}

fn dictionary(
    keys: &DataType,
    codes: Buffer,
    nulls: Option<NullBuffer>,
    values: ArrayRef,
    broken: &dyn Fn(String) -> Error,
) -> Result<ArrayRef, Error> {
    match keys {
        DataType::Int8 => dictionary_of::<Int8Type>(codes, nulls, values, broken),
        DataType::UInt8 => dictionary_of::<UInt8Type>(codes, nulls, values, broken),
        DataType::Int16 => dictionary_of::<Int16Type>(codes, nulls, values, broken),
        DataType::UInt16 => dictionary_of::<UInt16Type>(codes, nulls, values, broken),
        DataType::Int32 => dictionary_of::<Int32Type>(codes, nulls, values, broken),
        DataType::UInt32 => dictionary_of::<UInt32Type>(codes, nulls, values, broken),
        DataType::Int64 => dictionary_of::<Int64Type>(codes, nulls, values, broken),
        DataType::UInt64 => dictionary_of::<UInt64Type>(codes, nulls, values, broken),
        other => {
            Err(broken(format!("its codes are of type {other}, which cannot index an enumeration")))
        }
    }
}

fn dictionary_of<K: ArrowDictionaryKeyType>(
    codes: Buffer,
    nulls: Option<NullBuffer>,
    values: ArrayRef,
    broken: &dyn Fn(String) -> Error,
) -> Result<ArrayRef, Error> {
    let n_values = values.len();
    let keys = primitive_array::<K>(codes, nulls, broken)?;
    let dictionary = DictionaryArray::<K>::try_new(keys, values).map_err(|error| {
        broken(format!(
            "it has codes past the {n_values} values of its enumeration ({error}); an array whose enumeration was extended in \
             the write that made it can lack the values, write its schema again"
        ))
    })?;
    Ok(Arc::new(dictionary))
}
