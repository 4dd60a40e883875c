//! The bytes of an HDF5 file, as its parser asks for them.

use std::sync::Arc;

use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;
use hdf5_reader::{BlockCacheStorage, Hdf5File, OpenOptions, StorageBuffer};
use storage::{Piece, Storage};

/// Bytes of metadata that are read together.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of metadata that are kept.
const MAX_BLOCKS: usize = 256;

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

    fn read_range(&self, offset: u64, len: usize) -> Result<StorageBuffer, Error> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.len);
        let end = end.ok_or(Error::OffsetOutOfBounds(offset))?;
        let mut bytes = vec![0; len];
        let piece = Piece { file: &self.name, range: offset..end };
        self.storage.read(&[piece], &mut bytes)?;
        Ok(StorageBuffer::from_vec(bytes))
    }
}

/// Bytes of the numbers in a file's headers.
#[derive(Clone, Copy)]
pub(crate) struct Widths {
    /// Bytes of an address.
    pub(crate) offsets: u8,
    /// Bytes of a length.
    pub(crate) lengths: u8,
}

/// An opened file, whose addresses begin behind a user block, if it has one.
pub(crate) struct File {
    hdf5: Hdf5File,
    base: u64,
}

impl File {
    /// Opens the file. Reads its superblock.
    pub(crate) fn open(storage: Arc<dyn Storage>, name: &str) -> Result<Self, Error> {
        let len = storage.size(name)?;
        let bytes = FileBytes { storage, name: name.to_owned(), len };
        let cached = BlockCacheStorage::new(Arc::new(bytes), BLOCK_BYTES, MAX_BLOCKS);
        let options = OpenOptions::default().with_chunk_cache_bytes(0);
        let hdf5 = Hdf5File::from_storage_with_options(Arc::new(cached), options)?;
        let base = len.saturating_sub(hdf5.storage().len());
        Ok(Self { hdf5, base })
    }

    /// Where address 0 lies within the file.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of the file. Nothing that is kept of it may need many times as much memory, whatever
    /// lengths its headers declare.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.storage().len()
    }

    pub(crate) fn storage(&self) -> &dyn hdf5_reader::Storage {
        self.hdf5.storage()
    }

    /// Bytes of the numbers in headers.
    pub(crate) fn widths(&self) -> Widths {
        let superblock = self.hdf5.superblock();
        Widths { offsets: superblock.offset_size, lengths: superblock.length_size }
    }

    /// The address of the root group's header.
    pub(crate) fn root(&self) -> Result<u64, Error> {
        self.hdf5.superblock().root_object_header_address()
    }

    /// The address of the header with settings of the whole file.
    pub(crate) fn extension(&self) -> Option<u64> {
        self.hdf5.superblock().extension_address.filter(|address| self.is_address(*address))
    }

    /// Whether something lies at an address, other than the one that stands where there is none.
    pub(crate) fn is_address(&self, address: u64) -> bool {
        !Cursor::is_undefined_offset(address, self.widths().offsets)
    }

    /// Reads bytes at an address.
    pub(crate) fn read(&self, address: u64, n_bytes: u64) -> Result<StorageBuffer, Error> {
        let is_within = address.checked_add(n_bytes).is_some_and(|end| end <= self.n_bytes());
        match usize::try_from(n_bytes) {
            Ok(n_bytes) if is_within => self.storage().read_range(address, n_bytes),
            _ => Err(Error::OffsetOutOfBounds(address)),
        }
    }
}

/// An allowance of bytes for parts of a file that are kept in memory: as many as the file has.
/// Parts that lie in the file once each never exceed it, parts that are referred to again and again
/// do.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u64,
}

impl Allowance {
    pub(crate) fn for_file(file: &File) -> Self {
        Self { left: file.n_bytes() }
    }

    /// Fails once the parts have more bytes than the file.
    pub(crate) fn take(&mut self, n_bytes: usize) -> Result<(), Error> {
        let left = self.left.checked_sub(n_bytes as u64);
        self.left = left.ok_or_else(|| {
            let what = "the same bytes are referred to so often that they exceed the whole file";
            Error::ResourceLimit(what.to_owned())
        })?;
        Ok(())
    }
}
