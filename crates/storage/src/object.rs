//! An object store (S3, Google Cloud Storage, Azure, anything behind the crate `object_store`):
//! answers late, but many at a time.
//!
//! Requests run on a runtime of the storage's own, whose few named threads do nothing but wait and
//! copy; callers block outside of it, so that a call works from any thread, those of another
//! runtime included, and decoding stays where the caller does it. Every range is a request of its
//! own, at most [`ObjectOptions::max_requests`] at once. What was announced is fetched ahead
//! ([`ahead`]).
//!
//! Every answer is checked to come from the version of its object that was first read
//! ([`versions`]): an object that is replaced while the array is open is an error, never bytes of
//! both.
//!
//! Keys are taken and given as they are: TileDB percent-encodes attribute names in some formats,
//! and a second encoding would miss those files.

mod ahead;
mod request;
mod versions;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ListResult, ObjectStore, ObjectStoreExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use self::ahead::{Ahead, Begun, Limits, Source};
use self::request::{Pending, Promise, promise};
use self::versions::Versions;
use crate::storage::{Coalesce, Entry, FileVersion, Piece, Storage};

/// How long a dropped storage waits for its threads; requests end as soon as they next wait for the
/// network.
const FAREWELL: Duration = Duration::from_secs(2);

/// How an [`ObjectStorage`] asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectOptions {
    /// Requests for bytes under way at once.
    pub max_requests: usize,
    /// The most bytes of one request; longer ranges are asked for in parts.
    pub request_bytes: u64,
    /// Ranges of one file are read as one when no more bytes than this lie between them: what could
    /// be sent while a request more is answered.
    pub gap_bytes: u64,
    /// Some so many bytes are read and then decoded together.
    pub batch_bytes: u64,
    /// The most memory for what is fetched before it is read; 0 fetches nothing ahead.
    pub prefetch_bytes: u64,
    /// Threads that wait for the network, decrypt and copy.
    pub n_threads: usize,
}

impl Default for ObjectOptions {
    /// 32 requests of up to 8 MiB, gaps of 256 KiB, batches of 4 MiB, 64 MiB ahead, 2 threads.
    fn default() -> Self {
        Self {
            max_requests: 32,
            request_bytes: 8 << 20,
            gap_bytes: 256 << 10,
            batch_bytes: 4 << 20,
            prefetch_bytes: 64 << 20,
            n_threads: 2,
        }
    }
}

/// The files of an array below a prefix of an object store.
#[derive(Debug)]
pub struct ObjectStorage {
    place: String,
    options: ObjectOptions,
    requests: Arc<Requests>,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

/// What the requests under way share with the storage.
#[derive(Debug)]
struct Requests {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    permits: Semaphore,
    ahead: Mutex<Ahead>,
    versions: Versions,
    n_sent: AtomicU64,
    handle: Handle,
}

impl ObjectStorage {
    /// The array at `prefix` of `store`, which is called `place` in errors ("s3://bucket/prefix").
    /// Nothing is asked for yet.
    ///
    /// # Errors
    /// When its threads cannot be started.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        place: impl Into<String>,
        options: ObjectOptions,
    ) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.n_threads.max(1))
            .thread_name("storage-io")
            .enable_all()
            .build()?;
        let max_requests = options.max_requests.clamp(1, Semaphore::MAX_PERMITS);
        let limits = Limits {
            bytes: options.prefetch_bytes,
            part_bytes: options.request_bytes.min(options.prefetch_bytes).max(1),
            requests: max_requests,
        };
        let requests = Arc::new(Requests {
            store,
            prefix,
            permits: Semaphore::new(max_requests),
            ahead: Mutex::new(Ahead::new(limits)),
            versions: Versions::default(),
            n_sent: AtomicU64::new(0),
            handle: runtime.handle().clone(),
        });
        Ok(Self { place: place.into(), options, requests, runtime: Some(runtime) })
    }

    /// Asks for `range`, in parts if it is long, to be put at `at`.
    fn ask(&self, file: &str, range: Range<u64>, mut at: usize, into: &mut Vec<Answer>) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(self.options.request_bytes.max(1)));
            let direct = self.requests.begin(file, start..end);
            let len = (end - start) as usize;
            into.push(Answer { at, len, from: Origin::Asked(direct) });
            (start, at) = (end, at + len);
        }
    }

    /// What `pieces` are to be filled from; they lie one after another in `len` bytes.
    fn sources(&self, pieces: &[Piece<'_>], len: usize) -> io::Result<Vec<Answer>> {
        let mut holes = Vec::new();
        let mut answers = Vec::new();
        let mut at = 0_usize;
        {
            let mut ahead = self.requests.ahead();
            for (idx, piece) in pieces.iter().enumerate() {
                let piece_len = piece
                    .range
                    .end
                    .checked_sub(piece.range.start)
                    .and_then(|len| usize::try_from(len).ok())
                    .filter(|&piece_len| piece_len <= len - at)
                    .ok_or(io::ErrorKind::InvalidInput)?;
                for source in ahead.take(piece.file, &piece.range) {
                    let at = at + (source.range().start - piece.range.start) as usize;
                    match source {
                        Source::Hole(range) => holes.push((idx, range, at)),
                        Source::Ahead { range, pending, skip } => answers.push(Answer {
                            at,
                            len: (range.end - range.start) as usize,
                            from: Origin::Ahead { piece: idx, range, pending, skip },
                        }),
                    }
                }
                at += piece_len;
            }
        }
        for (idx, range, at) in holes {
            self.ask(pieces[idx].file, range, at, &mut answers);
        }
        Ok(answers)
    }
}

impl Storage for ObjectStorage {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let key = self.requests.key(folder)?;
        let requests = Arc::clone(&self.requests);
        // A folder that is not there lists as empty; that something was not found is said of a
        // whole bucket, and no answer.
        self.requests.wait_for(async move {
            requests.sent();
            match requests.store.list_with_delimiter(Some(&key)).await {
                Ok(listed) => Ok(entries(&key, &listed)),
                Err(error) => Err(request::failure(&key, &error)),
            }
        })
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        Ok(self.requests.begin_version(file).pending.wait()?.size)
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        self.versions(files).into_iter().map(|version| Ok(version?.size)).collect()
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let asked: Vec<_> = files.iter().map(|file| self.requests.begin_version(file)).collect();
        asked.into_iter().map(|asked| asked.pending.wait()).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let answers = self.sources(pieces, into.len())?;
        // What was taken has made room.
        self.requests.begin_ahead();
        for Answer { at, len, from } in answers {
            let (bytes, skip) = match from {
                Origin::Asked(asked) => (asked.pending.wait()?, 0),
                Origin::Ahead { piece, range, pending, skip } => match pending.wait() {
                    Ok(bytes) => (bytes, skip),
                    // Fetching ahead was our own idea: that it failed is no error before the read
                    // itself has tried.
                    Err(_) => (self.requests.begin(pieces[piece].file, range).pending.wait()?, 0),
                },
            };
            let part = bytes.get(skip..skip + len).ok_or(io::ErrorKind::UnexpectedEof)?;
            into[at..at + len].copy_from_slice(part);
        }
        Ok(())
    }

    fn prefetch(&self, pieces: &[Piece<'_>]) {
        if self.options.prefetch_bytes > 0 {
            self.requests.ahead().announce(pieces);
            self.requests.begin_ahead();
        }
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce {
            gap_bytes: self.options.gap_bytes,
            batch_bytes: self.options.batch_bytes,
            prefetch: self.options.prefetch_bytes > 0,
        }
    }

    fn requests(&self) -> Option<u64> {
        Some(self.requests.n_sent.load(Ordering::Relaxed))
    }
}

/// What `listed` names in `folder`.
fn entries(folder: &Path, listed: &ListResult) -> Vec<Entry> {
    // Some tools leave an empty object in place of the folder itself: it has no name below it.
    let name = |path: &Path| {
        path.prefix_match(folder).and_then(|mut parts| Some(parts.next()?.as_ref().to_owned()))
    };
    let files = listed.objects.iter().filter_map(|object| name(&object.location));
    let folders = listed.common_prefixes.iter().filter_map(name);
    let files = files.map(|name| Entry { name, is_folder: false });
    files.chain(folders.map(|name| Entry { name, is_folder: true })).collect()
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A thread of another runtime must not wait for this one.
            if Handle::try_current().is_ok() {
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(FAREWELL);
            }
        }
    }
}

impl Requests {
    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, file: &str) -> io::Result<Path> {
        if file.is_empty() {
            return Ok(self.prefix.clone());
        }
        Path::parse(format!("{}/{file}", self.prefix))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    async fn get(&self, file: &str, range: Range<u64>) -> io::Result<Bytes> {
        let key = self.key(file)?;
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        self.sent();
        let (bytes, found) = request::get(&*self.store, &key, range).await?;
        self.versions.check(&key, &found)?;
        Ok(bytes)
    }

    async fn version(&self, file: &str) -> io::Result<FileVersion> {
        let key = self.key(file)?;
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        self.sent();
        let found = self.store.head(&key).await;
        let found = found.map_err(|error| request::failure(&key, &error))?;
        self.versions.check(&key, &found)?;
        Ok(versions::file_version(&found))
    }

    /// Counts a request.
    fn sent(&self) {
        self.n_sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs `work` on the runtime and blocks until it is done.
    fn wait_for<T: Clone + Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let (promise, pending) = promise();
        drop(self.handle.spawn(async move { promise.keep(work.await) }));
        pending.wait()
    }

    /// Asks for `range`.
    fn begin(self: &Arc<Self>, file: &str, range: Range<u64>) -> Asked<Bytes> {
        let (promise, pending) = promise();
        let (requests, file) = (Arc::clone(self), file.to_owned());
        let task = self.handle.spawn(async move { promise.keep(requests.get(&file, range).await) });
        Asked { pending, task: task.abort_handle() }
    }

    /// Asks how long a file is, and which version of it.
    fn begin_version(self: &Arc<Self>, file: &str) -> Asked<FileVersion> {
        let (promise, pending) = promise();
        let (requests, file) = (Arc::clone(self), file.to_owned());
        let task = self.handle.spawn(async move { promise.keep(requests.version(&file).await) });
        Asked { pending, task: task.abort_handle() }
    }

    /// Asks for as much of what was announced as there is room for.
    fn begin_ahead(self: &Arc<Self>) {
        let begun = self.ahead().begin();
        for Begun { id, file, range, promise } in begun {
            let mut running =
                Running { requests: Arc::clone(self), id, promise: Some(promise), arrived: false };
            drop(self.handle.spawn(async move {
                let answer = running.requests.get(&file, range).await;
                running.arrived = answer.is_ok();
                if let Some(promise) = running.promise.take() {
                    promise.keep(answer);
                }
                let requests = Arc::clone(&running.requests);
                drop(running);
                requests.begin_ahead();
            }));
        }
    }
}

/// A request ahead; however it ends, it is counted as ended.
#[derive(Debug)]
struct Running {
    requests: Arc<Requests>,
    id: u64,
    promise: Option<Promise<Bytes>>,
    arrived: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests.ahead().ended(self.id, self.arrived);
    }
}

/// A request of a read, given up when the read no longer waits for it.
#[derive(Debug)]
struct Asked<T> {
    pending: Arc<Pending<T>>,
    task: AbortHandle,
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where `len` bytes at `at` of what is read come from.
#[derive(Debug)]
struct Answer {
    at: usize,
    len: usize,
    from: Origin,
}

#[derive(Debug)]
enum Origin {
    Asked(Asked<Bytes>),
    /// What was fetched ahead, from `skip` on: `range` of the file of a piece.
    Ahead {
        piece: usize,
        range: Range<u64>,
        pending: Arc<Pending<Bytes>>,
        skip: usize,
    },
}
