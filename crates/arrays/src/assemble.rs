//! Makes batches from blocks.

use std::ops::Range;
use std::sync::Arc;

use pipeline::{Assemble, BatchPlace, BlockPart};
use slots::{PooledSlot, SlotMemory as _};
use worktime::ThreadTime;

use crate::batch::ArrayBatch;
use crate::block::ArrayBlock;
use crate::error::Error;
use crate::memory::copy;
use crate::variable::OpenVariable;
use crate::window::Window;

/// Makes batches: a batch that is a block takes its memory, and one that is a part of a block
/// shares it if the settings say so; others are copied.
#[derive(Debug)]
pub struct ArrayAssembler {
    variables: Arc<[OpenVariable]>,
    window: Arc<Window>,
    shares_blocks: bool,
    samples: Vec<u64>,
    /// Samples of the batch in the making.
    n_wanted: usize,
    values: Values,
}

/// The memory of the batch in the making.
#[derive(Debug, Default)]
enum Values {
    /// Nothing was added yet.
    #[default]
    None,
    /// The batch is a part of a block.
    Shared(Vec<(Arc<PooledSlot>, Range<usize>)>),
    /// The batch comes from several blocks.
    Copied(Vec<PooledSlot>),
}

impl ArrayAssembler {
    pub(crate) fn new(
        variables: Arc<[OpenVariable]>,
        window: Arc<Window>,
        shares_blocks: bool,
    ) -> Self {
        let (samples, values) = (Vec::new(), Values::None);
        Self { variables, window, shares_blocks, samples, n_wanted: 0, values }
    }

    /// New memory for the batch, in an epoch.
    fn slots(&self, epoch: u64) -> Result<Vec<PooledSlot>, Error> {
        let slot = |variable: &OpenVariable| {
            let sample_bytes = variable.sample_bytes_in(Some(epoch));
            self.slot(variable, sample_bytes.saturating_mul(self.n_wanted as u64))
        };
        self.variables.iter().map(slot).collect()
    }

    fn slot(&self, variable: &OpenVariable, n_bytes: u64) -> Result<PooledSlot, Error> {
        let slot = usize::try_from(n_bytes).ok().and_then(|n_bytes| variable.pool.take(n_bytes));
        slot.ok_or(Error::Memory { bytes: n_bytes, n_samples: self.n_wanted })
    }

    /// Gives the batch a copy of what has no steps, in place of the nothing that blocks have of it.
    fn add_static(&self, values: &mut [(Arc<PooledSlot>, Range<usize>)]) -> Result<(), Error> {
        for (variable, place) in self.variables.iter().zip(values) {
            let Some(values) = variable.shared_values() else { continue };
            let bytes = values.bytes();
            let mut slot = self.slot(variable, bytes.len() as u64)?;
            slot.bytes_mut().copy_from_slice(bytes);
            *place = (Arc::new(slot), 0..bytes.len());
        }
        Ok(())
    }

    /// The bytes of consecutive samples of a block, in each variable.
    fn parts<'a>(
        &'a self,
        block: &'a ArrayBlock,
        samples: Range<usize>,
    ) -> impl Iterator<Item = (&'a Arc<PooledSlot>, Range<usize>)> {
        self.variables.iter().zip(&block.slots).map(move |(variable, slot)| {
            let n_bytes = variable.sample_bytes_in(Some(block.epoch)) as usize;
            (slot, samples.start * n_bytes..samples.end * n_bytes)
        })
    }
}

impl Assemble for ArrayAssembler {
    type Block = ArrayBlock;
    type Batch = ArrayBatch;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.samples = Vec::with_capacity(n_rows);
        self.n_wanted = n_rows;
        self.values = Values::None;
        Ok(())
    }

    fn add(&mut self, block: &ArrayBlock, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        let taken = part.start..part.start + part.order.len();
        let is_whole_block = taken.len() == block.samples.len();
        if taken.len() == self.n_wanted && (self.shares_blocks || is_whole_block) {
            let shared = self.parts(block, taken.clone());
            let shared = shared.map(|(slot, bytes)| (Arc::clone(slot), bytes)).collect();
            self.values = Values::Shared(shared);
        } else {
            let mut slots = match std::mem::take(&mut self.values) {
                Values::Copied(slots) => slots,
                Values::None | Values::Shared(_) => self.slots(block.epoch)?,
            };
            let n_before = self.samples.len();
            let places = self.parts(block, n_before..n_before + taken.len());
            let places: Vec<Range<usize>> = places.map(|(_, bytes)| bytes).collect();
            let from = self.parts(block, taken.clone());
            for ((to, place), (slot, bytes)) in slots.iter_mut().zip(places).zip(from) {
                copy(&slot.bytes()[bytes], &mut to.bytes_mut()[place]);
            }
            self.values = Values::Copied(slots);
        }
        self.samples.extend_from_slice(&block.samples[taken]);
        Ok(ThreadTime::default())
    }

    /// Leaves the memory that batches share to them: a batch of the whole block then owns it alone.
    fn used_up(&mut self, block: &mut ArrayBlock) {
        if block.slots.iter().any(|slot| Arc::strong_count(slot) > 1) {
            block.slots.clear();
        }
    }

    fn finish(&mut self, place: BatchPlace) -> Result<ArrayBatch, Error> {
        let slots = match std::mem::take(&mut self.values) {
            Values::Shared(values) => Ok(values),
            Values::Copied(slots) => Err(slots),
            Values::None => Err(self.slots(place.epoch)?),
        };
        // Samples that were skipped are missing at the end.
        let n_samples = self.samples.len();
        let filled = |(mut slot, variable): (PooledSlot, &OpenVariable)| {
            let n_bytes = n_samples * variable.sample_bytes_in(Some(place.epoch)) as usize;
            let _is_shorter = slot.resize(n_bytes);
            (Arc::new(slot), 0..n_bytes)
        };
        let mut values = slots
            .unwrap_or_else(|slots| slots.into_iter().zip(&*self.variables).map(filled).collect());
        self.add_static(&mut values)?;
        Ok(ArrayBatch {
            variables: Arc::clone(&self.variables),
            values,
            samples: std::mem::take(&mut self.samples),
            window: Arc::clone(&self.window),
            place,
        })
    }
}
