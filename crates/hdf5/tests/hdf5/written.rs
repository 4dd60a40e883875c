//! What h5py wrote is what is read.

use std::sync::Arc;

use arrays::StoredArray;
use serde_json::{Value, json};
use storage::Storage;

use crate::{data, elements, open};

/// Files with the same content: with indices of chunks of HDF5 1.6 and of 1.12, and behind a user
/// block.
const FILES: [&str; 3] = ["kinds.h5", "latest.h5", "behind.h5"];

fn metadata(storage: &Arc<dyn Storage>, path: &str) -> Value {
    let file = format!("{path}/zarr.json");
    let bytes = storage.read_files(&[file.trim_start_matches('/')]).remove(0).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn flat(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(rows) => rows.iter().flat_map(flat).collect(),
        other => vec![other.clone()],
    }
}

#[test]
fn each_dataset_has_the_values_that_h5py_reads() {
    let expected = std::fs::read_to_string(data().join("expected.json")).unwrap();
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&expected).unwrap();
    assert!(30 < expected.len());
    for file in FILES {
        let storage = open(&data(), file).unwrap();
        for (path, values) in &expected {
            if path == "numbers/scalar" {
                continue;
            }
            let found = elements(&storage, path).unwrap_or_else(|e| panic!("{file} {path}: {e:?}"));
            assert_eq!(found, flat(values), "{file} {path}");
        }
        let long: Vec<Value> = (0..70_001).map(|n| json!(n as u16)).collect();
        assert_eq!(elements(&storage, "numbers/long").unwrap(), long);
    }
}

#[test]
fn chunks_are_those_of_the_file() {
    let storage = open(&data(), "kinds.h5").unwrap();
    let chunks = |path: &str| metadata(&storage, path)["chunk_grid"]["configuration"].clone();
    assert_eq!(chunks("chunked/gzip")["chunk_shape"], json!([64]));
    assert_eq!(chunks("chunked/wide")["chunk_shape"], json!([4, 3]));
    assert_eq!(chunks("numbers/long")["chunk_shape"], json!([65_536]));
    let gzip = StoredArray::open(&storage, "chunked/gzip").unwrap();
    assert_eq!(gzip.chunk_rows(), Some(64));
    let sizes = storage.sizes(&["chunked/gzip/c/0", "chunked/plain/c/0", "numbers/long/c/1"]);
    let [gzip, plain, long] = &sizes[..] else { panic!("{sizes:?}") };
    assert!(*gzip.as_ref().unwrap() < 256);
    assert_eq!((*plain.as_ref().unwrap(), *long.as_ref().unwrap()), (256, 131_072));
    for absent in ["chunked/gzip/c/16", "chunked/part/c/9", "chunked/gzip/c/0/0", "chunked/c/0"] {
        let error = storage.size(absent).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{absent}");
    }
}

#[test]
fn attributes_are_those_of_the_file() {
    for file in FILES {
        let storage = open(&data(), file).unwrap();
        assert_eq!(metadata(&storage, "")["attributes"]["text"], "ä text");
        let attributes = &metadata(&storage, "attributes")["attributes"];
        assert_eq!(attributes["shape"], json!([3, 4]));
        assert_eq!(attributes["ordered"], json!(false));
        assert_eq!(attributes["names"], json!(["b", "a"]));
        assert_eq!(attributes["no names"], json!([]));
        assert_eq!(attributes["ratio"], json!(0.5));
        assert_eq!(attributes["fixed"], json!("fixed"));
        assert_eq!(attributes["many 19"], json!(19));
        let kind = &metadata(&storage, "old/kind")["attributes"];
        assert_eq!(kind["categories"], "old/__categories/kind", "{file}");
    }
}

#[test]
fn groups_list_what_they_have() {
    let storage = open(&data(), "latest.h5").unwrap();
    let names = |folder: &str| {
        let mut names: Vec<String> = storage
            .list(folder)
            .unwrap()
            .into_iter()
            .filter(|entry| entry.is_folder)
            .map(|entry| entry.name)
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(""), ["attributes", "chunked", "numbers", "old", "table", "text"]);
    assert_eq!(names("old"), ["__categories", "kind"]);
    assert!(names("absent").is_empty() && names("numbers/absent").is_empty());
}

#[test]
fn filters_that_zarr_has_not_are_undone() {
    for file in FILES {
        let storage = open(&data(), file).unwrap();
        let lzf = elements(&storage, "chunked/lzf").unwrap();
        assert_eq!(lzf, elements(&storage, "chunked/gzip").unwrap());
        let chunks = ["chunked/lzf/c/0", "chunked/lzf/c/15"];
        let sizes: Vec<u64> = storage.sizes(&chunks).into_iter().map(Result::unwrap).collect();
        assert_eq!(sizes, [256, 256], "decoded");
    }
}

#[test]
fn what_zarr_has_not_is_an_error_when_it_is_opened() {
    let storage = open(&data(), "kinds.h5").unwrap();
    let error = StoredArray::open(&storage, "table").map(|_| ()).unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("hdf5.compound"), "{text}");
    let reason = metadata(&storage, "table")["attributes"][hdf5::UNREADABLE].clone();
    let reason = reason.as_str().unwrap();
    assert!(reason.contains("datatype compound") && reason.contains("write_h5ad"), "{reason}");
}
