//! Batches of images.

use std::sync::Arc;

use arrays::{Element, ElementType};
use pipeline::{BatchPlace, Skipped};
use slots::{CopyGuard, PooledSlot, Slot, SlotMemory};

use crate::data_set::{DataSet, Image};
use crate::error::Error;
use crate::open_key::OpenKey;
use crate::spec::Role;

/// Images in the order of the plan: for each key an array of shape `[samples, ...]`.
///
/// A batch in a slot of a ring occupies it until it is dropped, or until the copy that
/// [`into_copy`](Self::into_copy) announces has ended. Nothing overwrites it meanwhile.
#[derive(Debug)]
pub struct ImageBatch {
    pub(crate) of: Arc<Opened>,
    pub(crate) memory: BatchBytes,
    pub(crate) samples: Vec<u64>,
    pub(crate) skipped: Vec<Arc<Skipped>>,
    pub(crate) place: BatchPlace,
}

/// What all batches of a source have in common.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) data: DataSet,
    pub(crate) keys: Arc<[OpenKey]>,
}

/// The memory of a batch that was taken apart: the arrays of its keys, in the settings' order.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImageMemory {
    /// A slot of the ring, which is free when this is dropped. Each key may have room for more
    /// samples than the batch has.
    Slot(Slot),
    /// Memory of its own for each key.
    Owned(Vec<Box<dyn SlotMemory>>),
}

/// The memory of a batch.
#[derive(Debug)]
pub(crate) enum BatchBytes {
    /// A slot of the ring.
    Slot(Arc<Slot>),
    /// Memory that was the block's, for each key.
    Pooled(Arc<Vec<PooledSlot>>),
    /// Memory of its own, for each key.
    Owned(Vec<Box<dyn SlotMemory>>),
}

/// The memory of each key as memory that a batch owns.
fn owned(slots: Vec<PooledSlot>) -> Vec<Box<dyn SlotMemory>> {
    slots.into_iter().map(|slot| Box::new(slot) as Box<dyn SlotMemory>).collect()
}

impl ImageBatch {
    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.samples.len()
    }

    /// The number of samples that the plan has for this batch: those in it and those that could not
    /// be read.
    pub fn n_planned(&self) -> usize {
        self.samples.len() + self.skipped.len()
    }

    /// The numbers of the samples.
    pub fn samples(&self) -> &[u64] {
        &self.samples
    }

    /// The image with this sample's number, in this batch or not.
    pub fn image(&self, sample: u64) -> Option<&Image> {
        self.of.data.images().get(usize::try_from(sample).ok()?)
    }

    /// The images that could not be read, if the settings skip them.
    pub fn skipped(&self) -> &[Arc<Skipped>] {
        &self.skipped
    }

    /// The batch's position in its epoch.
    pub fn place(&self) -> BatchPlace {
        self.place
    }

    /// The arrays of the batch, in the order of the settings.
    pub fn keys(&self) -> impl Iterator<Item = KeyValues<'_>> {
        let n_samples = self.samples.len();
        self.of.keys.iter().enumerate().map(move |(idx, key)| {
            let bytes = match &self.memory {
                BatchBytes::Slot(slot) => slot.key(idx),
                BatchBytes::Pooled(slots) => slots.get(idx).map_or(&[][..], PooledSlot::bytes),
                BatchBytes::Owned(memory) => memory.get(idx).map_or(&[][..], |of| of.bytes()),
            };
            let bytes = bytes.get(..n_samples * key.n_bytes()).unwrap_or_default();
            KeyValues { key, bytes, n_samples }
        })
    }

    /// The array of a key; `None` if there is none of that name.
    pub fn key(&self, name: &str) -> Option<KeyValues<'_>> {
        self.keys().find(|values| values.name() == name)
    }

    /// Whether the batch lies in memory that a device reads without a detour.
    pub fn is_pinned(&self) -> bool {
        match &self.memory {
            BatchBytes::Slot(slot) => slot.is_pinned(),
            BatchBytes::Pooled(slots) => slots.iter().all(SlotMemory::is_pinned),
            BatchBytes::Owned(memory) => memory.iter().all(SlotMemory::is_pinned),
        }
    }

    /// Takes the memory out of the batch, to lend it or to write to it. The batch is returned if
    /// something else shares its memory, which no batch of an epoch's iterator does.
    ///
    /// # Errors
    /// The batch itself, if its memory is shared.
    pub fn into_memory(self) -> Result<ImageMemory, Self> {
        match self.memory {
            BatchBytes::Slot(slot) => match Arc::try_unwrap(slot) {
                Ok(slot) => Ok(ImageMemory::Slot(slot)),
                Err(slot) => Err(Self { memory: BatchBytes::Slot(slot), ..self }),
            },
            BatchBytes::Pooled(slots) => match Arc::try_unwrap(slots) {
                Ok(slots) => Ok(ImageMemory::Owned(owned(slots))),
                Err(slots) => Err(Self { memory: BatchBytes::Pooled(slots), ..self }),
            },
            BatchBytes::Owned(memory) => Ok(ImageMemory::Owned(memory)),
        }
    }

    /// Ends the host's use of the batch while a device still copies from it. The slot is free when
    /// the guard is dropped, so drop it when the copy has ended. `None` if the batch has memory of
    /// its own, which is freed now.
    pub fn into_copy(self) -> Option<CopyGuard> {
        match self.memory {
            BatchBytes::Slot(slot) => Arc::into_inner(slot).map(Slot::copying),
            BatchBytes::Pooled(_) | BatchBytes::Owned(_) => None,
        }
    }
}

/// The values of one key in a batch.
#[derive(Debug, Clone, Copy)]
pub struct KeyValues<'a> {
    key: &'a OpenKey,
    bytes: &'a [u8],
    n_samples: usize,
}

impl<'a> KeyValues<'a> {
    /// The name of the key.
    pub fn name(&self) -> &'a str {
        &self.key.name
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.key.element
    }

    /// Whether the array has no pixels: augmentation leaves it as it is.
    pub fn is_plain(&self) -> bool {
        self.key.role == Role::Plain
    }

    /// The shape: samples, then the shape of an image's array.
    pub fn shape(&self) -> Vec<usize> {
        std::iter::once(self.n_samples).chain(self.key.shape.iter().copied()).collect()
    }

    /// The values in C order.
    ///
    /// # Errors
    /// The elements are not of type `T`.
    pub fn values<T: Element>(&self) -> Result<&'a [T], Error> {
        if !T::is(self.element()) {
            return Err(Error::WrongElement {
                key: self.name().to_owned(),
                element: self.element(),
                wanted: std::any::type_name::<T>(),
            });
        }
        Ok(bytemuck::cast_slice(self.bytes))
    }

    /// The values in C order, as the machine's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}
