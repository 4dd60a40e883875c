//! Finds the rows of a column that match.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{AnyDictionaryArray, Array, GenericByteArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::conversion::Wanted;
use super::expression::{Comparison, Test};

/// The values that match; null matches only a test for null. `None` if the column does not have the
/// type that `wanted` is for.
pub(super) fn matches(column: &dyn Array, wanted: &Wanted) -> Option<BooleanBuffer> {
    let nulls = column.logical_nulls();
    if let Wanted::Null(is_null) = wanted {
        let valid = nulls
            .map_or_else(|| BooleanBuffer::new_set(column.len()), |nulls| nulls.inner().clone());
        return Some(if *is_null { !&valid } else { valid });
    }
    let found = match column.as_any_dictionary_opt() {
        Some(dictionary) => categories(dictionary, wanted)?,
        None => plain(column, wanted)?,
    };
    Some(match nulls {
        Some(nulls) => &found & nulls.inner(),
        None => found,
    })
}

/// The matching values of a column without categories; the result for nulls is meaningless.
fn plain(column: &dyn Array, wanted: &Wanted) -> Option<BooleanBuffer> {
    Some(match (wanted, column.data_type()) {
        (Wanted::Booleans(test), DataType::Boolean) => {
            let truths = column.as_boolean().values();
            answer(column.len(), test, |row| truths.value(row), |truth| *truth)
        }
        (Wanted::Integers(test), data_type) => match data_type {
            DataType::Int8 => integers::<Int8Type>(column, test)?,
            DataType::Int16 => integers::<Int16Type>(column, test)?,
            DataType::Int32 => integers::<Int32Type>(column, test)?,
            DataType::Int64 => integers::<Int64Type>(column, test)?,
            DataType::UInt8 => integers::<UInt8Type>(column, test)?,
            DataType::UInt16 => integers::<UInt16Type>(column, test)?,
            DataType::UInt32 => integers::<UInt32Type>(column, test)?,
            DataType::UInt64 => integers::<UInt64Type>(column, test)?,
            DataType::Timestamp(TimeUnit::Second, _) => {
                integers::<TimestampSecondType>(column, test)?
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                integers::<TimestampMillisecondType>(column, test)?
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                integers::<TimestampMicrosecondType>(column, test)?
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                integers::<TimestampNanosecondType>(column, test)?
            }
            _ => return None,
        },
        (Wanted::Floats(test), DataType::Float32) => {
            let values = column.as_primitive::<Float32Type>().values();
            // Exact: the value was rounded to this type.
            let test = with_each(test, |wanted| Some(*wanted as f32))?;
            answer(column.len(), &test, |row| values[row], |value| value.to_bits())
        }
        (Wanted::Floats(test), DataType::Float64) => {
            let values = column.as_primitive::<Float64Type>().values();
            answer(column.len(), test, |row| values[row], |value| value.to_bits())
        }
        (Wanted::Bytes(test), data_type) => match data_type {
            DataType::Utf8 => bytes(column.as_string::<i32>(), test),
            DataType::LargeUtf8 => bytes(column.as_string::<i64>(), test),
            DataType::Binary => bytes(column.as_binary::<i32>(), test),
            DataType::LargeBinary => bytes(column.as_binary::<i64>(), test),
            _ => return None,
        },
        _ => return None,
    })
}

fn integers<T: ArrowPrimitiveType>(column: &dyn Array, test: &Test<i128>) -> Option<BooleanBuffer>
where
    T::Native: TryFrom<i128> + Ord,
{
    let values = column.as_primitive_opt::<T>()?.values();
    let test = with_each(test, |wanted| T::Native::try_from(*wanted).ok())?;
    Some(answer(column.len(), &test, |row| values[row], |value| *value))
}

fn bytes<T: ByteArrayType>(column: &GenericByteArray<T>, test: &Test<Vec<u8>>) -> BooleanBuffer {
    let test = match test {
        Test::Compare(comparison, wanted) => Test::Compare(*comparison, wanted.as_slice()),
        Test::Member { negated, values } => {
            Test::Member { negated: *negated, values: values.iter().map(Vec::as_slice).collect() }
        }
    };
    let value = |row| -> &[u8] { AsRef::<[u8]>::as_ref(column.value(row)) };
    answer(column.len(), &test, value, |value| *value)
}

/// Compares categories by their index in the list of categories: that is their order, and libtiledb
/// does the same.
fn categories(column: &dyn AnyDictionaryArray, wanted: &Wanted) -> Option<BooleanBuffer> {
    let categories = column.values();
    if categories.is_empty() {
        // Every row is null.
        return Some(BooleanBuffer::new_unset(column.len()));
    }
    let codes = match wanted {
        Wanted::Null(_) => return None,
        Wanted::Booleans(test) => codes(categories, test, Wanted::Booleans)?,
        Wanted::Integers(test) => codes(categories, test, Wanted::Integers)?,
        Wanted::Floats(test) => codes(categories, test, Wanted::Floats)?,
        Wanted::Bytes(test) => codes(categories, test, Wanted::Bytes)?,
    };
    let keys = column.keys();
    Some(match keys.data_type() {
        DataType::Int8 => by_key::<Int8Type>(keys, &codes)?,
        DataType::Int16 => by_key::<Int16Type>(keys, &codes)?,
        DataType::Int32 => by_key::<Int32Type>(keys, &codes)?,
        DataType::Int64 => by_key::<Int64Type>(keys, &codes)?,
        DataType::UInt8 => by_key::<UInt8Type>(keys, &codes)?,
        DataType::UInt16 => by_key::<UInt16Type>(keys, &codes)?,
        DataType::UInt32 => by_key::<UInt32Type>(keys, &codes)?,
        DataType::UInt64 => by_key::<UInt64Type>(keys, &codes)?,
        _ => return None,
    })
}

/// Maps each row to the result for its category. The key of a null may be out of range.
fn by_key<K: ArrowPrimitiveType>(keys: &dyn Array, codes: &BooleanBuffer) -> Option<BooleanBuffer> {
    let keys = keys.as_primitive_opt::<K>()?.values();
    Some(BooleanBuffer::collect_bool(keys.len(), |row| {
        let code = keys[row].as_usize();
        code < codes.len() && codes.value(code)
    }))
}

/// The categories that match.
fn codes<V: Clone>(
    categories: &dyn Array,
    test: &Test<V>,
    wrap: fn(Test<V>) -> Wanted,
) -> Option<BooleanBuffer> {
    let among = |values: Vec<V>| plain(categories, &wrap(Test::Member { negated: false, values }));
    let n_categories = categories.len();
    Some(match test {
        Test::Member { negated: false, values } => among(values.clone())?,
        Test::Member { negated: true, values } => !&among(values.clone())?,
        Test::Compare(comparison, wanted) => {
            match among(vec![wanted.clone()])?.set_indices().next() {
                Some(code) => BooleanBuffer::collect_bool(n_categories, |other| {
                    compare(*comparison, &other, &code)
                }),
                // A value outside the categories has no index: it is neither before nor after
                // another.
                None if *comparison == Comparison::NotEqual => BooleanBuffer::new_set(n_categories),
                None => BooleanBuffer::new_unset(n_categories),
            }
        }
    })
}

fn with_each<V, W>(test: &Test<V>, convert: impl Fn(&V) -> Option<W>) -> Option<Test<W>> {
    Some(match test {
        Test::Compare(comparison, wanted) => Test::Compare(*comparison, convert(wanted)?),
        Test::Member { negated, values } => Test::Member {
            negated: *negated,
            values: values.iter().map(convert).collect::<Option<_>>()?,
        },
    })
}

fn compare<V: PartialOrd>(comparison: Comparison, value: &V, wanted: &V) -> bool {
    match comparison {
        Comparison::Equal => value == wanted,
        Comparison::NotEqual => value != wanted,
        Comparison::Less => value < wanted,
        Comparison::LessOrEqual => value <= wanted,
        Comparison::Greater => value > wanted,
        Comparison::GreaterOrEqual => value >= wanted,
    }
}

/// The result for each row. `key` maps a value to a sort key for searching lists, since floats have
/// no total order.
fn answer<V: PartialOrd, K: Ord>(
    n_rows: usize,
    test: &Test<V>,
    value: impl Fn(usize) -> V,
    key: impl Fn(&V) -> K,
) -> BooleanBuffer {
    match test {
        Test::Compare(comparison, wanted) => {
            BooleanBuffer::collect_bool(n_rows, |row| compare(*comparison, &value(row), wanted))
        }
        Test::Member { negated, values } => {
            let mut keys: Vec<K> = values.iter().map(&key).collect();
            keys.sort_unstable();
            BooleanBuffer::collect_bool(n_rows, |row| {
                keys.binary_search(&key(&value(row))).is_ok() != *negated
            })
        }
    }
}
