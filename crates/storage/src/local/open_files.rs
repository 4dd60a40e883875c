//! The files that folders keep open, within one limit.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// Most files kept open by folders that share the limit.
pub(super) const MAX_OPEN_FILES: usize = 256;
/// Files that are closed when another one is opened beside that many.
const CLOSED_AT_ONCE: usize = 32;
/// Most versions that are remembered of files that are closed, and of folders: about 3 MB of each.
const MAX_REMEMBERED: usize = 16_384;

/// Identifies one version of a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn from_metadata(found: &Metadata) -> Self {
        let changed = (found.mtime(), found.mtime_nsec());
        Self { device: found.dev(), inode: found.ino(), size: found.len(), changed }
    }

    /// The version as a text.
    pub(super) fn tag(&self) -> String {
        let (secs, nanos) = self.changed;
        format!("inode {}, changed {secs}.{nanos:09}", self.inode)
    }

    /// Fails if the file of this name is another one now.
    fn check(self, found: Self, name: &str) -> io::Result<()> {
        if self == found {
            return Ok(());
        }
        let what = format!(
            "{name} was replaced or written to while the data set was open: it was {} ({} bytes), and is {} ({} bytes); open the data set again",
            self.tag(),
            self.size,
            found.tag(),
            found.size
        );
        Err(io::Error::other(what))
    }
}

/// A file that is open, and its version when it was first opened.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    identity: Identity,
    /// The time of the last use, by the clock of the files that share the limit.
    used: AtomicU64,
}

impl OpenFile {
    /// Fails if another file has the name now, or if the file was written to. A file without a name
    /// is the one that was opened.
    pub(super) fn check(&self, root: &Path, name: &str) -> io::Result<()> {
        match fs::metadata(root.join(name)).map_err(as_missing) {
            Ok(found) => self.identity.check(Identity::from_metadata(&found), name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Makes an error [`io::ErrorKind::NotFound`] if the path has a file where a folder would be.
pub(super) fn as_missing(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotADirectory {
        io::Error::new(io::ErrorKind::NotFound, error)
    } else {
        error
    }
}

/// The limit that folders share. Nothing here is locked on the way to a file that is open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// Goes on with each file that is opened.
    clock: AtomicU64,
    folders: Mutex<Vec<Weak<FolderFiles>>>,
}

impl OpenFiles {
    /// A further folder.
    pub(super) fn folder(&self) -> Arc<FolderFiles> {
        let folder = Arc::new(FolderFiles::default());
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|folder| folder.strong_count() > 0);
        folders.push(Arc::downgrade(&folder));
        folder
    }
}

/// The files of one folder.
#[derive(Debug, Default)]
pub(super) struct FolderFiles(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    open: HashMap<Box<str>, Arc<OpenFile>>,
    /// Versions of files that were open, or whose size was asked for.
    closed: HashMap<Box<str>, Identity>,
    /// Versions of folders, when a file in them was last opened.
    folders: HashMap<Box<str>, Identity>,
}

impl Known {
    /// The version of a file, open or closed, when it was first seen; `None` if not remembered.
    fn first_identity(&self, name: &str) -> Option<Identity> {
        let open = self.open.get(name).map(|open| open.identity);
        open.or_else(|| self.closed.get(name).copied())
    }

    /// Closes a file, and remembers its version.
    fn close(&mut self, name: &str) {
        if let Some((name, file)) = self.open.remove_entry(name) {
            remember(&mut self.closed, &name, file.identity);
        }
    }
}

impl FolderFiles {
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, if it is open.
    pub(super) fn find(&self, name: &str, shared: &OpenFiles) -> Option<Arc<OpenFile>> {
        let open = self.known().open.get(name).map(Arc::clone)?;
        let now = shared.clock.load(Ordering::Relaxed);
        // Threads that read the same file do not write to its memory without need.
        if open.used.load(Ordering::Relaxed) != now {
            open.used.store(now, Ordering::Relaxed);
        }
        Some(open)
    }

    /// Opens a file below `root`. Fails if it is not the one that was open before.
    pub(super) fn open(
        &self,
        name: &str,
        root: &Path,
        shared: &OpenFiles,
    ) -> io::Result<Arc<OpenFile>> {
        let file = File::open(root.join(name)).map_err(as_missing)?;
        let identity = Identity::from_metadata(&file.metadata()?);
        let used = AtomicU64::new(1 + shared.clock.fetch_add(1, Ordering::Relaxed));
        let opened = Arc::new(OpenFile { file, identity, used });
        // A file that is still the same is not a new one beside old ones.
        if self.known().closed.get(name) != Some(&identity) {
            self.close_replaced(folder_of(name), root)?;
        }
        // One thread at a time closes a file and adds one, so the limit holds.
        let mut folders = shared.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|folder| folder.strong_count() > 0);
        let known = self.known();
        if let Some(first) = known.first_identity(name) {
            first.check(identity, name)?;
        }
        if let Some(open) = known.open.get(name) {
            // Another thread was faster.
            return Ok(Arc::clone(open));
        }
        drop(known);
        let all: Vec<Arc<Self>> = folders.iter().filter_map(Weak::upgrade).collect();
        if MAX_OPEN_FILES <= all.iter().map(|folder| folder.known().open.len()).sum::<usize>() {
            close_oldest(&all);
        }
        let mut known = self.known_mut();
        known.closed.remove(name);
        known.open.insert(name.into(), Arc::clone(&opened));
        Ok(opened)
    }

    /// Closes files in `folder` whose names others have now, if names in it have changed since a
    /// file of it was last opened.
    fn close_replaced(&self, folder: &str, root: &Path) -> io::Result<()> {
        let now = Identity::from_metadata(&fs::metadata(root.join(folder))?);
        let before = self.known().folders.get(folder).copied();
        if before == Some(now) {
            return Ok(());
        }
        if before.is_some() {
            let known = self.known();
            let inside = known.open.iter().filter(|(name, _)| folder_of(name) == folder);
            let replaced: Vec<Box<str>> = inside
                .filter(|(name, file)| file.check(root, name).is_err())
                .map(|(name, _)| name.clone())
                .collect();
            drop(known);
            let mut known = self.known_mut();
            for name in &replaced {
                known.close(name);
            }
        }
        remember(&mut self.known_mut().folders, folder, now);
        Ok(())
    }

    /// Remembers the version of a file that was not opened. Fails if another one was open before.
    pub(super) fn note(&self, name: &str, identity: Identity) -> io::Result<()> {
        let first = self.known().first_identity(name);
        if let Some(first) = first {
            return first.check(identity, name);
        }
        remember(&mut self.known_mut().closed, name, identity);
        Ok(())
    }

    /// Forgets a file that is in another version.
    pub(super) fn forget_other(&self, name: &str, identity: Identity) {
        let first = self.known().first_identity(name);
        if first.is_some_and(|first| first != identity) {
            let mut known = self.known_mut();
            known.open.remove(name);
            known.closed.remove(name);
        }
    }

    /// Numbers of the files that are open, and of those whose versions are remembered besides.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let known = self.known();
        (known.open.len(), known.closed.len())
    }
}

/// The path of the folder with a file.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Notes a version. If there are too many, all others are forgotten.
fn remember(versions: &mut HashMap<Box<str>, Identity>, name: &str, identity: Identity) {
    if MAX_REMEMBERED <= versions.len() && !versions.contains_key(name) {
        versions.clear();
    }
    versions.insert(name.into(), identity);
}

/// Closes the files that were used the longest ago.
fn close_oldest(folders: &[Arc<FolderFiles>]) {
    let used = |file: &OpenFile| file.used.load(Ordering::Relaxed);
    let mut all = Vec::new();
    for folder in folders {
        all.extend(folder.known().open.values().map(|file| used(file)));
    }
    if all.is_empty() {
        return;
    }
    let mut left = CLOSED_AT_ONCE.min(all.len());
    let (_, &mut last, _) = all.select_nth_unstable(left - 1);
    for folder in folders {
        let mut known = folder.known_mut();
        let Known { open, closed, .. } = &mut *known;
        open.retain(|name, file| {
            let is_kept = left == 0 || last < used(file);
            if !is_kept {
                left -= 1;
                remember(closed, name, file.identity);
            }
            is_kept
        });
    }
}
