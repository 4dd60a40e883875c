//! A row of a sample that wants a part of its own of a chunk.

use std::sync::{Arc, Mutex, PoisonError};

use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::element::ElementType;
use crate::part::Part;

/// The memory of a patch in one row. Several chunks lie in it, which several threads may decode.
pub(crate) trait PatchMemory: std::fmt::Debug + Sync {
    /// Writes into it, while no other thread does.
    fn put(&self, write: &mut dyn FnMut(&mut [u8]));
}

impl PatchMemory for Mutex<&mut [u8]> {
    fn put(&self, write: &mut dyn FnMut(&mut [u8])) {
        write(&mut self.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A row of a sample that wants a part of a chunk.
#[derive(Debug)]
pub(crate) struct PatchRow<'a> {
    /// The row in the chunk.
    pub(crate) row: usize,
    /// The part, whose places count from the beginning of the patch.
    pub(crate) part: Arc<Part>,
    /// The patch.
    pub(crate) into: &'a dyn PatchMemory,
}

impl PatchRow<'_> {
    /// One past the last element of the chunk that is wanted, where rows are a stride apart.
    pub(crate) fn end(&self, row_stride: usize) -> usize {
        self.row * row_stride + self.part.span().end
    }

    /// Copies the part to its place. The first byte of `decoded` has the place `start` in the
    /// chunk.
    pub(crate) fn scatter(
        &self,
        (chunks, convert): (&Chunks, &Convert),
        (decoded, start): (&[u8], usize),
    ) {
        let n_from = chunks.stored.n_bytes();
        let at = self.row * chunks.geometry.row_stride * n_from;
        // `decoded` may begin within the row.
        let from = &decoded[at.saturating_sub(start)..];
        let first = start.saturating_sub(at) / n_from;
        self.into.put(&mut |into| {
            convert.scatter(chunks.stored, &self.part, (from, first), (into, 0));
        });
    }

    /// Writes an element of each plane where the part would go.
    pub(crate) fn fill(&self, convert: &Convert, fill: (ElementType, &[[u64; 1]])) {
        self.into.put(&mut |into| convert.fill(fill, &self.part, (into, 0)));
    }
}
