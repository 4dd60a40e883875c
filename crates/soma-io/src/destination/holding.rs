//! The marked folder that holds an experiment until it is whole.
//!
//! The marker is also the lock. It lies in the folder rather than beside it, so that a folder that
//! the user puts at the same path is never taken for ours, and the experiment lies one level below,
//! so that the marker never becomes a part of it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::disk::{is_there, remove, sync};
use crate::Error;
use crate::error::file_error;

const MARKER_FILE: &str = "somafeed-unfinished";
const MARKER: &str = "somafeed writes an experiment here, and moves it to its own name when it is whole.\n\
                      Unless a somafeed process is running, this folder is left from a killed one and can be removed.\n";
const EXPERIMENT: &str = "experiment";
const REPLACED: &str = "replaced";

/// A folder that carries our marker, which this process has locked. Dropping it removes the folder.
#[derive(Debug)]
pub(super) struct Holding {
    /// The path that the experiment will have.
    target: PathBuf,
    folder: PathBuf,
    /// Keeps the lock until the end.
    _marker: File,
    had_leftover: bool,
}

impl Holding {
    /// Makes, marks and locks `folder`; or locks the one that a killed run left, and removes what
    /// is in it.
    pub(super) fn take(target: &Path, folder: PathBuf) -> Result<Self, Error> {
        let (marker, had_leftover) = lock(target, &folder)?;
        // From here on a failure removes the folder again.
        let holding = Self { target: target.to_owned(), folder, _marker: marker, had_leftover };
        holding.clear()?;
        Ok(holding)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the experiment is written.
    pub(super) fn experiment(&self) -> PathBuf {
        self.folder.join(EXPERIMENT)
    }

    /// Where an experiment that makes way is for a moment, on file systems that cannot exchange two
    /// folders.
    pub(super) fn replaced(&self) -> PathBuf {
        self.folder.join(REPLACED)
    }

    /// Whether a killed run had left the folder.
    pub(super) fn had_leftover(&self) -> bool {
        self.had_leftover
    }

    /// Puts back an experiment that was set aside and has no successor, and removes everything else
    /// that a run makes here.
    pub(super) fn clear(&self) -> Result<(), Error> {
        let replaced = self.replaced();
        if is_there(&replaced)? && !is_there(&self.target)? {
            fs::rename(&replaced, &self.target).map_err(file_error("put back", &self.target))?;
        }
        for left in [replaced, self.experiment()] {
            remove(&left).map_err(file_error("remove what an unfinished run left in", &left))?;
        }
        Ok(())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // If something cannot be removed, the marker stays with it: the next run tries again, and
        // says why it cannot.
        if self.clear().is_ok() {
            drop(fs::remove_file(self.folder.join(MARKER_FILE)));
            // Another process may be about to mark the folder. Then, or if the user put something
            // there, it stays.
            drop(fs::remove_dir(&self.folder));
        }
    }
}

/// Marks the folder and locks the marker. Returns whether the folder was there.
fn lock(target: &Path, folder: &Path) -> Result<(File, bool), Error> {
    let path = folder.join(MARKER_FILE);
    let failed = |source| file_error("lock", &path)(source);
    loop {
        let was_there = make(folder)?;
        if was_there && !may_be_ours(folder)? {
            return Err(not_ours(target, folder));
        }
        let opened = OpenOptions::new().create(true).read(true).append(true).open(&path);
        let mut marker = match opened {
            // The run that ended just now has removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(|source| {
                if !was_there {
                    drop(fs::remove_dir(folder));
                }
                failed(source)
            })?,
        };
        match marker.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { path: target.to_owned(), lock: path });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // The run that ended just now may have removed the file: then others would not lock the
        // same one.
        let still_there = fs::symlink_metadata(&path).map(|there| there.ino());
        if still_there.ok() != Some(marker.metadata().map_err(failed)?.ino()) {
            continue;
        }
        let mut text = Vec::new();
        marker.read_to_end(&mut text).map_err(failed)?;
        if text != MARKER.as_bytes() {
            // A run that was killed while it wrote the marker had nothing else in the folder.
            if !MARKER.as_bytes().starts_with(&text) || !holds_only_marker(folder)? {
                return Err(not_ours(target, folder));
            }
            mark(&mut marker, &text, folder).map_err(|source| {
                // Without a whole marker the next run could not tell whose folder it is.
                drop(fs::remove_file(&path));
                drop(fs::remove_dir(folder));
                file_error("write", &path)(source)
            })?;
        }
        return Ok((marker, was_there));
    }
}

/// Makes the folder. Returns whether it was there.
fn make(folder: &Path) -> Result<bool, Error> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) => Err(file_error("create the folder", folder)(error)),
    }
}

/// Whether it is a folder that has a marker, or nothing at all. Somebody else's folder must not
/// even get a marker.
fn may_be_ours(folder: &Path) -> Result<bool, Error> {
    let looked = || {
        if !fs::symlink_metadata(folder)?.is_dir() {
            return Ok(false);
        }
        match fs::symlink_metadata(folder.join(MARKER_FILE)) {
            Ok(found) => Ok(found.is_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(fs::read_dir(folder)?.next().is_none())
            }
            Err(error) => Err(error),
        }
    };
    match looked() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        looked => looked.map_err(file_error("look at", folder)),
    }
}

fn holds_only_marker(folder: &Path) -> Result<bool, Error> {
    let failed = |source| file_error("list", folder)(source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != MARKER_FILE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes what is missing of the marker, and brings it to the disk before anything is written
/// beside it.
fn mark(marker: &mut File, found: &[u8], folder: &Path) -> io::Result<()> {
    marker.write_all(&MARKER.as_bytes()[found.len()..])?;
    marker.sync_all()?;
    sync(folder)
}

fn not_ours(target: &Path, folder: &Path) -> Error {
    Error::NotOurs { target: target.to_owned(), path: folder.to_owned() }
}
