//! xarray opens the stores of `generate`, and crate `arrays` those of xarray. Values, dimensions
//! and coordinates are the same.
//!
//! The interpreter is the one that `SOMAFEED_PYTHON` names (`cargo xtask test` sets it). Without it
//! nothing is compared, unless `SOMAFEED_REQUIRE_PYTHON` demands it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, CoordinateValues, Coordinates, SampleSpec, Selection, Variable,
};
use fields::generate::{Codec, Layout, StoredElement, ZarrVersion};
use pipeline::{Pipeline, PipelineSpec};
use serde_json::Value;
use shuffle::Order;
use storage::LocalStorage;

use crate::write;

#[expect(clippy::print_stderr, reason = "a test prints what it cannot check")]
pub(crate) fn python() -> Option<OsString> {
    let python = env::var_os("SOMAFEED_PYTHON").filter(|python| !python.is_empty());
    if python.is_none() {
        let absent = "SOMAFEED_PYTHON names no interpreter with xarray";
        assert!(env::var_os("SOMAFEED_REQUIRE_PYTHON").is_none(), "{absent}");
        eprintln!("not compared with xarray: {absent} (`cargo xtask test` makes one)");
    }
    python
}

/// All layouts of `generate` that are stored in different ways.
fn layouts() -> Vec<Layout> {
    let mut all = Vec::new();
    for codec in [Codec::None, Codec::Zstd(1), Codec::Gzip(5), Codec::Blosc(5)] {
        for element in [StoredElement::F32, StoredElement::F16, StoredElement::I16] {
            let v3 = Layout { codec, element, chunk_channels: Some(8), ..Layout::default() };
            all.push(Layout { zarr: ZarrVersion::V2, ..v3.clone() });
            all.push(Layout { shard_samples: Some(2), ..v3.clone() });
            all.push(Layout { chunk_samples: 2, ..v3 });
        }
    }
    all
}

/// All samples of a variable in their order, as one batch.
pub(crate) fn read(store: &Path, variable: Variable) -> ArrayBatch {
    let spec = SampleSpec { threads: 2, ..SampleSpec::new([variable]) };
    let storage = Arc::new(LocalStorage::new(store));
    let samples = ArraySamples::open(storage, &spec).unwrap();
    assert_eq!(samples.skipped_coordinates(), [], "{}", store.display());
    let spec = PipelineSpec {
        order: Order::InOrder,
        chunk_rows: 1,
        chunks_per_block: 2,
        batch_rows: samples.n_samples(),
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    pipeline.epoch(0).unwrap().next().unwrap().unwrap()
}

/// Asserts that coordinates are those that xarray found.
#[track_caller]
fn assert_same(found: &Coordinates, expected: &Value, what: &str) {
    let expected = expected.as_array().unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    let mut pairs = expected.iter().enumerate();
    let is_same = match found.values() {
        CoordinateValues::Integers(found) => pairs.all(|(at, of)| of.as_i64() == Some(found[at])),
        CoordinateValues::Floats(found) => {
            pairs.all(|(at, of)| (of.as_f64().unwrap() - found[at]).abs() <= 1e-12 * 360.0)
        }
        CoordinateValues::Strings(found) => pairs.all(|(at, of)| of.as_str() == Some(&found[at])),
        other => panic!("{what}: {other:?}"),
    };
    assert!(is_same, "{what}: {found:?}, xarray has {expected:?}");
}

/// Compares a variable of a store with what xarray found.
#[track_caller]
fn compare(store: &Path, name: &str, expected: &Value) {
    let what = format!("{} {name}", store.display());
    let batch = read(store, Variable::new(name).as_f32());
    let found = batch.variable(name).unwrap();
    let shape: Vec<u64> = found.shape().into_iter().map(|len| len as u64).collect();
    assert_eq!(serde_json::json!(shape), expected["shape"], "{what}");

    let dimensions: Vec<&str> =
        expected["dimensions"].as_array().unwrap().iter().map(|of| of.as_str().unwrap()).collect();
    assert_eq!(found.dimensions()[1..], dimensions[1..], "{what}");
    for (at, dimension) in dimensions.iter().enumerate() {
        let coordinates = match at {
            0 => found.sample_coordinates().unwrap(),
            _ => found.coordinates(dimension).unwrap().clone(),
        };
        assert_same(&coordinates, &expected["coordinates"][dimension], &what);
        assert_eq!(coordinates.attribute("units"), expected["units"][dimension].as_str(), "{what}");
    }

    // xarray unpacks integers without an offset in 32 bits; everything else is equal bit by bit.
    let tolerance = if name == "scaled" { 3e-7 } else { 0.0 };
    let file = fs::read(expected["file"].as_str().unwrap()).unwrap();
    let expected = file.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
    let values = found.values::<f32>().unwrap();
    assert_eq!(values.len(), expected.len(), "{what}");
    for (idx, (value, expected)) in values.iter().zip(expected).enumerate() {
        let is_same = value.is_nan() && expected.is_nan()
            || (value - expected).abs() <= tolerance * expected.abs();
        assert!(is_same, "{what}: value {idx} is {value}, xarray has {expected}");
    }
}

#[test]
fn xarray_and_arrays_read_the_same_from_each_others_stores() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours");
    fs::create_dir(&ours).unwrap();
    let layouts = layouts();
    for (idx, layout) in layouts.iter().enumerate() {
        write(&ours.join(idx.to_string()), layout.clone()).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/xarray_stores.py");
    let mut command = Command::new(python);
    command.arg(script).arg(folder.path()).arg("7").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = found.as_object().unwrap();
    assert_eq!(found.len(), layouts.len() + 16);
    for (store, variables) in found {
        let variables = variables.as_object().unwrap();
        let is_ours = Path::new(store).starts_with(&ours);
        assert_eq!(variables.len(), if is_ours { 2 } else { 7 }, "{store}: {variables:?}");
        for (name, expected) in variables {
            compare(Path::new(store), name, expected);
        }
    }
}

#[test]
fn generated_channels_are_selected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, zarr) in [("v2", ZarrVersion::V2), ("v3", ZarrVersion::V3)] {
        let store = folder.path().join(name);
        write(&store, Layout { zarr, ..Layout::default() }).unwrap();
        let select = ["temperature_3", "wind_east_1"];
        let variable = Variable::new("inputs")
            .select("input_channels", select)
            .select("lat", Selection::labels([-22.5, 67.5]));
        let batch = read(&store, variable);
        let found = batch.variable("inputs").unwrap();
        assert_eq!(found.shape(), [5, 2, 6, 2]);
        let all = read(&store, Variable::new("inputs"));
        let all = all.variable("inputs").unwrap();
        let (found, all) = (found.values::<f32>().unwrap(), all.values::<f32>().unwrap());
        // The first point of the second latitude.
        assert_eq!(found[..2], [all[6 * 19 + 3], all[6 * 19 + 17]]);
    }
}
