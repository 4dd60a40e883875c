//! Makes batches from blocks.

use std::sync::Arc;

use pipeline::{Assemble, BatchPlace, BlockPart};
use slots::{Allocate as _, Mapped, SlotMemory};
use worktime::ThreadTime;

use crate::batch::{BatchBytes, ImageBatch};
use crate::block::{BlockMemory, ImageBlock, Skipped};
use crate::error::Error;
use crate::open_key::OpenKey;

/// Makes batches: a block in a slot is one, cubes with memory of their own are copied into one.
#[derive(Debug)]
pub struct ImageAssembler {
    keys: Arc<[OpenKey]>,
    n_planned: usize,
    samples: Vec<u64>,
    skipped: Vec<Skipped>,
    memory: Option<BatchBytes>,
}

impl ImageAssembler {
    pub(crate) fn new(keys: Arc<[OpenKey]>) -> Self {
        Self { keys, n_planned: 0, samples: Vec::new(), skipped: Vec::new(), memory: None }
    }

    /// Memory of its own for a batch of `n_samples`.
    fn allocate(&self, n_samples: usize) -> Result<Vec<Box<dyn SlotMemory>>, Error> {
        let of_key = |key: &OpenKey| {
            let n_bytes = key.n_bytes().checked_mul(n_samples);
            let memory = n_bytes.and_then(|n_bytes| Mapped.allocate(n_bytes));
            memory.ok_or(Error::Memory { bytes: n_bytes.unwrap_or(usize::MAX) as u64, n_samples })
        };
        self.keys.iter().map(of_key).collect()
    }

    /// Copies the cubes at these places of a block behind those that the batch has.
    fn collate(
        &mut self,
        block: &ImageBlock,
        cubes: &[Option<Vec<Box<dyn SlotMemory>>>],
        part: BlockPart<'_>,
    ) -> Result<(), Error> {
        let mut memory = match self.memory.take() {
            Some(BatchBytes::Owned(memory)) => memory,
            _ => self.allocate(self.n_planned)?,
        };
        let places = part.start..part.start + part.order.len();
        for (sample, cube) in block.samples[places.clone()].iter().zip(&cubes[places]) {
            let Some(cube) = cube else {
                let skipped = block.skipped.iter().find(|of| of.sample == *sample);
                self.skipped.extend(skipped.cloned());
                continue;
            };
            let at = self.samples.len();
            for (to, from) in memory.iter_mut().zip(cube) {
                let bytes = from.bytes();
                let to = &mut to.bytes_mut()[at * bytes.len()..][..bytes.len()];
                to.copy_from_slice(bytes);
            }
            self.samples.push(*sample);
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
        self.n_planned = n_rows;
        self.samples = Vec::with_capacity(n_rows);
        self.skipped = Vec::new();
        self.memory = None;
        Ok(())
    }

    fn add(&mut self, block: &ImageBlock, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        match &block.memory {
            BlockMemory::Cubes(cubes) => self.collate(block, cubes, part)?,
            BlockMemory::Slot(slot) if part.order.len() == self.n_planned && part.start == 0 => {
                self.memory = Some(BatchBytes::Slot(Arc::clone(slot)));
                self.samples.extend_from_slice(&block.samples);
                self.skipped.extend_from_slice(&block.skipped);
            }
            BlockMemory::Slot(_) | BlockMemory::None => return Err(not_its_block()),
        }
        Ok(ThreadTime::default())
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
            keys: Arc::clone(&self.keys),
            memory,
            samples: std::mem::take(&mut self.samples),
            skipped: std::mem::take(&mut self.skipped),
            n_planned: self.n_planned,
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
