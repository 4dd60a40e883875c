//! Rows of a column in the form that TileDB takes.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, LargeBinaryArray, LargeStringArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, TimeUnit};
use tiledb::Datatype;
use tiledb_native::ColumnCells;

use super::column::{ColumnKind, ColumnSpec};
use super::layout;

/// Cells of a column. Values of fixed size borrow the input array's memory.
pub(super) enum Cells {
    Int8(ScalarBuffer<i8>),
    Int16(ScalarBuffer<i16>),
    Int32(ScalarBuffer<i32>),
    Int64(ScalarBuffer<i64>),
    UInt8(ScalarBuffer<u8>),
    UInt16(ScalarBuffer<u16>),
    UInt32(ScalarBuffer<u32>),
    UInt64(ScalarBuffer<u64>),
    Float32(ScalarBuffer<f32>),
    Float64(ScalarBuffer<f64>),
    VarSized { bytes: Vec<u8>, offsets: Vec<u64> },
}

impl Cells {
    /// Converts the rows of `array`, which must be of the column's kind; `codes` are those of a
    /// categorical column's values.
    ///
    /// # Errors
    /// The reason why the array does not fit the column.
    pub(super) fn from_array(
        array: &ArrayRef,
        column: &ColumnSpec,
        codes: &HashMap<String, i32>,
    ) -> Result<Self, String> {
        let unfit = || {
            format!(
                "an array of type {} does not fit a {} column",
                array.data_type(),
                name(&column.kind)
            )
        };
        match &column.kind {
            ColumnKind::Text => Ok(Self::texts(&texts(array)?)),
            ColumnKind::Binary => Ok(Self::binary(&binary(array).ok_or_else(unfit)??)),
            ColumnKind::Categorical { values, .. } => {
                let numbers = category_codes(array, codes)?;
                // The chosen code type has room for every code of the enumeration.
                Ok(match layout::code_type(values.len()) {
                    Datatype::Int8 => {
                        Self::Int8(numbers.into_iter().map(|code| code as i8).collect())
                    }
                    Datatype::Int16 => {
                        Self::Int16(numbers.into_iter().map(|code| code as i16).collect())
                    }
                    _ => Self::Int32(numbers.into()),
                })
            }
            ColumnKind::Dictionary { codes, values, .. } => {
                let dictionary = array.as_any_dictionary_opt().ok_or_else(unfit)?;
                if dictionary.keys().data_type() != codes {
                    return Err(format!(
                        "codes are of type {}, but should be of type {codes}",
                        dictionary.keys().data_type()
                    ));
                }
                if dictionary.values() != values {
                    return Err("the dictionary's values differ from the column's".into());
                }
                Self::fixed(dictionary.keys()).ok_or_else(unfit)
            }
            ColumnKind::Bool => {
                let truths = array.as_boolean_opt().ok_or_else(unfit)?;
                Ok(Self::UInt8(
                    truths.iter().map(|truth| u8::from(truth.unwrap_or(false))).collect(),
                ))
            }
            kind if ColumnKind::for_data_type(array.data_type()).as_ref() == Some(kind) => {
                Self::fixed(array).ok_or_else(unfit)
            }
            _ => Err(unfit()),
        }
    }

    /// The cells under a name, for the native writer.
    pub(super) fn native<'a>(&'a self, name: &'a str, datatype: Datatype) -> ColumnCells<'a> {
        let bytes = match self {
            Self::Int8(values) => values.inner(),
            Self::Int16(values) => values.inner(),
            Self::Int32(values) => values.inner(),
            Self::Int64(values) => values.inner(),
            Self::UInt8(values) => values.inner(),
            Self::UInt16(values) => values.inner(),
            Self::UInt32(values) => values.inner(),
            Self::UInt64(values) => values.inner(),
            Self::Float32(values) => values.inner(),
            Self::Float64(values) => values.inner(),
            Self::VarSized { bytes, offsets } => {
                return ColumnCells::var_sized(name, datatype, bytes, offsets);
            }
        };
        ColumnCells::fixed(name, datatype, bytes.as_slice())
    }

    /// The cells under a name, for libtiledb.
    #[cfg(feature = "libtiledb")]
    pub(super) fn column<'a>(&'a self, name: &'a str) -> tiledb::WriteColumn<'a> {
        use tiledb::WriteColumn;
        match self {
            Self::Int8(values) => WriteColumn::fixed(name, values),
            Self::Int16(values) => WriteColumn::fixed(name, values),
            Self::Int32(values) => WriteColumn::fixed(name, values),
            Self::Int64(values) => WriteColumn::fixed(name, values),
            Self::UInt8(values) => WriteColumn::fixed(name, values),
            Self::UInt16(values) => WriteColumn::fixed(name, values),
            Self::UInt32(values) => WriteColumn::fixed(name, values),
            Self::UInt64(values) => WriteColumn::fixed(name, values),
            Self::Float32(values) => WriteColumn::fixed(name, values),
            Self::Float64(values) => WriteColumn::fixed(name, values),
            Self::VarSized { bytes, offsets } => WriteColumn::var_sized(name, bytes, offsets),
        }
    }

    /// Numbers and times; `None` for other types.
    fn fixed(array: &dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Int8 => Self::Int8(array.as_primitive::<Int8Type>().values().clone()),
            DataType::Int16 => Self::Int16(array.as_primitive::<Int16Type>().values().clone()),
            DataType::Int32 => Self::Int32(array.as_primitive::<Int32Type>().values().clone()),
            DataType::Int64 => Self::Int64(array.as_primitive::<Int64Type>().values().clone()),
            DataType::UInt8 => Self::UInt8(array.as_primitive::<UInt8Type>().values().clone()),
            DataType::UInt16 => Self::UInt16(array.as_primitive::<UInt16Type>().values().clone()),
            DataType::UInt32 => Self::UInt32(array.as_primitive::<UInt32Type>().values().clone()),
            DataType::UInt64 => Self::UInt64(array.as_primitive::<UInt64Type>().values().clone()),
            DataType::Float32 => {
                Self::Float32(array.as_primitive::<Float32Type>().values().clone())
            }
            DataType::Float64 => {
                Self::Float64(array.as_primitive::<Float64Type>().values().clone())
            }
            DataType::Timestamp(unit, None) => Self::Int64(match unit {
                TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values().clone(),
                TimeUnit::Millisecond => {
                    array.as_primitive::<TimestampMillisecondType>().values().clone()
                }
                TimeUnit::Microsecond => {
                    array.as_primitive::<TimestampMicrosecondType>().values().clone()
                }
                TimeUnit::Nanosecond => {
                    array.as_primitive::<TimestampNanosecondType>().values().clone()
                }
            }),
            _ => return None,
        })
    }

    fn texts(texts: &LargeStringArray) -> Self {
        Self::var_sized(texts.value_data(), texts.value_offsets())
    }

    fn binary(binary: &LargeBinaryArray) -> Self {
        Self::var_sized(binary.value_data(), binary.value_offsets())
    }

    /// `ends` has the beginnings of the values, and the end of the last one; the array may be a
    /// slice of a longer one.
    fn var_sized(bytes: &[u8], ends: &[i64]) -> Self {
        let start = ends.first().copied().unwrap_or(0);
        let end = ends.last().copied().unwrap_or(0);
        let n_values = ends.len().saturating_sub(1);
        Self::VarSized {
            bytes: bytes[start as usize..end as usize].to_vec(),
            offsets: ends[..n_values].iter().map(|offset| (offset - start) as u64).collect(),
        }
    }
}

/// The name of a kind, without the values of a list.
fn name(kind: &ColumnKind) -> String {
    match kind {
        ColumnKind::Categorical { .. } => "Categorical".into(),
        ColumnKind::Dictionary { codes, values, .. } => {
            format!("Dictionary({codes}, {})", values.data_type())
        }
        plain => format!("{plain:?}"),
    }
}

fn binary(array: &ArrayRef) -> Option<Result<LargeBinaryArray, String>> {
    if ColumnKind::for_data_type(array.data_type()) != Some(ColumnKind::Binary) {
        return None;
    }
    let cast = arrow_cast::cast(array, &DataType::LargeBinary);
    Some(cast.map(|cast| cast.as_binary::<i64>().clone()).map_err(|error| error.to_string()))
}

fn texts(array: &ArrayRef) -> Result<LargeStringArray, String> {
    let values = match array.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    if !matches!(values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
    {
        return Err(format!("an array of type {} does not contain texts", array.data_type()));
    }
    let cast = arrow_cast::cast(array, &DataType::LargeUtf8).map_err(|error| error.to_string())?;
    Ok(cast.as_string::<i64>().clone())
}

/// The code of each row's value; 0 for rows without a value.
fn category_codes(array: &ArrayRef, codes: &HashMap<String, i32>) -> Result<Vec<i32>, String> {
    let code = |text: &str| {
        codes.get(text).copied().ok_or_else(|| format!("{text:?} is not among its values"))
    };
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = texts(dictionary.values())?;
        if values.is_empty() {
            // Every row is null.
            return Ok(vec![0; array.len()]);
        }
        let keys = dictionary.normalized_keys();
        let by_key: Vec<Result<i32, String>> =
            values.iter().map(|text| text.map_or(Ok(0), code)).collect();
        return (0..array.len())
            .map(|row| if array.is_valid(row) { by_key[keys[row]].clone() } else { Ok(0) })
            .collect();
    }
    texts(array)?.iter().map(|text| text.map_or(Ok(0), code)).collect()
}
