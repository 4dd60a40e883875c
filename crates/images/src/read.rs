//! Reads the images of a block on one or several threads.
//!
//! A task is an image: it owns the memory that the image's arrays are decoded into, so threads
//! share nothing but the list of tasks.

use std::sync::{Mutex, PoisonError};

use pipeline::Stop;
use worktime::ReadStats;

use crate::error::Error;
use crate::read_image::{ImageReader, Worker};

/// An image to be read.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// Its place in the block.
    pub(crate) at: usize,
    pub(crate) sample: u64,
    /// The memory of each key.
    pub(crate) slices: Vec<&'a mut [u8]>,
}

/// The tasks that are left, and which of the others failed, by their places.
struct Queue<'a> {
    tasks: Mutex<std::vec::IntoIter<Task<'a>>>,
    failures: Mutex<Vec<(usize, Error)>>,
    reading: &'a Reading<'a>,
}

/// How the images of a block are read.
pub(crate) struct Reading<'a> {
    pub(crate) reader: &'a ImageReader,
    pub(crate) epoch: u64,
    /// Most threads, including the calling one.
    pub(crate) n_threads: usize,
    pub(crate) stop: &'a Stop,
}

/// Runs `tasks`. `workers` are used again. Returns early, without an error, once `stop` is set.
///
/// # Errors
/// That of the first image, in the order of the block, of those that failed before all threads
/// knew; a thread cannot be started.
pub(crate) fn run(
    reading: &Reading<'_>,
    tasks: Vec<Task<'_>>,
    workers: &mut Vec<Worker>,
) -> Result<ReadStats, Error> {
    let n_threads = reading.n_threads.min(tasks.len()).max(1);
    if workers.len() < n_threads {
        workers.resize_with(n_threads, Worker::default);
    }
    let workers = &mut workers[..n_threads];
    for worker in workers.iter_mut() {
        worker.stats = ReadStats::nothing();
    }
    let queue = Queue { tasks: Mutex::new(tasks.into_iter()), failures: Mutex::default(), reading };
    std::thread::scope(|scope| {
        let (mine, others) = workers.split_at_mut(1);
        for worker in others {
            let thread = std::thread::Builder::new().name("images-read".to_owned());
            let queue = &queue;
            let started = thread.spawn_scoped(scope, move || queue.drain(worker));
            started.map_err(|source| Error::Thread { source })?;
        }
        for worker in mine {
            queue.drain(worker);
        }
        Ok::<(), Error>(())
    })?;
    let mut stats = ReadStats::nothing();
    for worker in workers.iter() {
        stats += worker.stats;
    }
    let failures = queue.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    let first = failures.into_iter().min_by_key(|(at, _)| *at);
    first.map_or(Ok(stats), |(_, error)| Err(error))
}

impl<'a> Queue<'a> {
    /// Reads images until none is left, one fails, or the block is no longer wanted.
    fn drain(&self, worker: &mut Worker) {
        let Reading { reader, epoch, stop, .. } = *self.reading;
        while let Some(mut task) = self.next() {
            let read = worker.read(reader, (task.sample, epoch), &mut task.slices, stop);
            if let Err(error) = read {
                let failure = (task.at, error);
                self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
            }
        }
    }

    fn next(&self) -> Option<Task<'a>> {
        if self.reading.stop.is_set() {
            return None;
        }
        if !self.failures.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return None;
        }
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}
