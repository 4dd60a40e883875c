//! One pass over the samples: the threads that make its batches, and the iterator that hands them over.
//!
//! ```text
//!  reading threads ── blocks ──▶ assembling thread ── batches ──▶ the consumer
//!        ▲                             │
//!        └──────── used blocks ────────┘
//! ```
//! A fixed number of blocks goes round, which is all that bounds reading ahead. Channels carry only what
//! is good: a thread that fails ends, its channels end with it, and the consumer finds the error when
//! it joins the thread. Nothing can hang: each wait is on a channel whose other end is dropped when its
//! thread ends, or on a lock whose holder waits on such a channel.
//!
//! The threads may go on to the next epoch while the consumer takes the last batches of this one
//! ([`Epochs`](crate::Epochs)).

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, never};
use worktime::{ThreadTime, run_in_background};

use crate::budget::Grant;
use crate::cut::Cutter;
use crate::error::Error;
use crate::memory::BlocksMade;
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
    /// As it is run.
    spec: Arc<PipelineSpec>,
    /// The epoch that comes next, and the last.
    epochs: RangeInclusive<u64>,
    /// Has the lease of the memory, which ends after the threads.
    _blocks: Arc<Mutex<BlocksMade>>,
    /// What the source may keep meanwhile.
    _grant: Arc<Grant>,
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
    /// Starts the threads for some epochs, of which `n_batches` batches are of use ahead. `cutter` makes
    /// the cutter, given the channel on which it announces epochs.
    pub(crate) fn start(
        reading: Reading<S>,
        cutter: impl FnOnce(Sender<EpochStart>) -> Cutter<S>,
        (as_run, grant): (PipelineSpec, Arc<Grant>),
        (epochs, n_batches): (RangeInclusive<u64>, u64),
    ) -> Result<Self, S::Error> {
        // The epoch of the consumer, and the next one.
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
        let n_buffers = n_batches.min((prefetch_batches as u64).saturating_add(2)) as usize;
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

    /// The epoch that comes next.
    pub(crate) fn next_epoch(&self) -> u64 {
        *self.epochs.start()
    }

    /// The next epoch; `None` if its plan could not be made.
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
pub(crate) type Idle<S> = Mutex<Option<Run<S>>>;

/// The batches of one epoch, in order. Made by [`Pipeline::epoch`](crate::Pipeline::epoch).
///
/// After an error it has ended: the error is given once, then `None`. Dropping it at any point stops its
/// threads and waits for them, at longest until the read that is under way returns.
pub struct Epoch<S: Source> {
    /// Gone at the end, if another epoch takes it over.
    run: Option<Run<S>>,
    /// Where the run goes if another epoch may take it over.
    idle: Weak<Idle<S>>,
    start: EpochStart,
    spec: Arc<PipelineSpec>,
    n_taken: u64,
    /// Rows of a batch, for the counts.
    n_rows_of: fn(&S::Batch) -> usize,
    has_ended: bool,
}

impl<S: Source> Epoch<S> {
    /// The run's next epoch, which the consumer asked for at `asked`.
    pub(crate) fn of(
        mut run: Run<S>,
        idle: Weak<Idle<S>>,
        n_rows_of: fn(&S::Batch) -> usize,
        asked: ThreadTime,
    ) -> Result<Self, S::Error> {
        let Some(start) = run.begin() else {
            run.finish()?;
            // Without an error the reading thread has announced an epoch.
            let message = "the reading thread ended before the epoch".to_owned();
            return Err(Error::Panicked { thread: READ, message }.into());
        };
        start.counters.asked_for(asked);
        let spec = Arc::clone(&run.spec);
        let run = Some(run);
        let mut epoch = Self { run, idle, start, spec, n_taken: 0, n_rows_of, has_ended: false };
        if epoch.n_left() == 0 {
            epoch.hand_over();
        }
        Ok(epoch)
    }

    /// What has been done so far; after the end, what the whole epoch did.
    pub fn stats(&self) -> EpochStats {
        self.start.counters.snapshot()
    }

    /// The settings as they run: with the lanes that the order has, and as many blocks and batches ahead
    /// as memory allows.
    pub fn spec(&self) -> &PipelineSpec {
        &self.spec
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

impl<S: Source> Iterator for Epoch<S> {
    type Item = Result<S::Batch, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let counters = self.start.counters.clone();
        if self.n_left() == 0 {
            let result = self.end();
            counters.ended();
            return result.err().map(Err);
        }
        let run = self.run.as_mut()?;
        let (n_ready, is_made_here) = (run.n_ready(), run.is_made_here());
        let (ready_blocks, made_before) = counters.asked();
        let asked = worktime::now();
        let made = run.next_batch();
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
                if self.n_left() == 0 {
                    self.hand_over();
                }
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
