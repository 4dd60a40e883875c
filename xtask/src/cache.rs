//! The user's cache folder, shared by all checkouts: everything downloaded or generated is in it.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::progress;

/// `${XDG_CACHE_HOME:-$HOME/.cache}/somafeed`.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Locates the user's cache folder by the environment; it need not exist yet.
    pub(crate) fn of_user() -> anyhow::Result<Self> {
        Self::from_variables(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
    }

    fn from_variables(xdg: Option<OsString>, home: Option<OsString>) -> anyhow::Result<Self> {
        // XDG: a relative path must be ignored.
        let absolute =
            |value: Option<OsString>| value.map(PathBuf::from).filter(|p| p.is_absolute());
        let base = match (absolute(xdg), absolute(home)) {
            (Some(xdg), _) => xdg,
            (None, Some(home)) => home.join(".cache"),
            (None, None) => {
                bail!("no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path")
            }
        };
        Ok(Self::at(&base))
    }

    pub(crate) fn at(base: &Path) -> Self {
        Self { root: base.join("somafeed") }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folder and waits for other xtasks that use it; dropping the value releases the
    /// lock.
    pub(crate) fn lock(&self) -> anyhow::Result<CacheLock> {
        let what = || format!("cannot write the cache folder {}", self.root.display());
        fs::create_dir_all(&self.root).with_context(what)?;
        let path = self.root.join("xtask.lock");
        let file = File::create(&path).with_context(what)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress::print_line(&format!(
                    "waiting for another cargo xtask that works in {}",
                    self.root.display()
                ));
                file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        Ok(CacheLock { _file: file })
    }
}

/// A lock on the cache while something in it is made. The operating system releases it even if the
/// process is killed.
#[derive(Debug)]
pub(crate) struct CacheLock {
    _file: File,
}

/// Removes a folder or a file if it exists.
pub(crate) fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(xdg: Option<&str>, home: Option<&str>, expect: Option<&str>) {
        let found = Cache::from_variables(xdg.map(Into::into), home.map(Into::into));
        assert_eq!(found.ok().map(|c| c.root), expect.map(PathBuf::from));
    }

    #[test]
    fn folder_follows_the_xdg_rules() {
        check(Some("/x"), Some("/h"), Some("/x/somafeed"));
        check(None, Some("/h"), Some("/h/.cache/somafeed"));
        check(Some("relative"), Some("/h"), Some("/h/.cache/somafeed"));
        check(Some(""), Some("/h"), Some("/h/.cache/somafeed"));
        check(None, None, None);
    }

    #[test]
    fn lock_keeps_a_second_one_out_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let first = cache.lock().unwrap();
        let other = File::open(cache.root().join("xtask.lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        assert!(other.try_lock().is_ok());
    }

    #[test]
    fn a_cache_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = format!("{:#}", Cache::at(&file).lock().unwrap_err());
        assert!(
            error.contains("cannot write the cache folder") && error.contains("file/somafeed"),
            "{error}"
        );
    }

    #[test]
    fn removing_what_is_absent_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        remove(&folder.path().join("absent")).unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("below")).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
    }
}
