//! The bytes of all blocks of a folder: a number in a file, changed only under that file's lock.
//!
//! The lock is the system's (`flock`) and ends with its process. The number is raised before a
//! block is added and lowered after one is removed: a process that dies in between leaves it too
//! high, never too low.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError as TryMutexError};
use std::thread;
use std::time::Duration;

const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The file.
#[derive(Debug)]
pub(super) struct Usage {
    /// Threads of this process exclude each other by the mutex, processes by the file's lock.
    file: Mutex<File>,
}

/// The file while this process has its lock.
#[derive(Debug)]
pub(super) struct LockedUsage<'a> {
    file: MutexGuard<'a, File>,
}

impl Usage {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// The number, read without the lock; `None` if it is not known now.
    pub(super) fn peek(&self) -> Option<u64> {
        read(&self.file.lock().unwrap_or_else(PoisonError::into_inner)).ok()?
    }

    /// Takes the lock, trying for `millis` milliseconds; `None` if others had it all the time.
    pub(super) fn lock(&self, millis: u32) -> io::Result<Option<LockedUsage<'_>>> {
        for idx in 0..=millis {
            if idx > 0 {
                thread::sleep(BETWEEN_TRIES);
            }
            let file = match self.file.try_lock() {
                Ok(file) => file,
                Err(TryMutexError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryMutexError::WouldBlock) => continue,
            };
            match file.try_lock() {
                Ok(()) => return Ok(Some(LockedUsage { file })),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The number in the file; `None` if it does not hold one.
fn read(file: &File) -> io::Result<Option<u64>> {
    let mut bytes = [0; 16];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [used, inverse] =
        [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|idx| bytes[at + idx])));
    Ok((used == !inverse).then_some(used))
}

impl LockedUsage<'_> {
    /// The number; `None` if the file does not hold one.
    pub(super) fn used(&self) -> io::Result<Option<u64>> {
        read(&self.file)
    }

    pub(super) fn set(&self, used: u64) -> io::Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&used.to_le_bytes());
        bytes[8..].copy_from_slice(&(!used).to_le_bytes());
        self.file.write_all_at(&bytes, 0)
    }
}

impl Drop for LockedUsage<'_> {
    fn drop(&mut self) {
        // Unlocking a lock that we have cannot fail; otherwise the lock ends when the file is
        // closed.
        drop(self.file.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_numbers_are_believed_only_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage");
        let (one, other) = (Usage::open(&path).unwrap(), Usage::open(&path).unwrap());
        {
            let locked = one.lock(0).unwrap().unwrap();
            assert_eq!(locked.used().unwrap(), None);
            locked.set(12_345).unwrap();
            assert!(other.lock(3).unwrap().is_none());
            assert!(one.lock(3).unwrap().is_none());
        }
        assert_eq!(other.lock(0).unwrap().unwrap().used().unwrap(), Some(12_345));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[2] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(one.lock(0).unwrap().unwrap().used().unwrap(), None);
        std::fs::write(&path, &bytes[..15]).unwrap();
        assert_eq!(one.lock(0).unwrap().unwrap().used().unwrap(), None);
    }
}
