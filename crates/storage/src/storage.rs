//! The trait that a folder and an object store share.

use std::fmt::{self, Debug};
use std::io;
use std::ops::Range;

/// Files below one root: an array, or another data set in files.
///
/// Names are paths from the root. One that leads out of it, because it has `..` among its parts or
/// begins with `/`, is an error of [`io::ErrorKind::InvalidInput`] everywhere.
pub trait Storage: Debug + Send + Sync {
    /// The root for errors: its path or address. Different roots have different places.
    fn place(&self) -> String;

    /// The files and folders in `folder` (empty: the root itself), by name, in any order; none if
    /// there is no such folder.
    ///
    /// # Errors
    /// If the storage cannot be reached or refuses.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// The files and folders in each of `folders`, in their order. A remote storage requests many
    /// at a time.
    ///
    /// # Errors
    /// For each folder those of [`Storage::list`].
    fn list_each(&self, folders: &[&str]) -> Vec<io::Result<Vec<Entry>>> {
        folders.iter().map(|folder| self.list(folder)).collect()
    }

    /// All files below the root if they are at most `most`, in any order; `None` if there are more,
    /// or if one request does not list subfolders, which is the default.
    ///
    /// # Errors
    /// If the storage cannot be reached or refuses.
    fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        let _ = most;
        Ok(None)
    }

    /// Bytes of `file`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file, other kinds if the storage cannot be
    /// reached or refuses.
    fn size(&self, file: &str) -> io::Result<u64>;

    /// Bytes of each of `files`, in their order. A remote storage requests many at a time.
    ///
    /// # Errors
    /// For each file those of [`Storage::size`].
    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        files.iter().map(|file| self.size(file)).collect()
    }

    /// The version of each of `files`, in their order. Costs as much as [`Storage::sizes`], which
    /// is the default for storages that know no more than sizes.
    ///
    /// # Errors
    /// For each file those of [`Storage::size`].
    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let sizes = self.sizes(files).into_iter();
        sizes.map(|size| Ok(FileVersion { size: size?, tag: None })).collect()
    }

    /// Reads every piece into its slice of `into`, which is as long as all pieces together; they
    /// lie in it in the order given.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if a piece reaches beyond its file, other kinds if the
    /// storage cannot be reached or refuses.
    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()>;

    /// Reads whole files, each into its own buffer, in their order. A remote storage requests
    /// many at a time, and needs no sizes first.
    ///
    /// # Errors
    /// For each file those of [`Storage::size`] and [`Storage::read`].
    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        read_files_by_size(self, files)
    }

    /// Announces pieces that will probably be read soon, in about this order. A remote storage may
    /// begin to fetch them, within the memory that it allows itself. Called only if the storage
    /// [prefetches](Coalesce::prefetches).
    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        let _ = (pieces, read);
    }

    /// How ranges are best joined and batched.
    fn coalesce(&self) -> Coalesce;

    /// Whether reads fail once a file is in another version than the one that was read first. If
    /// not, who reads a file in several calls compares its [versions](Storage::versions).
    fn keeps_versions(&self) -> bool {
        false
    }

    /// Counts of the requests so far; `None` for a storage without requests, such as a folder.
    fn request_counts(&self) -> Option<RequestCounts> {
        None
    }
}

/// Reads whole files after asking for their sizes: [`Storage::read_files`] of a storage that has no
/// better way.
pub(crate) fn read_files_by_size<S: Storage + ?Sized>(
    storage: &S,
    files: &[&str],
) -> Vec<io::Result<Vec<u8>>> {
    let read = |(file, size): (&&str, io::Result<u64>)| {
        let size = size?;
        let mut bytes = zeroed(usize::try_from(size).unwrap_or(usize::MAX))?;
        storage.read(&[Piece { file, range: 0..size }], &mut bytes)?;
        Ok(bytes)
    };
    files.iter().zip(storage.sizes(files)).map(read).collect()
}

/// Memory for bytes that are read, which may be more than there is.
pub(crate) fn zeroed(len: usize) -> io::Result<Vec<u8>> {
    // Nothing is written into it: memory that the system hands out as zeros is taken only once it
    // is used, so a length that a file or a server lies about costs nothing.
    bytemuck::try_zeroed_vec(len).map_err(|()| too_large(len as u64))
}

pub(crate) fn too_large(len: u64) -> io::Error {
    let what = format!("there is too little memory for {len} bytes");
    io::Error::new(io::ErrorKind::OutOfMemory, what)
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The last part of its path.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Bytes of the file, if the list gives them; `None` for a folder.
    pub bytes: Option<u64>,
}

/// A file anywhere below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path from the root.
    pub path: String,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Identifies one version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// Bytes of the file.
    pub size: u64,
    /// Changes whenever the file does: an ETag, or the time of the last change.
    pub tag: Option<String>,
}

/// Counts of the requests of a remote storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// Requests sent, for bytes, sizes and listings, without those that a client repeats after a
    /// failure.
    pub sent: u64,
    /// Those of them that repeated a request because its answer was late.
    pub repeated: u64,
    /// Bytes of files that were requested, including those between wanted ranges that are read as
    /// one, without those of repeated requests.
    pub bytes: u64,
}

impl RequestCounts {
    /// The counts since those of `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            repeated: self.repeated.saturating_sub(before.repeated),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// The piece that made a read of several pieces fail. A storage that reads them at the same time
/// puts it into its [`io::Error`] ([`io::Error::get_ref`]); it reads like the error of the piece.
#[derive(Debug)]
pub struct FailedPiece {
    /// The file.
    pub file: String,
    /// The bytes, or those among them that failed.
    pub range: Range<u64>,
    /// The error.
    pub error: io::Error,
}

impl FailedPiece {
    /// An error of the same kind that names the piece.
    pub(crate) fn wrap(piece: &Piece<'_>, error: io::Error) -> io::Error {
        let kind = error.kind();
        let (file, range) = (piece.file.to_owned(), piece.range.clone());
        io::Error::new(kind, Self { file, range, error })
    }
}

impl fmt::Display for FailedPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for FailedPiece {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// A range of bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The file.
    pub file: &'a str,
    /// The bytes.
    pub range: Range<u64>,
}

/// When pieces that are announced will be read.
///
/// Each announcement of a present read begins a read, which announces all its pieces in one call.
/// After an announcement of a next read it begins that one: what was announced before for the
/// present one, and is left, is not expected any more. So only a reader whose reads follow each
/// other announces next ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// By the read that begins now.
    Now,
    /// By the read after it: these wait for the bytes of the present read.
    Next,
}

/// How reads are best put to a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalesce {
    /// Ranges of one file are read as one if at most this many bytes lie between them. 0 for a
    /// storage that joins ranges itself.
    pub gap_bytes: u64,
    /// Target bytes per call: enough to keep the storage busy, few enough to stay in a cache.
    pub batch_bytes: u64,
    /// Most memory for ranges that are announced and not read yet; 0 for storages to which ranges
    /// are not announced.
    pub prefetch_bytes: u64,
}

impl Coalesce {
    /// Whether [`Storage::prefetch`] is worth a call: true for storages that answer late but many
    /// requests at a time.
    pub fn prefetches(&self) -> bool {
        self.prefetch_bytes > 0
    }
}
