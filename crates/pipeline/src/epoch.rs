//! One pass over the samples: the threads that make its batches, and the iterator that hands them over.
//!
//! ```text
//!  reading threads ── blocks ──▶ assembling thread ── batches ──▶ the consumer
//!        ▲                             │
//!        └──────── used blocks ────────┘
//! ```
//! A fixed number of blocks goes round, which is all that bounds reading ahead. Channels carry only what
//! is good: a thread that fails ends, its channels end with it, and the consumer finds the error when
//! it joins the thread. Nothing can hang, because each wait is on a channel whose other end is dropped
//! when its thread ends.
//!
//! The threads may go on to the next epoch while the consumer takes the last batches of this one
//! ([`Epochs`](crate::Epochs)).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, never};
use worktime::{ThreadTime, run_in_background};

use crate::cut::Cutter;
use crate::error::Error;
use crate::read::{EpochStart, Reading};
use crate::source::{Source, Stop};
use crate::spec::PipelineSpec;
use crate::state::LoaderState;
use crate::stats::EpochStats;

/// Names of the threads, as errors and the system show them.
const READ: &str = "somafeed-read";
const BATCH: &str = "somafeed-batch";

/// Threads at work, and where their batches come out. Dropping it stops and joins them.
pub(crate) struct Run<S: Source> {
    output: Output<S>,
    starts: Receiver<EpochStart>,
    workers: Vec<Worker<S::Error>>,
    stop: Stop,
    as_run: Arc<PipelineSpec>,
}

/// Where the consumer's next batch comes from.
enum Output<S: Source> {
    /// A thread makes them ahead.
    Ahead(Receiver<S::Batch>),
    /// The consumer makes them.
    Here(Box<Cutter<S>>),
    /// There are no more.
    Ended,
}

struct Worker<E> {
    name: &'static str,
    handle: JoinHandle<Result<(), E>>,
}

impl<S: Source> Run<S> {
    /// Starts the threads for `n_batches` batches. `cutter` makes the cutter, given the channel on which
    /// it announces epochs.
    pub(crate) fn start(
        reading: Reading<S>,
        cutter: impl FnOnce(Sender<EpochStart>) -> Cutter<S>,
        as_run: PipelineSpec,
        n_batches: u64,
    ) -> Result<Self, S::Error> {
        // The epoch of the consumer, and the next one.
        let (announce, starts) = bounded(2);
        let stop = reading.stop.clone();
        let PipelineSpec { prefetch_blocks, prefetch_batches, read_threads, .. } = as_run;
        let (output, workers, as_run) = (Output::Ended, Vec::new(), Arc::new(as_run));
        let mut run = Self { output, starts, workers, stop, as_run };
        let (mut cutter, reading) = (cutter(announce), Arc::new(reading));
        let n_threads = read_threads.min(prefetch_blocks.saturating_add(1));
        let prefetch_batches =
            usize::try_from(n_batches).map_or(prefetch_batches, |n| prefetch_batches.min(n));
        for _ in 0..n_threads {
            let reading = Arc::clone(&reading);
            run.spawn(READ, move || reading.run())?;
        }
        if prefetch_batches == 0 {
            run.output = Output::Here(Box::new(cutter));
            return Ok(run);
        }
        let (batches, made) = bounded(prefetch_batches);
        run.output = Output::Ahead(made);
        // Those that wait, the one in the making, and the consumer's.
        let n_buffers = n_batches.min(prefetch_batches as u64 + 2) as usize;
        run.spawn(BATCH, move || {
            let mut is_first = true;
            while cutter.next_epoch() {
                if std::mem::take(&mut is_first) {
                    cutter.prepare(n_buffers);
                }
                while let Some(batch) = cutter.next_batch()? {
                    if batches.send(batch).is_err() {
                        return Ok(()); // Nobody takes batches any more.
                    }
                }
            }
            Ok(())
        })?;
        Ok(run)
    }

    fn spawn(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), S::Error> + Send + 'static,
    ) -> Result<(), Error> {
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(|| {
            run_in_background();
            work()
        });
        let handle = spawned.map_err(|source| Error::Spawn { thread: name, source })?;
        self.workers.push(Worker { name, handle });
        Ok(())
    }

    /// The next epoch; `None` if its plan could not be made.
    fn begin(&mut self) -> Option<EpochStart> {
        if let Output::Here(cutter) = &mut self.output
            && !cutter.next_epoch()
        {
            return None;
        }
        self.starts.recv().ok()
    }

    fn next_batch(&mut self) -> Result<Option<S::Batch>, S::Error> {
        match &mut self.output {
            // That the channel has ended says that no more batches come, not why: the thread's result does.
            Output::Ahead(made) => Ok(made.recv().ok()),
            Output::Here(cutter) => cutter.next_batch(),
            Output::Ended => Ok(None),
        }
    }

    fn n_ready(&self) -> usize {
        match &self.output {
            Output::Ahead(made) => made.len(),
            Output::Here(_) | Output::Ended => 0,
        }
    }

    fn is_made_here(&self) -> bool {
        matches!(self.output, Output::Here(_))
    }

    /// Ends the threads and waits for them; the first error is the one nearest to the data.
    fn finish(&mut self) -> Result<(), S::Error> {
        // A thread that waits to hand something over finds nobody.
        (self.output, self.starts) = (Output::Ended, never());
        self.stop.set();
        let mut result = Ok(());
        for Worker { name, handle } in self.workers.drain(..) {
            let ended = handle.join().unwrap_or_else(|panic| {
                let message = panic_message(&*panic);
                Err(Error::Panicked { thread: name, message }.into())
            });
            result = result.and(ended);
        }
        result
    }
}

impl<S: Source> Drop for Run<S> {
    fn drop(&mut self) {
        // Nobody is left to be told what went wrong.
        drop(self.finish());
    }
}

/// A place for a run between two epochs.
pub(crate) type Idle<S> = Arc<Mutex<Option<Run<S>>>>;

/// The batches of one epoch, in order. Made by [`Pipeline::epoch`](crate::Pipeline::epoch).
///
/// After an error it has ended: the error is given once, then `None`. Dropping it at any point stops its
/// threads and waits for them, at longest until the read that is under way returns.
pub struct Epoch<S: Source> {
    /// Gone at the end, if another epoch takes it over.
    run: Option<Run<S>>,
    /// Where the run goes if another epoch may take it over.
    idle: Option<Idle<S>>,
    start: EpochStart,
    as_run: Arc<PipelineSpec>,
    n_taken: u64,
    /// Rows of a batch, for the counts.
    n_rows_of: fn(&S::Batch) -> usize,
    has_ended: bool,
}

impl<S: Source> Epoch<S> {
    /// The run's next epoch.
    pub(crate) fn of(
        mut run: Run<S>,
        idle: Option<Idle<S>>,
        n_rows_of: fn(&S::Batch) -> usize,
    ) -> Result<Self, S::Error> {
        let Some(start) = run.begin() else {
            run.finish()?;
            // Without an error the reading thread has announced an epoch.
            let message = "the reading thread ended before the epoch".to_owned();
            return Err(Error::Panicked { thread: READ, message }.into());
        };
        start.counters.asked_for();
        let as_run = Arc::clone(&run.as_run);
        Ok(Self { run: Some(run), idle, start, as_run, n_taken: 0, n_rows_of, has_ended: false })
    }

    /// What has been done so far; after the end, what the whole epoch did.
    pub fn stats(&self) -> EpochStats {
        self.start.counters.snapshot()
    }

    /// The settings as they run: with the lanes that the order has, and as many blocks and batches ahead
    /// as memory allows.
    pub fn spec(&self) -> &PipelineSpec {
        &self.as_run
    }

    /// The consumer's place in the order: [`Pipeline::resume`](crate::Pipeline::resume) goes on behind the
    /// last batch that the consumer was given. What is made ahead does not count.
    pub fn state(&self) -> LoaderState {
        let from = &self.start.from;
        from.at(from.epoch(), from.lanes(), from.batches_delivered() + self.n_taken)
    }

    /// The number of batches of the epoch, those before the place that it was resumed at included,
    /// unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.start.n_batches
    }

    fn n_left(&self) -> u64 {
        self.start.n_left().saturating_sub(self.n_taken)
    }

    /// Ends the epoch: its threads end, or go on with the next one.
    fn end(&mut self) -> Result<(), S::Error> {
        self.has_ended = true;
        let Some(mut run) = self.run.take() else { return Ok(()) };
        match &self.idle {
            Some(idle) if self.n_left() == 0 => {
                *idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
                Ok(())
            }
            _ => run.finish(),
        }
    }
}

impl<S: Source> Iterator for Epoch<S> {
    type Item = Result<S::Batch, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let counters = self.start.counters.clone();
        let is_over = self.n_left() == 0;
        let run = self.run.as_mut()?;
        let (n_ready, is_made_here) = (run.n_ready(), run.is_made_here());
        let (ready_blocks, made_before) = counters.asked();
        let asked = worktime::now();
        let made = if is_over { Ok(None) } else { run.next_batch() };
        let wait = worktime::now() - asked;
        // Work of this thread is not waiting.
        let own =
            if is_made_here { counters.asked().1 - made_before } else { ThreadTime::default() };
        counters.waited(wait - own);
        match made {
            Ok(Some(batch)) => {
                self.n_taken += 1;
                let n_rows = (self.n_rows_of)(&batch);
                counters.batch_taken(n_rows, wait, (n_ready as u32, ready_blocks));
                Some(Ok(batch))
            }
            // An error of reading comes before one of assembling, which it may have caused.
            made => {
                let made = made.map(drop);
                let result = self.end().and(made);
                counters.ended();
                result.err().map(Err)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.n_left()).ok())
    }
}

impl<S: Source> std::iter::FusedIterator for Epoch<S> {}

impl<S: Source> Drop for Epoch<S> {
    fn drop(&mut self) {
        // Nobody is left to be told what went wrong.
        drop(self.end());
    }
}

impl<S: Source> fmt::Debug for Epoch<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, n_batches) = (self.start.from.epoch(), self.start.n_batches);
        let n_taken = self.start.from.batches_delivered() + self.n_taken;
        write!(f, "Epoch({epoch}: {n_taken} of {n_batches} batches taken)")
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}
