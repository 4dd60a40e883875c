//! Slots in memory of torch, pinned for a GPU.

use slots::{Allocate, SlotMemory};
use tch::Device;

use crate::device::{CopyDevice as _, TorchDevice};
use crate::error::Error;
use crate::memory::PinnedMemory;

/// Allocates slots of a ring in memory of torch that is pinned for a GPU, so that batches are
/// copied from where they were decoded, while the host does something else.
///
/// For the CPU the memory is not pinned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PinnedSlots {
    pinned_for: Option<Device>,
}

impl PinnedSlots {
    /// Slots from which `device` copies.
    ///
    /// # Errors
    /// torch does not see this GPU.
    pub fn new(device: Device) -> Result<Self, Error> {
        Ok(Self { pinned_for: TorchDevice::new(device)?.pinned_for() })
    }
}

impl Allocate for PinnedSlots {
    fn allocate(&self, n_bytes: usize) -> Option<Box<dyn SlotMemory>> {
        Some(Box::new(PinnedMemory::zeros(n_bytes, self.pinned_for).ok()?))
    }
}
