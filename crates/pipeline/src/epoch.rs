//! One pass over the samples: the threads that make its batches, and the iterator that delivers
//! them.
//!
//! ```text
//!  reading threads ── blocks ──▶ assembling thread ── batches ──▶ the consumer
//!        ▲                             │
//!        └──────── used blocks ────────┘
//! ```
//! A fixed number of blocks circulates, which alone bounds reading ahead. Channels carry only
//! results: a thread that fails ends, its channels close, and the consumer finds the error when it
//! joins the thread. Nothing can hang: each wait is on a channel whose other end is dropped when
//! its thread ends, or on a lock whose owner waits on such a channel.
//!
//! The threads may continue with the next epoch while the consumer takes the last batches of this
//! one ([`Epochs`](crate::Epochs)).

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, never};
use shuffle::Stop;
use worktime::{ThreadTime, run_in_background};

use crate::budget::Grant;
use crate::cut::{Cutter, Made, Polled, Wait};
use crate::error::Error;
use crate::memory::BlocksMade;
use crate::read::{EpochStart, Reading};
use crate::source::Source;
use crate::spec::PipelineSpec;
use crate::state::LoaderState;
use crate::stats::{EpochStats, Ready};

/// Thread names, shown in errors and by the system.
const READ: &str = "somafeed-read";
const BATCH: &str = "somafeed-batch";

/// Running threads and the receiving end of their batches. Dropping it stops and joins them.
pub(crate) struct Run<S: Source> {
    output: Output<S>,
    starts: Receiver<EpochStart>,
    workers: Vec<Worker<S::Error>>,
    stop: Stop,
    /// The settings as they run.
    spec: Arc<PipelineSpec>,
    /// The next epoch and the last one.
    epochs: RangeInclusive<u64>,
    /// Owns the lease of the memory, which must outlive the threads.
    _blocks: Arc<Mutex<BlocksMade>>,
    /// The source's share of the budget while this runs.
    _grant: Arc<Grant>,
}

/// Where the consumer's next batch comes from.
enum Output<S: Source> {
    /// A thread makes them ahead.
    Ahead(Receiver<Made<S::Batch>>),
    /// The consumer makes them itself.
    Here(Box<Cutter<S>>),
    /// The epoch has no more batches.
    Ended,
}

struct Worker<E> {
    name: &'static str,
    handle: JoinHandle<Result<(), E>>,
}

impl<S: Source> Run<S> {
    /// Starts the threads for a range of epochs, of which at most `n_batches` batches are useful
    /// ahead. `cutter` makes the cutter, given the channel on which it announces epochs.
    pub(crate) fn start(
        reading: Reading<S>,
        cutter: impl FnOnce(Sender<EpochStart>) -> Cutter<S>,
        (as_run, grant): (PipelineSpec, Arc<Grant>),
        (epochs, n_batches): (RangeInclusive<u64>, u64),
    ) -> Result<Self, S::Error> {
        // Capacity: the consumer's epoch and the next one.
        let (announce, starts) = bounded(2);
        let stop = reading.stop.clone();
        let PipelineSpec { prefetch_batches, read_threads: n_threads, .. } = as_run;
        let blocks = Arc::clone(&reading.blocks);
        let mut run = Self {
            output: Output::Ended,
            starts,
            workers: Vec::new(),
            stop,
            spec: Arc::new(as_run),
            epochs,
            _blocks: blocks,
            _grant: grant,
        };
        let (mut cutter, reading) = (cutter(announce), Arc::new(reading));
        let prefetch_batches =
            usize::try_from(n_batches).map_or(prefetch_batches, |n| prefetch_batches.min(n));
        if n_threads == 0 {
            cutter.read_here(Arc::clone(&reading));
        }
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
        // Buffers for waiting batches, the one in the making, and the consumer's.
        let n_buffers = n_batches.min((prefetch_batches as u64).saturating_add(2)) as usize;
        run.spawn(BATCH, move || {
            let mut is_first = true;
            while cutter.next_epoch() {
                if std::mem::take(&mut is_first) {
                    cutter.prepare(n_buffers);
                }
                while let Poll::Ready(Some(batch)) = cutter.next_batch(Wait::forever())? {
                    if batches.send(batch).is_err() {
                        return Ok(()); // Nobody takes batches any more.
                    }
                }
            }
            cutter.failure.take().map_or(Ok(()), Err)
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

    /// The next epoch.
    pub(crate) fn next_epoch(&self) -> u64 {
        *self.epochs.start()
    }

    /// Begins the next epoch; `None` if its plan cannot be made.
    fn begin(&mut self) -> Option<EpochStart> {
        if let Output::Here(cutter) = &mut self.output
            && !cutter.next_epoch()
        {
            return None;
        }
        let start = self.starts.recv().ok()?;
        let is_next = self.epochs.next() == Some(start.from.epoch());
        is_next.then_some(start)
    }

    fn next_batch(&mut self, mut wait: Wait) -> Polled<Made<S::Batch>, S::Error> {
        match &mut self.output {
            // A closed channel means that no more batches come; the thread's result says why.
            Output::Ahead(made) => wait.receive(made).map(Ok),
            Output::Here(cutter) => cutter.next_batch(wait),
            Output::Ended => Poll::Ready(Ok(None)),
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

    /// Ends the threads and waits for them. Returns the error nearest to the data.
    fn finish(&mut self) -> Result<(), S::Error> {
        let mut result = Ok(());
        if let Output::Here(cutter) = &mut self.output {
            result = cutter.failure.take().map_or(Ok(()), Err);
        }
        // Closes the channels first, so that no thread waits to send.
        (self.output, self.starts) = (Output::Ended, never());
        self.stop.set();
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
        // Errors are lost here: the consumer no longer asks.
        drop(self.finish());
    }
}

/// Holds a run between two epochs.
pub(crate) type Idle<S> = Mutex<Option<Run<S>>>;

/// The batches of one epoch, in order. Made by [`Pipeline::epoch`](crate::Pipeline::epoch).
///
/// An error is returned once, then `None`. Dropping the epoch stops its threads and waits for them,
/// at most until the current read returns.
pub struct Epoch<S: Source> {
    /// `None` after the end, if another epoch took it over.
    run: Option<Run<S>>,
    /// Where to put the run for the next epoch.
    idle: Weak<Idle<S>>,
    start: EpochStart,
    spec: Arc<PipelineSpec>,
    n_taken: u64,
    /// Measurements for the next batch by calls that gave up waiting for it.
    waited: Option<Waited>,
    /// Counts the rows of a batch.
    n_rows_of: fn(&S::Batch) -> usize,
    has_ended: bool,
}

/// The wait for a batch so far.
#[derive(Clone, Copy)]
struct Waited {
    ready: Ready,
    time: ThreadTime,
}

impl<S: Source> Epoch<S> {
    /// Begins the run's next epoch, which the consumer asked for at `asked`.
    pub(crate) fn from_run(
        mut run: Run<S>,
        idle: Weak<Idle<S>>,
        n_rows_of: fn(&S::Batch) -> usize,
        asked: ThreadTime,
    ) -> Result<Self, S::Error> {
        let Some(start) = run.begin() else {
            run.finish()?;
            // Without an error the reading thread would have announced an epoch.
            let message = "the reading thread ended before the epoch".to_owned();
            return Err(Error::Panicked { thread: READ, message }.into());
        };
        start.counters.asked_for(asked);
        let spec = Arc::clone(&run.spec);
        let run = Some(run);
        let mut epoch =
            Self { run, idle, start, spec, n_taken: 0, waited: None, n_rows_of, has_ended: false };
        if epoch.n_left() == 0 {
            epoch.hand_over();
        }
        Ok(epoch)
    }

    /// Counts and times so far; after the end, those of the whole epoch.
    pub fn stats(&self) -> EpochStats {
        self.start.counters.snapshot()
    }

    /// Number of rows that the batches so far lack, because they could not be read.
    pub fn n_skipped(&self) -> u64 {
        self.start.counters.n_skipped()
    }

    /// The settings as they run: with the actual number of lanes, and with as many blocks and
    /// batches ahead as memory allows.
    pub fn spec(&self) -> &PipelineSpec {
        &self.spec
    }

    /// The consumer's place in the order. [`Pipeline::resume`](crate::Pipeline::resume) continues
    /// after the last batch that the consumer took; batches made ahead do not count. A consumer
    /// that may fail to use a batch takes it by [`next_made`](Self::next_made).
    pub fn state(&self) -> LoaderState {
        let from = &self.start.from;
        from.at(from.epoch(), from.lanes(), from.batches_delivered() + self.n_taken)
    }

    /// Number of batches of the whole epoch, including those before the place where it resumed.
    pub fn n_batches(&self) -> u64 {
        self.start.n_batches
    }

    fn n_left(&self) -> u64 {
        self.start.n_left().saturating_sub(self.n_taken)
    }

    /// Leaves the run to the next epoch, if there is one.
    fn hand_over(&mut self) {
        let Some(idle) = self.idle.upgrade() else { return };
        let goes_on = self.run.as_ref().is_some_and(|run| !run.epochs.is_empty());
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if goes_on && idle.is_none() {
            *idle = self.run.take();
        }
    }

    /// Ends the epoch, and its threads unless the next epoch has them.
    fn end(&mut self) -> Result<(), S::Error> {
        self.has_ended = true;
        self.run.take().map_or(Ok(()), |mut run| run.finish())
    }
}

impl<S: Source> Epoch<S> {
    /// The next batch like [`next`](Iterator::next), or `Pending` if it is not ready within
    /// `limit`. The next call then goes on waiting for the same batch, so that a consumer can do
    /// something else in between, for example look for signals.
    ///
    /// Only waiting is limited: with [`prefetch_batches`](PipelineSpec::prefetch_batches) 0 the
    /// batch is made within the call, and with [`read_threads`](PipelineSpec::read_threads) 0, too,
    /// its blocks are read there.
    pub fn next_within(&mut self, limit: Duration) -> Poll<Option<Result<S::Batch, S::Error>>> {
        self.next_after(Wait::at_most(limit))
    }

    fn next_after(&mut self, wait: Wait) -> Poll<Option<Result<S::Batch, S::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let counters = self.start.counters.clone();
        if self.n_left() == 0 {
            let result = self.end();
            counters.ended();
            return Poll::Ready(result.err().map(Err));
        }
        // A panic on this thread drops the run: no later batch may follow the one that is lost.
        let Some(mut run) = self.run.take() else { return Poll::Ready(None) };
        let (n_ready, is_made_here) = (run.n_ready() as u32, run.is_made_here());
        let (ready_blocks, made_before) = counters.asked();
        let first = Waited {
            ready: Ready { batches: n_ready, blocks: ready_blocks },
            time: ThreadTime::default(),
        };
        let mut waited = self.waited.take().unwrap_or(first);
        let asked = worktime::now();
        let made = run.next_batch(wait);
        let time = worktime::now() - asked;
        waited.time += time;
        // Assembling on this thread is not waiting.
        let own =
            if is_made_here { counters.asked().1 - made_before } else { ThreadTime::default() };
        counters.waited(time - own);
        if let Poll::Ready(Ok(Some(Made { batch, skipped }))) = &made {
            counters.batch_taken((self.n_rows_of)(batch), waited.time, waited.ready);
            counters.skipped(skipped);
        }
        self.run = Some(run);
        match made {
            Poll::Pending => {
                self.waited = Some(waited);
                Poll::Pending
            }
            Poll::Ready(Ok(Some(Made { batch, .. }))) => {
                self.n_taken += 1;
                if self.n_left() == 0 {
                    self.hand_over();
                }
                Poll::Ready(Some(Ok(batch)))
            }
            // An error of reading comes before one of assembling, which it may have caused.
            Poll::Ready(made) => {
                let made = made.map(drop);
                let result = self.end().and(made);
                counters.ended();
                Poll::Ready(result.err().map(Err))
            }
        }
    }

    /// The next batch like [`next`](Iterator::next), as what `make` makes of it or of its error.
    ///
    /// The batch counts as delivered only if `make` succeeds. If it fails or panics, the epoch ends
    /// and [`state`](Self::state) is the place before that batch, so that a resumed epoch has it.
    pub fn next_made<T, E>(
        &mut self,
        make: impl FnOnce(Result<S::Batch, S::Error>) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let n_before = self.n_taken;
        let batch = self.next()?;
        Some(self.make(n_before, batch, make))
    }

    /// The next batch like [`next_made`](Self::next_made), or `Pending` if it is not ready within
    /// `limit`, like [`next_within`](Self::next_within); `make` is then not called.
    pub fn next_made_within<T, E>(
        &mut self,
        limit: Duration,
        make: impl FnOnce(Result<S::Batch, S::Error>) -> Result<T, E>,
    ) -> Poll<Option<Result<T, E>>> {
        let n_before = self.n_taken;
        self.next_within(limit).map(|batch| Some(self.make(n_before, batch?, make)))
    }

    fn make<T, E>(
        &mut self,
        n_before: u64,
        batch: Result<S::Batch, S::Error>,
        make: impl FnOnce(Result<S::Batch, S::Error>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut making = Making { epoch: self, n_before, is_made: false };
        let made = make(batch);
        making.is_made = made.is_ok();
        made
    }
}

/// A batch of which the consumer makes something.
struct Making<'a, S: Source> {
    epoch: &'a mut Epoch<S>,
    /// Batches that were taken before it.
    n_before: u64,
    is_made: bool,
}

impl<S: Source> Drop for Making<'_, S> {
    /// Unless the batch was made, ends the epoch before it.
    fn drop(&mut self) {
        if !self.is_made {
            self.epoch.n_taken = self.n_before;
            // The consumer's own error is the one to report.
            drop(self.epoch.end());
            self.epoch.start.counters.ended();
        }
    }
}

impl<S: Source> Iterator for Epoch<S> {
    type Item = Result<S::Batch, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Poll::Ready(next) = self.next_after(Wait::forever()) {
                return next;
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
        // Errors are lost here: the consumer no longer asks.
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
