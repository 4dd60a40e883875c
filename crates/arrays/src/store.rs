//! A Zarr store over a storage, for metadata and the indices of shards.

use std::io;
use std::sync::Arc;

use storage::{Piece, Storage, Subfolder};
use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator};
use zarrs::storage::{
    Bytes, MaybeBytes, MaybeBytesIterator, ReadableStorageTraits, StorageError, StoreKey,
};

use crate::memory::zeroed;

/// The path of the array in a [`Store`] of its own.
pub(crate) const ROOT: &str = "/";

/// The files of a [`Storage`] as the keys of a Zarr store.
#[derive(Debug)]
pub(crate) struct Store {
    storage: Arc<dyn Storage>,
}

impl Store {
    /// The store whose root is the array at `path`. zarrs refuses names that begin with `__`, as
    /// groups of AnnData have, so no path of ours is one of its nodes.
    pub(crate) fn of_array(storage: &Arc<dyn Storage>, path: &str) -> Arc<Self> {
        Arc::new(Self { storage: Subfolder::open(Arc::clone(storage), path) })
    }

    /// Reads a range of a file's bytes; `None` if the file does not exist.
    fn read(&self, file: &str, range: ByteRange) -> io::Result<MaybeBytes> {
        let size = match self.storage.size(file) {
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (start, end) = (range.start(size), range.end(size));
        if size < end || end < start {
            let message = format!("{file}: has {size} bytes, bytes {start} to {end} are wanted");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let mut bytes = zeroed((end - start) as usize)?;
        self.storage.read(&[Piece { file, range: start..end }], &mut bytes)?;
        Ok(Some(Bytes::from(bytes)))
    }
}

impl ReadableStorageTraits for Store {
    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let mut all = Vec::new();
        for range in ranges {
            match self.read(key.as_str(), range).map_err(Arc::new)? {
                Some(bytes) => all.push(Ok(bytes)),
                None => return Ok(None),
            }
        }
        Ok(Some(Box::new(all.into_iter())))
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        match self.storage.size(key.as_str()) {
            Ok(size) => Ok(Some(size)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Arc::new(error).into()),
        }
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}
