//! Objects that change while an array is open: reads return bytes of one version, or an error.

use std::sync::Arc;

use futures_util::FutureExt as _;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use storage::{
    CacheSpec, CachedStorage, Expected, ObjectOptions, ObjectStorage, Piece, Storage as _,
};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions, is_in_fragment};

use crate::stored::stored;

fn put(store: &InMemory, file: &str, bytes: Vec<u8>) {
    let key = Path::parse(format!("array/{file}")).unwrap();
    store.put(&key, bytes.into()).now_or_never().unwrap().unwrap();
}

fn storage(store: &Arc<InMemory>) -> ObjectStorage {
    let store = Arc::<InMemory>::clone(store);
    ObjectStorage::new(store, Path::from("array"), "memory://array", ObjectOptions::default())
        .unwrap()
}

#[test]
fn bytes_of_two_versions_are_not_mixed() {
    let store = Arc::new(InMemory::new());
    put(&store, "a", vec![1; 1000]);
    let [read, sized, other] = [(); 3].map(|()| storage(&store));
    let pieces = |range| [Piece { file: "a", range }];
    read.read(&pieces(0..10), &mut [0; 10]).unwrap();
    assert_eq!(sized.size("a").unwrap(), 1000);
    put(&store, "a", vec![2; 1000]);
    for storage in [read, sized] {
        // Fetched ahead or not, for the life of the storage.
        storage.prefetch(&pieces(500..600), Expected::Now);
        for range in [500..600, 900..1000, 0..100] {
            let error = storage.read(&pieces(range), &mut [0; 100]).unwrap_err().to_string();
            assert!(error.contains("array/a was replaced while the array was open"), "{error}");
        }
        assert!(storage.size("a").is_err());
    }
    // Readers that open it later read the new version.
    let mut into = [0; 100];
    other.read(&pieces(900..1000), &mut into).unwrap();
    assert_eq!(into, [2; 100]);
}

#[test]
fn storages_of_one_client_compare_their_versions() {
    let store = Arc::new(InMemory::new());
    put(&store, "X/a", vec![1; 1000]);
    let whole = storage(&store);
    let [inner, later] = [(); 2].map(|()| whole.below("X").unwrap());
    whole.read(&[Piece { file: "X/a", range: 990..1000 }], &mut [0; 10]).unwrap();
    inner.read(&[Piece { file: "a", range: 0..10 }], &mut [0; 10]).unwrap();
    put(&store, "X/a", vec![2; 1000]);
    for storage in [inner, later] {
        let read = storage.read(&[Piece { file: "a", range: 0..100 }], &mut [0; 100]);
        let error = read.unwrap_err().to_string();
        assert!(error.contains("array/X/a was replaced"), "{error}");
        assert!(storage.read_files(&["a"])[0].is_err());
    }
}

#[test]
fn an_array_written_anew_has_to_be_opened_anew() {
    let files = stored("format-22");
    let store = Arc::new(InMemory::new());
    files.files.iter().for_each(|(file, bytes)| put(&store, file, bytes.clone()));
    let array = Array::open(Arc::new(storage(&store)), &OpenOptions::new(2)).unwrap();
    let mut out = CsrBuffers::new();
    let sent = array.read_csr(&[0..40], &ColumnSelection::All, &mut out).unwrap().requests;
    assert!(sent.is_some_and(|sent| sent > 0));
    // The same bytes with another tag are a new version.
    files.files.iter().for_each(|(file, bytes)| put(&store, file, bytes.clone()));
    let error = array.read_csr(&[40..100], &ColumnSelection::All, &mut out).unwrap_err();
    let Error::Storage(storage::Error::File { file, source, .. }) = error else {
        panic!("{error}")
    };
    assert!(file.starts_with("memory://array/__fragments/"), "{file}");
    assert!(source.to_string().contains("the array again"), "{source}");
    assert_eq!(out.nnz(), 0);
}

#[test]
fn a_cache_knows_an_object_that_was_replaced() {
    const FILE: &str = "__fragments/__1_2_70f1b2c0f0669ba097275f1a0db8dd1c_22/a0.tdb";
    let store = Arc::new(InMemory::new());
    let folder = tempfile::tempdir().unwrap();
    let read = || {
        let cache = CacheSpec::new(folder.path(), 1 << 30);
        let cached = CachedStorage::new(Arc::new(storage(&store)), &cache, is_in_fragment).unwrap();
        let mut into = [0; 10];
        cached.read(&[Piece { file: FILE, range: 5..15 }], &mut into).unwrap();
        (into[3], cached.stats().hits, cached.request_counts().unwrap().sent)
    };
    put(&store, FILE, vec![1; 1000]);
    assert_eq!(read(), (1, 0, 2));
    assert_eq!(read(), (1, 1, 1));
    // As long as the first version; only its tag differs.
    put(&store, FILE, vec![2; 1000]);
    assert_eq!(read(), (2, 0, 2));
    assert_eq!(read(), (2, 1, 1));
}
