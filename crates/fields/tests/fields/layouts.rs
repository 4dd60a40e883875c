//! Every layout reads back as the values of the pure function.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fields::generate::{Codec, FieldSpec, Layout, StoredElement, ZarrVersion, field};
use half::f16;
use serde_json::{Value, json};
use zarrs::array::{Array, ElementOwned};
use zarrs::filesystem::FilesystemStore;

use crate::{SMALL, write};

const V2: Layout = Layout {
    zarr: ZarrVersion::V2,
    chunk_samples: 1,
    chunk_channels: None,
    shard_samples: None,
    codec: Codec::None,
    element: StoredElement::F32,
};
const V3: Layout = Layout { zarr: ZarrVersion::V3, ..V2 };
const SHARDED: Layout = Layout { shard_samples: Some(2), ..V3 };

fn open(store: &Path, name: &str) -> Array<FilesystemStore> {
    let files = Arc::new(FilesystemStore::new(store).unwrap());
    Array::open(files, &format!("/{name}")).unwrap()
}

fn read<T: ElementOwned>(store: &Path, name: &str) -> Vec<T> {
    let array = open(store, name);
    array.retrieve_array_subset(&array.subset_all()).unwrap()
}

/// The values that an array must have.
fn expected(name: &str) -> Vec<f32> {
    let FieldSpec { n_samples, n_inputs, n_targets, .. } = SMALL;
    let (times, channels): (Range<u64>, _) = match name {
        "inputs" => (0..n_samples, 0..n_inputs),
        _ => (1..n_samples + 1, 0..n_targets),
    };
    times.flat_map(|time| field(&SMALL, time, channels.clone()).unwrap()).collect()
}

/// Asserts that two arrays of values differ by at most what `tolerance` returns for a value.
#[track_caller]
fn close(values: &[f32], expected: &[f32], tolerance: impl Fn(f32) -> f32) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() <= tolerance(*expected), "{value} for {expected}");
    }
}

/// Writes a store and compares its values.
#[track_caller]
fn check(layout: &Layout) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let report = write(&store, layout.clone()).unwrap();
    let n_values = 5 * 4 * 6 * (19 + 3);
    for name in ["inputs", "targets"] {
        let expected = expected(name);
        match layout.element {
            StoredElement::F32 => {
                assert_eq!(report.n_bytes, n_values * 4);
                assert_eq!(read::<f32>(&store, name), expected);
            }
            StoredElement::F16 => {
                assert_eq!(report.n_bytes, n_values * 2);
                let values: Vec<f32> =
                    read::<f16>(&store, name).into_iter().map(f32::from).collect();
                close(&values, &expected, |value| (value.abs() / 2048.0).max(1e-7));
            }
            StoredElement::I16 => {
                let array = open(&store, name);
                let attribute =
                    |name: &str| array.attributes().get(name).and_then(Value::as_f64).unwrap();
                let (scale, offset) = (attribute("scale_factor"), attribute("add_offset"));
                let decode = |value: i16| (f64::from(value) * scale + offset) as f32;
                let values: Vec<f32> = read::<i16>(&store, name).into_iter().map(decode).collect();
                close(&values, &expected, |_| scale as f32 * 0.51);
            }
        }
    }
    assert_eq!(read::<i64>(&store, "sample"), [0, 1, 2, 3, 4]);
    assert_eq!(read::<f64>(&store, "lat"), [-67.5, -22.5, 22.5, 67.5]);
    assert_eq!(read::<f64>(&store, "lon"), [0.0, 60.0, 120.0, 180.0, 240.0, 300.0]);
    let channels = read::<String>(&store, "input_channels");
    assert_eq!(channels[..2], ["temperature_0", "temperature_1"]);
    assert_eq!(channels[15..17], ["temperature_15", "wind_east_0"]);
    assert_eq!(read::<String>(&store, "target_channels"), channels[..3]);
}

#[test]
fn chunks_of_any_size_have_their_values() {
    for layout in [V2, V3] {
        for (chunk_samples, chunk_channels) in [
            (1, None),
            (2, None),
            (8, None),
            (1, Some(1)),
            (1, Some(8)),
            (3, Some(16)),
            (1, Some(99)),
        ] {
            check(&Layout { chunk_samples, chunk_channels, ..layout.clone() });
        }
    }
}

#[test]
fn shards_have_their_values() {
    check(&SHARDED);
    check(&Layout { chunk_samples: 2, shard_samples: Some(4), ..SHARDED });
    check(&Layout { chunk_channels: Some(8), ..SHARDED });
    check(&Layout { codec: Codec::Zstd(3), chunk_channels: Some(5), ..SHARDED });
    check(&Layout { codec: Codec::Blosc(5), element: StoredElement::I16, ..SHARDED });
}

#[test]
fn every_codec_and_type_reads_back() {
    for layout in [V2, V3] {
        for codec in [Codec::None, Codec::Zstd(1), Codec::Gzip(5), Codec::Blosc(5)] {
            for element in [StoredElement::F32, StoredElement::F16, StoredElement::I16] {
                check(&Layout { codec, element, ..layout.clone() });
            }
        }
    }
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn xarray_finds_dimensions_and_no_missing_values() {
    let folder = tempfile::tempdir().unwrap();
    let (v2, v3) = (folder.path().join("v2"), folder.path().join("v3"));
    write(&v2, Layout { element: StoredElement::I16, ..V2 }).unwrap();
    write(&v3, V3).unwrap();

    let dimensions = json!(["sample", "lat", "lon", "target_channels"]);
    assert_eq!(json_file(&v3.join("targets/zarr.json"))["dimension_names"], dimensions);
    let attributes = json_file(&v2.join("targets/.zattrs"));
    assert_eq!(attributes["_ARRAY_DIMENSIONS"], dimensions);
    assert_eq!(attributes.get("_FillValue"), None);
    assert_eq!(json_file(&v2.join("targets/.zarray"))["fill_value"], Value::Null);
    assert_eq!(json_file(&v2.join("lat/.zattrs"))["_ARRAY_DIMENSIONS"], json!(["lat"]));

    let consolidated = json_file(&v2.join(".zmetadata"));
    assert_eq!(consolidated["metadata"]["targets/.zattrs"], attributes);
    assert_eq!(consolidated["metadata"].as_object().unwrap().len(), 2 + 2 * 7);
}

#[test]
fn targets_follow_from_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    write(&store, V3).unwrap();
    let (inputs, targets) = (read::<f32>(&store, "inputs"), read::<f32>(&store, "targets"));
    let next = inputs.chunks_exact(19).skip(4 * 6).map(|point| &point[..3]);
    for (target, next) in targets.chunks_exact(3).zip(next) {
        assert_eq!(target, next);
    }
}
