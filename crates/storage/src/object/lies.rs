//! A store that says of every object that it is as long as no object can be.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::{ObjectOptions, ObjectStorage, REST_REQUESTS};
use crate::storage::Storage as _;
use crate::{LimitedStorage, ReadLimit};

const CLAIMED: u64 = 1 << 50;

#[derive(Debug, Default)]
struct Liar {
    inner: InMemory,
    n_requests: AtomicU64,
}

impl std::fmt::Display for Liar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("liar")
    }
}

#[async_trait]
impl ObjectStore for Liar {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.n_requests.fetch_add(1, Ordering::SeqCst);
        let mut found = self.inner.get_opts(location, options).await?;
        found.meta.size = CLAIMED;
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// A storage with one file of 1,000 bytes, which are one request.
fn storage() -> (Arc<Liar>, Arc<ObjectStorage>) {
    let liar = Arc::new(Liar::default());
    let key = Path::from("x/a");
    let put = liar.inner.put(&key, vec![7; 1000].into());
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(put).unwrap();
    let options = ObjectOptions { request_bytes: 1000, ..ObjectOptions::default() };
    let store: Arc<dyn ObjectStore> = Arc::<Liar>::clone(&liar);
    let storage = ObjectStorage::new(store, Path::from("x"), "liar", options).unwrap();
    (liar, Arc::new(storage))
}

#[test]
fn a_claimed_size_costs_neither_memory_nor_requests() {
    let (liar, storage) = storage();
    storage.read_files(&["a"]).remove(0).unwrap_err();
    // Each that the store refuses may be followed by one for the size.
    let n_requests = liar.n_requests.load(Ordering::SeqCst);
    assert!(n_requests <= 2 * (REST_REQUESTS + 1), "{n_requests}");
}

#[test]
fn memory_for_a_claimed_size_is_refused() {
    let (_, storage) = storage();
    let limit = Arc::new(ReadLimit::new(std::num::NonZeroU64::new(1 << 40).unwrap()));
    // Asks for the size, and for memory of that size.
    let limited = LimitedStorage::new(storage, limit);
    let error = limited.read_files(&["a"]).remove(0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory, "{error}");
}

/// As long as the first requests, and longer than all that are sent before some have come.
#[test]
fn files_of_every_length_are_read_whole() {
    let inner = InMemory::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let lens = [0, 1, 999, 1000, 1001, 16_999, 17_000, 17_001, 33_500, 100_000];
    let bytes = |len: usize| (0..len).map(|at| (at % 251) as u8).collect::<Vec<u8>>();
    for len in lens {
        let key = Path::from(format!("x/{len}"));
        let put = inner.put(&key, bytes(len).into());
        runtime.block_on(put).unwrap();
    }
    let options = ObjectOptions { request_bytes: 1000, ..ObjectOptions::default() };
    let storage = ObjectStorage::new(Arc::new(inner), Path::from("x"), "memory", options).unwrap();
    let names = lens.map(|len| len.to_string());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (len, read) in lens.into_iter().zip(storage.read_files(&names)) {
        assert!(read.unwrap() == bytes(len), "{len}");
    }
}
