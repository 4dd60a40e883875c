//! Writing without libtiledb: arrays, groups, metadata, and fragments, which are encoded by many
//! threads and not visible until they are whole.
//!
//! Tiles do not depend on each other, so those of all rows given at once are encoded at once and
//! appended in their order. A fragment counts by its commit file, which is made at the very end,
//! when all else is on the disk: a writer that is dropped, killed, or finds the disk full leaves
//! nothing that a reader takes for cells.
//!
//! What the format leaves open is used for readers that decode chunk by chunk: a chunk ends where a
//! row does, so that reading a row does not decode much of its neighbours; and windows of packed
//! integers are as long as their values allow (`filter::encode`).

mod array;
mod commit;
mod encoders;
mod field;
mod footer;
mod generic_tile;
mod group;
mod matrix;
mod named_values;
mod new_file;
mod schema;
mod statistics;
mod table;

use crate::array::Threads;
use crate::error::Error;
pub use array::create_array;
use commit::Folder;
pub use group::write_group;
pub use matrix::{FragmentWriter, TileRow};
pub use named_values::write_array_metadata;
pub use table::{ColumnCells, TableWriter};

/// The format versions that are written: those whose metadata has just the parts that are made
/// here.
const VERSIONS: std::ops::RangeInclusive<u32> = 16..=22;

/// How a fragment is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The threads that encode.
    pub threads: Threads,
    /// The time of the fragment, in milliseconds since 1970.
    pub timestamp: u64,
    /// Number of cells after which a chunk ends, with the first row that ends there; at most 8,192.
    /// `None` chooses by the filters: long chunks for general compressors, short ones if decoding a
    /// value takes almost no time.
    pub chunk_cells: Option<usize>,
    /// The first row to write, counted from the array's first one; 0 unless other fragments hold
    /// the rows before it. A table has no use for it.
    pub first_row: u64,
}

impl WriteOptions {
    /// Encodes with these threads, and writes from the first row on at `timestamp`, in milliseconds
    /// since 1970.
    pub fn new(threads: Threads, timestamp: u64) -> Self {
        Self { threads, timestamp, chunk_cells: None, first_row: 0 }
    }
}

/// Facts about a written fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenFragment {
    /// The number of cells; without any there is no fragment.
    pub n_cells: u64,
    /// The bytes of all files.
    pub n_bytes: u64,
}

/// Writes the metadata of a fragment, and makes it count. Returns the bytes of all its files.
fn publish<const D: usize>(
    folder: &mut Folder,
    fragment: &footer::Fragment<'_, D>,
) -> Result<u64, Error> {
    let metadata = footer::metadata(fragment);
    folder.write_metadata(&metadata)?;
    folder.commit()?;
    Ok(folder.n_bytes() + metadata.len() as u64)
}
