//! Cuts blocks into batches, across block borders, so that only an epoch's last batch is short.

use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use shuffle::BatchLengths;
use worktime::ThreadTime;

use crate::error::Error;
use crate::memory::Carried;
use crate::read::{EpochStart, Queue, Queued, Reading};
use crate::skip::{LeftOut, Skipped};
use crate::source::{Assemble, BatchPlace, BlockPart, Source};
use crate::stats::Counters;

/// Makes the batches of consecutive epochs, on its own thread or on the consumer's.
pub(crate) struct Cutter<S: Source> {
    assembler: S::Assembler,
    batch_rows: u64,
    /// Epochs and blocks in order.
    queue: Queue<S>,
    /// Returns used blocks to the readers.
    used: Sender<Carried<S::Block>>,
    /// Announces the epochs that begin.
    starts: Sender<EpochStart>,
    epoch: Option<Cut>,
    /// The block being cut.
    block: Option<Present<S::Block>>,
    /// The next block, if a call gave up waiting for it.
    coming: Option<Coming<S>>,
    /// The batch that such a call left unfinished.
    begun: Option<Begun>,
    /// Whether an epoch ended before all of its batches were made; then nothing may follow it.
    is_broken: bool,
    /// Reads the blocks, if no thread does.
    reading: Option<(Arc<Reading<S>>, S::Scratch)>,
    /// Why the next epoch could not begin.
    pub(crate) failure: Option<S::Error>,
}

/// An entry of the queue.
type QueuedOf<S> = Queued<<S as Source>::Block, <S as Source>::Error>;

/// A block that is being cut.
struct Present<B> {
    block: Carried<B>,
    /// Rows that are delivered.
    n_taken: usize,
    /// Rows that were left out among them.
    n_left_out: usize,
}

impl<B> Present<B> {
    /// Rows that the plan has up to here.
    fn n_passed(&self) -> usize {
        self.n_taken + self.n_left_out
    }

    /// Takes the next rows, of which the plan has `n_rows`.
    fn take(&mut self, n_rows: usize) -> Taken<'_, B> {
        let end = self.block.n_planned().min(self.n_passed() + n_rows);
        let n_before = self.n_passed();
        let n_planned = end - n_before;
        let left_out = &self.block.left_out[self.n_left_out..];
        let left_out = &left_out[..left_out.partition_point(|row| row.place < end)];
        let (start, n_rows) = (self.n_taken, n_planned - left_out.len());
        self.n_taken += n_rows;
        self.n_left_out += left_out.len();
        let part = BlockPart { start, order: &self.block.order[start..start + n_rows] };
        Taken { block: &self.block.block, part, n_before, n_planned, left_out }
    }
}

/// Rows of a block for a batch.
struct Taken<'a, B> {
    block: &'a B,
    part: BlockPart<'a>,
    /// Rows of the block's plan before these.
    n_before: usize,
    /// Rows that the plan has for the batch, those that were left out included.
    n_planned: usize,
    left_out: &'a [LeftOut],
}

/// A batch on its way to the consumer.
#[derive(Debug)]
pub(crate) struct Made<B> {
    pub(crate) batch: B,
    /// The rows that it lacks.
    pub(crate) skipped: Vec<Arc<Skipped>>,
}

/// What was waited for, if it came in time; `None` if nothing comes any more.
pub(crate) type Polled<T, E> = Poll<Result<Option<T>, E>>;

/// Where a block will arrive.
type Coming<S> = Receiver<Result<Carried<<S as Source>::Block>, <S as Source>::Error>>;

/// A batch in the making.
struct Begun {
    /// Rows that the plan has for it.
    n_rows: usize,
    /// Rows of them that were added or left out.
    n_filled: usize,
    /// The rows that it lacks, and how many of them are padding.
    skipped: Vec<Arc<Skipped>>,
    n_padding_skipped: usize,
    /// Time spent on it, here and in other threads.
    time: ThreadTime,
    others: ThreadTime,
}

/// The epoch being cut.
struct Cut {
    epoch: u64,
    lengths: BatchLengths,
    /// The next batch, counted from the epoch's beginning.
    batch_idx: u64,
    n_padding: usize,
    counters: Counters,
    unread: Unread,
}

/// Counts rows that were left out one after another.
struct Unread {
    n_rows: u64,
    /// The most that there may be.
    most: u64,
    /// Whether they are all rows of the epoch so far.
    is_all: bool,
}

impl Unread {
    fn new(start: &EpochStart, batch_rows: u64) -> Self {
        let is_all = start.from.batches_delivered() == 0;
        Self { n_rows: 0, most: start.most_left_out(batch_rows), is_all }
    }

    /// Counts rows of a block. Fails if too many were left out, or at the end of the epoch if all
    /// were.
    fn count<B>(&mut self, taken: &Taken<'_, B>, is_end: bool) -> Result<(), Error> {
        self.is_all &= taken.part.order.is_empty();
        let mut next = taken.n_before;
        for LeftOut { place, skipped } in taken.left_out {
            self.n_rows = if next < *place { 1 } else { self.n_rows + 1 };
            next = place + 1;
            let is_last = self.is_all && is_end && next == taken.n_before + taken.n_planned;
            if self.most < self.n_rows || is_last {
                let Skipped { name, error, .. } = &**skipped;
                let (name, reason) = (name.clone(), error.to_string());
                return Err(Error::Unreadable { n_rows: self.n_rows, name, reason });
            }
        }
        if next < taken.n_before + taken.n_planned {
            self.n_rows = 0;
        }
        Ok(())
    }
}

impl<S: Source> Cutter<S> {
    pub(crate) fn new(
        assembler: S::Assembler,
        batch_rows: u64,
        (queue, used): (Queue<S>, Sender<Carried<S::Block>>),
        starts: Sender<EpochStart>,
    ) -> Self {
        Self {
            assembler,
            batch_rows,
            queue,
            used,
            starts,
            epoch: None,
            block: None,
            coming: None,
            begun: None,
            is_broken: false,
            reading: None,
            failure: None,
        }
    }

    /// Has the cutter read each block when it needs it.
    pub(crate) fn read_here(&mut self, reading: Arc<Reading<S>>) {
        self.reading = Some((reading, S::Scratch::default()));
    }

    /// The next entry of the queue; `None` if there is no more.
    fn next_queued(&mut self, wait: &mut Wait) -> Poll<Result<Option<QueuedOf<S>>, S::Error>> {
        if let Some((reading, scratch)) = &mut self.reading
            && self.queue.is_empty()
        {
            // A failure is in the queue, or ends it.
            reading.announce_or_read(scratch)?;
        }
        wait.receive(&self.queue).map(Ok)
    }

    /// Allocates and touches the memory of `n_batches` batches while the first block is read.
    /// Later, the consumer would wait for it: the first touch of memory is slow.
    pub(crate) fn prepare(&mut self, n_batches: usize) {
        let Some(Cut { lengths, counters, .. }) = &self.epoch else { return };
        let n_rows = lengths.clone().next().unwrap_or(0) as usize;
        self.assembler.prepare(n_batches, n_rows, &|| counters.asked().0 > 0);
    }

    /// Goes to the next epoch. Returns false if there is none or reading failed.
    pub(crate) fn next_epoch(&mut self) -> bool {
        if self.is_broken {
            return false;
        }
        if let Some(Present { block, .. }) = self.block.take() {
            // Its rows are those of a dropped remainder.
            let _reader_has_ended = self.used.send(block);
        }
        self.epoch = None;
        loop {
            let queued = match self.next_queued(&mut Wait::forever()) {
                Poll::Ready(Ok(Some(queued))) => queued,
                Poll::Ready(Err(error)) => {
                    self.failure = Some(error);
                    return false;
                }
                Poll::Ready(Ok(None)) | Poll::Pending => return false,
            };
            match queued {
                Queued::Epoch(start) => {
                    self.epoch = Some(Cut {
                        epoch: start.from.epoch(),
                        lengths: BatchLengths::new(start.n_rows, self.batch_rows),
                        batch_idx: start.from.batches_delivered(),
                        n_padding: start.n_padding,
                        counters: start.counters.clone(),
                        unread: Unread::new(&start, self.batch_rows),
                    });
                    return self.starts.send(*start).is_ok();
                }
                Queued::Block(block) => {
                    // These rows are not wanted, so their errors do not matter.
                    if let Ok(Ok(block)) = block.recv() {
                        let _reader_has_ended = self.used.send(block);
                    }
                }
            }
        }
    }

    /// The next batch of this epoch. `None` at its end, or if a reading thread ended without a read
    /// error: its result says why. `Pending` if it took longer than `wait`; the next call goes on
    /// with the same batch.
    pub(crate) fn next_batch(&mut self, mut wait: Wait) -> Polled<Made<S::Batch>, S::Error> {
        let Some(mut begun) = self.begun_batch() else { return Poll::Ready(Ok(None)) };
        while begun.n_filled < begun.n_rows {
            let present = self.present_block(&mut wait);
            self.is_broken = !matches!(present, Poll::Ready(Ok(Some(_))));
            let Poll::Ready(present) = present else {
                self.begun = Some(begun);
                return Poll::Pending;
            };
            let Some(present) = present? else { return Poll::Ready(Ok(None)) };
            self.fill(&mut begun, present)?;
        }
        Poll::Ready(self.finish(begun))
    }

    /// The batch that an earlier call left unfinished, or a new one; `None` at the epoch's end.
    fn begun_batch(&mut self) -> Option<Begun> {
        let lengths = &mut self.epoch.as_mut()?.lengths;
        self.begun.take().or_else(|| {
            let (time, others) = (ThreadTime::default(), ThreadTime::default());
            let (n_rows, skipped) = (lengths.next()? as usize, Vec::new());
            Some(Begun { n_rows, n_filled: 0, skipped, n_padding_skipped: 0, time, others })
        })
    }

    /// Adds rows of a block to a batch, and returns the block if it is used up.
    fn fill(&mut self, begun: &mut Begun, mut present: Present<S::Block>) -> Result<(), S::Error> {
        let start = worktime::now();
        let taken = present.take(begun.n_rows - begun.n_filled);
        if begun.n_filled == 0 {
            self.assembler.begin(begun.n_rows - taken.left_out.len())?;
        }
        if !taken.left_out.is_empty() {
            self.leave_out(begun, &taken)?;
        } else if let Some(Cut { unread, .. }) = &mut self.epoch {
            unread.count(&taken, false)?;
        }
        if !taken.part.order.is_empty() {
            begun.others += self.assembler.add(taken.block, taken.part)?;
        }
        begun.n_filled += taken.n_planned;
        if present.n_passed() < present.block.n_planned() {
            self.block = Some(present);
        } else {
            self.assembler.used_up(&mut present.block.block);
            // The reader has ended already if it has read everything.
            let _reader_has_ended = self.used.send(present.block);
        }
        begun.time += worktime::now() - start;
        Ok(())
    }

    /// Leaves rows out of a batch that could not be read.
    fn leave_out(
        &mut self,
        begun: &mut Begun,
        taken: &Taken<'_, S::Block>,
    ) -> Result<(), S::Error> {
        let Some(Cut { lengths, n_padding, unread, .. }) = &mut self.epoch else { return Ok(()) };
        let is_last = lengths.len() == 0;
        let n_filled = begun.n_filled + taken.n_planned;
        unread.count(taken, is_last && n_filled == begun.n_rows)?;
        if is_last {
            // Padding is at the end of the batch.
            let n_others = begun.n_rows.saturating_sub(*n_padding + begun.n_filled);
            let first = taken.n_before + n_others;
            let is_padding = |row: &&LeftOut| first <= row.place;
            begun.n_padding_skipped += taken.left_out.iter().filter(is_padding).count();
        }
        let skipped: Vec<_> = taken.left_out.iter().map(|row| Arc::clone(&row.skipped)).collect();
        self.assembler.leave_out(&skipped);
        begun.skipped.extend(skipped);
        Ok(())
    }

    /// Makes the batch of the rows that were added.
    fn finish(&mut self, begun: Begun) -> Result<Option<Made<S::Batch>>, S::Error> {
        let start = worktime::now();
        if begun.n_rows == 0 {
            self.assembler.begin(0)?;
        }
        let Some(Cut { epoch, lengths, batch_idx, n_padding, counters, .. }) = &mut self.epoch
        else {
            return Ok(None);
        };
        let n_padding = if lengths.len() == 0 { *n_padding } else { 0 };
        let n_padding = n_padding.saturating_sub(begun.n_padding_skipped);
        let place = BatchPlace { epoch: *epoch, batch_idx: *batch_idx, n_padding };
        *batch_idx += 1;
        let batch = self.assembler.finish(place)?;
        counters.batch_made(begun.time + (worktime::now() - start), begun.others);
        Ok(Some(Made { batch, skipped: begun.skipped }))
    }

    /// The block to take rows from.
    fn present_block(&mut self, wait: &mut Wait) -> Polled<Present<S::Block>, S::Error> {
        if let Some(current) = self.block.take() {
            return Poll::Ready(Ok(Some(current)));
        }
        loop {
            let coming = match self.coming.take() {
                Some(coming) => coming,
                None => match ready!(self.next_queued(wait))? {
                    Some(Queued::Block(coming)) => coming,
                    // Unreachable with a valid plan: its rows would not fill its batches.
                    Some(Queued::Epoch(_)) | None => return Poll::Ready(Ok(None)),
                },
            };
            let Poll::Ready(received) = wait.receive(&coming) else {
                self.coming = Some(coming);
                return Poll::Pending;
            };
            let Some(block) = received else { return Poll::Ready(Ok(None)) };
            let block = block?;
            if let Some(Cut { counters, .. }) = &self.epoch {
                counters.block_begun();
            }
            if block.n_planned() == 0 {
                let _reader_has_ended = self.used.send(block);
                continue;
            }
            return Poll::Ready(Ok(Some(Present { block, n_taken: 0, n_left_out: 0 })));
        }
    }
}

/// How long a call may wait, all in all.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    left: Option<Duration>,
}

impl Wait {
    /// Waits without a limit.
    pub(crate) fn forever() -> Self {
        Self { left: None }
    }

    /// Waits for at most this time.
    pub(crate) fn at_most(limit: Duration) -> Self {
        Self { left: Some(limit) }
    }

    /// Receives from a channel; `None` if it is closed. The first time that something is not there
    /// at once uses up the whole wait, so that no clock is needed.
    pub(crate) fn receive<T>(&mut self, from: &Receiver<T>) -> Poll<Option<T>> {
        let Some(left) = &mut self.left else { return Poll::Ready(from.recv().ok()) };
        match from.try_recv() {
            Ok(received) => return Poll::Ready(Some(received)),
            Err(TryRecvError::Disconnected) => return Poll::Ready(None),
            Err(TryRecvError::Empty) => {}
        }
        match from.recv_timeout(std::mem::take(left)) {
            Ok(received) => Poll::Ready(Some(received)),
            Err(RecvTimeoutError::Disconnected) => Poll::Ready(None),
            Err(RecvTimeoutError::Timeout) => Poll::Pending,
        }
    }
}
