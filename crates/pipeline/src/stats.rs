//! Counts of one epoch, made by the threads that do the work. Measurements record these counts, not
//! the requested settings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use worktime::{ReadStats, ThreadTime};

use crate::skip::Skipped;
use crate::stages::{StageSums, StageTimes};

/// Skipped rows that are listed.
const N_LISTED: usize = 100;

/// Counts and times of one epoch, so far or in full.
///
/// Blocks count when they are ready, so before the epoch ends they run ahead of the batches.
/// Seconds are wall time, summed over the work of one thread.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EpochStats {
    /// The epoch.
    pub epoch: u64,
    /// Blocks read.
    pub n_blocks: u64,
    /// Rows of the largest block, as read: repeated rows count once.
    pub max_block_rows: usize,
    /// Batches delivered.
    pub n_batches: u64,
    /// Rows of the largest batch.
    pub max_batch_rows: usize,
    /// Rows delivered.
    pub n_rows: u64,
    /// Rows that the delivered batches lack, because they could not be read.
    pub n_skipped: u64,
    /// The first 100 of them.
    pub skipped: Vec<Skipped>,
    /// Counts of the reads.
    pub read: ReadStats,
    /// Time in the source's [`read`](crate::Source::read), without conversions.
    pub read_secs: f64,
    /// Time to convert the data read into the form of blocks.
    pub convert_secs: f64,
    /// Time to make batches from blocks.
    pub batch_secs: f64,
    /// Seconds that the consumer waited for each batch.
    pub wait_secs: Vec<f64>,
    /// Time of each stage, summed over all threads.
    pub stages: StageTimes,
    /// Batches that were ready when the consumer asked for each batch.
    pub ready_batches: Vec<u32>,
    /// Blocks that were read but not begun when the consumer asked for each batch.
    pub ready_blocks: Vec<u32>,
    /// Seconds from the start of the epoch until its first batch was delivered.
    pub first_batch_secs: Option<f64>,
    /// Seconds from the start of the epoch until the consumer last received a batch, an error or
    /// the end.
    pub elapsed_secs: f64,
}

/// Batches and blocks that were ready when the consumer first asked for a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) batches: u32,
    pub(crate) blocks: u32,
}

/// The counts of an epoch, shared by its threads and its consumer. Locked once per block or batch.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    counted: Arc<Mutex<Counted>>,
}

#[derive(Debug)]
struct Counted {
    stats: EpochStats,
    /// When the consumer asked for the epoch.
    start: ThreadTime,
    /// Rows of the first block so far, if it is read in pieces.
    rows_in_pieces: usize,
    sums: StageSums,
    /// Blocks that are read but not begun.
    ready_blocks: u32,
}

impl Counted {
    fn elapsed_secs(&self) -> f64 {
        (worktime::now() - self.start).wall.as_secs_f64()
    }
}

impl Counters {
    /// Starts the counts of an epoch, and its clock.
    pub(crate) fn new(epoch: u64) -> Self {
        let counted = Counted {
            stats: EpochStats { epoch, read: ReadStats::nothing(), ..EpochStats::default() },
            start: worktime::now(),
            rows_in_pieces: 0,
            sums: StageSums::default(),
            ready_blocks: 0,
        };
        Self { counted: Arc::new(Mutex::new(counted)) }
    }

    /// Starts the epoch's clock when the consumer asked for it, even if blocks were read ahead.
    pub(crate) fn asked_for(&self, at: ThreadTime) {
        self.lock().start = at;
    }

    pub(crate) fn snapshot(&self) -> EpochStats {
        let counted = self.lock();
        EpochStats { stages: counted.sums.times(), ..counted.stats.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `n_rows` rows of a block, or of a piece of the first block, read in `read_time`
    /// without conversions.
    pub(crate) fn block_read(
        &self,
        n_rows: usize,
        is_piece: bool,
        read: &ReadStats,
        read_time: ThreadTime,
    ) {
        let mut counted = self.lock();
        let Counted { stats, rows_in_pieces, sums, ready_blocks, .. } = &mut *counted;
        sums.read(read_time, read.times);
        sums.assemble_elsewhere += read.convert;
        *ready_blocks += 1;
        let mut block_rows = n_rows;
        if is_piece {
            stats.n_blocks += u64::from(*rows_in_pieces == 0);
            *rows_in_pieces += n_rows;
            block_rows = *rows_in_pieces;
        } else {
            stats.n_blocks += 1;
        }
        stats.max_block_rows = stats.max_block_rows.max(block_rows);
        stats.read += *read;
        stats.read_secs += read_time.wall.as_secs_f64();
        stats.convert_secs += read.convert.wall.as_secs_f64();
    }

    /// Adds the time of drawing an order, or a part of one.
    pub(crate) fn shuffled(&self, time: ThreadTime) {
        self.lock().sums.shuffle += time;
    }

    /// Counts a block whose cutting began.
    pub(crate) fn block_begun(&self) {
        let mut counted = self.lock();
        counted.ready_blocks = counted.ready_blocks.saturating_sub(1);
    }

    /// Adds a batch made in `time`, without waits for blocks; other threads helped for `others`.
    pub(crate) fn batch_made(&self, time: ThreadTime, others: ThreadTime) {
        let mut counted = self.lock();
        counted.stats.batch_secs += time.wall.as_secs_f64();
        counted.sums.cut += time;
        counted.sums.assemble_elsewhere += others;
    }

    /// Ready blocks, and the time spent on making batches so far.
    pub(crate) fn asked(&self) -> (u32, ThreadTime) {
        let counted = self.lock();
        (counted.ready_blocks, counted.sums.cut)
    }

    /// Counts a batch of `n_rows` rows that the consumer got after `wait`.
    pub(crate) fn batch_taken(&self, n_rows: usize, wait: ThreadTime, ready: Ready) {
        let mut counted = self.lock();
        let elapsed_secs = counted.elapsed_secs();
        let stats = &mut counted.stats;
        stats.n_batches += 1;
        stats.max_batch_rows = stats.max_batch_rows.max(n_rows);
        stats.n_rows += n_rows as u64;
        stats.wait_secs.push(wait.wall.as_secs_f64());
        stats.ready_batches.push(ready.batches);
        stats.ready_blocks.push(ready.blocks);
        stats.first_batch_secs.get_or_insert(elapsed_secs);
        stats.elapsed_secs = elapsed_secs;
    }

    /// Counts rows that a delivered batch lacks.
    pub(crate) fn skipped(&self, rows: &[Arc<Skipped>]) {
        if rows.is_empty() {
            return;
        }
        let mut counted = self.lock();
        let stats = &mut counted.stats;
        stats.n_skipped += rows.len() as u64;
        let n_listed = N_LISTED.saturating_sub(stats.skipped.len());
        stats.skipped.extend(rows.iter().take(n_listed).map(|row| Skipped::clone(row)));
    }

    /// Number of rows that the delivered batches lack.
    pub(crate) fn n_skipped(&self) -> u64 {
        self.lock().stats.n_skipped
    }

    /// Adds a wait of the consumer.
    pub(crate) fn waited(&self, wait: ThreadTime) {
        self.lock().sums.wait += wait;
    }

    /// Notes when the consumer learned that no more batches come.
    pub(crate) fn ended(&self) {
        let mut counted = self.lock();
        counted.stats.elapsed_secs = counted.elapsed_secs();
    }
}
