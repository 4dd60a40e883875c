//! Describes a frame as plain JSON, like `python/described.py`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, TimeUnit};
use serde_json::{Value, json};
use soma_io::Experiment;

/// pyarrow's name of a type.
pub(crate) fn type_name(field: &Field, data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "bool".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::LargeUtf8 => "large_string".into(),
        DataType::LargeBinary => "large_binary".into(),
        DataType::Timestamp(unit, None) => {
            let unit = match unit {
                TimeUnit::Second => "s",
                TimeUnit::Millisecond => "ms",
                TimeUnit::Microsecond => "us",
                TimeUnit::Nanosecond => "ns",
            };
            format!("timestamp[{unit}]")
        }
        DataType::Dictionary(keys, values) => {
            let ordered = if field.dict_is_ordered() == Some(true) { ", ordered" } else { "" };
            format!("dictionary<{}, {}{ordered}>", type_name(field, keys), type_name(field, values))
        }
        other => other.to_string().to_lowercase(),
    }
}

pub(crate) fn values(array: &ArrayRef) -> Vec<Value> {
    let bits = |value: f64| json!(format!("bits {}", value.to_bits()));
    let value_at = |row: usize| match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Float32 => bits(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => bits(array.as_primitive::<Float64Type>().value(row)),
        DataType::LargeUtf8 => json!(array.as_string::<i64>().value(row)),
        DataType::LargeBinary => {
            let digits = array.as_binary::<i64>().value(row).iter();
            json!(digits.fold("bytes ".to_owned(), |text, byte| format!("{text}{byte:02x}")))
        }
        other => panic!("values of type {other} have no form in JSON"),
    };
    let integers = match array.data_type() {
        DataType::UInt64 => {
            return array.as_primitive::<UInt64Type>().iter().map(|value| json!(value)).collect();
        }
        other if other.is_integer() || matches!(other, DataType::Timestamp(_, _)) => {
            arrow_cast::cast(array, &DataType::Int64).unwrap()
        }
        _ => {
            let value = |row| if array.is_valid(row) { value_at(row) } else { Value::Null };
            return (0..array.len()).map(value).collect();
        }
    };
    integers.as_primitive::<Int64Type>().iter().map(|value| json!(value)).collect()
}

/// A data frame: its columns.
pub(crate) fn frame(batch: &RecordBatch) -> Value {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields()).map(|(array, field)| {
        let mut column = json!({
            "name": field.name(),
            "type": type_name(field, field.data_type()),
            "nullable": field.is_nullable(),
        });
        if let DataType::Dictionary(_, of) = field.data_type() {
            column["categories"] = values(array.as_any_dictionary().values()).into();
            column["values"] = values(&arrow_cast::cast(array, of).unwrap()).into();
        } else {
            column["values"] = values(array).into();
        }
        column
    });
    columns.collect()
}

/// obs, and var of the measurement `RNA`.
pub(crate) fn frames(experiment: &Experiment) -> Value {
    let var = experiment.measurement("RNA").unwrap().var().unwrap();
    json!({
        "obs": frame(&experiment.obs().unwrap().read(None, None).unwrap()),
        "var": frame(&var.read(None, None).unwrap()),
    })
}

/// Compares the frames of two experiments in this form, and names the first difference.
#[track_caller]
pub(crate) fn assert_same_frames(found: &Value, expected: &Value) {
    for frame in ["obs", "var"] {
        let columns = |side: &Value| side[frame].as_array().unwrap().clone();
        let names = |side: &Value| -> Vec<Value> {
            columns(side).iter().map(|column| column["name"].clone()).collect()
        };
        assert_eq!(names(found), names(expected), "the columns of {frame}");
        for (found, expected) in columns(found).iter().zip(&columns(expected)) {
            let name = &expected["name"];
            for part in ["type", "nullable", "categories"] {
                assert_eq!(found[part], expected[part], "{part} of column {name} of {frame}");
            }
            same_lists(&found["values"], &expected["values"], &format!("{name} of {frame}"));
        }
    }
}

/// Compares two lists, and names the first difference.
#[track_caller]
pub(crate) fn same_lists(found: &Value, expected: &Value, what: &str) {
    let (found, expected) = (found.as_array().unwrap(), expected.as_array().unwrap());
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    if let Some(at) = differs {
        panic!("{what}: at {at} stands {}, not {}", found[at], expected[at]);
    }
    assert_eq!(found.len(), expected.len(), "the length of {what}");
}
