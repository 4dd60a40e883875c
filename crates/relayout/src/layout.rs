//! The layout for training: how cells are arranged, whichever codec compresses them.
//!
//! All genes are in one column of tiles, so that the cells of a row lie together, and rows in
//! order. A row is then one run of bytes in each file; in the Census's layout it is about thirty
//! runs.
//!
//! The native reader decodes one filter chunk at a time. Fragments written without libtiledb have
//! chunks that end at row borders: about two rows each with packed values, so that a single row
//! costs little more than itself, and a run of rows costs nothing extra. General compressors get
//! 8,192 cells per chunk, since they compress small chunks badly. A data tile is then only the unit
//! that libtiledb reads, and that has an entry in the fragment's metadata: about twenty rows of the
//! Census.

use soma_io::{Filter, XLayout};

use crate::codec::Codecs;

/// Cells per data tile.
const CAPACITY: u64 = 32_768;

/// Number of threads that encode.
pub(crate) fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The layout of an X with `n_genes` genes that is read in chunks of `chunk_rows` rows.
pub(crate) fn for_training(chunk_rows: u64, n_genes: u64, codecs: &Codecs) -> XLayout {
    XLayout {
        tile_rows: chunk_rows,
        tile_columns: n_genes,
        capacity: CAPACITY,
        // Row numbers take about ten bytes per run of equal ones.
        row_filters: vec![Filter::Rle],
        column_filters: codecs.genes.filters().to_vec(),
        value_filters: codecs.values.filters().to_vec(),
    }
}
