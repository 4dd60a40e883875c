//! What an epoch did, counted by the threads that did it: a measurement records this, not what was asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use soma_io::ThreadTime;

use crate::read::BlockReads;
use crate::spec::LoaderSpec;
use crate::stages::{StageSums, StageTimes};

/// Counts and times of one epoch, so far or in full.
///
/// Blocks and what was read for them count when the block is ready, so before the epoch ends they run ahead of the
/// batches. Seconds are those of the monotonic clock, summed over the work of one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EpochStats {
    /// Which epoch.
    pub epoch: u64,
    /// The settings that it ran with.
    pub spec: LoaderSpec,
    /// The name of the reader that gave the blocks; several joined by `+` where experiments have different ones.
    pub reader: String,
    /// Genes, the columns of every batch.
    pub n_columns: usize,
    /// Blocks read.
    pub n_blocks: u64,
    /// Rows of the largest block, as read: a row that comes several times counts once.
    pub max_block_rows: usize,
    /// Batches handed over.
    pub n_batches: u64,
    /// Rows of the largest batch.
    pub max_batch_rows: usize,
    /// Rows (cells) handed over.
    pub n_rows: u64,
    /// Values read for the blocks: all those of their rows and the selected genes.
    pub nnz: u64,
    /// Bytes that the reader took from storage, where it knows.
    pub bytes_read: Option<u64>,
    /// Requests that the reader sent to an object store; none are known of a folder, nor of libtiledb.
    pub requests: Option<u64>,
    /// Values that the reader decoded to find those, where it knows.
    pub cells_decoded: Option<u64>,
    /// Bytes that the reader's filters gave, where it knows.
    pub bytes_decoded: Option<u64>,
    /// Bytes that the values read take as they are stored, where the reader knows.
    pub bytes_needed: Option<u64>,
    /// Time in the reader.
    pub read_secs: f64,
    /// Time to turn what was read into blocks: COO to CSR or to dense. None is needed for the native method.
    pub convert_secs: f64,
    /// Time to make batches of blocks: copying or densifying rows, taking obs.
    pub batch_secs: f64,
    /// For each batch handed over, how long the consumer waited for it.
    pub wait_secs: Vec<f64>,
    /// What each stage took, of all threads.
    pub stages: StageTimes,
    /// For each batch handed over, how many batches were ready when the consumer asked for it.
    pub ready_batches: Vec<u32>,
    /// For each batch handed over, how many blocks had been read and not been begun when the consumer asked for it.
    pub ready_blocks: Vec<u32>,
    /// From the start of the epoch until its first batch was handed over.
    pub first_batch_secs: Option<f64>,
    /// From the start of the epoch until the consumer last got an answer: a batch, an error or the end.
    pub elapsed_secs: f64,
}

/// The counts of an epoch, shared by its threads and its consumer. Locked once a block or batch, never in between.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    counted: Arc<Mutex<Counted>>,
    start: Instant,
}

#[derive(Debug)]
struct Counted {
    stats: EpochStats,
    /// The block that was read last, and its rows so far: the first may be read in pieces.
    last_block: Option<(u64, usize)>,
    sums: StageSums,
    /// Blocks that are read and not begun.
    ready_blocks: u32,
}

impl Counters {
    pub(crate) fn new(epoch: u64, spec: LoaderSpec, reader: String, n_columns: usize) -> Self {
        let stats = EpochStats {
            epoch,
            spec,
            reader,
            n_columns,
            n_blocks: 0,
            max_block_rows: 0,
            n_batches: 0,
            max_batch_rows: 0,
            n_rows: 0,
            nnz: 0,
            bytes_read: Some(0),
            requests: Some(0),
            cells_decoded: Some(0),
            bytes_decoded: Some(0),
            bytes_needed: Some(0),
            read_secs: 0.0,
            convert_secs: 0.0,
            batch_secs: 0.0,
            wait_secs: Vec::new(),
            stages: StageTimes::default(),
            ready_batches: Vec::new(),
            ready_blocks: Vec::new(),
            first_batch_secs: None,
            elapsed_secs: 0.0,
        };
        let sums = StageSums::default();
        let counted = Counted { stats, last_block: None, sums, ready_blocks: 0 };
        Self { counted: Arc::new(Mutex::new(counted)), start: Instant::now() }
    }

    pub(crate) fn snapshot(&self) -> EpochStats {
        let counted = self.lock();
        EpochStats { stages: counted.sums.times(), ..counted.stats.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `n_rows` rows of a block were read.
    pub(crate) fn block_read(
        &self,
        (block_idx, n_rows): (u64, usize),
        read: &BlockReads,
        read_time: ThreadTime,
        convert_time: ThreadTime,
    ) {
        let mut counted = self.lock();
        let Counted { stats, last_block, sums, ready_blocks } = &mut *counted;
        sums.read(read_time, read.times);
        sums.densify_apart += convert_time;
        *ready_blocks += 1;
        let so_far = match *last_block {
            Some((last, so_far)) if last == block_idx => so_far,
            _ => {
                stats.n_blocks += 1;
                0
            }
        };
        *last_block = Some((block_idx, so_far + n_rows));
        stats.max_block_rows = stats.max_block_rows.max(so_far + n_rows);
        stats.nnz += read.nnz;
        stats.bytes_read = add(stats.bytes_read, read.bytes);
        stats.requests = add(stats.requests, read.requests);
        stats.cells_decoded = add(stats.cells_decoded, read.cells_decoded);
        stats.bytes_decoded = add(stats.bytes_decoded, read.bytes_decoded);
        stats.bytes_needed = add(stats.bytes_needed, read.bytes_needed);
        stats.read_secs += read_time.wall.as_secs_f64();
        stats.convert_secs += convert_time.wall.as_secs_f64();
    }

    /// An order was drawn, or a part of it.
    pub(crate) fn shuffled(&self, time: ThreadTime) {
        self.lock().sums.shuffle += time;
    }

    /// The cutting of a block has begun.
    pub(crate) fn block_begun(&self) {
        let mut counted = self.lock();
        counted.ready_blocks = counted.ready_blocks.saturating_sub(1);
    }

    /// A batch was made, in so much time without waiting for blocks; others than the thread that did it helped so long.
    pub(crate) fn batch_made(&self, time: ThreadTime, others: ThreadTime) {
        let mut counted = self.lock();
        counted.stats.batch_secs += time.wall.as_secs_f64();
        counted.sums.cut += time;
        counted.sums.densify_apart += others;
    }

    /// The consumer asks for a batch: blocks that are ready, and the time that was spent on making batches.
    pub(crate) fn asked(&self) -> (u32, ThreadTime) {
        let counted = self.lock();
        (counted.ready_blocks, counted.sums.cut)
    }

    /// The consumer waited until now and got a batch of `n_rows` rows; so many batches and blocks were ready when it asked.
    pub(crate) fn batch_taken(&self, n_rows: usize, wait: ThreadTime, ready: (u32, u32)) {
        let elapsed_secs = self.start.elapsed().as_secs_f64();
        let mut counted = self.lock();
        let stats = &mut counted.stats;
        stats.n_batches += 1;
        stats.max_batch_rows = stats.max_batch_rows.max(n_rows);
        stats.n_rows += n_rows as u64;
        stats.wait_secs.push(wait.wall.as_secs_f64());
        stats.ready_batches.push(ready.0);
        stats.ready_blocks.push(ready.1);
        stats.first_batch_secs.get_or_insert(elapsed_secs);
        stats.elapsed_secs = elapsed_secs;
    }

    /// So much of the consumer's time was waiting.
    pub(crate) fn waited(&self, wait: ThreadTime) {
        self.lock().sums.wait += wait;
    }

    /// The consumer was told that there are no more batches, or why.
    pub(crate) fn ended(&self) {
        let elapsed_secs = self.start.elapsed().as_secs_f64();
        self.lock().stats.elapsed_secs = elapsed_secs;
    }
}

/// A sum that is unknown as soon as one part of it is.
pub(crate) fn add(sum: Option<u64>, part: Option<u64>) -> Option<u64> {
    Some(sum? + part?)
}
