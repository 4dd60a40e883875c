//! A decoded chunk, as it is kept in memory.

use crate::packed_integers::PackedIntegers;

/// About the bytes that the allocator takes for each chunk.
pub(crate) const CHUNK_OVERHEAD_BYTES: u64 = 16;

/// A chunk's cells, packed without rounding.
#[derive(Debug)]
pub(crate) enum DecodedChunk {
    /// Columns, each as its distance from the first of the tile.
    Columns(PackedIntegers),
    /// Whole numbers from 0 to 65,535.
    Counts(PackedIntegers),
    /// Other values.
    Floats(Box<[f32]>),
}

impl DecodedChunk {
    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Columns(packed) | Self::Counts(packed) => packed.n_bytes(),
            Self::Floats(values) => size_of_val(&**values),
        };
        bytes as u64 + CHUNK_OVERHEAD_BYTES
    }
}
