//! Where an experiment is written: under another name until it is whole.
//!
//! For `data/example` the experiment grows in `data/example.partial` beside a lock `data/example.partial.lock`, and is renamed at
//! the end. A run that was killed leaves the partial folder, and its lock is free: the next run to the same place removes both, and
//! can say so ([`Destination::leftover`]). An experiment that is to be replaced stays as it is until then, and is exchanged for the
//! new one in one step. At an address that is not a local path nothing is renamed; there the experiment's group is written last, so
//! that nothing opens before it is whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::Error;

/// What is to become of an experiment that is where the new one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It stays, and nothing is written.
    #[default]
    Keep,
    /// It makes way for the new one once that is whole. Only an experiment does, and none in an object store.
    Replace,
}

/// A place that is being written to, by this process alone where it is a local path. Dropping it removes what was written there.
#[derive(Debug)]
pub struct Destination(Place);

#[derive(Debug)]
enum Place {
    Local(Claim),
    Remote { uri: String },
}

/// A local folder that is not yet whole.
#[derive(Debug)]
struct Claim {
    target: PathBuf,
    partial: PathBuf,
    /// Where what was there goes for a moment, on file systems that cannot exchange two folders.
    replaced: PathBuf,
    lock_path: PathBuf,
    /// Held until the end.
    _lock: File,
    existing: Existing,
    /// Whether a killed run had left something.
    had_leftover: bool,
    /// As TileDB takes it.
    uri: String,
}

impl Destination {
    /// Claims `uri`, a local path or an address that libtiledb knows, and removes what a killed run left there.
    ///
    /// # Errors
    /// [`Error::Exists`] where something is there that is to stay, [`Error::Irreplaceable`] where what is to make way cannot,
    /// [`Error::Busy`] where another process writes to the same place, [`Error::File`] where the operating system refuses.
    pub fn claim(uri: &str, existing: Existing) -> Result<Self, Error> {
        let path = uri.strip_prefix("file://").unwrap_or(uri);
        if !path.contains("://") {
            return Claim::take(path, existing).map(Place::Local).map(Self);
        }
        match existing {
            Existing::Keep => Ok(Self(Place::Remote { uri: uri.to_owned() })),
            Existing::Replace => Err(Error::Irreplaceable {
                place: uri.to_owned(),
                problem: "nothing in an object store can be exchanged in one step",
            }),
        }
    }

    /// Where to write.
    pub fn uri(&self) -> &str {
        match &self.0 {
            Place::Local(claim) => &claim.uri,
            Place::Remote { uri } => uri,
        }
    }

    /// Where a run that was killed had left something, which is removed now.
    pub fn leftover(&self) -> Option<&Path> {
        match &self.0 {
            Place::Local(claim) => claim.had_leftover.then_some(claim.partial.as_path()),
            Place::Remote { .. } => None,
        }
    }

    /// Gives what was written its name, and says how many bytes it has where it is local.
    pub fn publish(self) -> Result<Option<u64>, Error> {
        match self.0 {
            Place::Remote { .. } => Ok(None),
            Place::Local(claim) => {
                let n_bytes = folder_bytes(&claim.partial)?;
                claim.rename()?;
                Ok(Some(n_bytes))
            }
        }
    }
}

impl Claim {
    fn take(path: &str, existing: Existing) -> Result<Self, Error> {
        let target = std::path::absolute(path)
            .map_err(file_error("make an absolute path of", Path::new(path)))?;
        let beside = |suffix: &str| {
            let mut name = target.file_name().map(OsString::from).unwrap_or_default();
            name.push(suffix);
            target.with_file_name(name)
        };
        let (partial, replaced) = (beside(".partial"), beside(".partial.replaced"));
        let lock_path = beside(".partial.lock");
        check_existing(&target, existing)?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(file_error("create the folder", parent))?;
        }
        let lock = take_lock(&target, &lock_path)?;
        // From here on a failure removes the lock again.
        let mut claimed = Self {
            uri: partial.to_string_lossy().into_owned(),
            target,
            partial,
            replaced,
            lock_path,
            _lock: lock,
            existing,
            had_leftover: false,
        };
        claimed.clean_up()?;
        // Another run may have finished while this one waited for the lock, or what was set aside is back.
        check_existing(&claimed.target, existing)?;
        Ok(claimed)
    }

    /// Removes what a killed run left, or puts back what it had set aside.
    fn clean_up(&mut self) -> Result<(), Error> {
        if is_there(&self.replaced)? {
            if is_there(&self.target)? {
                remove(&self.replaced)
                    .map_err(file_error("remove what was replaced in", &self.replaced))?;
            } else {
                fs::rename(&self.replaced, &self.target)
                    .map_err(file_error("put back", &self.target))?;
            }
        }
        self.had_leftover = is_there(&self.partial)?;
        remove(&self.partial)
            .map_err(file_error("remove what an unfinished run left in", &self.partial))
    }

    fn rename(&self) -> Result<(), Error> {
        let (from, to) = (&self.partial, &self.target);
        check_existing(to, self.existing)?;
        let failed = file_error("rename the finished experiment to", to);
        if !is_there(to)? {
            return fs::rename(from, to).map_err(failed);
        }
        match renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE) {
            // What was there goes with the partial folder when this is dropped.
            Ok(()) => Ok(()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.rename_in_two_steps().map_err(failed)
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Between the two steps nothing is there; the next run puts back what was.
    fn rename_in_two_steps(&self) -> io::Result<()> {
        fs::rename(&self.target, &self.replaced)?;
        fs::rename(&self.partial, &self.target)?;
        remove(&self.replaced)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Nothing is there after a rename. Where removing fails, the next run tries again and says why it cannot.
        drop(remove(&self.partial));
        drop(fs::remove_file(&self.lock_path));
    }
}

fn file_error<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error::File { action, path: path.to_owned(), source }
}

fn is_there(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error("look at", path)(error)),
    }
}

fn check_existing(target: &Path, existing: Existing) -> Result<(), Error> {
    if !is_there(target)? {
        return Ok(());
    }
    let place = target.display().to_string();
    match existing {
        Existing::Keep => Err(Error::Exists { uri: place }),
        // A folder that TileDB made a group of: nobody's home goes away by a slip of the hand.
        Existing::Replace if target.join("__group").is_dir() && !target.is_symlink() => Ok(()),
        Existing::Replace => Err(Error::Irreplaceable {
            place,
            problem: "it is no folder of an experiment, and only such a one is replaced",
        }),
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
    let failed = |source| file_error("lock", path)(source);
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
        let failed = |source| file_error("list", &folder)(source);
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
        let claimed = Destination::claim(target.to_str().unwrap(), Existing::Keep).unwrap();
        fs::create_dir_all(format!("{}/a", claimed.uri())).unwrap();
        fs::write(format!("{}/a/b", claimed.uri()), "12345").unwrap();
        assert!(!target.exists());
        assert_eq!(claimed.publish().unwrap(), Some(5));
        assert_eq!(names(target.parent().unwrap()), ["data"]);
        assert_eq!(fs::read_to_string(target.join("a/b")).unwrap(), "12345");
        let again = Destination::claim(&format!("file://{}", target.display()), Existing::Keep);
        assert!(matches!(again, Err(Error::Exists { uri }) if uri == target.to_str().unwrap()));
        assert_eq!(names(target.parent().unwrap()), ["data"]);
    }

    #[test]
    fn a_failed_run_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let claimed =
            Destination::claim(folder.path().join("x").to_str().unwrap(), Existing::Keep).unwrap();
        fs::create_dir(claimed.uri()).unwrap();
        drop(claimed);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_a_killed_run_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("x.partial/obs")).unwrap();
        fs::write(folder.path().join("x.partial.lock"), "").unwrap();
        let claimed =
            Destination::claim(folder.path().join("x").to_str().unwrap(), Existing::Keep).unwrap();
        assert!(!Path::new(claimed.uri()).exists());
        assert_eq!(names(folder.path()), ["x.partial.lock"]);
    }

    #[test]
    fn two_runs_do_not_write_the_same_experiment() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let first = Destination::claim(target.to_str().unwrap(), Existing::Keep).unwrap();
        fs::create_dir(first.uri()).unwrap();
        let second = Destination::claim(target.to_str().unwrap(), Existing::Keep);
        assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
        assert!(Path::new(first.uri()).exists());
        first.publish().unwrap();
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error =
            Destination::claim(folder.path().join("file/x").to_str().unwrap(), Existing::Keep)
                .unwrap_err();
        assert!(error.to_string().contains("file"), "{error}");
    }

    #[test]
    fn addresses_are_written_to_directly() {
        let claimed = Destination::claim("s3://bucket/x", Existing::Keep).unwrap();
        assert_eq!(claimed.uri(), "s3://bucket/x");
        assert_eq!(claimed.publish().unwrap(), None);
    }

    /// A folder with something in it that looks like an experiment's.
    fn experiment(at: &Path, content: &str) {
        fs::create_dir_all(at.join("__group")).unwrap();
        fs::write(at.join("content"), content).unwrap();
    }

    fn content(at: &Path) -> String {
        fs::read_to_string(at.join("content")).unwrap()
    }

    #[test]
    fn what_is_replaced_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        experiment(&target, "old");
        let claim = || Destination::claim(target.to_str().unwrap(), Existing::Replace).unwrap();
        let failed = claim();
        experiment(Path::new(failed.uri()), "new");
        drop(failed);
        assert_eq!(content(&target), "old");
        let whole = claim();
        experiment(Path::new(whole.uri()), "new");
        assert_eq!(content(&target), "old");
        whole.publish().unwrap();
        assert_eq!(content(&target), "new");
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn where_folders_cannot_be_exchanged_a_killed_run_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        experiment(&target, "old");
        let claim = || Destination::claim(target.to_str().unwrap(), Existing::Replace).unwrap();
        let Destination(Place::Local(claimed)) = claim() else { panic!("a local path") };
        experiment(&claimed.partial, "new");
        claimed.rename_in_two_steps().unwrap();
        assert_eq!(content(&target), "new");
        drop(claimed);
        assert_eq!(names(folder.path()), ["x"]);
        // Killed after the first step.
        fs::rename(&target, folder.path().join("x.partial.replaced")).unwrap();
        experiment(&folder.path().join("x.partial"), "newer");
        let next = claim();
        assert_eq!(content(&target), "new");
        assert!(next.leftover().is_some());
        drop(next);
        // Killed after the second.
        experiment(&folder.path().join("x.partial.replaced"), "older");
        drop(claim());
        assert_eq!(content(&target), "new");
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[test]
    fn only_an_experiment_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("thesis"), "").unwrap();
        for place in [target.to_str().unwrap(), "s3://bucket/x"] {
            let refused = Destination::claim(place, Existing::Replace).unwrap_err();
            assert!(matches!(refused, Error::Irreplaceable { .. }), "{refused}");
        }
        assert!(target.join("thesis").exists());
        assert_eq!(names(folder.path()), ["x"]);
    }
}
