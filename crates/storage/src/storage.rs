//! The trait that a folder and an object store share.

use std::fmt::Debug;
use std::io;
use std::ops::Range;

/// The files of one array.
pub trait Storage: Debug + Send + Sync {
    /// What stands in errors for the array: its path or address.
    fn place(&self) -> String;

    /// The files and folders in `folder` (empty: the array's own), by name, in any order. A folder
    /// that is not there is empty.
    ///
    /// # Errors
    /// When the storage cannot be reached or refuses.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// Bytes of `file`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is no such file, other kinds when the storage cannot
    /// be reached or refuses.
    fn size(&self, file: &str) -> io::Result<u64>;

    /// Bytes of each of `files`, in their order; a storage far away asks for many at a time.
    ///
    /// # Errors
    /// Each file's as of [`Storage::size`].
    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        files.iter().map(|file| self.size(file)).collect()
    }

    /// What tells the bytes that each of `files` has now from those that it had or will have, in
    /// their order. Costs as much as [`Storage::sizes`], which stand for it where nothing else is
    /// known.
    ///
    /// # Errors
    /// Each file's as of [`Storage::size`].
    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let sizes = self.sizes(files).into_iter();
        sizes.map(|size| Ok(FileVersion { size: size?, tag: None })).collect()
    }

    /// Reads every piece into its slice of `into`, which is as long as the pieces together and
    /// takes them in the order given.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when a piece reaches beyond its file, other kinds when the
    /// storage cannot be reached or refuses.
    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()>;

    /// Says which pieces will be read soon, in about this order, so that a storage far away may
    /// begin to fetch them, within what memory it allows itself; they may also never be read.
    /// Called only where [`Coalesce::prefetch`] is set.
    fn prefetch(&self, pieces: &[Piece<'_>]) {
        let _ = pieces;
    }

    /// How far apart two ranges may lie to be read as one, and how much is best asked for at once.
    fn coalesce(&self) -> Coalesce;

    /// Requests sent so far, for bytes, sizes and listings; `None` where nothing is requested, as
    /// from a folder.
    fn requests(&self) -> Option<u64> {
        None
    }
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The last part of its path.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Which of the files that may have had a name one after another this one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// Bytes of the file.
    pub size: u64,
    /// What the storage changes when it changes the file: an ETag, the time of the last change.
    pub tag: Option<String>,
}

/// A range of bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The file.
    pub file: &'a str,
    /// The bytes.
    pub range: Range<u64>,
}

/// How reads are best put to a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalesce {
    /// Ranges of one file are read as one when no more bytes than this lie between them.
    pub gap_bytes: u64,
    /// Some so many bytes are asked for in one call: enough to keep the storage busy, few enough to
    /// stay in a cache.
    pub batch_bytes: u64,
    /// Whether [`Storage::prefetch`] is worth a call: for storages that answer late but many at a
    /// time.
    pub prefetch: bool,
}
