//! Each property of datasets and datatypes that h5py can set, as `tests/python/write_matrix.py`
//! writes them: what is read is what h5py reads, or an error names the property.
//!
//! `SOMAFEED_RANDOM_DATASETS` sets how many datasets have properties drawn at random, and
//! `SOMAFEED_RANDOM_SEED` the first seed.

use std::collections::HashMap;
use std::env;
use std::sync::Arc;

use arrays::{DecodeMemory, ElementType, Scalar, StoredArray};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use storage::Storage;

use crate::{open, python};

/// A dataset, or after `@` an attribute.
#[derive(Debug, Deserialize)]
struct Case {
    file: String,
    path: String,
    /// `values`, `refused`, `either`, or `names` of a group.
    expect: String,
    /// A word of the error.
    word: Option<String>,
    /// What h5py reads; nothing if it fails.
    values: Option<Vec<Value>>,
}

#[test]
fn each_property_is_read_as_by_h5py_or_named() {
    let Some(interpreter) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let setting = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let drawn: u64 = setting("SOMAFEED_RANDOM_DATASETS").unwrap_or(200);
    let seed: u64 = setting("SOMAFEED_RANDOM_SEED").unwrap_or(1);
    let (drawn, seed) = (drawn.to_string(), seed.to_string());
    let place = folder.path().to_str().unwrap();
    let cases = python::run(&interpreter, "write_matrix.py", &[place, &drawn, &seed]);
    let cases: Vec<Case> = serde_json::from_value(cases).unwrap();
    assert!(5000 < cases.len(), "{}", cases.len());
    let mut files = HashMap::new();
    let mut failures = Vec::new();
    for case in &cases {
        let file = files.entry(&case.file);
        let file = file.or_insert_with(|| open(folder.path(), &case.file).unwrap());
        if let Err(failure) = check(file, case) {
            failures.push(format!("{} {}: {failure:.400}", case.file, case.path));
        }
    }
    let n_failures = failures.len();
    failures.truncate(60);
    assert!(failures.is_empty(), "{n_failures} of {}:\n{}", cases.len(), failures.join("\n"));
}

/// Whether what is read of a case is what it expects.
fn check(file: &Arc<dyn Storage>, case: &Case) -> Result<(), String> {
    let found = found(file, case);
    let is_named = |error: &str| case.word.as_ref().is_some_and(|word| error.contains(word));
    match (case.expect.as_str(), &found, &case.values) {
        (_, Ok(found), Some(expected)) if found == expected => Ok(()),
        ("refused" | "either", Err(error), _) if is_named(error) => Ok(()),
        // h5py fails, too.
        ("values", Err(_), None) | ("either", Ok(_), None) => Ok(()),
        (_, Ok(found), expected) => {
            let expected = expected.as_deref().unwrap_or_default();
            let differs = found.iter().zip(expected).position(|(a, b)| a != b);
            let differs = differs.map(|at| (at, &found[at], &expected[at]));
            Err(format!("{} values for {}, first {differs:?}", found.len(), expected.len()))
        }
        (_, Err(error), _) => Err(error.clone()),
    }
}

fn found(file: &Arc<dyn Storage>, case: &Case) -> Result<Vec<Value>, String> {
    if case.expect == "names" {
        let entries = file.list(&case.path).map_err(|error| error.to_string())?;
        let folders = entries.into_iter().filter(|entry| entry.is_folder);
        let mut names: Vec<String> = folders.map(|entry| entry.name).collect();
        names.sort_unstable();
        return Ok(names.into_iter().map(Value::from).collect());
    }
    let (path, attribute) = match case.path.split_once('@') {
        Some((path, attribute)) => (path, Some(attribute)),
        None => (case.path.as_str(), None),
    };
    let metadata = metadata(file, path)?;
    let attributes = metadata.get("attributes").and_then(Value::as_object);
    if let Some(name) = attribute {
        let value = attributes.and_then(|attributes| attributes.get(name));
        return Ok(match value.ok_or("it is left out")? {
            Value::Array(values) => values.iter().map(encoded).collect(),
            value => vec![encoded(value)],
        });
    }
    if let Some(reason) = attributes.and_then(|attributes| attributes.get(hdf5::UNREADABLE)) {
        let opened = StoredArray::open(file, path).map(|_| ());
        let error = opened.expect_err("no reader of Zarr opens it");
        let has_remedy = reason.as_str().is_some_and(|reason| reason.contains("rewrite"));
        assert!(has_remedy, "{reason}");
        return Err(format!("{reason} {error:?}"));
    }
    values(file, path, &metadata).map_err(|error| format!("{error:?}"))
}

fn metadata(file: &Arc<dyn Storage>, path: &str) -> Result<Map<String, Value>, String> {
    let bytes = file.read_files(&[&format!("{path}/zarr.json")]).remove(0);
    let bytes = bytes.map_err(|error| format!("{error:?}"))?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// The elements of an array in the form that the script prints them in.
fn values(
    file: &Arc<dyn Storage>,
    path: &str,
    metadata: &Map<String, Value>,
) -> Result<Vec<Value>, arrays::Error> {
    if metadata.get("shape") == Some(&json!([])) {
        let value = Scalar::read(file, path, metadata)?;
        return Ok(vec![match value {
            Scalar::Bool(value) => json!(value),
            Scalar::Integer(value) => json!(value),
            Scalar::Unsigned(value) => json!(value),
            Scalar::Float(value) => float(value),
            Scalar::Text(text) => json!(text),
        }]);
    }
    let array = StoredArray::open(file, path)?;
    if array.is_strings() && array.shape().len() == 1 {
        let strings = array.read_strings(0..array.n_rows())?;
        return Ok(strings.into_iter().map(Value::from).collect());
    }
    let n_bytes = array.element().map_or(0, ElementType::n_bytes);
    let n_elements: u64 = array.shape().iter().product();
    let mut bytes = vec![0; n_elements as usize * n_bytes];
    let request = array.request_bytes(&[0..array.n_rows()], &mut bytes)?;
    arrays::read_requests(&**file, &DecodeMemory::default(), vec![request])?;
    Ok(bytes.chunks_exact(n_bytes.max(1)).map(|bytes| number(array.element(), bytes)).collect())
}

fn number(element: Option<ElementType>, bytes: &[u8]) -> Value {
    match element {
        Some(ElementType::F16) => float(half(u16::from_le_bytes(bytes.try_into().unwrap()))),
        Some(ElementType::F32) => float(f32::from_le_bytes(bytes.try_into().unwrap()).into()),
        Some(ElementType::F64) => float(f64::from_le_bytes(bytes.try_into().unwrap())),
        _ => crate::number(element, bytes),
    }
}

/// The value of a float of 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

fn float(value: f64) -> Value {
    if value.is_nan() { json!("nan") } else { json!(format!("f:{:016x}", value.to_bits())) }
}

/// A value of an attribute in the form that the script prints it in.
fn encoded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => float(number.as_f64().unwrap()),
        Value::String(text) if text == "NaN" => json!("nan"),
        Value::String(text) if text == "Infinity" => float(f64::INFINITY),
        Value::String(text) if text == "-Infinity" => float(f64::NEG_INFINITY),
        other => other.clone(),
    }
}
