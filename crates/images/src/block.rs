//! Images that were read together.

use std::sync::Arc;

use slots::{PooledSlot, Slot, SlotMemory};

/// Images that were read together, decoded, in the order in which they will be delivered.
#[derive(Debug, Default)]
pub struct ImageBlock {
    /// The samples.
    pub(crate) samples: Vec<u64>,
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
    /// The memory of each key, with an array for each sample.
    Pooled(Arc<Vec<PooledSlot>>),
    /// The arrays of each sample, by key.
    Cubes(Vec<Vec<Box<dyn SlotMemory>>>),
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
            BlockMemory::Cubes(cubes) => cubes.iter().map(of_cube).sum(),
        }
    }
}
