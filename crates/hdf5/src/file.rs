//! The bytes of an HDF5 file, as its parser asks for them.

use std::sync::Arc;

use hdf5_reader::{BlockCacheStorage, Hdf5File, OpenOptions, StorageBuffer};
use storage::{Piece, Storage};

/// Bytes of metadata that are read together.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of metadata that are kept.
const MAX_BLOCKS: usize = 256;
/// Bytes of strings that are read at once.
const MAX_READ_BYTES: usize = 8 << 30;

/// One file of a storage.
struct FileBytes {
    storage: Arc<dyn Storage>,
    name: String,
    len: u64,
}

impl hdf5_reader::Storage for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.len);
        let end = end.ok_or(hdf5_reader::error::Error::OffsetOutOfBounds(offset))?;
        let mut bytes = vec![0; len];
        let piece = Piece { file: &self.name, range: offset..end };
        self.storage.read(&[piece], &mut bytes)?;
        Ok(StorageBuffer::from_vec(bytes))
    }
}

/// Opens the file. Also returns where its addresses begin: behind a user block, if it has one.
pub(crate) fn open(
    storage: Arc<dyn Storage>,
    name: &str,
) -> Result<(Hdf5File, u64), hdf5_reader::error::Error> {
    let len = storage.size(name)?;
    let bytes = FileBytes { storage, name: name.to_owned(), len };
    let cached = BlockCacheStorage::new(Arc::new(bytes), BLOCK_BYTES, MAX_BLOCKS);
    // Chunks of numbers are not read through the parser.
    let options = OpenOptions::default().with_chunk_cache_bytes(0);
    let options = options.with_max_read_bytes(MAX_READ_BYTES);
    let file = Hdf5File::from_storage_with_options(Arc::new(cached), options)?;
    let base = len.saturating_sub(file.storage().len());
    Ok((file, base))
}
