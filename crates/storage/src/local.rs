//! A folder of this machine, read by positioned reads.
//!
//! Positioned reads rather than a memory map: a map is `unsafe` in Rust for good reason (a file
//! that shrinks under it is a SIGBUS), and gains nothing. Reading and decompressing 12,000 random
//! chunks of 7 to 9 kB in the page cache took 0.23 s (columns) and 0.43 s (values), 0.03 s of it
//! reading; decompressing them from a map took 0.22 to 0.25 s and 0.41 to 0.44 s.

mod open_files;
#[cfg(test)]
mod tests;

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::open_files::{FolderFiles, Identity, OpenFile, OpenFiles, as_missing};
use crate::names;
use crate::storage::{Coalesce, Entry, FileVersion, Piece, Storage};

/// Files in a folder of this machine.
///
/// Files stay open for later reads, at most 256 at a time of this folder and of all folders made
/// from it by [`below`](Self::below); those that were read the longest ago are closed first.
///
/// Bytes of an old file and of the one that took its name are not mixed. A file that is opened
/// again must be the one that was open before; and when a file is opened in a folder in which names
/// have changed, the open ones there are closed if others have their names now. A read of such a
/// file fails: the data set has to be opened again, or [`versions`](Storage::versions) asked for,
/// after which the new file is read. A file that was removed is read on while it is open. What a
/// program writes into an open file is not noticed before the file is opened again. The versions of
/// 16,384 files and folders are remembered; if there are more, all are forgotten. A file system
/// notes the time of a change in ticks of some milliseconds, so of two changes within one tick the
/// second may not be seen.
#[derive(Debug)]
pub struct LocalStorage {
    root: PathBuf,
    files: Arc<FolderFiles>,
    shared: Arc<OpenFiles>,
}

impl LocalStorage {
    /// The files in `root`. Opens nothing yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::sharing(root.into(), Arc::default())
    }

    fn sharing(root: PathBuf, shared: Arc<OpenFiles>) -> Self {
        let files = shared.folder();
        Self { root, files, shared }
    }

    /// The files in a folder of this one. Both share the limit of open files, and no lock on the
    /// way to a file that is open.
    #[must_use]
    pub fn below(&self, folder: &str) -> Self {
        let root = match folder.trim_matches('/') {
            "" => self.root.clone(),
            folder => self.root.join(folder),
        };
        Self::sharing(root, Arc::clone(&self.shared))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn file(&self, name: &str) -> io::Result<Arc<OpenFile>> {
        // A name that is known was checked when it was opened.
        if let Some(open) = self.files.find(name, &self.shared) {
            return Ok(open);
        }
        names::check(name)?;
        self.files.open(name, &self.root, &self.shared)
    }

    /// The version of a file: its size, its inode and the time of its last change.
    fn version(&self, name: &str) -> io::Result<FileVersion> {
        names::check(name)?;
        let found = fs::metadata(self.root.join(name)).map_err(as_missing)?;
        let identity = Identity::from_metadata(&found);
        // Who knows that there is a new file may read it.
        self.files.forget_other(name, identity);
        Ok(FileVersion { size: found.len(), tag: Some(identity.tag()) })
    }
}

impl Storage for LocalStorage {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        names::check(folder)?;
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let mut out = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Paths are texts here: a name that is not UTF-8 cannot be asked for.
            if let Ok(name) = entry.file_name().into_string() {
                let found = fs::metadata(entry.path());
                let is_folder = found.as_ref().is_ok_and(Metadata::is_dir);
                let bytes = found.ok().filter(Metadata::is_file).map(|found| found.len());
                out.push(Entry { name, is_folder, bytes });
            }
        }
        Ok(out)
    }

    /// That of the file which a read reads: the one that is open, or from now on the one that has
    /// the name.
    fn size(&self, file: &str) -> io::Result<u64> {
        if let Some(open) = self.files.find(file, &self.shared) {
            return Ok(open.file.metadata()?.len());
        }
        names::check(file)?;
        let found = fs::metadata(self.root.join(file)).map_err(as_missing)?;
        if !found.is_file() {
            // A pipe, for instance, has a size once it is open, if at all.
            return Ok(self.file(file)?.file.metadata()?.len());
        }
        self.files.note(file, Identity::from_metadata(&found))?;
        Ok(found.len())
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        files.iter().map(|file| self.version(file)).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let mut rest = into;
        for pieces in pieces.chunk_by(|one, next| one.file == next.file) {
            let Some(first) = pieces.first() else { continue };
            let open = self.file(first.file)?;
            let mut read = Ok(());
            for piece in pieces {
                let len = usize::try_from(piece.range.end.saturating_sub(piece.range.start));
                let len = len.unwrap_or(usize::MAX);
                let (slot, after) =
                    rest.split_at_mut_checked(len).ok_or(io::ErrorKind::InvalidInput)?;
                rest = after;
                read = read.and_then(|()| open.file.read_exact_at(slot, piece.range.start));
            }
            if let Err(error) = read {
                // Bytes are missing if the file was written anew.
                open.check(&self.root, first.file)?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 4 << 10, batch_bytes: 512 << 10, prefetch_bytes: 0 }
    }
}
