//! Stores that cannot be read: the error names the array and what to do, and nothing hangs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use pipeline::{
    BlockPlace, BlockRows, Pipeline, PipelineSpec, Source as _, Stop, Upcoming, WhenDamaged,
};
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
    let rows = BlockRows {
        place: BlockPlace::default(),
        ranges: &[2..3],
        order: &[0],
        next: &[],
        upcoming: &Upcoming::default(),
    };
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

/// 30 rows of 4 values in chunks of `chunk_rows` rows.
fn write_steps(folder: &Path, name: &str, chunk_rows: u64) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let builder =
        ArrayBuilder::new(vec![30, 4], vec![chunk_rows, 4], data_type::float32(), 0.0_f32);
    let array = builder.build(store, &format!("/{name}")).unwrap();
    array.store_metadata().unwrap();
    array.store_array_subset(&array.subset_all(), &[1.0_f32; 120]).unwrap();
}

fn samples(folder: &Path, stride: u64) -> ArraySamples {
    let variables = [Variable::new("a").steps([-1, 0]), Variable::new("b").steps([2])];
    let storage = Arc::new(storage::LocalStorage::new(folder));
    let spec = SampleSpec { stride, ..SampleSpec::new(variables) };
    ArraySamples::open(storage, &spec).unwrap()
}

/// The chunks that a sample about this step needs.
fn needed(step: u64, chunk_rows: [u64; 2]) -> BTreeSet<(&'static str, u64)> {
    let [of_a, of_b] = chunk_rows;
    [("a", (step - 1) / of_a), ("a", step / of_a), ("b", (step + 2) / of_b)].into()
}

#[test]
fn samples_that_need_a_damaged_chunk_are_skipped() {
    for (chunk_rows, stride) in [([3, 4], 1), ([7, 2], 1), ([5, 30], 2), ([1, 1], 3), ([6, 9], 4)] {
        let folder = tempfile::tempdir().unwrap();
        write_steps(folder.path(), "a", chunk_rows[0]);
        write_steps(folder.path(), "b", chunk_rows[1]);
        let samples = samples(folder.path(), stride);
        let steps: Vec<u64> = (0..samples.n_samples()).map(|at| samples.step(at)).collect();
        // Samples from one to the end of its unit need the same chunks, and the next needs others.
        for (at, step) in steps.iter().enumerate() {
            let same = |other: &&u64| needed(**other, chunk_rows) == needed(*step, chunk_rows);
            let n_same = steps[at..].iter().take_while(same).count();
            let end = samples.unit_end(at as u64).min(samples.n_samples());
            assert!((at as u64) < end && end <= (at + n_same) as u64, "{chunk_rows:?} {step}");
        }

        fs::write(folder.path().join("a/c/1/0"), [0; 3]).unwrap();
        for is_in_order in [true, false] {
            let order =
                if is_in_order { shuffle::Order::InOrder } else { shuffle::Order::Shuffled };
            let spec = PipelineSpec {
                order,
                chunk_rows: 2,
                chunks_per_block: 4,
                batch_rows: 4,
                when_damaged: WhenDamaged::Skip,
                ..PipelineSpec::default()
            };
            let pipeline =
                Pipeline::new(Arc::new(samples.clone()), spec, ArrayBatch::n_samples).unwrap();
            let mut epoch = pipeline.epoch(0).unwrap();
            let mut found = Vec::new();
            for batch in epoch.by_ref() {
                let batch = batch.unwrap();
                found.extend(batch.samples().iter().map(|sample| samples.step(*sample)));
                for variable in batch.variables() {
                    let n_values = variable.shape().iter().product();
                    assert_eq!(variable.values::<f32>().unwrap(), vec![1.0; n_values]);
                }
            }
            found.sort_unstable();
            let is_damaged = |step: &&u64| needed(**step, chunk_rows).contains(&("a", 1));
            let (damaged, whole): (Vec<&u64>, Vec<&u64>) = steps.iter().partition(is_damaged);
            assert!(!damaged.is_empty() && found.iter().eq(whole));
            let mut names: Vec<String> =
                epoch.stats().skipped.iter().map(|skipped| skipped.name.clone()).collect();
            let mut expected: Vec<String> =
                damaged.iter().map(|step| format!("step {step}")).collect();
            names.sort_unstable();
            expected.sort_unstable();
            assert_eq!(names, expected);
        }
    }
}
