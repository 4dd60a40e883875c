//! Stores that cannot be read: the error names the array and what to do, and nothing hangs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pipeline::{BlockPlace, BlockRows, Source as _, Stop};
use zarrs::array::{ArrayBuilder, codec, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::{chain, open, read_all};

/// 6 rows of 4 values in chunks of 2 rows, or in shards of 2 chunks of 1 row, with checksums.
fn write(folder: &Path, is_sharded: bool) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let mut builder = ArrayBuilder::new(vec![6, 4], vec![2, 4], data_type::float32(), 0.0_f32);
    builder.bytes_to_bytes_codecs(vec![Arc::new(codec::Crc32cCodec::new())]);
    if is_sharded {
        builder.subchunk_shape(vec![1, 4]);
    }
    let array = builder.build(store, "/a/fields").unwrap();
    array.store_metadata().unwrap();
    let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

#[track_caller]
fn fails(folder: &Path, words: &[&str]) {
    let error = read_all::<f32>(folder, "a/fields").unwrap_err();
    let text = chain(&error);
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn an_array_that_is_not_there_names_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fails(folder.path(), &["a/fields", folder.path().to_str().unwrap()]);
}

#[test]
fn a_single_value_has_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FilesystemStore::new(folder.path()).unwrap());
    let none: Vec<u64> = Vec::new();
    let builder = ArrayBuilder::new(none.clone(), none, data_type::float32(), 0.0_f32);
    builder.build(store, "/a/fields").unwrap().store_metadata().unwrap();
    fails(folder.path(), &["a/fields", "first dimension"]);
}

#[test]
fn a_truncated_or_changed_chunk_is_named() {
    for is_sharded in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), is_sharded);
        let chunk = folder.path().join("a/fields/c/1/0");
        let whole = fs::read(&chunk).unwrap();
        for n_bytes in [0, 1, 4, whole.len() - 1] {
            fs::write(&chunk, &whole[..n_bytes]).unwrap();
            fails(folder.path(), &["a/fields", "chunk [", "of epoch 0"]);
        }
        for place in [0, 5, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&chunk, changed).unwrap();
            fails(folder.path(), &["a/fields", "chunk ["]);
        }
    }
}

#[test]
fn a_part_of_a_chunk_is_checked_as_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), false);
    let chunk = folder.path().join("a/fields/c/1/0");
    let mut changed = fs::read(&chunk).unwrap();
    // In row 3; only row 2 is read below.
    changed[20] ^= 1;
    fs::write(&chunk, changed).unwrap();
    let samples = open(folder.path(), "a/fields").unwrap();
    let (mut block, mut scratch) = Default::default();
    let rows = BlockRows { place: BlockPlace::default(), ranges: &[2..3], order: &[0], next: &[] };
    let read = samples.read(&rows, &mut block, &mut scratch, &Stop::default());
    assert!(chain(&read.unwrap_err()).contains("chunk [1, 0]"));
}

/// zarrs would decode all of it before it compares lengths.
#[test]
fn a_chunk_that_decodes_to_far_more_is_refused_at_its_length() {
    for endian in ["little", "big"] {
        let folder = tempfile::tempdir().unwrap();
        let metadata = serde_json::json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
            "codecs": [
                {"name": "bytes", "configuration": {"endian": endian}},
                {"name": "crc32c"},
                {"name": "zstd", "configuration": {"level": 1, "checksum": false}},
            ],
        });
        let array = folder.path().join("a/fields");
        fs::create_dir_all(array.join("c")).unwrap();
        fs::write(array.join("zarr.json"), metadata.to_string()).unwrap();
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
        fs::write(array.join("c/0"), bomb).unwrap();
        fails(folder.path(), &["chunk [0]", "buffer is too small"]);
    }
}

#[test]
fn metadata_that_lies_about_sizes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), false);
    let path = folder.path().join("a/fields/zarr.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let huge = u64::MAX / 2;
    metadata["shape"] = serde_json::json!([6, huge]);
    fs::write(&path, metadata.to_string()).unwrap();
    fails(folder.path(), &["a/fields", "a row"]);

    metadata["shape"] = serde_json::json!([6, 4]);
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = serde_json::json!([huge, huge]);
    fs::write(&path, metadata.to_string()).unwrap();
    fails(folder.path(), &["a/fields"]);

    fs::write(&path, "{").unwrap();
    fails(folder.path(), &["a/fields"]);
}
