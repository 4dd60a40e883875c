//! Whole arrays through a cache.

use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use storage::{CacheSpec, CachedStorage, ObjectOptions, ObjectStorage, Storage};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions, is_in_fragment};

use super::behind::Behind;
use super::spec;
use crate::stored::packed::MemoryStorage;
use crate::stored::stored;

fn read(storage: Arc<dyn Storage>) -> Vec<CsrBuffers> {
    let array = Array::open(storage, &OpenOptions::new(2)).unwrap();
    let reads = [vec![0..100], vec![80..96, 16..32, 48..64, 0..16], vec![3..9, 70..71]];
    let read = |rows: Vec<_>| {
        let mut out = CsrBuffers::new();
        array.read_csr(&rows, &ColumnSelection::All, &mut out).unwrap();
        out
    };
    reads.into_iter().map(read).collect()
}

fn check_equal(found: &[CsrBuffers], expect: &[CsrBuffers], what: &str) {
    for (found, expect) in found.iter().zip(expect) {
        assert!(expect.nnz() > 0, "{what}");
        assert_eq!(found.row_offsets, expect.row_offsets, "{what}");
        assert_eq!(found.columns, expect.columns, "{what}");
        assert_eq!(found.values, expect.values, "{what}");
    }
}

#[test]
fn read_as_they_do_without_one() {
    for name in ["format-06", "format-08", "format-11-appended", "format-22-consolidated"] {
        let expect = read(Arc::new(stored(name)));
        let behind = Behind::packed(&stored(name));
        let folder = tempfile::tempdir().unwrap();
        let through = |n_blocks| {
            let inner = Arc::<Behind>::clone(&behind);
            let cached = Arc::new(
                CachedStorage::new(inner, &spec(folder.path(), n_blocks), is_in_fragment).unwrap(),
            );
            check_equal(&read(Arc::<CachedStorage>::clone(&cached)), &expect, name);
            assert_eq!((cached.problem(), cached.stats().damaged), (None, 0), "{name}");
            cached.stats()
        };
        let first = through(2000);
        assert!(first.misses > 0 && first.evictions == 0, "{name} {first:?}");
        // Room for less than the array, so that much is fetched again and again.
        let little = through(2);
        assert!(little.misses > 0 && little.evictions > 0, "{name} {little:?}");
        through(2000);
        behind.take_read();
        assert_eq!(through(2000).misses, 0, "{name}");
        for (file, range) in behind.take_read() {
            let has_fragment_in_path = file.contains('/')
                && !file.starts_with("__schema/")
                && !file.starts_with("__commits/");
            assert!(!has_fragment_in_path, "{name}: {file} {range:?}");
        }
    }
}

/// A store with an array below "array".
async fn store_of(files: &MemoryStorage) -> Arc<dyn ObjectStore> {
    let store = InMemory::new();
    for (file, bytes) in &files.files {
        let key = Key::parse(format!("array/{file}")).unwrap();
        store.put(&key, bytes.clone().into()).await.unwrap();
    }
    Arc::new(store)
}

#[test]
fn read_from_an_object_store_that_fetches_ahead() {
    for name in ["format-09-appended", "format-22"] {
        let files = stored(name);
        let expect = read(Arc::new(files.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = runtime.block_on(store_of(&files));
        let folder = tempfile::tempdir().unwrap();
        for request_bytes in [700, 8 << 20] {
            let options = ObjectOptions { request_bytes, ..ObjectOptions::default() };
            let prefix = Key::parse("array").unwrap();
            let store = Arc::clone(&store);
            let inner = ObjectStorage::new(store, prefix, "memory://array", options).unwrap();
            let cache = CacheSpec::new(folder.path(), 1 << 30);
            let cached =
                Arc::new(CachedStorage::new(Arc::new(inner), &cache, is_in_fragment).unwrap());
            check_equal(&read(Arc::<CachedStorage>::clone(&cached)), &expect, name);
            assert_eq!(cached.stats().misses > 0, request_bytes == 700, "{name}");
        }
    }
}
