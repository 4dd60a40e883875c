//! Errors of making rings and taking slots.

/// An error of making a ring or taking a slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A ring needs a slot.
    #[error("a ring of 0 slots: give it at least 1")]
    NoSlots,

    /// The keys of a slot have more bytes than memory has addresses.
    #[error(
        "keys of {key_bytes:?} bytes make a slot larger than this machine can address: make \
         batches smaller"
    )]
    TooLarge {
        /// Bytes of each key.
        key_bytes: Vec<usize>,
    },

    /// The memory of a slot cannot be allocated.
    #[error(
        "cannot allocate slot {number} of {n_slots}, of {n_bytes} bytes: use fewer slots or \
         smaller batches"
    )]
    Allocate {
        /// The slot, counted from 0.
        number: usize,
        /// Slots of the ring.
        n_slots: usize,
        /// Bytes of a slot.
        n_bytes: usize,
    },

    /// Allocated memory is too short or begins at an unsuitable address.
    #[error(
        "{allocator} returned memory that cannot be a slot: {got_bytes} bytes at address \
         {address:#x}; {n_bytes} bytes at a multiple of {alignment} are needed"
    )]
    Unsuitable {
        /// The allocator.
        allocator: String,
        /// Bytes that it returned.
        got_bytes: usize,
        /// Where they begin.
        address: usize,
        /// Bytes of a slot.
        n_bytes: usize,
        /// The address of a slot must be a multiple of this.
        alignment: usize,
    },

    /// Every slot is filled or with the consumer, and no copy is under way that would free one.
    #[error(
        "all {n_slots} slots of a ring are in use, and none is being copied: drop batches sooner, \
         or give the ring at least {needed} slots"
    )]
    AllKept {
        /// Slots of the ring.
        n_slots: usize,
        /// Slots that are in use or wanted at this moment: with as many, `take` would have
        /// succeeded.
        needed: usize,
    },
}
