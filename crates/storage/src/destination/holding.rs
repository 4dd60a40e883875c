//! The marked folder that contains a data set until it is complete.
//!
//! The marker is also the lock. It lies inside the folder, so that a user's own folder at the same
//! path is never mistaken for ours. The data set lies one level below, so that the marker never
//! becomes part of it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::disk::{is_there, remove, sync, sync_folder};
use super::error::{DestinationError, file_error};

const MARKER_FILE: &str = "somafeed-unfinished";
const MARKER: &str = "\
somafeed writes data here, and moves it to its own name when it is whole.
Unless a somafeed process is running, this folder is left from a run that was killed or failed.
The next run that writes to the same name clears it, or goes on with it if it does the same work.
Look before you remove it yourself: a folder named `replaced` in it is the data that the new was to
replace, and may be the only copy. Move that back to its own name first.
";
/// Describes the task that writes the data set, so that the same task can resume.
const TASK: &str = "task";
/// The writer's own record of its progress.
const PROGRESS: &str = "progress";
/// The folder of the new data set.
const DATA: &str = "experiment";
const REPLACED: &str = "replaced";
const PUBLISHED: &str = "published";
const PUBLISHED_TEXT: &str = "The new data has its name: `replaced` is not needed any more.\n";

/// Looks at a folder that other runs make and remove meanwhile, before giving up.
const MOST_TRIES: usize = 100;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(5);

/// The task that writes the data set.
#[derive(Debug, Clone, Copy)]
pub(super) enum Task<'a> {
    /// It cannot be resumed.
    None,
    /// What another task has left is removed.
    OrAnew(&'a str),
    /// What another task has left stays, and is an error.
    OrRefuse(&'a str),
}

/// A folder with our marker, locked by this process. Dropping it removes the folder, unless it is
/// [kept](Self::keep).
#[derive(Debug)]
pub(super) struct Holding {
    /// The final path of the data set.
    target: PathBuf,
    folder: PathBuf,
    /// Keeps the lock until the end.
    _marker: File,
    had_leftover: bool,
    is_resumed: bool,
    keep: bool,
}

impl Holding {
    /// Creates, marks and locks `folder`; or locks the one that a killed run left, and empties it,
    /// unless that run had the same `task`.
    pub(super) fn take(
        target: &Path,
        folder: PathBuf,
        task: Task<'_>,
    ) -> Result<Self, DestinationError> {
        let (marker, had_leftover) = lock(target, &folder)?;
        if had_leftover && let Some(parent) = folder.parent() {
            // The previous run may have exchanged two data sets without syncing that to disk.
            sync_folder(parent)?;
        }
        // From here on a failure removes the folder again.
        let target = target.to_owned();
        let mut holding =
            Self { target, folder, _marker: marker, had_leftover, is_resumed: false, keep: false };
        let text = match task {
            Task::None => None,
            Task::OrAnew(text) | Task::OrRefuse(text) => Some(text),
        };
        holding.is_resumed = match text {
            Some(text) => holding.holds_work_of(text)?,
            None => false,
        };
        if holding.is_resumed {
            // A run that adds nothing must not take away what others have added.
            holding.keep = true;
            return Ok(holding);
        }
        if matches!(task, Task::OrRefuse(_)) && is_there(&holding.data())? {
            holding.keep = true;
            let (target, folder) = (holding.target.clone(), holding.folder.clone());
            return Err(DestinationError::OtherTask { target, folder });
        }
        holding.clear()?;
        if let Some(task) = text {
            let path = holding.task();
            fs::write(&path, task).map_err(file_error("write", &path))?;
        }
        Ok(holding)
    }

    /// Whether an earlier run with this task has begun the data set, and has not come to publish
    /// it.
    fn holds_work_of(&self, task: &str) -> Result<bool, DestinationError> {
        let path = self.task();
        let is_of_task = match fs::read(&path) {
            Ok(found) => found == task.as_bytes(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(file_error("read", &path)(error)),
        };
        Ok(is_of_task
            && is_there(&self.data())?
            && !is_there(&self.replaced())?
            && !is_there(&self.note())?)
    }

    fn task(&self) -> PathBuf {
        self.folder.join(TASK)
    }

    /// Removes the description of the task: from now on another data set may be in the place of
    /// the one that it describes.
    pub(super) fn forget_task(&self) -> Result<(), DestinationError> {
        let path = self.task();
        if is_there(&path)? {
            remove(&path).map_err(file_error("remove", &path))?;
            sync_folder(&self.folder)?;
        }
        Ok(())
    }

    /// The path of the writer's own record.
    pub(super) fn progress(&self) -> PathBuf {
        self.folder.join(PROGRESS)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path to write the data set to.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join(DATA)
    }

    /// Path of the old data set during a replacement, on file systems that cannot exchange two
    /// folders.
    pub(super) fn replaced(&self) -> PathBuf {
        self.folder.join(REPLACED)
    }

    /// Whether a killed run left the folder.
    pub(super) fn had_leftover(&self) -> bool {
        self.had_leftover
    }

    /// Whether the data set is one that an earlier run with the same task has begun.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    fn note(&self) -> PathBuf {
        self.folder.join(PUBLISHED)
    }

    /// Records on disk that the new data set has its name, so that the old one, which was set
    /// aside, may be removed. Call this once both renames are on disk.
    pub(super) fn note_published(&self) -> Result<(), DestinationError> {
        let path = self.note();
        let write = || {
            let mut note = File::create(&path)?;
            note.write_all(PUBLISHED_TEXT.as_bytes())?;
            note.sync_all()?;
            sync(&self.folder)
        };
        write().map_err(file_error("write", &path))
    }

    /// Makes dropping leave the folder in place, for the next run.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }

    /// Makes dropping remove the folder again.
    pub(super) fn release(&mut self) {
        self.keep = false;
    }

    /// Puts back a data set that was set aside and has no successor, and removes everything else
    /// that a run creates here. Fails if one was set aside and the owner of the one in
    /// its place is unknown.
    pub(super) fn clear(&self) -> Result<(), DestinationError> {
        let (replaced, note) = (self.replaced(), self.note());
        let is_published = self.is_published()?;
        if is_there(&replaced)? && !is_published {
            if is_there(&self.target)? {
                return Err(DestinationError::SetAside { target: self.target.clone(), replaced });
            }
            fs::rename(&replaced, &self.target).map_err(file_error("put back", &self.target))?;
        }
        for left in [replaced, self.task(), self.progress(), self.data()] {
            remove(&left).map_err(file_error("remove what an unfinished run left in", &left))?;
        }
        // The note is removed after the data set it is about, and is gone from disk before
        // another one is set aside.
        if is_published {
            sync_folder(&self.folder)?;
        }
        if is_there(&note)? {
            remove(&note).map_err(file_error("remove", &note))?;
            sync_folder(&self.folder)?;
        }
        Ok(())
    }

    /// Whether a run has noted that the new data set has its name. A truncated note does not
    /// count.
    fn is_published(&self) -> Result<bool, DestinationError> {
        let note = self.note();
        match fs::read(&note) {
            Ok(text) => Ok(text == PUBLISHED_TEXT.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(file_error("read", &note)(error)),
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // If something cannot be removed, the marker stays with it: the next run tries again, and
        // reports why it cannot.
        if !self.keep && self.clear().is_ok() {
            drop(fs::remove_file(self.folder.join(MARKER_FILE)));
            // The folder stays if another process is about to mark it, or if the user has put
            // something there.
            drop(fs::remove_dir(&self.folder));
        }
    }
}

/// Marks the folder and locks the marker. Returns whether the folder existed.
fn lock(target: &Path, folder: &Path) -> Result<(File, bool), DestinationError> {
    let path = folder.join(MARKER_FILE);
    let failed = |source| file_error("lock", &path)(source);
    for _ in 0..MOST_TRIES {
        let was_there = make(folder)?;
        if was_there && !may_be_ours(folder)? {
            return Err(not_ours(target, folder));
        }
        let opened = OpenOptions::new().create(true).read(true).append(true).open(&path);
        let mut marker = match opened {
            // A run that has just ended removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                thread::sleep(PAUSE);
                continue;
            }
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
                return Err(DestinationError::Busy { path: target.to_owned(), lock: path });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // A run that has just ended may have removed the file; another run would then lock another
        // file.
        let still_there = fs::symlink_metadata(&path).map(|there| there.ino());
        if still_there.ok() != Some(marker.metadata().map_err(failed)?.ino()) {
            thread::sleep(PAUSE);
            continue;
        }
        let mut text = Vec::new();
        marker.read_to_end(&mut text).map_err(failed)?;
        if text != MARKER.as_bytes() {
            // A run that was killed while it wrote the marker left nothing else in the folder.
            if !MARKER.as_bytes().starts_with(&text) || !holds_only_marker(folder)? {
                return Err(not_ours(target, folder));
            }
            mark(&mut marker, folder).map_err(|source| {
                // Without a complete marker the next run could not know whose folder it is.
                drop(fs::remove_file(&path));
                drop(fs::remove_dir(folder));
                file_error("write", &path)(source)
            })?;
        }
        return Ok((marker, was_there));
    }
    Err(failed(keeps_changing()))
}

/// Creates the folder. Returns whether it existed.
fn make(folder: &Path) -> Result<bool, DestinationError> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) => Err(file_error("create the folder", folder)(error)),
    }
}

/// Whether the folder has a marker or is empty. Somebody else's folder must not even get a marker.
fn may_be_ours(folder: &Path) -> Result<bool, DestinationError> {
    may_be_ours_by(|| looks_like_ours(folder)).map_err(file_error("inspect", folder))
}

/// The first answer of `look`, which gives `None` if the folder changed meanwhile.
fn may_be_ours_by(mut look: impl FnMut() -> io::Result<Option<bool>>) -> io::Result<bool> {
    for _ in 0..MOST_TRIES {
        match look() {
            Ok(Some(ours)) => return Ok(ours),
            // Another run came or went meanwhile.
            Ok(None) => thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Err(keeps_changing())
}

fn keeps_changing() -> io::Error {
    let what = format!(
        "it changed {MOST_TRIES} times while it was inspected: another program makes and removes it"
    );
    io::Error::other(what)
}

/// Looks once; `None` if the folder changed meanwhile.
fn looks_like_ours(folder: &Path) -> io::Result<Option<bool>> {
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Ok(Some(false));
    }
    let marker = folder.join(MARKER_FILE);
    if let Some(found) = metadata(&marker)? {
        return Ok(Some(found.is_file()));
    }
    let Some(first) = fs::read_dir(folder)?.next().transpose()? else {
        return Ok(Some(true));
    };
    // Our folders have other content only while they have the marker.
    let is_foreign = first.path() != marker
        && metadata(&marker)?.is_none()
        && metadata(&first.path())?.is_some();
    Ok(is_foreign.then_some(false))
}

fn metadata(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn holds_only_marker(folder: &Path) -> Result<bool, DestinationError> {
    let failed = |source| file_error("list", folder)(source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != MARKER_FILE {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the marker, and syncs it to disk before anything is written beside it.
fn mark(marker: &mut File, folder: &Path) -> io::Result<()> {
    marker.set_len(0)?;
    marker.write_all(MARKER.as_bytes())?;
    marker.sync_all()?;
    sync(folder)
}

fn not_ours(target: &Path, folder: &Path) -> DestinationError {
    DestinationError::NotOurs { target: target.to_owned(), path: folder.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_never_stops_changing_is_an_error() {
        let mut n_looks = 0;
        let error = may_be_ours_by(|| {
            n_looks += 1;
            Ok(None)
        });
        assert!(error.unwrap_err().to_string().contains("another program"));
        assert_eq!(n_looks, MOST_TRIES);
        let mut answers = [Ok(None), Ok(Some(false))].into_iter();
        assert!(!may_be_ours_by(|| answers.next().unwrap()).unwrap());
        assert!(may_be_ours_by(|| Err(io::ErrorKind::NotFound.into())).unwrap());
    }
}
