//! Packed numbers read as xarray reads them: random arrays with random attributes, written by
//! xarray and by hand, in Zarr v2 and v3, as values and as coordinates.

use std::path::Path;

use arrays::{
    ArrayBatch, ArraySamples, CoordinateValues, Element, ElementType, Error, SampleSpec, Variable,
    VariableValues,
};
use half::f16;
use pipeline::Pipeline;
use serde_json::Value;

use crate::{RandomArrays, chain, in_order, open_with, written};

#[test]
fn packed_numbers_are_those_of_xarray() {
    let folder = tempfile::tempdir().unwrap();
    let Some(RandomArrays { found, seed, n_arrays }) = written("packing.py", folder.path()) else {
        return;
    };
    assert_eq!(found.len() as u64, n_arrays);
    for (name, expected) in &found {
        let what = format!("seed {seed}, array {name}: {expected}");
        compare(&folder.path().join(name), expected, &what);
    }
}

#[track_caller]
fn compare(folder: &Path, expected: &Value, what: &str) {
    let is_read = expected["understood"] == true && expected.get("error").is_none();
    let values = values(folder);
    let coordinates = coordinates(folder);
    if !is_read {
        // An attribute that is not understood is an error, even where xarray passes it over.
        assert!(matches!(values, Err(Error::Attribute { .. })), "{what}: {values:?}");
        assert!(matches!(coordinates, Err(Error::Coordinates { .. })), "{what}: {coordinates:?}");
        assert!(chain(&values.unwrap_err()).contains("attribute"), "{what}");
        return;
    }
    let (element, values) = values.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
    assert_eq!(element, expected_element(expected), "{what}");
    let coordinates = coordinates.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
    // Coordinates beyond 2^63 are skipped.
    let Some(coordinates) = coordinates else {
        assert!(["i8", "u8"].map(Value::from).contains(&expected["stored"]), "{what}");
        return assert_same(&values, element, expected, what);
    };
    assert_same(&values, element, expected, what);
    assert_same(&coordinates, ElementType::F64, expected, what);
}

/// The type of the numbers: xarray's, but that 4 bytes suffice where they hold each stored number.
/// xarray takes 8 where numbers are scaled, since JSON has no shorter ones.
fn expected_element(expected: &Value) -> ElementType {
    let stored = expected["stored"].as_str().unwrap();
    match expected["type"].as_str().unwrap() {
        _ if expected["scaled"] == true => match stored {
            "i4" | "i8" | "u4" | "u8" | "f8" => ElementType::F64,
            _ => ElementType::F32,
        },
        // Booleans beside NaN.
        "object" => ElementType::F32,
        same => ElementType::from_zarr_name(same).unwrap(),
    }
}

#[track_caller]
fn assert_same(values: &[f64], element: ElementType, expected: &Value, what: &str) {
    let expected_values = expected["values"].as_array().unwrap();
    assert_eq!(values.len(), expected_values.len(), "{what}");
    // xarray computes some in less than 64 bits.
    let tolerance = match expected["type"].as_str().unwrap() {
        "float16" if expected["scaled"] == true => 2e-3,
        "float32" if expected["scaled"] == true => 3e-7,
        _ => 0.0,
    };
    for (value, expected) in values.iter().zip(expected_values) {
        let Some(text) = expected.as_str() else {
            assert!(value.is_nan(), "{what}: {values:?}");
            continue;
        };
        let exact: f64 = text.parse().unwrap();
        let rounded = match element {
            ElementType::F32 => f64::from(exact as f32),
            _ => exact,
        };
        let is_same = *value == rounded || (value - rounded).abs() <= tolerance * rounded.abs();
        assert!(is_same, "{what}: {values:?}");
    }
}

fn batch(samples: ArraySamples) -> ArrayBatch {
    let n = samples.n_samples();
    let spec = pipeline::PipelineSpec { chunk_rows: n, batch_rows: n, ..in_order() };
    let pipeline = Pipeline::new(samples.into(), spec, ArrayBatch::n_samples).unwrap();
    pipeline.epoch(0).unwrap().next().unwrap().unwrap()
}

/// The numbers of the array `x`, and their type.
fn values(folder: &Path) -> Result<(ElementType, Vec<f64>), Error> {
    let spec = SampleSpec { coordinates: false, ..SampleSpec::new([Variable::new("x")]) };
    let batch = batch(open_with(folder, &spec)?);
    let values = batch.variable("x").unwrap();
    let element = values.element();
    let numbers = match element {
        ElementType::Bool | ElementType::U8 => doubles::<u8>(&values)?,
        ElementType::I8 => doubles::<i8>(&values)?,
        ElementType::I16 => doubles::<i16>(&values)?,
        ElementType::I32 => doubles::<i32>(&values)?,
        ElementType::I64 => values.values::<i64>()?.iter().map(|n| *n as f64).collect(),
        ElementType::U16 => doubles::<u16>(&values)?,
        ElementType::U32 => doubles::<u32>(&values)?,
        ElementType::U64 => values.values::<u64>()?.iter().map(|n| *n as f64).collect(),
        ElementType::F16 => doubles::<f16>(&values)?,
        ElementType::F32 => doubles::<f32>(&values)?,
        _ => doubles::<f64>(&values)?,
    };
    Ok((element, numbers))
}

fn doubles<T: Element + Into<f64>>(values: &VariableValues<'_>) -> Result<Vec<f64>, Error> {
    Ok(values.values::<T>()?.iter().map(|number| (*number).into()).collect())
}

/// The numbers of the array `x` as the coordinates of `y`; `None` if they are skipped.
fn coordinates(folder: &Path) -> Result<Option<Vec<f64>>, Error> {
    let batch = batch(open_with(folder, &SampleSpec::new([Variable::new("y")]))?);
    let Some(found) = batch.variable("y").unwrap().sample_coordinates() else { return Ok(None) };
    Ok(Some(match found.values() {
        CoordinateValues::Integers(values) => values.iter().map(|n| *n as f64).collect(),
        CoordinateValues::Floats(values) => values.clone(),
        other => panic!("{other:?}"),
    }))
}
