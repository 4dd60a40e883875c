//! Decoded chunks that are kept in memory for later reads.
//!
//! A chunk is decoded whole if any of its rows is wanted. A loader that reads short runs of rows in
//! random order would decode each chunk several times an epoch, and again in the next. A kept chunk
//! takes a sixth of its unfiltered bytes: about 2 bytes per cell. Chunks that are needed last make
//! room for others, if the reads say when rows are read again; otherwise what is there stays.

use std::sync::Arc;

use storage::{Kept, NextReads, NextUseCache};

use crate::decoded_chunk::{CHUNK_OVERHEAD_BYTES, DecodedChunk};
use crate::fragment::Field;
use crate::packed_integers::PackedIntegers;
use crate::row_index::TileIndex;
use crate::values::{Columns, Values};

/// The kept chunks of an array, shared by the threads of all its reads.
pub(crate) type DecodedCache = NextUseCache<ChunkKey, DecodedChunk>;

/// How many times as far away the next use of a chunk must be that makes room for another: packing
/// one costs about as much as decoding it.
pub(crate) const TIMES_LATER: u64 = 3;

/// A chunk that is kept.
pub(crate) type KeptChunk = Arc<Kept<DecodedChunk>>;

/// A chunk of a tile's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChunkKey {
    /// Fragment and tile.
    tile: (u32, u32),
    chunk: u32,
    field: Field,
}

impl ChunkKey {
    /// Names a chunk. Neither number exceeds 32 bits: a tile of a fragment takes more bytes than
    /// its number, and a chunk is a part of less than 4 GiB.
    pub(crate) fn new((fragment, tile): (usize, usize), field: Field, chunk: usize) -> Self {
        Self { tile: (fragment as u32, tile as u32), chunk: chunk as u32, field }
    }
}

/// A read's time in the cache, and when the rows of its chunks are read again.
#[derive(Debug)]
pub(crate) struct Later {
    pub(crate) start: u64,
    pub(crate) reads: NextReads,
}

impl Later {
    /// The next use of these cells of a tile.
    pub(crate) fn next_use(&self, index: &TileIndex, cells: std::ops::Range<u32>) -> u64 {
        let until = index.rows_of(cells).map(|rows| self.reads.rows_until(rows)).min();
        until.map_or(u64::MAX, |until| self.start.saturating_add(until))
    }
}

/// The most bytes that a chunk of `n` cells may take: 4 for each.
pub(crate) fn most_bytes(n: usize) -> u64 {
    n as u64 * size_of::<f32>() as u64 + CHUNK_OVERHEAD_BYTES
}

impl DecodedChunk {
    /// Packs the columns of a whole chunk of `n` cells; `None` if some lie outside their bounds.
    pub(crate) fn of_columns(
        columns: &Columns<'_>,
        n: usize,
        scratch: &mut Vec<u8>,
    ) -> Option<Self> {
        columns.check(&(0..n)).ok()?;
        let (first, _) = columns.bounds();
        let packed = PackedIntegers::pack(n, scratch, |range, out| {
            columns.copy(range, first, out);
            true
        });
        packed.map(Self::Columns)
    }

    /// Packs the values of a whole chunk of `n` cells.
    pub(crate) fn of_values(values: &Values<'_>, n: usize, scratch: &mut Vec<u8>) -> Self {
        let mut counts = Vec::new();
        let packed = PackedIntegers::pack(n, scratch, |range, out| {
            counts.resize(out.len(), 0);
            let are_counts = values.copy_counts(range, &mut counts);
            out.iter_mut().zip(&counts).for_each(|(to, count)| *to = u32::from(*count));
            are_counts
        });
        packed.map_or_else(
            || {
                let mut floats = vec![0.0; n];
                values.copy(0..n, &mut floats);
                Self::Floats(floats.into())
            },
            Self::Counts,
        )
    }
}
