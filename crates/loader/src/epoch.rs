//! One pass over the selection: the threads that make its batches, and the iterator that hands them over.
//!
//! ```text
//!  somafeed-read ── blocks ──▶ somafeed-batch ── batches ──▶ the consumer
//!        ▲                           │
//!        └─────── used blocks ───────┘
//! ```
//! The blocks that exist are made once and go round, which is all that bounds reading ahead. Channels carry only what
//! is good: a thread that fails ends, with that its channels end, and the consumer finds the error when it joins it.
//! For the same reason nothing can hang: each wait is on a channel whose other end is dropped when its thread ends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, bounded};
use soma_io::{ThreadTime, clock, run_in_background};

use crate::batch::Batch;
use crate::buffers::{BatchBuffers, HeapBuffers};
use crate::cut::Cutter;
use crate::error::Error;
use crate::state::LoaderState;
use crate::stats::{Counters, EpochStats};

/// The batches of one epoch, in order. Made by [`Loader::epoch`](crate::Loader::epoch).
///
/// After an error it has ended: the error is given once, then `None`. Dropping it at any point stops its threads and
/// waits for them, at longest until the read that is under way returns.
pub struct Epoch<B: BatchBuffers = HeapBuffers> {
    source: Source<B>,
    workers: Vec<Worker>,
    /// Tells the reading thread that its read is not wanted any more.
    stop: Arc<AtomicBool>,
    counters: Counters,
    /// All of the epoch.
    n_batches: u64,
    /// Where it began.
    first: LoaderState,
    n_taken: u64,
}

/// Where the consumer's next batch comes from.
enum Source<B: BatchBuffers> {
    /// A thread makes them ahead.
    Ahead(Receiver<Batch<B::Buffer>>),
    /// The consumer makes them.
    Here(Box<Cutter<B>>),
    /// There are no more.
    Ended,
}

struct Worker {
    name: &'static str,
    handle: JoinHandle<Result<(), Error>>,
}

impl<B: BatchBuffers> Epoch<B> {
    /// An epoch whose blocks come through `cutter` from `read`, which gets a thread of its own.
    pub(crate) fn start(
        read: impl FnOnce() -> Result<(), Error> + Send + 'static,
        cutter: Cutter<B>,
        prefetch_batches: usize,
        stop: Arc<AtomicBool>,
        counters: Counters,
        (first, n_batches): (LoaderState, u64),
    ) -> Result<Self, Error> {
        let mut epoch = Self {
            source: Source::Ended,
            workers: Vec::with_capacity(2),
            stop,
            counters,
            n_batches,
            first,
            n_taken: 0,
        };
        epoch.spawn("somafeed-read", read)?;
        if prefetch_batches == 0 {
            epoch.source = Source::Here(Box::new(cutter));
        } else {
            let (batches, made) = bounded(prefetch_batches);
            epoch.source = Source::Ahead(made);
            let mut cutter = cutter;
            // Those that wait, the one in the making, and the consumer's.
            let n_buffers = n_batches.min(prefetch_batches as u64 + 2) as usize;
            epoch.spawn("somafeed-batch", move || {
                cutter.prepare(n_buffers);
                while let Some(batch) = cutter.next_batch()? {
                    if batches.send(batch).is_err() {
                        break; // The epoch was dropped.
                    }
                }
                Ok(())
            })?;
        }
        Ok(epoch)
    }

    fn spawn(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(|| {
            run_in_background();
            work()
        });
        let handle = spawned.map_err(|source| Error::Spawn { thread: name, source })?;
        self.workers.push(Worker { name, handle });
        Ok(())
    }

    /// What has been done so far; after the end, what the whole epoch did.
    pub fn stats(&self) -> EpochStats {
        self.counters.snapshot()
    }

    /// Where the consumer stands: [`Loader::resume`](crate::Loader::resume) goes on behind the last batch that it was given. What is made
    /// ahead does not count.
    pub fn state(&self) -> LoaderState {
        let n_delivered = self.first.batches_delivered() + self.n_taken;
        self.first.at(self.first.epoch(), self.first.lanes(), n_delivered)
    }

    /// How many batches the epoch has, those before the place that it was resumed at included, unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.n_batches
    }

    fn next_made(&mut self) -> Result<Option<Batch<B::Buffer>>, Error> {
        match &mut self.source {
            // That the channel has ended says that no more batches come, not why: the thread's result does.
            Source::Ahead(made) => Ok(made.recv().ok()),
            Source::Here(cutter) => cutter.next_batch(),
            Source::Ended => Ok(None),
        }
    }

    /// Ends the threads and waits for them; the first error is the one nearest to the data.
    fn finish(&mut self) -> Result<(), Error> {
        self.source = Source::Ended;
        self.stop.store(true, Ordering::Relaxed);
        let mut result = Ok(());
        for Worker { name, handle } in self.workers.drain(..) {
            let ended = handle.join().unwrap_or_else(|panic| {
                Err(Error::Panicked { thread: name, message: panic_message(&*panic) })
            });
            result = result.and(ended);
        }
        result
    }
}

impl<B: BatchBuffers> Iterator for Epoch<B> {
    type Item = Result<Batch<B::Buffer>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.source, Source::Ended) {
            return None;
        }
        let n_ready = match &self.source {
            Source::Ahead(made) => made.len(),
            Source::Here(_) | Source::Ended => 0,
        };
        let is_made_here = matches!(self.source, Source::Here(_));
        let (ready_blocks, made_before) = self.counters.asked();
        let asked = clock::now();
        let made = self.next_made();
        let wait = clock::now() - asked;
        // What this thread did itself was no waiting.
        let own = if is_made_here {
            self.counters.asked().1 - made_before
        } else {
            ThreadTime::default()
        };
        self.counters.waited(wait - own);
        match made {
            Ok(Some(batch)) => {
                self.n_taken += 1;
                self.counters.batch_taken(batch.n_rows(), wait, (n_ready as u32, ready_blocks));
                Some(Ok(batch))
            }
            // An error of the batch's own making comes after one of reading, which may be its cause.
            made => {
                let made = made.map(drop);
                let result = self.finish().and(made);
                self.counters.ended();
                result.err().map(Err)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.n_batches.saturating_sub(self.first.batches_delivered() + self.n_taken);
        (0, usize::try_from(left).ok())
    }
}

impl<B: BatchBuffers> std::iter::FusedIterator for Epoch<B> {}

impl<B: BatchBuffers> Drop for Epoch<B> {
    fn drop(&mut self) {
        // Nobody is left to be told what went wrong.
        drop(self.finish());
    }
}

impl<B: BatchBuffers> fmt::Debug for Epoch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}
