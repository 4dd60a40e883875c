//! Samples that are their own row numbers, from a source that can be slow and can fail.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline::{
    Assemble, BatchPlace, BlockBytes, BlockPart, BlockPlace, BlockRows, Error, Need, Pipeline,
    PipelineSpec, ReadStats, Source, Stop,
};
use worktime::ThreadTime;

/// Bytes of a row in blocks and batches.
pub(crate) const ROW_BYTES: u64 = 1 << 20;

/// A source whose samples are 0, 1, 2 ...
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) n_rows: u64,
    /// Bytes that each thread needs to read a block, beside it.
    pub(crate) reading: u64,
    /// Delay of blocks with an even number.
    pub(crate) delay: Duration,
    /// The epoch and number of the block that cannot be read.
    pub(crate) broken: Option<(u64, u64)>,
    /// The epoch and number of the block whose reading panics.
    pub(crate) panics: Option<(u64, u64)>,
    /// The batch that cannot be made.
    pub(crate) unmade: Option<Unmade>,
    /// Nothing is read while a test holds it.
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) n_started: AtomicUsize,
    pub(crate) n_at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
    pub(crate) kept: AtomicU64,
    /// The rows of each block that was read, with those that were to be read after it.
    pub(crate) blocks: Mutex<Vec<[Vec<Range<u64>>; 2]>>,
}

/// A batch that cannot be made, counted from the first that an assembler makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unmade {
    pub(crate) n_before: usize,
    pub(crate) call: Call,
    pub(crate) panics: bool,
}

/// A call of an assembler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Begin,
    Add,
    Finish,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NumbersError {
    #[error(transparent)]
    Engine(#[from] Error),
    #[error("block {block_idx} of epoch {epoch} is broken")]
    Broken { epoch: u64, block_idx: u64 },
    #[error("a batch cannot be made")]
    Unmade,
}

impl Source for Numbers {
    type Block = Vec<u64>;
    type Batch = Numbered;
    type Error = NumbersError;
    type Scratch = ();
    type Assembler = Collected;

    fn n_rows(&self) -> u64 {
        self.n_rows
    }

    fn fingerprint(&self) -> String {
        format!("numbers below {}", self.n_rows)
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, NumbersError> {
        let block = block_rows * ROW_BYTES;
        let batch = batch_rows * ROW_BYTES;
        Ok(Need { block, largest: block, batch, reading: self.reading, ..Need::default() })
    }

    fn block_bytes(&self, block: &Vec<u64>) -> BlockBytes {
        let now = block.len() as u64 * ROW_BYTES;
        BlockBytes { now, most: now }
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut Vec<u64>,
        (): &mut (),
        _stop: &Stop,
    ) -> Result<ReadStats, NumbersError> {
        self.n_started.fetch_add(1, Ordering::SeqCst);
        drop(self.gate.lock().unwrap());
        self.blocks.lock().unwrap().push([rows.ranges.to_vec(), rows.next.to_vec()]);
        let at_once = self.n_at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        let BlockPlace { epoch, block_idx } = rows.place;
        if block_idx.is_multiple_of(2) {
            std::thread::sleep(self.delay);
        }
        into.clear();
        into.extend(rows.ranges.iter().cloned().flatten());
        self.n_at_once.fetch_sub(1, Ordering::SeqCst);
        assert!(self.panics != Some((epoch, block_idx)), "scripted panic");
        if self.broken == Some((epoch, block_idx)) {
            return Err(NumbersError::Broken { epoch, block_idx });
        }
        Ok(ReadStats { values: into.len() as u64, bytes_read: Some(8), ..ReadStats::default() })
    }

    fn assembler(&self, _batch_rows: u64) -> Result<Collected, NumbersError> {
        Ok(Collected { unmade: self.unmade, ..Collected::default() })
    }

    fn keep(&self, _holder: u64, bytes: u64) {
        self.kept.store(bytes, Ordering::SeqCst);
    }
}

/// A batch of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) rows: Vec<u64>,
    pub(crate) place: BatchPlace,
}

#[derive(Debug, Default)]
pub(crate) struct Collected {
    rows: Vec<u64>,
    wanted: usize,
    n_made: usize,
    unmade: Option<Unmade>,
}

impl Collected {
    fn check(&self, made: Call) -> Result<(), NumbersError> {
        match self.unmade {
            Some(Unmade { n_before, call, panics }) if n_before == self.n_made && call == made => {
                assert!(!panics, "scripted panic");
                Err(NumbersError::Unmade)
            }
            _ => Ok(()),
        }
    }
}

impl Assemble for Collected {
    type Block = Vec<u64>;
    type Batch = Numbered;
    type Error = NumbersError;

    fn begin(&mut self, n_rows: usize) -> Result<(), NumbersError> {
        self.check(Call::Begin)?;
        self.wanted = n_rows;
        self.rows.clear();
        Ok(())
    }

    fn add(&mut self, block: &Vec<u64>, part: BlockPart<'_>) -> Result<ThreadTime, NumbersError> {
        self.check(Call::Add)?;
        self.rows.extend(part.order.iter().map(|row| block[*row as usize]));
        Ok(ThreadTime::default())
    }

    fn finish(&mut self, place: BatchPlace) -> Result<Numbered, NumbersError> {
        self.check(Call::Finish)?;
        self.n_made += 1;
        assert_eq!(self.rows.len(), self.wanted);
        Ok(Numbered { rows: std::mem::take(&mut self.rows), place })
    }
}

/// Blocks of 4 chunks of 3 rows, batches of 5.
pub(crate) fn spec() -> PipelineSpec {
    PipelineSpec {
        chunk_rows: 3,
        chunks_per_block: 4,
        batch_rows: 5,
        seed: 7,
        ..PipelineSpec::default()
    }
}

pub(crate) fn pipeline(source: Numbers, spec: PipelineSpec) -> Pipeline<Numbers> {
    Pipeline::new(Arc::new(source), spec, |batch| batch.rows.len()).unwrap()
}

pub(crate) fn numbers_of(n_rows: u64) -> Numbers {
    Numbers { n_rows, ..Numbers::default() }
}

/// The batches of an epoch.
pub(crate) fn batches(pipeline: &Pipeline<Numbers>, epoch: u64) -> Vec<Numbered> {
    pipeline.epoch(epoch).unwrap().map(Result::unwrap).collect()
}
