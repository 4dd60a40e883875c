//! Where an experiment is written: under another name until it is whole.
//!
//! For `data/example` the experiment grows in `data/example.partial` beside a lock `data/example.partial.lock`, and is renamed at
//! the end. A run that was killed leaves the partial folder, and its lock is free: the next run to the same place removes both. At
//! an address that is not a local path nothing is renamed; there the experiment's group is written last, so that nothing opens
//! before it is whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::Error;

/// A place that is being written to.
#[derive(Debug)]
pub(crate) enum Destination {
    Local(Claim),
    Remote { uri: String },
}

/// A local folder that is not yet whole. Dropping it removes what was written.
#[derive(Debug)]
pub(crate) struct Claim {
    target: PathBuf,
    partial: PathBuf,
    lock_path: PathBuf,
    /// Held until the end.
    _lock: File,
    /// As TileDB takes it.
    uri: String,
}

impl Destination {
    /// Claims `uri`, at which nothing may be, and removes what a killed run left there.
    pub(crate) fn claim(uri: &str) -> Result<Self, Error> {
        let path = uri.strip_prefix("file://").unwrap_or(uri);
        if path.contains("://") {
            return Ok(Self::Remote { uri: uri.to_owned() });
        }
        Claim::take(path).map(Self::Local)
    }

    /// Where to write.
    pub(crate) fn uri(&self) -> &str {
        match self {
            Self::Local(claim) => &claim.uri,
            Self::Remote { uri } => uri,
        }
    }

    /// Gives what was written its name, and says how many bytes it has where it is local.
    pub(crate) fn publish(self) -> Result<Option<u64>, Error> {
        match self {
            Self::Remote { .. } => Ok(None),
            Self::Local(claim) => {
                let n_bytes = folder_bytes(&claim.partial)?;
                let (from, to) = (&claim.partial, &claim.target);
                refuse_existing(to)?;
                fs::rename(from, to).map_err(io_error("rename the finished experiment to", to))?;
                Ok(Some(n_bytes))
            }
        }
    }
}

impl Claim {
    fn take(path: &str) -> Result<Self, Error> {
        let target = std::path::absolute(path)
            .map_err(io_error("make an absolute path of", Path::new(path)))?;
        let beside = |suffix: &str| {
            let mut name = target.file_name().map(OsString::from).unwrap_or_default();
            name.push(suffix);
            target.with_file_name(name)
        };
        let (partial, lock_path) = (beside(".partial"), beside(".partial.lock"));
        refuse_existing(&target)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(io_error("create the folder", parent))?;
        }
        let lock = take_lock(&target, &lock_path)?;
        // From here on a failure removes the lock again. Another run may have finished while this one waited for it.
        let claimed = Self {
            uri: partial.to_string_lossy().into_owned(),
            target,
            partial,
            lock_path,
            _lock: lock,
        };
        refuse_existing(&claimed.target)?;
        remove(&claimed.partial)
            .map_err(io_error("remove what an unfinished run left in", &claimed.partial))?;
        Ok(claimed)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Nothing is there after a rename. Where removing fails, the next run tries again and says why it cannot.
        drop(remove(&self.partial));
        drop(fs::remove_file(&self.lock_path));
    }
}

fn io_error<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::Io { action, path: path.to_owned(), source }
}

fn refuse_existing(target: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(target) {
        Ok(_) => Err(Error::Exists { path: target.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error("look at", target)(error)),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Locks the file at `path`, which ends with the process that holds it.
fn take_lock(target: &Path, path: &Path) -> Result<File, Error> {
    let failed = |source| io_error("lock", path)(source);
    loop {
        let lock = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy { path: target.to_owned(), lock: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // A run that ended in between has removed the file: then what is locked here is not what others will lock.
        let still_there = fs::metadata(path).map(|there| there.ino());
        if still_there.ok() == Some(lock.metadata().map_err(failed)?.ino()) {
            return Ok(lock);
        }
    }
}

/// The bytes of all files below a folder.
fn folder_bytes(folder: &Path) -> Result<u64, Error> {
    let mut n_bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| io_error("list", &folder)(source);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let found = entry.metadata().map_err(failed)?;
            if found.is_dir() {
                folders.push(entry.path());
            } else {
                n_bytes += found.len();
            }
        }
    }
    Ok(n_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_written_gets_its_name_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new/data");
        let claimed = Destination::claim(target.to_str().unwrap()).unwrap();
        fs::create_dir_all(format!("{}/a", claimed.uri())).unwrap();
        fs::write(format!("{}/a/b", claimed.uri()), "12345").unwrap();
        assert!(!target.exists());
        assert_eq!(claimed.publish().unwrap(), Some(5));
        assert_eq!(names(target.parent().unwrap()), ["data"]);
        assert_eq!(fs::read_to_string(target.join("a/b")).unwrap(), "12345");
        let again = Destination::claim(&format!("file://{}", target.display()));
        assert!(matches!(again, Err(Error::Exists { path }) if path == target));
        assert_eq!(names(target.parent().unwrap()), ["data"]);
    }

    #[test]
    fn a_failed_run_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let claimed = Destination::claim(folder.path().join("x").to_str().unwrap()).unwrap();
        fs::create_dir(claimed.uri()).unwrap();
        drop(claimed);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_a_killed_run_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("x.partial/obs")).unwrap();
        fs::write(folder.path().join("x.partial.lock"), "").unwrap();
        let claimed = Destination::claim(folder.path().join("x").to_str().unwrap()).unwrap();
        assert!(!Path::new(claimed.uri()).exists());
        assert_eq!(names(folder.path()), ["x.partial.lock"]);
    }

    #[test]
    fn two_runs_do_not_write_the_same_experiment() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let first = Destination::claim(target.to_str().unwrap()).unwrap();
        fs::create_dir(first.uri()).unwrap();
        let second = Destination::claim(target.to_str().unwrap());
        assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
        assert!(Path::new(first.uri()).exists());
        first.publish().unwrap();
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = Destination::claim(folder.path().join("file/x").to_str().unwrap()).unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }

    #[test]
    fn addresses_are_written_to_directly() {
        let claimed = Destination::claim("s3://bucket/x").unwrap();
        assert_eq!(claimed.uri(), "s3://bucket/x");
        assert_eq!(claimed.publish().unwrap(), None);
    }
}
