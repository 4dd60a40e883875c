//! Samples from a storage that answers many requests at a time.

use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use futures_util::FutureExt as _;
use pipeline::Pipeline;
use storage::object_store::memory::InMemory;
use storage::object_store::path::Path;
use storage::object_store::{ObjectStore, ObjectStoreExt as _};
use storage::{ObjectOptions, ObjectStorage, Storage};

use crate::oracle::{Compression, Stored, write};
use crate::{in_order, open, values};

/// The files of `folder` in an object store.
pub(crate) fn far(folder: &std::path::Path, request_bytes: u64) -> Arc<ObjectStorage> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    copy(folder, &Path::default(), &*store);
    let options = ObjectOptions { request_bytes, ..ObjectOptions::default() };
    Arc::new(ObjectStorage::new(store, Path::default(), "far", options).unwrap())
}

fn copy(folder: &std::path::Path, to: &Path, store: &dyn ObjectStore) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let to = to.clone().join(path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            copy(&path, &to, store);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            store.put(&to, bytes.into()).now_or_never().unwrap().unwrap();
        }
    }
}

#[test]
fn an_object_store_gives_the_same_samples_as_a_folder() {
    for (is_sharded, codec) in [
        (false, None),
        (true, None),
        (false, Some(Compression::Zstd)),
        (true, Some(Compression::Checksum)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored { shape: vec![9, 4, 6], chunk: vec![2, 2, 3], is_sharded, codec };
        write(folder.path(), "fields", &stored);
        let near = values::<f64>(open(folder.path(), "fields").unwrap()).unwrap();
        let spec = SampleSpec { threads: 2, ..SampleSpec::new([Variable::new("fields")]) };
        // Files of 96 bytes come in one request, or in three.
        for request_bytes in [1 << 20, 40] {
            let samples = ArraySamples::open(far(folder.path(), request_bytes), &spec).unwrap();
            assert_eq!(values::<f64>(samples).unwrap(), near, "{stored:?}");
        }
    }
}

#[test]
fn a_chunk_costs_one_request() {
    let folder = tempfile::tempdir().unwrap();
    let codec = Some(Compression::Zstd);
    let stored = Stored { shape: vec![8, 4, 6], chunk: vec![1, 2, 6], is_sharded: false, codec };
    write(folder.path(), "fields", &stored);
    let storage = far(folder.path(), 1 << 20);
    let spec = SampleSpec::new([Variable::new("fields")]);
    let samples = ArraySamples::open(Arc::clone(&storage) as Arc<dyn Storage>, &spec).unwrap();
    let before = storage.request_counts().unwrap().sent;
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let mut epoch = pipeline.epoch(0).unwrap();
    let n: usize = epoch.by_ref().map(|batch| batch.unwrap().n_samples()).sum();
    assert_eq!((n, storage.request_counts().unwrap().sent - before), (8, 16));
    assert_eq!(epoch.stats().read.requests, Some(16));
}

#[test]
fn a_chunk_that_a_remote_store_lacks_is_the_fill_value() {
    let folder = tempfile::tempdir().unwrap();
    let stored = Stored { shape: vec![4, 2], chunk: vec![1, 2], is_sharded: false, codec: None };
    write(folder.path(), "fields", &stored);
    std::fs::remove_file(folder.path().join("fields/c/2/0")).unwrap();
    let spec = SampleSpec::new([Variable::new("fields")]);
    let samples = ArraySamples::open(far(folder.path(), 1 << 20), &spec).unwrap();
    let (all, _) = values::<f64>(samples).unwrap();
    assert_eq!(all, [0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 6.0, 7.0]);
}
