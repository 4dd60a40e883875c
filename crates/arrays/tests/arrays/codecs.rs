//! Codecs and types that zarr-python writes with numcodecs, and metadata in the forms in which
//! programs write it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrays::{Scalar, StoredArray};
use half::f16;
use serde_json::{Value, json};
use storage::{LocalStorage, Storage};

use crate::{RandomArrays, chain, open, read_all, written};

#[test]
fn arrays_of_every_codec_are_those_of_zarr_python() {
    let folder = tempfile::tempdir().unwrap();
    let Some(RandomArrays { found, seed, n_arrays }) = written("codecs.py", folder.path()) else {
        return;
    };
    // zarr-python cannot write some.
    assert!(n_arrays * 4 / 5 <= found.len() as u64, "{} of {n_arrays} were written", found.len());
    for (name, expected) in &found {
        compare(folder.path(), name, expected, &format!("seed {seed}, array {name}: {expected}"));
    }
}

#[track_caller]
fn compare(folder: &Path, name: &str, expected: &Value, what: &str) {
    let elements = expected["elements"].as_array().unwrap();
    let kind = expected["type"].as_str().unwrap();
    if kind.starts_with(['U', 'S']) {
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder));
        let array = StoredArray::open(&storage, name)
            .unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
        assert!(array.is_strings() && array.element().is_none(), "{what}");
        let texts = array.read_strings(0..array.n_rows());
        let texts = texts.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
        assert!(
            texts.iter().eq(elements.iter().map(|text| text.as_str().unwrap())),
            "{what}: {texts:?}"
        );
        return;
    }
    macro_rules! numbers {
        ($rust:ty) => {
            read_all::<$rust>(folder, name).map(|all| all.iter().map(|n| json!(*n)).collect())
        };
    }
    let found: Result<Vec<Value>, _> = match kind {
        "i1" => numbers!(i8),
        "i2" => numbers!(i16),
        "i4" => numbers!(i32),
        "i8" => numbers!(i64),
        "u1" => numbers!(u8),
        "u2" => numbers!(u16),
        "u4" => numbers!(u32),
        "u8" => numbers!(u64),
        "f2" => {
            read_all::<f16>(folder, name).map(|all| all.iter().map(|x| json!(x.to_f64())).collect())
        }
        "f4" => read_all::<f32>(folder, name)
            .map(|all| all.iter().map(|x| json!(f64::from(*x))).collect()),
        _ => numbers!(f64),
    };
    let found = found.unwrap_or_else(|error| panic!("{what}: {}", chain(&error)));
    assert_eq!(&found, elements, "{what}");
}

/// Writes metadata and one chunk of an array.
fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (file, bytes) in files {
        let path = folder.join("a").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn metadata_of_version_2_is_read_as_programs_write_it() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&[1.0_f32, 2.0].map(f32::to_le_bytes).concat()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let metadata =
        br#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "order": "C",
        "compressor": {"id": "gzip", "level": -1}, "fill_value": NaN, "filters": null,
        "dimension_separator": null}"#;
    let attributes = br#"{"missing_value": NaN, "valid_max": Infinity, "note": "NaN"}"#;
    write(
        folder.path(),
        &[(".zarray", metadata), (".zattrs", attributes), ("0", &gzip.finish().unwrap())],
    );
    let found = read_all::<f32>(folder.path(), "a").unwrap();
    assert!(found[..2] == [1.0, 2.0] && found[2..].iter().all(|x| x.is_nan()), "{found:?}");
}

#[test]
fn metadata_of_version_3_is_read_as_programs_write_it() {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&[1.0_f32, 2.0].map(f32::to_le_bytes).concat()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let metadata =
        br#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": -Infinity,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                   {"name": "numcodecs.zlib", "configuration": {"level": -1}}],
        "attributes": null, "storage_transformers": null, "dimension_names": null}"#;
    write(folder.path(), &[("zarr.json", metadata), ("c/0", &zlib.finish().unwrap())]);
    let found = read_all::<f32>(folder.path(), "a").unwrap();
    assert_eq!(found, [1.0, 2.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
}

#[test]
fn a_group_is_no_array() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#)]);
    let error = chain(&open(folder.path(), "a").unwrap_err());
    assert!(error.contains("it is a group"), "{error}");
}

/// Texts of fixed length without values: scalars, fill values, and those that are not UTF-8.
#[test]
fn texts_of_fixed_length_are_read_in_every_place() {
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
    let scalar = br#"{"zarr_format": 2, "shape": [], "chunks": [], "dtype": "|S4", "order": "C",
        "compressor": null, "fill_value": null, "filters": null}"#;
    write(folder.path(), &[(".zarray", scalar), ("0", b"ab\0\0")]);
    let metadata = serde_json::from_slice(scalar).unwrap();
    assert_eq!(Scalar::read(&storage, "a", &metadata).unwrap(), Scalar::Text("ab".to_owned()));

    let list = br#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|S2", "order": "C",
        "compressor": null, "fill_value": "YmM=", "filters": null}"#;
    write(folder.path(), &[(".zarray", list), ("0", b"a\0\0\0")]);
    let array = StoredArray::open(&storage, "a").unwrap();
    assert_eq!(array.read_strings(0..4).unwrap(), ["a", "", "bc", "bc"]);
    write(folder.path(), &[("0", b"\xff\0\0\0")]);
    let error = chain(&array.read_strings(0..2).unwrap_err());
    assert!(error.contains("UTF-8"), "{error}");

    let bytes = br#"{"zarr_format": 3, "node_type": "array", "shape": [3],
        "data_type": {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": "", "codecs": [{"name": "bytes"}]}"#;
    write(folder.path(), &[("zarr.json", bytes), ("c/0", b"T\0\0gen\0\0\0")]);
    let array = StoredArray::open(&storage, "a").unwrap();
    assert_eq!(array.read_strings(0..3).unwrap(), ["T", "gen", ""]);
}

/// The chunks of a row are listed when they are read, so that opening costs nothing for them.
#[test]
fn a_row_of_millions_of_chunks_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
    let open = |n_chunks: u64| {
        let metadata = json!({
            "zarr_format": 2, "shape": [2, n_chunks * 3], "chunks": [1, 3], "dtype": "<f4",
            "order": "C", "compressor": null, "fill_value": 1.5, "filters": null,
        });
        write(folder.path(), &[(".zarray", metadata.to_string().as_bytes())]);
        StoredArray::open(&storage, "a")
    };
    let array = open(1 << 22).unwrap();
    assert_eq!((array.shape(), array.chunk_rows()), (&[2, 3 << 22][..], Some(1)));
    let error = open((1 << 22) + 1).unwrap_err().to_string();
    assert!(error.contains("a row or a chunk"), "{error}");
    assert_eq!(open(1000).unwrap().n_rows(), 2);
    let all = read_all::<f32>(folder.path(), "a").unwrap();
    assert!(all.len() == 6000 && all.iter().all(|value| *value == 1.5));
}
