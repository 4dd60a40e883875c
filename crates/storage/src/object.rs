//! Files in an object store (S3, Google Cloud Storage, Azure, or any store of the crate
//! `object_store`), which answers late but many requests at a time.
//!
//! Requests run on a runtime of the storage's own, whose few named threads do nothing but wait and
//! copy. Callers block outside of it, so a call works from any thread, including those of another
//! runtime, and decoding stays with the caller. Every range is a request of its own, at most
//! [`ObjectOptions::max_requests`] at once. Announced ranges are fetched ahead ([`ahead`]).
//!
//! Every answer is checked to come from the version of its object that was read first
//! ([`versions`]). An object that is replaced while its data set is open is an error; bytes of two
//! versions are never mixed.
//!
//! Keys are not encoded: TileDB percent-encodes attribute names in some formats, and a second
//! encoding would miss those files.

mod ahead;
mod listing;
mod request;
mod versions;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use self::ahead::{Ahead, Begun, Limits, Source};
use self::listing::ListTries;
use self::request::{Pending, Promise, promise};
use self::versions::Versions;
use crate::storage::{Coalesce, Entry, FailedPiece, FileVersion, ListedFile, Piece, Storage};

/// How long a dropped storage waits for its threads. Requests end as soon as they next wait for the
/// network.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How an [`ObjectStorage`] sends requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectOptions {
    /// Most requests for bytes at once.
    pub max_requests: usize,
    /// Most bytes of one request; longer ranges are requested in parts.
    pub request_bytes: u64,
    /// Ranges of one file are read as one if at most this many bytes lie between them: as many as
    /// could be sent in the time of another request.
    pub gap_bytes: u64,
    /// Target bytes per call, which are decoded together.
    pub batch_bytes: u64,
    /// Most memory for ranges that are fetched ahead; 0 fetches nothing ahead.
    pub prefetch_bytes: u64,
    /// Threads that wait for the network, decrypt and copy.
    pub n_threads: usize,
    /// Most tries of a list whose answer ends early. Other requests are repeated by the store.
    pub list_tries: usize,
    /// No try of a list begins later than this after the first.
    pub retry_limit: Duration,
}

impl Default for ObjectOptions {
    /// 32 requests of up to 8 MiB, gaps of 256 KiB, batches of 4 MiB, 64 MiB ahead, 2 threads; 8
    /// tries of a list within a minute.
    fn default() -> Self {
        Self {
            max_requests: 32,
            request_bytes: 8 << 20,
            gap_bytes: 256 << 10,
            batch_bytes: 4 << 20,
            prefetch_bytes: 64 << 20,
            n_threads: 2,
            list_tries: 8,
            retry_limit: Duration::from_mins(1),
        }
    }
}

/// Files below a prefix of an object store.
#[derive(Debug)]
pub struct ObjectStorage {
    place: String,
    options: ObjectOptions,
    requests: Arc<Requests>,
    /// The threads, which end with the last storage that has them.
    threads: Arc<Threads>,
}

/// The threads that wait for the network.
#[derive(Debug)]
struct Threads {
    /// `Some` until they end.
    runtime: Option<Runtime>,
}

/// Shared by the storage and its requests under way.
#[derive(Debug)]
struct Requests {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    permits: Arc<Semaphore>,
    ahead: Mutex<Ahead>,
    versions: Versions,
    n_sent: AtomicU64,
    list_tries: ListTries,
    handle: Handle,
}

impl ObjectStorage {
    /// The files at `prefix` of `store`. Errors call it `place` ("s3://bucket/prefix"). Sends no
    /// request yet.
    ///
    /// # Errors
    /// If its threads cannot be started.
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
        let permits = Arc::new(Semaphore::new(max_requests(&options)));
        let handle = runtime.handle().clone();
        let requests = Arc::new(Requests::new(store, prefix, permits, handle, &options));
        let threads = Arc::new(Threads { runtime: Some(runtime) });
        Ok(Self { place: place.into(), options, requests, threads })
    }

    /// The files in `folder`, with the same client, threads and limit of requests at once, and with
    /// counts, versions and ranges fetched ahead of their own.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the store cannot name `folder`.
    pub fn below(&self, folder: &str) -> io::Result<Self> {
        let folder = folder.trim_matches('/');
        let prefix = self.requests.key(folder)?;
        let place = match folder {
            "" => self.place.clone(),
            folder => format!("{}/{folder}", self.place.trim_end_matches('/')),
        };
        let Requests { store, permits, handle, .. } = &*self.requests;
        let (store, permits, handle) = (Arc::clone(store), Arc::clone(permits), handle.clone());
        let requests = Arc::new(Requests::new(store, prefix, permits, handle, &self.options));
        Ok(Self { place, options: self.options, requests, threads: Arc::clone(&self.threads) })
    }

    /// Requests `range`, in parts if it is long, for place `at`.
    fn request(&self, file: &str, range: Range<u64>, mut at: usize, into: &mut Vec<Answer>) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(self.options.request_bytes.max(1)));
            let direct = self.requests.begin(file, start..end);
            let len = (end - start) as usize;
            into.push(Answer { at, len, from: Origin::Sent(direct) });
            (start, at) = (end, at + len);
        }
    }

    /// The requests, and the ranges fetched ahead, that fill `pieces`, which lie one after another
    /// in `len` bytes.
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
            self.request(pieces[idx].file, range, at, &mut answers);
        }
        Ok(answers)
    }
}

impl Storage for ObjectStorage {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.requests.begin_list(folder).pending.wait()
    }

    fn list_each(&self, folders: &[&str]) -> Vec<io::Result<Vec<Entry>>> {
        let sent: Vec<_> = folders.iter().map(|folder| self.requests.begin_list(folder)).collect();
        // A store that cannot be reached is waited for once: the other requests are cancelled.
        let mut failed: Option<(io::ErrorKind, String)> = None;
        let listed = sent.into_iter().map(|sent| {
            if let Some((kind, text)) = &failed {
                return Err(io::Error::new(*kind, text.clone()));
            }
            sent.pending.wait().inspect_err(|error| {
                let is_of_folder = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied]
                    .contains(&error.kind());
                failed = (!is_of_folder).then(|| (error.kind(), error.to_string()));
            })
        });
        listed.collect()
    }

    fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        self.requests.begin_list_all(most).pending.wait()
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        Ok(self.requests.begin_version(file).pending.wait()?.size)
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        self.versions(files).into_iter().map(|version| Ok(version?.size)).collect()
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let sent: Vec<_> = files.iter().map(|file| self.requests.begin_version(file)).collect();
        sent.into_iter().map(|sent| sent.pending.wait()).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let answers = self.sources(pieces, into.len())?;
        // The ranges taken have made room.
        self.requests.begin_ahead();
        for Answer { at, len, from } in answers {
            let (sent, skip) = match from {
                Origin::Sent(sent) => (sent.pending.wait(), 0),
                Origin::Ahead { piece, range, pending, skip } => {
                    // Nobody sent for fetching ahead, so its failure is no error until the read
                    // itself has tried.
                    let again = |_| {
                        let again = self.requests.begin(pieces[piece].file, range);
                        Ok((again.pending.wait()?, 0))
                    };
                    match pending.wait().map(|bytes| (bytes, skip)).or_else(again) {
                        Ok((bytes, skip)) => (Ok(bytes), skip),
                        Err(error) => (Err(error), 0),
                    }
                }
            };
            let bytes = sent.map_err(|error| match piece_at(pieces, at) {
                Some(piece) => FailedPiece::wrap(piece, error),
                None => error,
            })?;
            let part = bytes.get(skip..skip + len).ok_or(io::ErrorKind::UnexpectedEof)?;
            into[at..at + len].copy_from_slice(part);
        }
        Ok(())
    }

    /// Sends a request for the beginning of each file at once. Its answer says how long the file
    /// is; the rest of a long one is requested in parts.
    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let most = self.options.request_bytes.max(1);
        let firsts: Vec<_> =
            files.iter().map(|file| self.requests.begin_first(file, most)).collect();
        let begun = files.iter().zip(firsts).map(|(file, first)| {
            let (bytes, size) = first.pending.wait()?;
            let mut rest = Vec::new();
            self.request(file, bytes.len() as u64..size, bytes.len(), &mut rest);
            Ok((bytes, size, rest))
        });
        let begun: Vec<io::Result<_>> = begun.collect();
        let whole = |begun: io::Result<(Bytes, u64, Vec<Answer>)>| {
            let (first, size, rest) = begun?;
            let len = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
            bytes.extend_from_slice(&first);
            for Answer { from, .. } in rest {
                if let Origin::Sent(sent) = from {
                    bytes.extend_from_slice(&sent.pending.wait()?);
                }
            }
            Ok(bytes)
        };
        begun.into_iter().map(whole).collect()
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

    /// Each answer is compared with the version that was read first.
    fn keeps_versions(&self) -> bool {
        true
    }

    fn requests(&self) -> Option<u64> {
        Some(self.requests.n_sent.load(Ordering::Relaxed))
    }
}

/// The piece whose bytes have place `at` among those of all pieces.
fn piece_at<'a, 'b>(pieces: &'a [Piece<'b>], at: usize) -> Option<&'a Piece<'b>> {
    let mut end = 0_u64;
    pieces.iter().find(|piece| {
        end += piece.range.end.saturating_sub(piece.range.start);
        (at as u64) < end
    })
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A thread of another runtime must not wait for this one.
            if Handle::try_current().is_ok() {
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            }
        }
    }
}

/// Most requests at once.
fn max_requests(options: &ObjectOptions) -> usize {
    options.max_requests.clamp(1, Semaphore::MAX_PERMITS)
}

impl Requests {
    fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        permits: Arc<Semaphore>,
        handle: Handle,
        options: &ObjectOptions,
    ) -> Self {
        let limits = Limits {
            bytes: options.prefetch_bytes,
            part_bytes: options.request_bytes.min(options.prefetch_bytes).max(1),
            requests: max_requests(options),
        };
        let ahead = Mutex::new(Ahead::new(limits));
        let (versions, n_sent) = (Versions::default(), AtomicU64::new(0));
        let list_tries = ListTries { most: options.list_tries, limit: options.retry_limit };
        Self { store, prefix, permits, ahead, versions, n_sent, list_tries, handle }
    }

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
        self.count_sent(1);
        let (bytes, found) = request::get(&*self.store, &key, range).await?;
        self.versions.check(&key, &found)?;
        Ok(bytes)
    }

    /// The first `most` bytes of a file, or all if it is shorter, and its size.
    async fn first(&self, file: &str, most: u64) -> io::Result<(Bytes, u64)> {
        let key = self.key(file)?;
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        self.count_sent(1);
        let (bytes, found) = request::get_first(&*self.store, &key, most).await?;
        self.versions.check(&key, &found)?;
        Ok((bytes, found.size))
    }

    async fn version(&self, file: &str) -> io::Result<FileVersion> {
        let key = self.key(file)?;
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        self.count_sent(1);
        let found = self.store.head(&key).await;
        let found = found.map_err(|error| request::failure(&key, &error))?;
        self.versions.check(&key, &found)?;
        Ok(versions::file_version(&found))
    }

    /// Counts requests.
    fn count_sent(&self, n_requests: u64) {
        self.n_sent.fetch_add(n_requests, Ordering::Relaxed);
    }

    /// Runs `work` on the threads.
    fn send<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> SentRequest<T> {
        let (promise, pending) = promise();
        let task = self.handle.spawn(async move { promise.keep(work.await) });
        SentRequest { pending, task: task.abort_handle() }
    }

    /// Requests `range`.
    fn begin(self: &Arc<Self>, file: &str, range: Range<u64>) -> SentRequest<Bytes> {
        let (requests, file) = (Arc::clone(self), file.to_owned());
        self.send(async move { requests.get(&file, range).await })
    }

    /// Requests the first `most` bytes of a file.
    fn begin_first(self: &Arc<Self>, file: &str, most: u64) -> SentRequest<(Bytes, u64)> {
        let (requests, file) = (Arc::clone(self), file.to_owned());
        self.send(async move { requests.first(&file, most).await })
    }

    /// Requests the size and version of a file.
    fn begin_version(self: &Arc<Self>, file: &str) -> SentRequest<FileVersion> {
        let (requests, file) = (Arc::clone(self), file.to_owned());
        self.send(async move { requests.version(&file).await })
    }

    /// Requests the names in a folder.
    fn begin_list(self: &Arc<Self>, folder: &str) -> SentRequest<Vec<Entry>> {
        let (requests, folder) = (Arc::clone(self), folder.to_owned());
        self.send(async move { requests.list(&folder).await })
    }

    /// Requests all files, if they are at most `most`.
    fn begin_list_all(self: &Arc<Self>, most: usize) -> SentRequest<Option<Vec<ListedFile>>> {
        let requests = Arc::clone(self);
        self.send(async move { requests.list_all(most).await })
    }

    /// Requests announced ranges while there is room.
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

/// A request of a read, cancelled if the read no longer waits for it.
#[derive(Debug)]
struct SentRequest<T> {
    pending: Arc<Pending<T>>,
    task: AbortHandle,
}

impl<T> Drop for SentRequest<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The source of `len` bytes at `at` of a read.
#[derive(Debug)]
struct Answer {
    at: usize,
    len: usize,
    from: Origin,
}

#[derive(Debug)]
enum Origin {
    Sent(SentRequest<Bytes>),
    /// A range fetched ahead: `range` of the file of a piece begins `skip` bytes into it.
    Ahead {
        piece: usize,
        range: Range<u64>,
        pending: Arc<Pending<Bytes>>,
        skip: usize,
    },
}
