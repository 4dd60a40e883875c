//! A results folder: its lock, and the replacement of files.
//!
//! A file is written under a temporary name, flushed to disk and then renamed, so a reader sees the
//! old file or the new one, even after a kill or a power cut. Writers take turns by an advisory
//! lock on a file that is never removed; if it were, two writers could lock two different files of
//! the same name.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::Error;

const LOCK_FILE: &str = ".lock";
/// Suffix of unfinished files. One name is enough, because only one writer has the lock; a file
/// that a killed writer left is overwritten.
const PARTIAL_SUFFIX: &str = ".partial";

/// The lock on a results folder. Released on drop, or by the kernel when the process ends.
#[derive(Debug)]
pub(crate) struct WriteLock<'a> {
    folder: &'a Path,
    _file: File,
}

impl<'a> WriteLock<'a> {
    /// Waits for the other writers of `folder`, which must exist.
    pub(crate) fn acquire(folder: &'a Path) -> Result<Self, Error> {
        let path = folder.join(LOCK_FILE);
        let locked =
            File::options().create(true).truncate(false).write(true).open(&path).and_then(|file| {
                file.lock()?;
                Ok(file)
            });
        match locked {
            Ok(file) => Ok(Self { folder, _file: file }),
            Err(source) => Err(Error::Lock { path, source }),
        }
    }

    /// Replaces the file `name` by `bytes` atomically.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        let partial = self.folder.join(format!("{name}{PARTIAL_SUFFIX}"));
        let replaced = write_durably(&partial, bytes).and_then(|()| fs::rename(&partial, &path));
        if let Err(source) = replaced {
            // Report the first error. A leftover partial file is overwritten by the next writer.
            drop(fs::remove_file(&partial));
            return Err(Error::WriteFile { path, source });
        }
        // The rename itself must reach the disk, too.
        match File::open(self.folder).and_then(|folder| folder.sync_all()) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::WriteFile { path, source }),
        }
    }
}

/// Replaces the file `name` of a results folder by `text` atomically. Returns its path.
pub fn write_text(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    create(folder)?;
    WriteLock::acquire(folder)?.replace(name, text.as_bytes())
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Creates `folder` and its parents if missing.
pub(crate) fn create(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .map_err(|source| Error::CreateFolder { folder: folder.to_owned(), source })
}
