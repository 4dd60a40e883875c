//! The layout for training: where cells stand, whatever compresses them.
//!
//! All genes are in one column of tiles, so that the cells of a row stand together, and rows in order. A row then is one run of bytes of
//! each file, where the Census's layout has it in thirty.
//!
//! What the native reader decodes at a time is a filter chunk. Fragments that are written without libtiledb have chunks that end with a
//! row, of two rows or so where values are packed, so that a single row costs little more than itself, and a chunk of rows nothing more;
//! general compressors get 8,192 cells, since they need some to be good. A data tile is then only what libtiledb reads as a whole, and
//! what has an entry in the fragment's metadata: twenty rows of the Census.

use soma_io::{Filter, XLayout};

use crate::codec::Codecs;

/// Cells of a data tile.
const CAPACITY: u64 = 32_768;

/// The threads that encode.
pub(crate) fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The layout of an X of `n_genes` that is read in chunks of `chunk_rows`.
pub(crate) fn for_training(chunk_rows: u64, n_genes: u64, codecs: &Codecs) -> XLayout {
    XLayout {
        tile_rows: chunk_rows,
        tile_columns: n_genes,
        capacity: CAPACITY,
        // A row is one run, which takes ten bytes.
        row_filters: vec![Filter::Rle],
        column_filters: codecs.genes.filters().to_vec(),
        value_filters: codecs.values.filters().to_vec(),
    }
}
