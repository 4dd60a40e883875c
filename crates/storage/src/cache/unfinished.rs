//! Blocks that are being written: under a temporary name in a folder of the writer's own, renamed
//! when they are whole.
//!
//! The writer keeps a lock on a file in that folder as long as it lives. So the remains of a dead
//! writer are recognised by a lock that can be taken: no process number, which another process may
//! have by now, and no clock. The file lists the objects whose blocks the writer uses.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::block::ObjectId;

const LOCK: &str = "lock";

/// The folder of a writer.
#[derive(Debug)]
pub(super) struct Unfinished {
    folder: PathBuf,
    /// Its lock says that the writer lives; its content, which objects it uses.
    lock: File,
    n_files: AtomicU64,
}

impl Unfinished {
    /// Makes a folder of its own below `parent`. No other may be made or removed at the same time.
    pub(super) fn begin(parent: &Path) -> io::Result<Self> {
        let mut number = 0_u64;
        let folder = loop {
            let folder = parent.join(number.to_string());
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        let lock = File::create_new(folder.join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, lock, n_files: AtomicU64::new(0) })
    }

    /// Removes the folders of dead writers beside it. No folder may be made at the same time.
    pub(super) fn remove_dead_others(&self) -> io::Result<()> {
        self.folder.parent().map_or(Ok(()), |parent| remove_dead(parent).map(|_living| ()))
    }

    /// Records that this writer uses an object's blocks, as long as it lives.
    pub(super) fn note_use(&self, object: &ObjectId) -> io::Result<()> {
        (&self.lock).write_all(object)
    }

    /// The objects that this writer and others beside it use. Dead ones are removed before.
    pub(super) fn objects_in_use(&self) -> io::Result<HashSet<ObjectId>> {
        self.remove_dead_others()?;
        let mut objects = HashSet::new();
        for entry in self.folder.parent().map(fs::read_dir).transpose()?.into_iter().flatten() {
            // A writer that ends just now uses nothing any more; another user's may be unreadable,
            // and its blocks can be removed no less than those of a dead one.
            if let Ok(lock) = fs::read(entry?.path().join(LOCK)) {
                objects.extend(lock.as_chunks().0.iter().copied());
            }
        }
        Ok(objects)
    }

    /// A file to write to. It is removed when it is dropped without having been renamed.
    pub(super) fn file(&self) -> UnfinishedFile {
        let number = self.n_files.fetch_add(1, Ordering::Relaxed);
        UnfinishedFile { path: self.folder.join(number.to_string()), is_renamed: false }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If this fails, the next process to open the cache removes it.
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Removes the folders of dead writers below `parent` and returns the number of those known to
/// live. A folder whose lock cannot be checked stays. No folder may be made at the same time.
pub(super) fn remove_dead(parent: &Path) -> io::Result<usize> {
    let mut n_living = 0;
    for entry in fs::read_dir(parent)? {
        let folder = entry?.path();
        match Writer::find(&folder) {
            Writer::Lives => n_living += 1,
            // We may not be allowed to remove another user's; it does no harm.
            Writer::Dead => drop(fs::remove_dir_all(&folder)),
            Writer::Unknown => {}
        }
    }
    Ok(n_living)
}

/// The state of a folder's writer, by its lock.
enum Writer {
    Lives,
    Dead,
    /// The lock is there and could not be opened or asked: the limit on open files, another user's
    /// file, a network that is away.
    Unknown,
}

impl Writer {
    fn find(folder: &Path) -> Self {
        match File::open(folder.join(LOCK)) {
            Ok(lock) => match lock.try_lock() {
                Ok(()) => Self::Dead,
                Err(TryLockError::WouldBlock) => Self::Lives,
                Err(TryLockError::Error(_)) => Self::Unknown,
            },
            // It was killed before it made its lock.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Dead,
            Err(_) => Self::Unknown,
        }
    }
}

/// A file that is not whole yet.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    path: PathBuf,
    is_renamed: bool,
}

impl UnfinishedFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, replacing a file of that name.
    pub(super) fn rename(&mut self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            drop(fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_living_write_stays() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let living = Unfinished::begin(parent).unwrap();
        let mut file = living.file();
        fs::write(file.path(), "x").unwrap();
        // As a process leaves it that was killed, before and after it had its lock.
        fs::create_dir(parent.join("dead")).unwrap();
        fs::write(parent.join("dead/5"), "x").unwrap();
        fs::create_dir(parent.join("dead-too")).unwrap();
        fs::write(parent.join("dead-too/lock"), "").unwrap();
        assert_eq!(remove_dead(parent).unwrap(), 1);
        assert_eq!(fs::read_dir(parent).unwrap().count(), 1);
        assert_eq!(fs::read(file.path()).unwrap(), b"x");
        let kept = parent.join("kept");
        file.rename(&kept).unwrap();
        let dropped = living.file();
        fs::write(dropped.path(), "y").unwrap();
        drop(dropped);
        drop(living);
        assert_eq!(fs::read(&kept).unwrap(), b"x");
        assert_eq!(fs::read_dir(parent).unwrap().count(), 1);
    }

    #[test]
    fn objects_are_in_use_as_long_as_their_writers_live() {
        let parent = tempfile::tempdir().unwrap();
        let [one, other] = [0, 1].map(|_| Unfinished::begin(parent.path()).unwrap());
        one.note_use(&[1; 16]).unwrap();
        one.note_use(&[2; 16]).unwrap();
        other.note_use(&[3; 16]).unwrap();
        let in_use = |of: &Unfinished| {
            let mut all: Vec<u8> =
                of.objects_in_use().unwrap().iter().map(|object| object[0]).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(in_use(&other), [1, 2, 3]);
        drop(one);
        assert_eq!(in_use(&other), [3]);
    }

    /// A lock that cannot be looked at may be that of a writer that lives: too many open files,
    /// another user's folder, a network that is away.
    #[test]
    fn what_may_be_a_living_writers_stays() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        fs::create_dir(parent.join("unknown")).unwrap();
        fs::write(parent.join("unknown/5"), "x").unwrap();
        // Leads to itself: there is no file to be opened, and another reason than that it is
        // absent.
        std::os::unix::fs::symlink("lock", parent.join("unknown/lock")).unwrap();
        let error = File::open(parent.join("unknown/lock")).unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::NotFound);
        // Nobody is known to live, so nothing is taken for counted.
        assert_eq!(remove_dead(parent).unwrap(), 0);
        assert_eq!(fs::read(parent.join("unknown/5")).unwrap(), b"x");
    }
}
