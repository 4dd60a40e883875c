//! Conversion between the fields of a record and the columns of the Parquet file.
//!
//! A group of columns is declared once, as a struct ([`column_group!`]): the field's name is the
//! column's name, its type the column's type, so no separate list of columns can go stale. Every
//! column is nullable in the file. A column that an older file lacks reads as null, which is
//! `None`, zero or the empty value of its type.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, ListArray, MapArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
    builder::{MapBuilder, StringBuilder},
    cast::AsArray,
    types::{Float64Type, TimestampMicrosecondType, UInt64Type},
};
use arrow_schema::{DataType, Field, TimeUnit};
use jiff::Timestamp;

/// Why a column of a file cannot be read into a field; the store adds the path.
#[derive(Debug)]
pub(crate) enum BadColumn {
    /// The column has another type than the field.
    Type { column: String, found: DataType, expected: DataType },
    /// A value is outside the field's range.
    Value { column: String, value: String, expected: &'static str },
}

/// A type of value that has an Arrow array.
pub(crate) trait Scalar: Clone + Default {
    fn data_type() -> DataType;
    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef;
    /// Reads `array`, which must be of `data_type()`. The error is an invalid value and the valid
    /// ones.
    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)>;
}

/// A field of a group: a scalar, or an optional one.
pub(crate) trait ColumnValue: Sized {
    fn field(name: &str) -> Field;
    fn encode<'a>(values: impl Iterator<Item = &'a Self>) -> ArrayRef
    where
        Self: 'a;
    fn decode(batch: &RecordBatch, column: &str) -> Result<Vec<Self>, BadColumn>;
}

/// A struct whose fields are columns.
pub(crate) trait ColumnGroup: Sized {
    fn fields() -> Vec<Field>;
    fn arrays(rows: &[&Self]) -> Vec<ArrayRef>;
    fn decode(batch: &RecordBatch) -> Result<Vec<Self>, BadColumn>;
}

/// Declares a struct of public fields that is also a group of columns.
macro_rules! column_group {
    ($(#[$doc:meta])* pub struct $group:ident { $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $group { $($(#[$field_doc])* pub $field: $type,)* }

        impl crate::column::ColumnGroup for $group {
            fn fields() -> Vec<arrow_schema::Field> {
                vec![$(<$type as crate::column::ColumnValue>::field(stringify!($field))),*]
            }

            fn arrays(rows: &[&Self]) -> Vec<arrow_array::ArrayRef> {
                vec![$(<$type as crate::column::ColumnValue>::encode(rows.iter().map(|row| &row.$field))),*]
            }

            fn decode(batch: &arrow_array::RecordBatch) -> Result<Vec<Self>, crate::column::BadColumn> {
                $(let mut $field =
                    <$type as crate::column::ColumnValue>::decode(batch, stringify!($field))?.into_iter();)*
                Ok((0..batch.num_rows())
                    .map(|_| Self { $($field: $field.next().unwrap_or_default()),* })
                    .collect())
            }
        }
    };
}
pub(crate) use column_group;

/// Whether a column of type `found` is read into a field of type `expected`: it has the same type,
/// or lists of structs with some of the expected members, as older files have.
pub(crate) fn is_read_as(found: &DataType, expected: &DataType) -> bool {
    let members = |of: &DataType| match of {
        DataType::List(item) => match item.data_type() {
            DataType::Struct(members) => Some(members.clone()),
            _ => None,
        },
        _ => None,
    };
    let some_of = || {
        let (found, expected) = (members(found)?, members(expected)?);
        let is_expected = |one: &Arc<Field>| {
            expected.find(one.name()).is_some_and(|(_, of)| of.data_type() == one.data_type())
        };
        Some(found.iter().all(is_expected))
    };
    found == expected || some_of() == Some(true)
}

fn decode_options<T: Scalar>(
    batch: &RecordBatch,
    column: &str,
) -> Result<Vec<Option<T>>, BadColumn> {
    let Some(array) = batch.column_by_name(column) else {
        return Ok(vec![None; batch.num_rows()]);
    };
    let expected = T::data_type();
    if !is_read_as(array.data_type(), &expected) {
        let found = array.data_type().clone();
        return Err(BadColumn::Type { column: column.to_owned(), found, expected });
    }
    T::from_array(array.as_ref()).map_err(|(value, expected)| BadColumn::Value {
        column: column.to_owned(),
        value,
        expected,
    })
}

impl<T: Scalar> ColumnValue for Option<T> {
    fn field(name: &str) -> Field {
        Field::new(name, T::data_type(), true)
    }

    fn encode<'a>(values: impl Iterator<Item = &'a Self>) -> ArrayRef
    where
        Self: 'a,
    {
        T::to_array(values.cloned())
    }

    fn decode(batch: &RecordBatch, column: &str) -> Result<Vec<Self>, BadColumn> {
        decode_options(batch, column)
    }
}

macro_rules! plain_columns {
    ($($type:ty),*) => {$(
        impl ColumnValue for $type {
            fn field(name: &str) -> Field {
                Field::new(name, <$type as Scalar>::data_type(), true)
            }

            fn encode<'a>(values: impl Iterator<Item = &'a Self>) -> ArrayRef
            where
                Self: 'a,
            {
                <$type as Scalar>::to_array(values.cloned().map(Some))
            }

            fn decode(batch: &RecordBatch, column: &str) -> Result<Vec<Self>, BadColumn> {
                Ok(decode_options(batch, column)?.into_iter().map(Option::unwrap_or_default).collect())
            }
        }
    )*};
}
plain_columns!(
    u64,
    f64,
    bool,
    String,
    Timestamp,
    Vec<f64>,
    Vec<crate::OrderEntropy>,
    BTreeMap<String, String>,
    crate::Settings,
    crate::Status
);

impl Scalar for u64 {
    fn data_type() -> DataType {
        DataType::UInt64
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<UInt64Array>())
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        Ok(array.as_primitive::<UInt64Type>().iter().collect())
    }
}

impl Scalar for f64 {
    fn data_type() -> DataType {
        DataType::Float64
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<Float64Array>())
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        Ok(array.as_primitive::<Float64Type>().iter().collect())
    }
}

impl Scalar for bool {
    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<BooleanArray>())
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        Ok(array.as_boolean().iter().collect())
    }
}

impl Scalar for String {
    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<StringArray>())
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        Ok(array.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect())
    }
}

impl Scalar for Timestamp {
    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        let micros = values.map(|value| value.map(Self::as_microsecond));
        Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        let micros = array.as_primitive::<TimestampMicrosecondType>().iter();
        micros
            .map(|value| {
                value
                    .map(|value| {
                        Self::from_microsecond(value).map_err(|_| {
                            (value.to_string(), "the microseconds of the years -9999 to 9999")
                        })
                    })
                    .transpose()
            })
            .collect()
    }
}

impl Scalar for Vec<f64> {
    fn data_type() -> DataType {
        DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true)))
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        let lists =
            values.map(|list| list.map(|list| list.into_iter().map(Some).collect::<Vec<_>>()));
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        let lists = array.as_list::<i32>().iter();
        // We never write a null inside a list, but dropping it would shift the values after it.
        Ok(lists
            .map(|list| {
                let numbers = list.as_ref().map(|list| list.as_primitive::<Float64Type>().iter());
                numbers.map(|numbers| numbers.map(|number| number.unwrap_or(f64::NAN)).collect())
            })
            .collect())
    }
}

impl Scalar for BTreeMap<String, String> {
    fn data_type() -> DataType {
        map_builder().finish().data_type().clone()
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        let mut builder = map_builder();
        for map in values {
            for (key, value) in map.iter().flatten() {
                builder.keys().append_value(key);
                builder.values().append_value(value);
            }
            builder.append(map.is_some()).expect("as many keys as values were appended");
        }
        Arc::new(builder.finish())
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        let maps: &MapArray = array.as_map();
        Ok((0..maps.len())
            .map(|idx| {
                maps.is_valid(idx).then(|| {
                    let entries = maps.value(idx);
                    let [keys, values] =
                        [0, 1].map(|part| entries.column(part).as_string::<i32>().clone());
                    let pairs = keys.iter().zip(&values);
                    pairs
                        .map(|(key, value)| {
                            [key, value].map(|text| text.unwrap_or_default().to_owned())
                        })
                        .map(|[key, value]| (key, value))
                        .collect()
                })
            })
            .collect())
    }
}

impl Scalar for crate::Settings {
    fn data_type() -> DataType {
        <BTreeMap<String, String>>::data_type()
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        <BTreeMap<String, String>>::to_array(values.map(|one| one.map(|one| one.map().clone())))
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        let maps = <BTreeMap<String, String>>::from_array(array)?;
        Ok(maps.into_iter().map(|map| map.map(Self::from)).collect())
    }
}

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    MapBuilder::new(None, StringBuilder::new(), StringBuilder::new())
}

impl Scalar for crate::Status {
    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn to_array(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.map(|status| status.map(Self::name)).collect::<StringArray>())
    }

    fn from_array(array: &dyn Array) -> Result<Vec<Option<Self>>, (String, &'static str)> {
        let names = array.as_string::<i32>().iter();
        names
            .map(|name| {
                name.map(|name| {
                    Self::from_name(name)
                        .ok_or_else(|| (name.to_owned(), "ok, oom, crashed, error"))
                })
                .transpose()
            })
            .collect()
    }
}
