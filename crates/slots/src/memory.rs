//! Where the bytes of slots come from.

use std::fmt::Debug;

use memmap2::MmapMut;

/// Memory of one slot.
pub trait SlotMemory: Debug + Send + Sync {
    /// All bytes. Their address and their number never change.
    fn bytes(&self) -> &[u8];

    /// All bytes, for writing: the same as [`bytes`](Self::bytes).
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Whether the memory is pinned: a device can read it while the host does something else.
    fn is_pinned(&self) -> bool {
        false
    }

    /// Pins the memory, until it is freed, for the GPU of CUDA with this index. Returns whether it
    /// is pinned now: not without CUDA, nor for memory that cannot be pinned later.
    fn pin(&mut self, _gpu: usize) -> bool {
        self.is_pinned()
    }
}

impl SlotMemory for Box<dyn SlotMemory> {
    fn bytes(&self) -> &[u8] {
        (**self).bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        (**self).bytes_mut()
    }

    fn is_pinned(&self) -> bool {
        (**self).is_pinned()
    }

    fn pin(&mut self, gpu: usize) -> bool {
        (**self).pin(gpu)
    }
}

/// Allocates the memory of slots.
pub trait Allocate: Debug + Send + Sync {
    /// Allocates at least `n_bytes` bytes of any value, at an address that is a multiple of 64.
    /// `None` if memory is lacking.
    fn allocate(&self, n_bytes: usize) -> Option<Box<dyn SlotMemory>>;
}

/// Allocates anonymous memory of the operating system, in large pages where it has them: a batch
/// has hundreds of megabytes, and the first touch of each page costs more than decoding into it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Mapped;

impl Allocate for Mapped {
    fn allocate(&self, n_bytes: usize) -> Option<Box<dyn SlotMemory>> {
        Some(Box::new(MappedMemory::new(n_bytes)?))
    }
}

/// Anonymous memory of the operating system.
#[derive(Debug)]
pub(crate) struct MappedMemory(Mapping);

#[cfg(all(feature = "cuda", target_os = "linux"))]
type Mapping = crate::cuda::PinnableMapping;
#[cfg(not(all(feature = "cuda", target_os = "linux")))]
type Mapping = MmapMut;

impl MappedMemory {
    /// Maps `n_bytes` bytes, or one if that is 0.
    pub(crate) fn new(n_bytes: usize) -> Option<Self> {
        // An empty mapping is an error.
        let mapping = MmapMut::map_anon(n_bytes.max(1)).ok()?;
        #[cfg(target_os = "linux")]
        {
            // Without large pages the memory is as good, only slower at first.
            drop(mapping.advise(memmap2::Advice::HugePage));
        }
        Some(Self(Mapping::from(mapping)))
    }
}

impl SlotMemory for MappedMemory {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    #[cfg(all(feature = "cuda", target_os = "linux"))]
    fn is_pinned(&self) -> bool {
        self.0.is_pinned()
    }

    #[cfg(all(feature = "cuda", target_os = "linux"))]
    fn pin(&mut self, gpu: usize) -> bool {
        self.0.pin(gpu)
    }
}
