//! The place where a data set is written: inside a marked folder until it is complete.
//!
//! The data set `data/example` is written to `data/example.partial/experiment`, and renamed at the
//! end, when all of it has reached the disk. It may also be a single file. The folder
//! `data/example.partial` also contains a marker, which is locked during the run. After a kill the
//! folder remains and its lock is free: the next run to the same place removes the remains, and
//! reports them ([`Destination::leftover`]), unless it [resumes](Destination::resume) the same
//! work. A folder of that name without the marker belongs to somebody else, and nothing is written
//! there.
//!
//! A data set that is to be replaced stays unchanged until the new one is complete, and is
//! exchanged for it in one step. At an address that is not a local path nothing is renamed: the
//! writer must write last the file without which the data set does not open.

mod apart;
mod disk;
mod error;
mod holding;
#[cfg(test)]
mod resume_tests;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use self::apart::check_apart;
use self::disk::{create_folders, is_there, sync_below};
pub use self::error::DestinationError;
use self::error::file_error;
use self::holding::{Holding, Task};
use crate::address::local_path;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// How to treat an existing data set at the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// Keeps it, and writes nothing.
    #[default]
    Keep,
    /// Replaces it once the new one is complete. Only what the [`Replaceable`] accepts can be
    /// replaced, and nothing in an object store.
    Replace(Replaceable),
}

/// The kind of folder that a new data set may replace. A mistyped path must not remove other data.
#[derive(Debug, Clone, Copy)]
pub struct Replaceable {
    /// The kind in words: "the folder of an experiment".
    pub what: &'static str,
    /// Fails with the reason if a local path is not of this kind.
    pub check: fn(&str) -> Result<(), String>,
}

/// Compares kinds by their words.
impl PartialEq for Replaceable {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}

impl Eq for Replaceable {}

/// A destination claimed for writing; no other process can write to the same local path. Dropping
/// it removes the unpublished data.
#[derive(Debug)]
pub struct Destination(Place);

#[derive(Debug)]
enum Place {
    Local(Claim),
    Remote { uri: String },
}

/// A claimed local path, with nothing published yet.
#[derive(Debug)]
struct Claim {
    target: PathBuf,
    holding: Holding,
    existing: Existing,
    /// The path or address to write to.
    uri: String,
}

impl Destination {
    /// Claims `uri`, a local path or any other address, and removes the remains of a killed run.
    /// `sources` are the paths and addresses that will be read while the destination is
    /// written.
    ///
    /// # Errors
    /// - [`DestinationError::Exists`]: something exists there and should be kept.
    /// - [`DestinationError::Irreplaceable`]: something there cannot be replaced.
    /// - [`DestinationError::SetAside`]: a killed run has moved a data set away, and something else
    ///   is in its place.
    /// - [`DestinationError::SourceAtRisk`]: a source equals, contains or lies in the destination
    ///   or the folder beside it.
    /// - [`DestinationError::NoName`]: the path does not end with a name.
    /// - [`DestinationError::NotOurs`]: that folder exists, and no run of this program made it.
    /// - [`DestinationError::Busy`]: another process writes to the same place.
    /// - [`DestinationError::File`]: a file operation failed.
    pub fn claim(
        uri: &str,
        existing: Existing,
        sources: &[&str],
    ) -> Result<Self, DestinationError> {
        Self::take(uri, existing, sources, Task::None)
    }

    /// Claims `uri` like [`Self::claim`], and keeps what an earlier run with the same `task` has
    /// written there: a killed run, or one that called [`Self::keep_unfinished`]. It then stays
    /// until it is published or another task claims the place.
    ///
    /// `task` says what is written, from what source in which version, and in which form: equal
    /// texts mean equal data sets. At an address that is not a local path nothing is resumed.
    ///
    /// # Errors
    /// Those of [`Self::claim`].
    pub fn resume(
        uri: &str,
        existing: Existing,
        sources: &[&str],
        task: &str,
    ) -> Result<Self, DestinationError> {
        Self::take(uri, existing, sources, Task::OrAnew(task))
    }

    /// Claims `uri` like [`Self::resume`], but keeps what another task has left there: that is an
    /// error. For data sets that take long to write.
    ///
    /// # Errors
    /// Those of [`Self::claim`], and [`DestinationError::OtherTask`].
    pub fn resume_or_refuse(
        uri: &str,
        existing: Existing,
        sources: &[&str],
        task: &str,
    ) -> Result<Self, DestinationError> {
        Self::take(uri, existing, sources, Task::OrRefuse(task))
    }

    fn take(
        uri: &str,
        existing: Existing,
        sources: &[&str],
        task: Task<'_>,
    ) -> Result<Self, DestinationError> {
        if let Some(path) = local_path(uri) {
            return Claim::take(path, existing, sources, task).map(Place::Local).map(Self);
        }
        check_apart(sources, &[uri])?;
        match existing {
            Existing::Keep => Ok(Self(Place::Remote { uri: uri.to_owned() })),
            Existing::Replace(_) => Err(DestinationError::Irreplaceable {
                place: uri.to_owned(),
                problem: "nothing in an object store can be exchanged in one step".to_owned(),
            }),
        }
    }

    /// The URI to write to.
    pub fn uri(&self) -> &str {
        match &self.0 {
            Place::Local(claim) => &claim.uri,
            Place::Remote { uri } => uri,
        }
    }

    /// Whether it is a local path, so that writing can [start over](Self::clear).
    pub fn is_local(&self) -> bool {
        matches!(self.0, Place::Local(_))
    }

    /// The folder of a killed run that was removed, if there was one.
    pub fn leftover(&self) -> Option<&Path> {
        match &self.0 {
            Place::Local(Claim { holding, .. }) => {
                (holding.had_leftover() && !holding.is_resumed()).then(|| holding.folder())
            }
            Place::Remote { .. } => None,
        }
    }

    /// The folder of an earlier run with the same task, if what it wrote is there.
    pub fn resumed(&self) -> Option<&Path> {
        match &self.0 {
            Place::Local(Claim { holding, .. }) => holding.is_resumed().then(|| holding.folder()),
            Place::Remote { .. } => None,
        }
    }

    /// A path beside the data set for the writer's own record of its progress. The file never
    /// becomes part of the data set, and goes when that is published or removed. `None` for an
    /// address that is not a local path.
    pub fn progress_file(&self) -> Option<PathBuf> {
        match &self.0 {
            Place::Local(claim) => Some(claim.holding.progress()),
            Place::Remote { .. } => None,
        }
    }

    /// Makes what is written stay if this is dropped before it is published, so that the next run
    /// with the same task can go on. Returns the folder in which it stays, if that is local.
    pub fn keep_unfinished(&mut self) -> Option<&Path> {
        match &mut self.0 {
            Place::Local(claim) => {
                claim.holding.keep();
                Some(claim.holding.folder())
            }
            Place::Remote { .. } => None,
        }
    }

    /// Removes everything written so far, so that writing can start over. The claim stays. At an
    /// address that is not a local path nothing is removed, and writing cannot start over: check
    /// the data before the first write.
    ///
    /// # Errors
    /// [`DestinationError::File`] if a file operation fails.
    pub fn clear(&self) -> Result<(), DestinationError> {
        match &self.0 {
            Place::Local(claim) => claim.holding.clear(),
            Place::Remote { .. } => Ok(()),
        }
    }

    /// Syncs everything to disk and gives the data set its name. Returns its size in bytes if it is
    /// local.
    ///
    /// # Errors
    /// [`DestinationError::Exists`] or [`DestinationError::Irreplaceable`] if something has
    /// appeared there meanwhile; [`DestinationError::File`] if a file operation fails. If the data
    /// set has its new name but syncing the name failed, the replaced one stays in the marked
    /// folder until the next run.
    pub fn publish(self) -> Result<Option<u64>, DestinationError> {
        match self.0 {
            Place::Remote { .. } => Ok(None),
            Place::Local(claim) => claim.publish(&mut disk::sync).map(Some),
        }
    }
}

impl Claim {
    fn take(
        path: &Path,
        existing: Existing,
        sources: &[&str],
        task: Task<'_>,
    ) -> Result<Self, DestinationError> {
        let target =
            std::path::absolute(path).map_err(file_error("make an absolute path of", path))?;
        let Some(name) = target.file_name().map(OsString::from) else {
            return Err(DestinationError::NoName { path: path.to_owned() });
        };
        let mut partial = name;
        partial.push(".partial");
        let partial = target.with_file_name(partial);
        check_existing(&target, existing)?;
        check_apart(sources, &[&target.to_string_lossy(), &partial.to_string_lossy()])?;
        if let Some(parent) = target.parent() {
            create_folders(parent, &mut disk::sync)?;
        }
        let holding = Holding::take(&target, partial, task)?;
        // Another run may have finished while this one waited for the lock, or a data set that was
        // set aside may be back.
        check_existing(&target, existing)?;
        let uri = holding.data().to_string_lossy().into_owned();
        Ok(Self { target, holding, existing, uri })
    }

    /// Publishes; calls `sync` with each file and folder, a folder after its contents.
    fn publish(
        mut self,
        sync: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> Result<u64, DestinationError> {
        let n_bytes = sync_below(&self.holding.data(), sync)?;
        self.rename()?;
        self.holding.release();
        // Until then a crash of the machine may undo the renames, so the old one must stay.
        self.sync_renames(sync).inspect_err(|_| self.holding.keep())?;
        Ok(n_bytes)
    }

    fn sync_renames(
        &self,
        sync: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> Result<(), DestinationError> {
        let parent = self.target.parent();
        for folder in parent.into_iter().chain([self.holding.folder()]) {
            sync(folder).map_err(file_error("sync", folder))?;
        }
        if is_there(&self.holding.replaced())? { self.holding.note_published() } else { Ok(()) }
    }

    fn rename(&self) -> Result<(), DestinationError> {
        let (from, to) = (self.holding.data(), &self.target);
        check_existing(to, self.existing)?;
        let failed = file_error("rename the finished data to", to);
        if !is_there(to)? {
            return fs::rename(from, to).map_err(failed);
        }
        self.holding.forget_task()?;
        match renameat_with(CWD, &from, CWD, to, RenameFlags::EXCHANGE) {
            // The old data set is removed with the marked folder when this is dropped.
            Ok(()) => Ok(()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.rename_in_two_steps().map_err(failed)
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Renames on file systems that cannot exchange two folders. Between the two steps nothing is
    /// at the target; if the second step fails or never runs, the old one is put back.
    fn rename_in_two_steps(&self) -> io::Result<()> {
        fs::rename(&self.target, self.holding.replaced())?;
        fs::rename(self.holding.data(), &self.target)
    }
}

fn check_existing(target: &Path, existing: Existing) -> Result<(), DestinationError> {
    if !is_there(target)? {
        return Ok(());
    }
    let place = target.display().to_string();
    match existing {
        Existing::Keep => Err(DestinationError::Exists { uri: place }),
        Existing::Replace(Replaceable { what, check }) => {
            let checked =
                if target.is_symlink() { Err("this is a link".to_owned()) } else { check(&place) };
            checked.map_err(|reason| DestinationError::Irreplaceable {
                place,
                problem: format!("only {what} is replaced, and {reason}"),
            })
        }
    }
}
