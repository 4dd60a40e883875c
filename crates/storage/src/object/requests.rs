//! The requests of a storage: sent in their turn, measured, and repeated if they are late.

use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{Either, select};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;

use super::ObjectOptions;
use super::ahead::{Ahead, Begun};
use super::listing::ListTries;
use super::meter::Meter;
use super::pace::Pace;
use super::request::{self, Pending, Promise, promise};
use super::throttle::Throttle;
use super::versions::{self, Versions};
use crate::names;
use crate::storage::{Entry, FileVersion, ListedFile, RequestCounts};

/// A store, and what all storages of it share.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) bounds: ObjectOptions,
    permits: Semaphore,
    throttle: Throttle,
    pub(super) meter: Meter,
    /// By whole keys: an object may be read by several storages.
    versions: Versions,
    handle: Handle,
}

/// The requests of one storage.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) client: Arc<Client>,
    pub(super) prefix: Path,
    ahead: Mutex<Ahead>,
    n_sent: AtomicU64,
    n_repeated: AtomicU64,
    n_bytes: AtomicU64,
}

/// A request of a read, cancelled if the read no longer waits for it.
#[derive(Debug)]
pub(super) struct SentRequest<T> {
    pending: Arc<Pending<T>>,
    task: AbortHandle,
}

impl<T: Clone> SentRequest<T> {
    /// Blocks until there is an answer.
    pub(super) fn wait(&self) -> io::Result<T> {
        self.pending.wait()
    }
}

impl<T> Drop for SentRequest<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request ahead; however it ends, it is counted as ended.
#[derive(Debug)]
struct Running {
    requests: Arc<Requests>,
    id: u64,
    len: u64,
    promise: Option<Promise<Bytes>>,
    arrived: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests.ahead().ended(self.id, self.len, self.arrived);
    }
}

impl Client {
    pub(super) fn new(store: Arc<dyn ObjectStore>, handle: Handle, bounds: ObjectOptions) -> Self {
        let permits = Semaphore::new(bounds.max_requests.clamp(1, Semaphore::MAX_PERMITS));
        let throttle = Throttle::new(bounds.max_requests_per_sec);
        let (meter, versions) = (Meter::new(), Versions::default());
        Self { store, bounds, permits, throttle, meter, versions, handle }
    }

    /// How often a list is tried.
    pub(super) fn list_tries(&self) -> ListTries {
        ListTries { most: self.bounds.list_tries, limit: self.bounds.retry_limit }
    }

    /// Waits until another request may be sent.
    pub(super) async fn turn(&self) -> io::Result<SemaphorePermit<'_>> {
        let permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let pause = self.throttle.turn(self.meter.now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(permit)
    }
}

impl Requests {
    pub(super) fn new(client: Arc<Client>, prefix: Path) -> Self {
        let ahead = Mutex::new(Ahead::new(client.bounds.prefetch_bytes));
        let [n_sent, n_repeated, n_bytes] = Default::default();
        Self { client, prefix, ahead, n_sent, n_repeated, n_bytes }
    }

    pub(super) fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How requests are sent, by what was measured so far.
    pub(super) fn pace(&self) -> Pace {
        Pace { link: self.client.meter.link(), bounds: self.client.bounds }
    }

    pub(super) fn counts(&self) -> RequestCounts {
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestCounts {
            sent: counted(&self.n_sent),
            repeated: counted(&self.n_repeated),
            bytes: counted(&self.n_bytes),
        }
    }

    /// Counts requests.
    pub(super) fn count_sent(&self, n_requests: u64) {
        self.n_sent.fetch_add(n_requests, Ordering::Relaxed);
    }

    /// Counts bytes that are requested.
    fn count_bytes(&self, n_bytes: u64) {
        self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
    }

    pub(super) fn key(&self, file: &str) -> io::Result<Path> {
        if file.is_empty() {
            return Ok(self.prefix.clone());
        }
        names::check(file)?;
        Path::parse(format!("{}/{file}", self.prefix))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    async fn get(&self, file: &str, range: Range<u64>) -> io::Result<Bytes> {
        let key = self.key(file)?;
        let client = &*self.client;
        let n_bytes = range.end.saturating_sub(range.start);
        let send = || request::get(client, &key, range.clone());
        let (bytes, found) = self.repeated(n_bytes, Some(n_bytes), send).await?;
        client.versions.check(&key, &found)?;
        Ok(bytes)
    }

    /// The first `most` bytes of a file, or all if it is shorter, and its size.
    async fn first(&self, file: &str, most: u64) -> io::Result<(Bytes, u64)> {
        let key = self.key(file)?;
        let client = &*self.client;
        let send = || request::get_first(client, &key, most);
        let (bytes, found) = self.repeated(most, None, send).await?;
        self.count_bytes(bytes.len() as u64);
        client.versions.check(&key, &found)?;
        Ok((bytes, found.size))
    }

    async fn version(&self, file: &str) -> io::Result<FileVersion> {
        let key = self.key(file)?;
        let client = &*self.client;
        let found = self.repeated(0, None, || request::head(client, &key)).await?;
        client.versions.check(&key, &found)?;
        Ok(versions::file_version(&found))
    }

    /// Sends a request for about `n_bytes` in its turn, and once more if it is late. The first
    /// answer counts; the other request is cancelled. If the number of bytes is `known`, they are
    /// counted.
    async fn repeated<T, F>(
        &self,
        n_bytes: u64,
        known: Option<u64>,
        send: impl Fn() -> F,
    ) -> io::Result<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        let client = &*self.client;
        let _permit = client.turn().await?;
        self.count_sent(1);
        self.count_bytes(known.unwrap_or(0));
        let mut first = pin!(send());
        let Some(late) = client.meter.late_after(n_bytes) else { return first.await };
        if let Ok(answer) = tokio::time::timeout(late, first.as_mut()).await {
            return answer;
        }
        // A store that is asked as often as it allows is not asked once more, nor if the other
        // requests leave no room.
        let permit = client.permits.try_acquire().ok();
        let may_repeat = permit.is_some()
            && client.throttle.turn(client.meter.now()).is_zero()
            && client.meter.repeats();
        if !may_repeat {
            return first.await;
        }
        self.count_sent(1);
        self.n_repeated.fetch_add(1, Ordering::Relaxed);
        match select(first, pin!(send())).await {
            Either::Left((Ok(answer), _)) | Either::Right((Ok(answer), _)) => Ok(answer),
            Either::Left((Err(error), second)) => second.await.map_err(|_| error),
            Either::Right((Err(_), first)) => first.await,
        }
    }

    /// Runs `work` on the threads.
    fn send<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> SentRequest<T> {
        let (promise, pending) = promise();
        let task = self.client.handle.spawn(async move { promise.keep(work.await) });
        SentRequest { pending, task: task.abort_handle() }
    }

    /// Requests `range`.
    pub(super) fn begin(self: &Arc<Self>, file: &str, range: Range<u64>) -> SentRequest<Bytes> {
        let (requests, file) = (Arc::clone(self), file.to_owned());
        self.send(async move { requests.get(&file, range).await })
    }

    /// Requests the first `most` bytes of a file.
    pub(super) fn begin_first(
        self: &Arc<Self>,
        file: &str,
        most: u64,
    ) -> SentRequest<(Bytes, u64)> {
        let (requests, file) = (Arc::clone(self), file.to_owned());
        self.send(async move { requests.first(&file, most).await })
    }

    /// Requests the size and version of a file.
    pub(super) fn begin_version(self: &Arc<Self>, file: &str) -> SentRequest<FileVersion> {
        let (requests, file) = (Arc::clone(self), file.to_owned());
        self.send(async move { requests.version(&file).await })
    }

    /// Requests the names in a folder.
    pub(super) fn begin_list(self: &Arc<Self>, folder: &str) -> SentRequest<Vec<Entry>> {
        let (requests, folder) = (Arc::clone(self), folder.to_owned());
        self.send(async move { requests.list(&folder).await })
    }

    /// Requests all files, if they are at most `most`.
    pub(super) fn begin_list_all(
        self: &Arc<Self>,
        most: usize,
    ) -> SentRequest<Option<Vec<ListedFile>>> {
        let requests = Arc::clone(self);
        self.send(async move { requests.list_all(most).await })
    }

    /// Requests announced ranges while there is room.
    pub(super) fn begin_ahead(self: &Arc<Self>) {
        let (begun, is_full) = self.ahead().begin(&self.pace());
        self.client.meter.filled(is_full);
        self.fetch_ahead(begun);
    }

    /// Requests these ranges, which are announced ones.
    pub(super) fn fetch_ahead(self: &Arc<Self>, begun: Vec<Begun>) {
        for Begun { id, file, range, promise } in begun {
            let mut running = Running {
                requests: Arc::clone(self),
                id,
                len: range.end - range.start,
                promise: Some(promise),
                arrived: false,
            };
            drop(self.client.handle.spawn(async move {
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
