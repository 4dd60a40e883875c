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
use hdf5_reader::{Dataset, Hdf5File};

/// The bytes of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredChunk {
    pub(crate) address: u64,
    pub(crate) n_bytes: u64,
    /// A bit for each filter that was skipped.
    pub(crate) skipped: u32,
}

/// Reads where the stored chunks of a dataset lie, each by its place in the grid of chunks.
///
/// `chunk` has the chunks' shape, `address` and `indexing` come from the message of the layout.
pub(crate) fn read(
    file: &Hdf5File,
    dataset: &Dataset,
    chunk: &[u32],
    address: u64,
    indexing: Option<&ChunkIndexing>,
) -> Result<HashMap<Vec<u64>, StoredChunk>, Error> {
    let entries = entries(file, dataset, chunk, address, indexing)?;
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
        let ChunkEntry { address, size: n_bytes, filter_mask: skipped, .. } = entry;
        chunks.insert(place, StoredChunk { address, n_bytes, skipped });
    }
    Ok(chunks)
}

fn entries(
    file: &Hdf5File,
    dataset: &Dataset,
    chunk: &[u32],
    address: u64,
    indexing: Option<&ChunkIndexing>,
) -> Result<Vec<ChunkEntry>, Error> {
    let (shape, storage) = (dataset.shape(), file.storage());
    let (offsets, lengths) = (file.superblock().offset_size, file.superblock().length_size);
    let n_dimensions = shape.len() as u32;
    // What stands in the file where there is no address.
    if address >= u64::MAX >> (64 - 8 * u32::from(offsets.clamp(1, 8))) {
        return Ok(Vec::new());
    }
    match indexing {
        None => {
            let n_keys = Some(n_dimensions);
            let leaves = collect_btree_v1_leaves_storage(
                storage, address, offsets, lengths, n_keys, chunk, None,
            )?;
            leaves.into_iter().map(|leaf| of_leaf(leaf, shape.len())).collect()
        }
        Some(ChunkIndexing::SingleChunk { filtered_size, filters }) => {
            let unfiltered = dataset.raw_element_size()? as u64;
            let unfiltered =
                chunk.iter().try_fold(unfiltered, |n, len| n.checked_mul((*len).into()));
            let size = if *filtered_size == 0 { unfiltered.unwrap_or(0) } else { *filtered_size };
            Ok(vec![single_chunk_entry(address, size, *filters, shape.len())])
        }
        Some(ChunkIndexing::Implicit) => {
            let element = dataset.raw_element_size()?;
            collect_implicit_chunk_entries(address, shape, chunk, element, None, storage.len())
        }
        Some(ChunkIndexing::FixedArray { .. }) => collect_fixed_array_chunk_entries_storage(
            storage, address, offsets, lengths, shape, chunk, None,
        ),
        Some(ChunkIndexing::ExtensibleArray { .. }) => {
            let most = dataset.max_dims();
            collect_extensible_array_chunk_entries_storage(
                storage, address, offsets, lengths, shape, most, chunk, None,
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
