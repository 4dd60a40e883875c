//! Makes batches from blocks.

use std::sync::Arc;

use pipeline::{Assemble, BatchPlace, BlockPart, Skipped};
use slots::{Allocate as _, Mapped, SlotMemory};
use worktime::ThreadTime;

use crate::batch::{BatchBytes, ImageBatch, Opened};
use crate::block::{BlockMemory, ImageBlock};
use crate::data_set::DataSet;
use crate::error::Error;
use crate::open_key::OpenKey;

/// Makes batches: a block in a slot is one, cubes with memory of their own are copied into one.
#[derive(Debug)]
pub struct ImageAssembler {
    of: Arc<Opened>,
    /// Whether memory of batches goes round.
    is_pooled: bool,
    /// The most samples of the batch in the making.
    n_wanted: usize,
    samples: Vec<u64>,
    skipped: Vec<Arc<Skipped>>,
    memory: Option<BatchBytes>,
}

impl ImageAssembler {
    pub(crate) fn new(data: DataSet, keys: Arc<[OpenKey]>, is_pooled: bool) -> Self {
        let (samples, skipped) = (Vec::new(), Vec::new());
        let of = Arc::new(Opened { data, keys });
        Self { of, is_pooled, n_wanted: 0, samples, skipped, memory: None }
    }

    /// Memory of its own for a batch of `n_samples`.
    fn allocate(&self, n_samples: usize) -> Result<Vec<Box<dyn SlotMemory>>, Error> {
        let of_key = |key: &OpenKey| -> Result<Box<dyn SlotMemory>, Error> {
            if self.is_pooled {
                return Ok(Box::new(key.pooled(n_samples)?));
            }
            let n_bytes = key.n_bytes().checked_mul(n_samples);
            let memory = n_bytes.and_then(|n_bytes| Mapped.allocate(n_bytes));
            memory.ok_or(Error::Memory { bytes: n_bytes.unwrap_or(usize::MAX) as u64, n_samples })
        };
        self.of.keys.iter().map(of_key).collect()
    }

    /// Copies the samples at these places of a block behind those that the batch has. `bytes_of`
    /// gives a key's array at a place.
    fn collate<'a>(
        &mut self,
        block: &'a ImageBlock,
        part: BlockPart<'_>,
        bytes_of: impl Fn(usize, usize) -> &'a [u8],
    ) -> Result<(), Error> {
        let mut memory = match self.memory.take() {
            Some(BatchBytes::Owned(memory)) => memory,
            _ => self.allocate(self.n_wanted)?,
        };
        for place in part.start..part.start + part.order.len() {
            let at = self.samples.len();
            for (idx, to) in memory.iter_mut().enumerate() {
                let bytes = bytes_of(idx, place);
                to.bytes_mut()[at * bytes.len()..][..bytes.len()].copy_from_slice(bytes);
            }
            self.samples.push(block.samples[place]);
        }
        self.memory = Some(BatchBytes::Owned(memory));
        Ok(())
    }
}

impl Assemble for ImageAssembler {
    type Block = ImageBlock;
    type Batch = ImageBatch;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.n_wanted = n_rows;
        self.samples = Vec::with_capacity(n_rows);
        self.skipped = Vec::new();
        self.memory = None;
        Ok(())
    }

    fn add(&mut self, block: &ImageBlock, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        let is_whole = part.order.len() == self.n_wanted && part.start == 0;
        match &block.memory {
            BlockMemory::Cubes(cubes) => {
                self.collate(block, part, |idx, place| cubes[place][idx].bytes())?;
            }
            BlockMemory::Slot(slot) if is_whole => {
                self.memory = Some(BatchBytes::Slot(Arc::clone(slot)));
                self.samples.extend_from_slice(&block.samples);
            }
            BlockMemory::Pooled(slots) if is_whole && block.samples.len() == self.n_wanted => {
                self.memory = Some(BatchBytes::Pooled(Arc::clone(slots)));
                self.samples.extend_from_slice(&block.samples);
            }
            BlockMemory::Pooled(slots) => {
                let of = Arc::clone(&self.of);
                self.collate(block, part, |idx, place| {
                    let n_bytes = of.keys[idx].n_bytes();
                    &slots[idx].bytes()[place * n_bytes..][..n_bytes]
                })?;
            }
            BlockMemory::Slot(_) | BlockMemory::None => return Err(not_its_block()),
        }
        Ok(ThreadTime::default())
    }

    fn leave_out(&mut self, images: &[Arc<Skipped>]) {
        self.skipped.extend_from_slice(images);
    }

    /// Leaves the slot to the batch.
    fn used_up(&mut self, block: &mut ImageBlock) {
        block.memory = BlockMemory::None;
    }

    fn finish(&mut self, place: BatchPlace) -> Result<ImageBatch, Error> {
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => BatchBytes::Owned(self.allocate(0)?),
        };
        Ok(ImageBatch {
            of: Arc::clone(&self.of),
            memory,
            samples: std::mem::take(&mut self.samples),
            skipped: std::mem::take(&mut self.skipped),
            place,
        })
    }
}

/// A batch in a ring must be one whole block.
pub(crate) fn not_its_block() -> Error {
    Error::Spec {
        reason: "with batches in a ring, blocks must be as large as batches: set chunk_rows to 1, \
                 chunks_per_block to batch_rows, and lanes to the world size"
            .to_owned(),
    }
}
