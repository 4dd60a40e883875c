//! Images that were read together.

use std::sync::Arc;

use slots::{PooledSlot, Slot, SlotMemory};

use crate::error::Error;

/// An image that could not be read.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// The sample.
    pub sample: u64,
    /// Why it could not be read; names the file.
    pub error: Arc<Error>,
}

/// Images that were read together, decoded, in the order in which they will be delivered.
#[derive(Debug, Default)]
pub struct ImageBlock {
    /// The samples that were read; unless they lie in a slot, also those that could not be.
    pub(crate) samples: Vec<u64>,
    /// The samples that could not be read.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) memory: BlockMemory,
}

/// The memory of a block.
#[derive(Debug, Default)]
pub(crate) enum BlockMemory {
    /// Nothing was read, or a batch has taken the slot.
    #[default]
    None,
    /// A slot of the ring.
    Slot(Arc<Slot>),
    /// The memory of each key, with an array for each sample. That of a sample that could not be
    /// read is arbitrary.
    Pooled(Arc<Vec<PooledSlot>>),
    /// The arrays of each sample, by key; `None` for a sample that could not be read.
    Cubes(Vec<Option<Vec<Box<dyn SlotMemory>>>>),
}

impl ImageBlock {
    /// Bytes that the block takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let of_cube = |cube: &Vec<Box<dyn SlotMemory>>| -> u64 {
            cube.iter().map(|array| array.bytes().len() as u64).sum()
        };
        match &self.memory {
            BlockMemory::None => 0,
            BlockMemory::Slot(slot) => slot.n_bytes() as u64,
            BlockMemory::Pooled(slots) => slots.iter().map(PooledSlot::memory_bytes).sum(),
            BlockMemory::Cubes(cubes) => cubes.iter().flatten().map(of_cube).sum(),
        }
    }
}
