//! Where an experiment is written: inside a marked folder until it is whole.
//!
//! For `data/example` the experiment grows in `data/example.partial/experiment` and is moved to its
//! name at the end, when all of it has reached the disk. The folder `data/example.partial` also
//! holds a marker, which is locked while the run lasts. A killed run leaves the folder, and its
//! lock is free: the next run to the same place removes what the killed run made, and can say so
//! ([`Destination::leftover`]). A folder of that name without the marker belongs to somebody else,
//! and nothing is written there.
//!
//! An experiment that is to be replaced stays as it is until the new one is whole, and is exchanged
//! for it in one step. At an address that is not a local path nothing is renamed; the experiment's
//! group is written last, so that nothing opens before it is whole.

mod apart;
mod disk;
mod holding;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use storage::local_path;

pub use self::apart::check_apart;
use self::disk::{create_folders, is_there, sync_below};
use self::holding::Holding;
use crate::error::file_error;
use crate::{Error, Experiment, OpenOptions};

/// What is to become of an experiment that is where the new one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It stays, and nothing is written.
    #[default]
    Keep,
    /// It makes way for the new one once that is whole. Only the folder of an experiment does, and
    /// nothing in an object store.
    Replace,
}

/// A place that is being written to, by this process alone if it is a local path. Dropping it
/// removes what was written there.
#[derive(Debug)]
pub struct Destination(Place);

#[derive(Debug)]
enum Place {
    Local(Claim),
    Remote { uri: String },
}

/// A local path under which nothing whole has been written yet.
#[derive(Debug)]
struct Claim {
    target: PathBuf,
    holding: Holding,
    existing: Existing,
    /// Where the experiment is written, for TileDB.
    uri: String,
}

impl Destination {
    /// Claims `uri`, a local path or an address that libtiledb knows, and removes what a killed run
    /// left there. `sources` are the paths and addresses that will be read while the destination is
    /// written.
    ///
    /// # Errors
    /// [`Error::Exists`] if something is there that is to stay; [`Error::Irreplaceable`] if what is
    /// to make way cannot; [`Error::SetAside`] if a run that was killed has moved an experiment away
    /// and something else is at its place; [`Error::SourceAtRisk`] if a source equals, holds or lies in the
    /// destination or in the folder beside it; [`Error::NotOurs`] if that folder is there and no
    /// run of ours made it; [`Error::Busy`] if another process writes to the same place;
    /// [`Error::File`] if the operating system refuses.
    pub fn claim(uri: &str, existing: Existing, sources: &[&str]) -> Result<Self, Error> {
        if let Some(path) = local_path(uri) {
            return Claim::take(path, existing, sources).map(Place::Local).map(Self);
        }
        check_apart(sources, &[uri])?;
        match existing {
            Existing::Keep => Ok(Self(Place::Remote { uri: uri.to_owned() })),
            Existing::Replace => Err(Error::Irreplaceable {
                place: uri.to_owned(),
                problem: "nothing in an object store can be exchanged in one step".to_owned(),
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

    /// Whether it is a local path, where writing can [begin anew](Self::clear).
    pub fn is_local(&self) -> bool {
        matches!(self.0, Place::Local(_))
    }

    /// The folder in which a killed run had left something, which is removed now.
    pub fn leftover(&self) -> Option<&Path> {
        match &self.0 {
            Place::Local(claim) => claim.holding.had_leftover().then(|| claim.holding.folder()),
            Place::Remote { .. } => None,
        }
    }

    /// Removes what was written so far, so that writing can begin anew. The claim stays. At an
    /// address that is not a local path nothing is removed, and writing cannot begin anew: find out
    /// before the first write.
    ///
    /// # Errors
    /// [`Error::File`] if the operating system refuses.
    pub fn clear(&self) -> Result<(), Error> {
        match &self.0 {
            Place::Local(claim) => claim.holding.clear(),
            Place::Remote { .. } => Ok(()),
        }
    }

    /// Brings what was written to the disk and gives it its name. Returns its size in bytes if it
    /// is local.
    ///
    /// # Errors
    /// [`Error::Exists`] or [`Error::Irreplaceable`] if something has appeared there meanwhile;
    /// [`Error::File`] if the operating system refuses. If the experiment has its name by then and
    /// the disk does not, the one that it replaced stays in the marked folder until the next run.
    pub fn publish(self) -> Result<Option<u64>, Error> {
        match self.0 {
            Place::Remote { .. } => Ok(None),
            Place::Local(claim) => claim.publish(&mut disk::sync).map(Some),
        }
    }
}

impl Claim {
    fn take(path: &Path, existing: Existing, sources: &[&str]) -> Result<Self, Error> {
        let target =
            std::path::absolute(path).map_err(file_error("make an absolute path of", path))?;
        let Some(name) = target.file_name().map(OsString::from) else {
            return Err(Error::Address {
                uri: path.display().to_string(),
                problem: "it does not end with a name for the new experiment".to_owned(),
            });
        };
        let mut partial = name;
        partial.push(".partial");
        let partial = target.with_file_name(partial);
        check_existing(&target, existing)?;
        check_apart(sources, &[&target.to_string_lossy(), &partial.to_string_lossy()])?;
        if let Some(parent) = target.parent() {
            create_folders(parent, &mut disk::sync)?;
        }
        let holding = Holding::take(&target, partial)?;
        // Another run may have finished while this one waited for the lock, or an experiment that
        // was set aside is back.
        check_existing(&target, existing)?;
        let uri = holding.experiment().to_string_lossy().into_owned();
        Ok(Self { target, holding, existing, uri })
    }

    /// Publishes, with `sync` for each file and folder, a folder after all that it holds.
    fn publish(mut self, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> Result<u64, Error> {
        let n_bytes = sync_below(&self.holding.experiment(), sync)?;
        self.rename()?;
        // Until then a crash of the machine may undo the renames, and the old experiment must not go.
        self.bring_renames_to_disk(sync).inspect_err(|_| self.holding.keep())?;
        Ok(n_bytes)
    }

    fn bring_renames_to_disk(
        &self,
        sync: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> Result<(), Error> {
        let parent = self.target.parent();
        for folder in parent.into_iter().chain([self.holding.folder()]) {
            sync(folder).map_err(file_error("bring to the disk", folder))?;
        }
        if is_there(&self.holding.replaced())? { self.holding.note_published() } else { Ok(()) }
    }

    fn rename(&self) -> Result<(), Error> {
        let (from, to) = (self.holding.experiment(), &self.target);
        check_existing(to, self.existing)?;
        let failed = file_error("rename the finished experiment to", to);
        if !is_there(to)? {
            return fs::rename(from, to).map_err(failed);
        }
        match renameat_with(CWD, &from, CWD, to, RenameFlags::EXCHANGE) {
            // The old experiment goes with the marked folder when this is dropped.
            Ok(()) => Ok(()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.rename_in_two_steps().map_err(failed)
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Renames on file systems that cannot exchange two folders. Between the two steps nothing is
    /// at the target; if the second fails or never comes, the old experiment is put back.
    fn rename_in_two_steps(&self) -> io::Result<()> {
        fs::rename(&self.target, self.holding.replaced())?;
        fs::rename(self.holding.experiment(), &self.target)
    }
}

fn check_existing(target: &Path, existing: Existing) -> Result<(), Error> {
    if !is_there(target)? {
        return Ok(());
    }
    let place = target.display().to_string();
    match existing {
        Existing::Keep => Err(Error::Exists { uri: place }),
        // A mistyped path must not remove other data.
        Existing::Replace if target.is_symlink() => Err(Error::Irreplaceable {
            place,
            problem: "only the folder of an experiment is replaced, and this is a link".to_owned(),
        }),
        Existing::Replace => match Experiment::open(&place, &OpenOptions::default()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Irreplaceable {
                place,
                problem: format!("only the folder of an experiment is replaced, and {error}"),
            }),
        },
    }
}
