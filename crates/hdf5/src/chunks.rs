//! Where the chunks of a dataset lie.

use std::collections::HashMap;

use hdf5_reader::btree_v1::{BTreeV1Key, collect_btree_v1_leaves_storage};
use hdf5_reader::chunk_index::{
    ChunkEntry, collect_implicit_chunk_entries, collect_v2_chunk_entries_storage,
    single_chunk_entry,
};
use hdf5_reader::error::Error;
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;
use hdf5_reader::messages::layout::ChunkIndexing;

use crate::file::{File, Widths};

/// The bytes of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredChunk {
    pub(crate) address: u64,
    pub(crate) n_bytes: u64,
    /// A bit for each filter that was skipped.
    pub(crate) skipped: u32,
}

/// The grid of a dataset's chunks.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) shape: Vec<u64>,
    /// The lengths that the dataset may grow to.
    pub(crate) most: Option<Vec<u64>>,
    /// The shape of a chunk.
    pub(crate) chunk: Vec<u32>,
    pub(crate) element_bytes: usize,
    /// Bytes of each chunk, if no filter changes them.
    pub(crate) chunk_bytes: Option<u64>,
}

/// Reads where the stored chunks of a dataset lie, each by its place in the grid of chunks.
/// `address` and `indexing` come from the message of the layout.
pub(crate) fn read(
    file: &File,
    grid: &Grid,
    address: u64,
    indexing: Option<&ChunkIndexing>,
) -> Result<HashMap<Vec<u64>, StoredChunk>, Error> {
    let (entries, chunk) = (entries(file, grid, address, indexing)?, &grid.chunk);
    let mut chunks = HashMap::with_capacity(entries.len());
    for entry in entries {
        let offsets = entry.offsets.iter().zip(chunk);
        let is_aligned = entry.offsets.len() == chunk.len()
            && offsets.clone().all(|(offset, len)| offset % u64::from(*len).max(1) == 0);
        if !is_aligned {
            let what = format!("a chunk begins at {:?}, chunks are {chunk:?}", entry.offsets);
            return Err(Error::InvalidData(what));
        }
        let place = offsets.map(|(offset, len)| offset / u64::from(*len).max(1)).collect();
        let ChunkEntry { address, size, filter_mask: skipped, .. } = entry;
        let n_bytes = grid.chunk_bytes.unwrap_or(size);
        chunks.insert(place, StoredChunk { address, n_bytes, skipped });
    }
    Ok(chunks)
}

fn entries(
    file: &File,
    grid: &Grid,
    address: u64,
    indexing: Option<&ChunkIndexing>,
) -> Result<Vec<ChunkEntry>, Error> {
    let Grid { shape, most, chunk, element_bytes, .. } = grid;
    let (storage, Widths { offsets, lengths }) = (file.storage(), file.widths());
    let n_dimensions = shape.len() as u32;
    // Chunks that an index has by their number are numbered in the largest grid.
    let is_bounded = |most: &&Vec<u64>| most.len() == shape.len() && !most.contains(&u64::MAX);
    let largest = most.as_ref().filter(is_bounded).unwrap_or(shape);
    match indexing {
        None => {
            let n_keys = Some(n_dimensions);
            let leaves = collect_btree_v1_leaves_storage(
                storage, address, offsets, lengths, n_keys, chunk, None,
            )?;
            leaves.into_iter().map(|leaf| of_leaf(leaf, shape.len())).collect()
        }
        Some(ChunkIndexing::SingleChunk { filtered_size, filters }) => {
            let lens = chunk.iter().map(|len| u64::from(*len));
            let unfiltered = product(*element_bytes as u64, lens)?;
            let size = if *filtered_size == 0 { unfiltered } else { *filtered_size };
            Ok(vec![single_chunk_entry(address, size, *filters, shape.len())])
        }
        Some(ChunkIndexing::Implicit) => collect_implicit_chunk_entries(
            address,
            largest,
            chunk,
            *element_bytes,
            None,
            storage.len(),
        ),
        Some(ChunkIndexing::FixedArray { .. }) => collect_fixed_array_chunk_entries_storage(
            storage, address, offsets, lengths, largest, chunk, None,
        ),
        Some(ChunkIndexing::ExtensibleArray { .. }) => {
            collect_extensible_array_chunk_entries_storage(
                storage,
                address,
                offsets,
                lengths,
                shape,
                most.as_deref(),
                chunk,
                None,
            )
        }
        Some(ChunkIndexing::BTreeV2) => collect_v2_chunk_entries_storage(
            storage,
            address,
            offsets,
            lengths,
            n_dimensions,
            chunk,
            None,
        ),
    }
}

fn of_leaf((key, address): (BTreeV1Key, u64), n_dimensions: usize) -> Result<ChunkEntry, Error> {
    match key {
        BTreeV1Key::RawData { chunk_size, filter_mask, mut offsets } => {
            // The last one is within an element.
            offsets.truncate(n_dimensions);
            Ok(ChunkEntry { address, size: chunk_size.into(), filter_mask, offsets })
        }
        BTreeV1Key::Group { .. } => {
            Err(Error::InvalidData("the index of its chunks is one of a group".into()))
        }
    }
}

/// A product of lengths.
pub(crate) fn product(first: u64, lens: impl IntoIterator<Item = u64>) -> Result<u64, Error> {
    let product = lens.into_iter().try_fold(first, u64::checked_mul);
    product.ok_or_else(|| Error::InvalidData("its size exceeds 64 bits".into()))
}
