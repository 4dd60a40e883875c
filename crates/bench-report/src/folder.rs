//! A results folder: who may write to it now, and how a file in it is replaced.
//!
//! A file is written whole beside its final name, flushed to the disk, then renamed, so that a reader sees the old one
//! or the new one, also after a kill or a power cut. Writers take turns by an advisory lock on a file that is never
//! removed (removing it would let two of them lock two different files of the same name).

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::Error;

const LOCK_FILE: &str = ".lock";
/// Under the lock there is one writer, so one name will do, and what a killed writer left is overwritten.
const PARTIAL_SUFFIX: &str = ".partial";

/// The right to write to a results folder; given back on drop, or by the kernel when the process ends.
#[derive(Debug)]
pub(crate) struct WriteLock<'a> {
    folder: &'a Path,
    _file: File,
}

impl<'a> WriteLock<'a> {
    /// Waits for the other writers of `folder`, which exists.
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

    /// Puts `bytes` in place of the file `name`, wholly or not at all.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        let partial = self.folder.join(format!("{name}{PARTIAL_SUFFIX}"));
        let replaced = write_durably(&partial, bytes).and_then(|()| fs::rename(&partial, &path));
        if let Err(source) = replaced {
            // The error is the one to report; a partial file left over is overwritten by the next writer.
            drop(fs::remove_file(&partial));
            return Err(Error::WriteFile { path, source });
        }
        // The rename itself must reach the disk too.
        match File::open(self.folder).and_then(|folder| folder.sync_all()) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::WriteFile { path, source }),
        }
    }
}

/// Puts a text of your own in place of the file `name` of a results folder, wholly or not at all; its path.
pub fn write_text(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    create(folder)?;
    WriteLock::acquire(folder)?.replace(name, text.as_bytes())
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes `folder` with its parents where it is missing.
pub(crate) fn create(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .map_err(|source| Error::CreateFolder { folder: folder.to_owned(), source })
}
