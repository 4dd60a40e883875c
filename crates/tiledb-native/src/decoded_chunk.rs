//! A decoded chunk in packed form.

use crate::packed_integers::PackedIntegers;

/// A chunk's cells, as compact as they can be without rounding.
#[derive(Debug)]
pub(crate) enum DecodedChunk {
    /// Columns, each as its distance from the tile's first column.
    Columns(PackedIntegers),
    /// Whole numbers from 0 to 65,535.
    Counts(PackedIntegers),
    /// Other values.
    Floats(Box<[f32]>),
}
