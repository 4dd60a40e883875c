//! Measures the savings of a cache by the length of its blocks:
//! `through_cache <array folder> [threads] [milliseconds a request]`.
//!
//! The array's files are read into memory, behind an object store that delays each request and
//! sends 50 MB/s per request. For each block length, 16 random chunks of 64 rows are read: with an
//! empty cache, again like a later process, and then 16 other chunks. Requests for bytes and for
//! sizes are counted separately.
#![expect(clippy::print_stdout, reason = "it is a program that reports")]

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use storage::{CacheSpec, CachedStorage, ObjectOptions, ObjectStorage, Storage};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions, is_in_fragment};

const BYTES_PER_SECOND: f64 = 50e6;
const KIB: u64 = 1 << 10;

/// Files in memory that respond like a remote store.
#[derive(Debug)]
struct Slow {
    inner: InMemory,
    latency: Duration,
    n_gets: AtomicU64,
    n_heads: AtomicU64,
    bytes: AtomicU64,
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slow")
    }
}

#[async_trait]
impl ObjectStore for Slow {
    async fn put_opts(&self, to: &Path, data: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(to, data, how).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(to, how).await
    }

    async fn get_opts(&self, from: &Path, how: GetOptions) -> Result<GetResult> {
        let is_head = how.head;
        let found = self.inner.get_opts(from, how).await?;
        let len = if is_head { 0 } else { found.range.end - found.range.start };
        if is_head { &self.n_heads } else { &self.n_gets }.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(len, Ordering::Relaxed);
        let sending = Duration::from_secs_f64(len as f64 / BYTES_PER_SECOND);
        tokio::time::sleep(self.latency + sending).await;
        Ok(found)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(below)
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        tokio::time::sleep(self.latency).await;
        self.inner.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, how).await
    }
}

/// Distinct chunks of 64 rows, drawn by a fixed generator.
fn chunks(n_rows: u64, mut seed: u64) -> Vec<Range<u64>> {
    let mut starts: Vec<u64> = (0..n_rows / 64).collect();
    let n = starts.len().min(16);
    for idx in 0..n {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = idx + (seed >> 33) as usize % (starts.len() - idx);
        starts.swap(idx, other);
    }
    starts.into_iter().take(n).map(|start| start * 64..start * 64 + 64).collect()
}

/// Opens the array, reads, and prints counts and times.
fn measure(what: &str, slow: &Slow, storage: Arc<dyn Storage>, threads: usize, seed: u64) {
    let counts = || [&slow.n_heads, &slow.n_gets, &slow.bytes].map(|n| n.load(Ordering::Relaxed));
    let before = counts();
    let began = Instant::now();
    let read = || -> std::result::Result<_, tiledb_native::Error> {
        let array = Array::open(storage, &OpenOptions::new(threads))?;
        let opened = began.elapsed();
        let mut out = CsrBuffers::new();
        array.read_csr(&chunks(array.n_rows(), seed), &ColumnSelection::All, &mut out)?;
        Ok((opened, out.nnz()))
    };
    let (opened, nnz) = match read() {
        Ok(read) => read,
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    };
    let all = began.elapsed().as_secs_f64();
    let after = counts();
    let [heads, gets, bytes] = [0, 1, 2].map(|idx| after[idx] - before[idx]);
    let (opened, mb) = (opened.as_secs_f64(), bytes as f64 / 1e6);
    println!(
        "{what:<26} {heads:>4} sizes {gets:>5} gets {mb:>8.1} MB   open {opened:.3} s, read {:.3} s   nnz {nnz}",
        all - opened
    );
}

/// The files of a folder, with their paths below it as keys.
fn in_memory(root: &std::path::Path) -> std::io::Result<InMemory> {
    let (store, mut folders) = (InMemory::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(key) = path.strip_prefix(root).ok().and_then(|key| key.to_str()) {
                let key = Path::parse(key).map_err(std::io::Error::other)?;
                let put = store.put(&key, std::fs::read(&path)?.into());
                put.now_or_never()
                    .expect("memory answers at once")
                    .map_err(std::io::Error::other)?;
            }
        }
    }
    Ok(store)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name the folder of an array")?;
    let mut number =
        |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (threads, millis) = (number(2) as usize, number(30));
    let slow = Arc::new(Slow {
        inner: in_memory(std::path::Path::new(&folder))?,
        latency: Duration::from_millis(millis),
        n_gets: AtomicU64::new(0),
        n_heads: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let remote = || -> std::io::Result<Arc<dyn Storage>> {
        let store = Arc::<Slow>::clone(&slow);
        let options = ObjectOptions::default();
        Ok(Arc::new(ObjectStorage::new(store, Path::default(), folder.clone(), options)?))
    };
    measure("without", &slow, remote()?, threads, 1);
    measure("without, other rows", &slow, remote()?, threads, 2);
    for block_bytes in [16, 64, 128, 256, 512, 1024, 4096].map(|kib| kib * KIB) {
        let at = tempfile::tempdir()?;
        let spec = CacheSpec { block_bytes, ..CacheSpec::new(at.path(), 64 << 30) };
        for (what, seed) in [("first", 1), ("again", 1), ("other rows", 2), ("other rows again", 2)]
        {
            let cached = Arc::new(CachedStorage::new(remote()?, &spec, is_in_fragment)?);
            let storage = Arc::<CachedStorage>::clone(&cached);
            let what = format!("{:>4} KiB, {what}", block_bytes / KIB);
            measure(&what, &slow, storage, threads, seed);
            if let Some(problem) = cached.problem() {
                println!("{problem}");
            }
        }
    }
    Ok(())
}
