//! Reads the chunks of a block's rows, on one or several threads.
//!
//! The work is split into tasks: a range of one array's first dimension and of its second, in the
//! size of a chunk. A task owns the memory that its chunks are decoded into, so threads share
//! nothing but the queue.

use std::sync::{Mutex, PoisonError};

use pipeline::Stop;
use storage::Storage;
use worktime::ReadStats;

use crate::chunk_task::{Task, Worker};
use crate::error::Cause;
use crate::kept::KeptChunks;

/// Bytes of tasks that justify another thread: starting one takes as long as copying these.
const BYTES_PER_THREAD: usize = 256 << 10;

/// Bytes that a thread asks an object store for at once: several chunks of fields, so that many
/// requests are under way.
const FAR_BYTES: u64 = 64 << 20;

/// Bytes of tasks that a thread fetches together, at least: none from a folder, which answers at
/// once.
pub(crate) fn fetched_bytes(storage: &dyn Storage) -> u64 {
    let is_remote = storage.request_counts().is_some();
    if is_remote { storage.coalesce().batch_bytes.max(FAR_BYTES) } else { 0 }
}

/// An array that cannot be read, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) path: String,
    pub(crate) source: Cause,
}

/// The tasks that are left, and the first failure.
struct Queue<'a> {
    tasks: Mutex<std::vec::IntoIter<Task<'a>>>,
    failure: Mutex<Option<Failure>>,
    storage: &'a dyn Storage,
    kept: &'a KeptChunks,
    /// Bytes of tasks that a thread takes at once.
    taken_bytes: u64,
    stop: &'a Stop,
}

/// Runs `tasks` on up to `n_threads` threads, including the calling one. `workers` are used again.
/// Returns early, without an error, once `stop` is set.
pub(crate) fn run<'a>(
    (storage, kept): (&'a dyn Storage, &'a KeptChunks),
    mut tasks: Vec<Task<'a>>,
    (workers, n_threads): (&mut Vec<Worker>, usize),
    stop: &'a Stop,
) -> Result<ReadStats, Failure> {
    for task in &mut tasks {
        task.is_in_parts = task.is_wanted_in_parts(storage);
    }
    let n_bytes: usize = tasks.iter().map(Task::n_bytes).sum();
    let n_threads = n_threads.min(tasks.len()).min(1 + n_bytes / BYTES_PER_THREAD).max(1);
    if workers.len() < n_threads {
        workers.resize_with(n_threads, Worker::default);
    }
    let workers = &mut workers[..n_threads];
    for worker in workers.iter_mut() {
        worker.stats = ReadStats::nothing();
    }
    // Each thread gets a share of a small block, too.
    let fetched: u64 = tasks.iter().map(Task::fetched_bytes).sum();
    let taken_bytes = fetched_bytes(storage).min(fetched.div_ceil(n_threads as u64));
    let queue = Queue {
        tasks: Mutex::new(tasks.into_iter()),
        failure: Mutex::new(None),
        storage,
        kept,
        taken_bytes,
        stop,
    };
    std::thread::scope(|scope| {
        let (mine, others) = workers.split_at_mut(1);
        for worker in others {
            let thread = std::thread::Builder::new().name("arrays-read".to_owned());
            let queue = &queue;
            if let Err(error) = thread.spawn_scoped(scope, move || queue.drain(worker)) {
                queue.fail(Failure { path: String::new(), source: error.into() });
            }
        }
        for worker in mine {
            queue.drain(worker);
        }
    });
    let failure = queue.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut stats = ReadStats::nothing();
    for worker in workers.iter() {
        stats += worker.stats;
    }
    failure.map_or(Ok(stats), Err)
}

impl<'a> Queue<'a> {
    /// Runs tasks until none is left, one fails, or the block is no longer wanted.
    fn drain(&self, worker: &mut Worker) {
        loop {
            let mut tasks = self.take();
            if tasks.is_empty() || self.stop.is_set() {
                return;
            }
            tasks.retain_mut(|task| !worker.put_kept(task, self.kept));
            for task in &mut tasks {
                task.keep(self.kept, self.storage);
            }
            if let Err(failure) = worker.run(self.storage, &mut tasks) {
                self.fail(failure);
                return;
            }
        }
    }

    /// The next tasks; none after a failure.
    fn take(&self) -> Vec<Task<'a>> {
        if self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Vec::new();
        }
        let mut left = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, mut n_bytes) = (Vec::new(), 0);
        while taken.is_empty() || n_bytes < self.taken_bytes {
            let Some(task) = left.next() else { break };
            n_bytes += task.fetched_bytes();
            taken.push(task);
        }
        taken
    }

    fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failure);
    }
}
