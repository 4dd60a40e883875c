//! The layout for training: where cells stand, whatever compresses them.
//!
//! All genes are in one column of tiles, so that the cells of a row stand together, and rows in order. A row then is one run of bytes of
//! each file, where the Census's layout has it in thirty.
//!
//! What the native reader decodes at a time is a filter chunk, which libtiledb makes of 64 KiB: 8,192 genes, or 16,384 values. A data
//! tile of 8,192 cells is one of each, so that a single row costs the decoding of one or two tiles of five times its size, and a chunk of
//! rows little more than itself. Smaller data tiles would save single rows more, and cost everything else; larger ones leave the
//! values in chunks of twice the size.

use soma_io::{Filter, XLayout};

use crate::codec::Codecs;

/// Cells of a data tile.
const CAPACITY: u64 = 8192;

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
