//! Reads blocks in the order of the plans, on one or several threads.
//!
//! A thread takes work under a lock: the next block of the plan, and memory to read it into. Under
//! the same lock it also takes its place in the queue of the assembling thread, so blocks arrive in
//! the plan's order, whichever is read first. Delivering a block never needs the lock, so a thread
//! that waits for memory while it has the lock keeps no other from delivering.

use std::iter::Peekable;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use shuffle::{BlockPlan, EpochPlan, Stop};

use crate::error::Error;
use crate::memory::{BlocksMade, Carried};
use crate::skip::read_others;
use crate::source::{BlockPlace, BlockRows, Source};
use crate::spec::PipelineSpec;
use crate::state::LoaderState;
use crate::stats::Counters;
use crate::upcoming::{EpochReads, Upcoming};

/// An entry in the queue of the assembling thread.
pub(crate) enum Queued<B, E> {
    /// An epoch begins.
    Epoch(Box<EpochStart>),
    /// A block being read, or the error. The channel closes empty if the thread ends early.
    Block(Receiver<Result<Carried<B>, E>>),
}

/// The assembling thread's end of the queue.
pub(crate) type Queue<S> = Receiver<Queued<<S as Source>::Block, <S as Source>::Error>>;

/// The next block for a reading thread; `None` at the end.
type NextWork<S> = Option<Work<<S as Source>::Block, <S as Source>::Error>>;

/// The beginning of an epoch: where it starts and how long it is.
#[derive(Debug, Clone)]
pub(crate) struct EpochStart {
    pub(crate) from: LoaderState,
    /// Batches of the whole epoch.
    pub(crate) n_batches: u64,
    /// Rows from `from` on, including padding.
    pub(crate) n_rows: u64,
    pub(crate) n_padding: usize,
    pub(crate) counters: Counters,
}

impl EpochStart {
    /// The most rows that may be left out one after another, given the rows of a batch.
    pub(crate) fn most_left_out(&self, batch_rows: u64) -> u64 {
        (self.n_batches.saturating_mul(batch_rows) / 10).max(100)
    }

    /// Batches from `from` on.
    pub(crate) fn n_left(&self) -> u64 {
        self.n_batches - self.from.batches_delivered()
    }
}

/// Makes the plans of a loader's epochs.
#[derive(Debug, Clone)]
pub(crate) struct Plans {
    pub(crate) spec: PipelineSpec,
    pub(crate) n_rows: u64,
}

impl Plans {
    /// Plans the rest of an epoch from a state on.
    pub(crate) fn plan(&self, from: &LoaderState) -> Result<EpochPlan, Error> {
        let (spec, epoch) = (self.spec.plan(self.n_rows), from.epoch());
        let batches = self.spec.batches(from.lanes());
        let plan = match &self.spec.sampling {
            None => spec.dealt_epoch(epoch, &batches),
            Some(sampling) => {
                spec.sampled_epoch(epoch, &batches, sampling.rows(self.spec.seed, epoch)?)
            }
        };
        Ok(plan?.starting_at(from.batches_delivered()))
    }

    /// Plans an epoch and starts its counters.
    pub(crate) fn start(&self, from: LoaderState) -> Result<(EpochStart, EpochPlan), Error> {
        let start = worktime::now();
        let plan = self.plan(&from)?;
        let counters = Counters::new(from.epoch());
        counters.shuffled(worktime::now() - start);
        let started = EpochStart {
            from,
            n_batches: plan.n_batches(),
            n_rows: plan.n_rows(),
            n_padding: plan.n_padding() as usize,
            counters,
        };
        Ok((started, plan))
    }
}

/// The epoch whose blocks are being read.
pub(crate) struct Current {
    /// Each block, with whether it is a piece of the first one.
    blocks: Peekable<Box<dyn Iterator<Item = (BlockPlan, bool)> + Send>>,
    counters: Counters,
    epoch: u64,
    /// Rows still to deliver; blocks beyond them are not read.
    rows_left: u64,
    /// Rows of the blocks that were handed out.
    n_rows_read: u64,
    reads: Arc<EpochReads>,
}

impl Current {
    /// `first_rows` splits the first block if rows come in their own order, so that the first batch
    /// need not wait for a whole block.
    pub(crate) fn new(
        plans: &Plans,
        start: &EpochStart,
        mut plan: EpochPlan,
        first_rows: Option<u64>,
    ) -> Self {
        let reads = EpochReads::new(plans, &start.from, &plan);
        let first = first_rows.and_then(|first_rows| Some(pieces(plan.next()?, first_rows)));
        let first = first.into_iter().flatten().map(|piece| (piece, true));
        let blocks: Box<dyn Iterator<Item = (BlockPlan, bool)> + Send> =
            Box::new(first.chain(plan.map(|block| (block, false))));
        Self {
            blocks: blocks.peekable(),
            counters: start.counters.clone(),
            epoch: start.from.epoch(),
            rows_left: start.n_rows,
            n_rows_read: 0,
            reads: Arc::new(reads),
        }
    }

    /// The next block, whether it is a piece of the first one, and what is read after it.
    pub(crate) fn next_block(&mut self) -> Option<(BlockPlan, bool, Upcoming)> {
        let start = worktime::now();
        let plan = self.blocks.next();
        self.counters.shuffled(worktime::now() - start);
        let (plan, is_piece) = plan.filter(|_| self.rows_left > 0)?;
        self.rows_left = self.rows_left.saturating_sub(plan.n_rows() as u64);
        let before = self.n_rows_read;
        self.n_rows_read += plan.n_rows_read();
        let upcoming = Upcoming::new(Arc::clone(&self.reads), before..self.n_rows_read);
        Some((plan, is_piece, upcoming))
    }

    /// The rows of the block after that.
    fn rows_after(&mut self) -> Vec<Range<u64>> {
        let start = worktime::now();
        let next = if self.rows_left > 0 { self.blocks.peek() } else { None };
        let rows = next.map_or_else(Vec::new, |(plan, _)| plan.chunks.clone());
        self.counters.shuffled(worktime::now() - start);
        rows
    }
}

/// The epochs after the current one.
pub(crate) struct Later {
    /// Where the next one starts; `None` after the last.
    next: Option<LoaderState>,
    /// The epoch after the last.
    end: u64,
}

impl Later {
    /// The epochs after that of `from`, up to but not including `end`.
    pub(crate) fn after(from: &LoaderState, end: u64) -> Self {
        let epoch = from.epoch().saturating_add(1);
        Self { next: (epoch < end).then(|| from.at(epoch, from.lanes(), 0)), end }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    fn take(&mut self) -> Option<LoaderState> {
        let from = self.next.take()?;
        *self = Self::after(&from, self.end);
        Some(from)
    }
}

/// The queue of work that threads take in turn.
pub(crate) struct Dispatch<B, E> {
    pub(crate) plans: Plans,
    pub(crate) current: Option<Current>,
    pub(crate) later: Later,
    /// `None` once there is no more work.
    pub(crate) queue: Option<Sender<Queued<B, E>>>,
}

/// A block to read.
struct Work<B, E> {
    plan: BlockPlan,
    /// The rows of the block after it.
    next: Vec<Range<u64>>,
    is_piece: bool,
    upcoming: Upcoming,
    epoch: u64,
    counters: Counters,
    memory: Carried<B>,
    done: Sender<Result<Carried<B>, E>>,
}

/// What reading threads share.
pub(crate) struct Reading<S: Source> {
    pub(crate) source: Arc<S>,
    pub(crate) dispatch: Mutex<Dispatch<S::Block, S::Error>>,
    pub(crate) blocks: Arc<Mutex<BlocksMade>>,
    /// Blocks that are used up.
    pub(crate) free: Receiver<Carried<S::Block>>,
    /// Whether one thread reads all blocks, one after another.
    pub(crate) is_one_thread: bool,
    /// Whether rows that cannot be read are left out.
    pub(crate) skips: bool,
    pub(crate) stop: Stop,
}

impl<S: Source> Reading<S> {
    /// Reads until the plans end or the consumer stops: the main function of each reading thread.
    ///
    /// A read error goes where the block would have gone, so that the errors of several threads
    /// come in the order of the plan.
    pub(crate) fn run(&self) -> Result<(), S::Error> {
        let mut scratch = S::Scratch::default();
        while self.fill_next(false, &mut scratch)? {}
        Ok(())
    }

    /// Announces the next epoch if the current one has no more blocks, else reads its next block:
    /// for a consumer that reads each block when it needs it.
    pub(crate) fn announce_or_read(&self, scratch: &mut S::Scratch) -> Result<(), S::Error> {
        self.fill_next(true, scratch).map(drop)
    }

    /// Reads the next block. Returns false if there is none, it cannot be read, or the consumer
    /// stopped; with `stops_at_epoch` also if an epoch was announced instead.
    fn fill_next(&self, stops_at_epoch: bool, scratch: &mut S::Scratch) -> Result<bool, S::Error> {
        let Some(mut work) = self.next_work(stops_at_epoch)? else { return Ok(false) };
        let Some(read) = self.fill(&mut work, scratch).transpose() else { return Ok(false) };
        let has_failed = read.is_err();
        let is_wanted = work.done.send(read.map(|()| work.memory)).is_ok();
        Ok(is_wanted && !has_failed)
    }

    fn next_work(&self, stops_at_epoch: bool) -> Result<NextWork<S>, S::Error> {
        let mut dispatch = self.dispatch.lock().unwrap_or_else(|poisoned| {
            // A thread that panicked under the lock may have taken work that is now lost.
            let mut dispatch = poisoned.into_inner();
            dispatch.queue = None;
            dispatch
        });
        loop {
            if self.stop.is_set() {
                dispatch.queue = None;
            }
            let Dispatch { plans, current, later, queue } = &mut *dispatch;
            let Some(to) = queue else { return Ok(None) };
            let Some(epoch) = current else {
                let Some(from) = later.take() else {
                    *queue = None;
                    continue;
                };
                let (start, plan) = match plans.start(from) {
                    Ok(started) => started,
                    Err(error) => {
                        // No other thread may continue with the epoch after it.
                        *queue = None;
                        return Err(error.into());
                    }
                };
                *current = Some(Current::new(plans, &start, plan, None));
                if to.send(Queued::Epoch(Box::new(start))).is_err() {
                    *queue = None;
                } else if stops_at_epoch {
                    return Ok(None);
                }
                continue;
            };
            let Some((plan, is_piece, upcoming)) = epoch.next_block() else {
                *current = None;
                continue;
            };
            let (done, block) = bounded(1);
            // With several threads, another one may be reading the next block already.
            let next = if self.is_one_thread { epoch.rows_after() } else { Vec::new() };
            let work = self.memory().map(|memory| Work {
                plan,
                next,
                is_piece,
                upcoming,
                epoch: epoch.epoch,
                counters: epoch.counters.clone(),
                memory,
                done,
            });
            if work.is_none() || to.send(Queued::Block(block)).is_err() {
                *queue = None;
                continue;
            }
            return Ok(work);
        }
    }

    /// A block to read into: a used one, a new one if memory allows, or the next one that is used
    /// up. `None` if the consumer stopped.
    fn memory(&self) -> Option<Carried<S::Block>> {
        loop {
            let used = self.free.try_recv().ok();
            let made = used.or_else(|| lock(&self.blocks).make());
            let block = made.or_else(|| self.free.recv().ok())?;
            if let Some(block) = lock(&self.blocks).keep(block) {
                return Some(block);
            }
        }
    }

    /// Reads a block into its memory. `None` if the consumer stopped.
    fn fill(
        &self,
        work: &mut Work<S::Block, S::Error>,
        scratch: &mut S::Scratch,
    ) -> Result<Option<()>, S::Error> {
        let Work { plan, next, is_piece, upcoming, epoch, counters, memory, .. } = work;
        let block_idx = plan.block_idx;
        memory.place = BlockPlace { epoch: *epoch, block_idx };
        memory.order = std::mem::take(&mut plan.order);
        memory.left_out = Vec::new();
        let Carried { block, place, order, .. } = memory;
        let rows = BlockRows { place: *place, ranges: &plan.chunks, order, next, upcoming };
        let start = worktime::now();
        let mut others = None;
        let mut read = self.source.read(&rows, block, scratch, &self.stop);
        if self.skips
            && let Err(error) = read
        {
            let with = (block, scratch);
            read = read_others((&*self.source, &self.stop), &rows, with, error)
                .map(|found| others.insert(found).stats);
        }
        let spent = worktime::now() - start;
        if self.stop.is_set() {
            // The source gave up because it was asked to stop, which is not an error.
            return Ok(None);
        }
        let read = read?;
        let mut n_rows = plan.chunks.iter().map(|rows| (rows.end - rows.start) as usize).sum();
        if let Some(others) = others {
            n_rows = others.n_rows;
            (memory.order, memory.left_out) = (others.order, others.left_out);
        }
        counters.block_read(n_rows, *is_piece, &read, spent - read.convert);
        let bytes = self.source.block_bytes(&memory.block);
        lock(&self.blocks).filled(memory, bytes)?;
        Ok(Some(()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Splits a block whose rows come in their own order: `first_rows` rows, then twice as many, and so
/// on.
fn pieces(plan: BlockPlan, first_rows: u64) -> Vec<BlockPlan> {
    let mut pieces: Vec<BlockPlan> = Vec::new();
    // Rows that repeat others do not come in their own order.
    if plan.order.iter().zip(0..).any(|(at, idx)| *at != idx) {
        return vec![plan];
    }
    let (mut wanted, mut chunks, mut n_rows) = (first_rows, Vec::new(), 0);
    let mut cut = |chunks: &mut Vec<Range<u64>>, n_rows: &mut u64| {
        let order = (0..std::mem::take(n_rows) as u32).collect();
        let chunks = std::mem::take(chunks);
        pieces.push(BlockPlan { block_idx: plan.block_idx, chunks, order });
    };
    for chunk in &plan.chunks {
        let mut start = chunk.start;
        while start < chunk.end {
            let end = chunk.end.min(start + (wanted - n_rows));
            chunks.push(start..end);
            n_rows += end - start;
            start = end;
            if n_rows == wanted {
                cut(&mut chunks, &mut n_rows);
                wanted = wanted.saturating_mul(2);
            }
        }
    }
    if n_rows > 0 {
        cut(&mut chunks, &mut n_rows);
    }
    pieces
}
