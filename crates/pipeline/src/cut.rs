//! Cuts blocks into batches, across block borders, so that only an epoch's last batch is short.

use std::sync::Arc;

use crossbeam_channel::Sender;
use shuffle::BatchLengths;
use worktime::ThreadTime;

use crate::memory::Carried;
use crate::read::{EpochStart, Queue, Queued, Reading};
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
    /// The block being cut, and how many of its rows are delivered.
    block: Option<Present<S>>,
    /// Whether an epoch ended before all of its batches were made; then nothing may follow it.
    is_broken: bool,
    /// Reads the blocks, if no thread does.
    reading: Option<(Arc<Reading<S>>, S::Scratch)>,
    /// Why the next epoch could not begin.
    pub(crate) failure: Option<S::Error>,
}

/// An entry of the queue.
type QueuedOf<S> = Queued<<S as Source>::Block, <S as Source>::Error>;

/// A block, and how many of its rows are delivered.
type Present<S> = (Carried<<S as Source>::Block>, usize);

/// The epoch being cut.
struct Cut {
    epoch: u64,
    lengths: BatchLengths,
    /// The next batch, counted from the epoch's beginning.
    batch_idx: u64,
    n_padding: usize,
    counters: Counters,
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
    fn next_queued(&mut self) -> Result<Option<QueuedOf<S>>, S::Error> {
        if let Some((reading, scratch)) = &mut self.reading
            && self.queue.is_empty()
        {
            // A failure is in the queue, or ends it.
            reading.announce_or_read(scratch)?;
        }
        Ok(self.queue.recv().ok())
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
        if let Some((block, _)) = self.block.take() {
            // Rows of a dropped remainder.
            let _reader_has_ended = self.used.send(block);
        }
        self.epoch = None;
        while let Some(queued) = self.next_queued().unwrap_or_else(|error| {
            self.failure = Some(error);
            None
        }) {
            match queued {
                Queued::Epoch(start) => {
                    self.epoch = Some(Cut {
                        epoch: start.from.epoch(),
                        lengths: BatchLengths::new(start.n_rows, self.batch_rows),
                        batch_idx: start.from.batches_delivered(),
                        n_padding: start.n_padding,
                        counters: start.counters.clone(),
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
        false
    }

    /// The next batch of this epoch. `None` at its end, or if a reading thread ended without a read
    /// error: its result says why.
    pub(crate) fn next_batch(&mut self) -> Result<Option<S::Batch>, S::Error> {
        let Some(Cut { lengths, .. }) = &mut self.epoch else { return Ok(None) };
        let Some(n_rows) = lengths.next() else { return Ok(None) };
        let n_rows = n_rows as usize;
        let (mut time, mut others) = (ThreadTime::default(), ThreadTime::default());
        let mut n_filled = 0;
        while n_filled < n_rows {
            let present = self.present_block();
            self.is_broken = !matches!(present, Ok(Some(_)));
            let Some((mut block, n_taken)) = present? else { return Ok(None) };
            let start = worktime::now();
            if n_filled == 0 {
                self.assembler.begin(n_rows)?;
            }
            let taken = n_taken..block.order.len().min(n_taken + n_rows - n_filled);
            let part = BlockPart { start: n_taken, order: &block.order[taken.clone()] };
            others += self.assembler.add(&block.block, part)?;
            n_filled += taken.len();
            if taken.end < block.order.len() {
                self.block = Some((block, taken.end));
            } else {
                self.assembler.used_up(&mut block.block);
                // The reader has ended already if it has read everything.
                let _reader_has_ended = self.used.send(block);
            }
            time += worktime::now() - start;
        }
        let start = worktime::now();
        if n_rows == 0 {
            self.assembler.begin(0)?;
        }
        let Some(Cut { epoch, lengths, batch_idx, n_padding, counters }) = &mut self.epoch else {
            return Ok(None);
        };
        let n_padding = if lengths.len() == 0 { *n_padding } else { 0 };
        let place = BatchPlace { epoch: *epoch, batch_idx: *batch_idx, n_padding };
        *batch_idx += 1;
        let batch = self.assembler.finish(place)?;
        counters.batch_made(time + (worktime::now() - start), others);
        Ok(Some(batch))
    }

    /// The block to take rows from, and how many were taken already.
    fn present_block(&mut self) -> Result<Option<Present<S>>, S::Error> {
        if let Some(current) = self.block.take() {
            return Ok(Some(current));
        }
        loop {
            match self.next_queued()? {
                Some(Queued::Block(block)) => {
                    let Ok(block) = block.recv() else { return Ok(None) };
                    let block = block?;
                    if let Some(Cut { counters, .. }) = &self.epoch {
                        counters.block_begun();
                    }
                    if block.order.is_empty() {
                        let _reader_has_ended = self.used.send(block);
                        continue;
                    }
                    return Ok(Some((block, 0)));
                }
                // Unreachable with a valid plan: its rows would not fill its batches.
                Some(Queued::Epoch(_)) | None => return Ok(None),
            }
        }
    }
}
