//! A folder in which files appear whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use storage::{Destination, Existing};

use crate::Error;

/// Name of the folder in which files are made, before storage's own suffix `.partial`.
const UNFINISHED: &str = "unfinished";

/// A folder of finished files, and the folder beside them in which files are made.
///
/// A finished file is renamed to its name, so a killed run leaves none that is truncated. What it
/// leaves is in a marked folder that the next run removes.
#[derive(Debug)]
pub(crate) struct FormFolder {
    folder: PathBuf,
    /// The claim keeps other runs away, and removes the folder in the end.
    claim: Option<Destination>,
}

impl FormFolder {
    /// A folder that appears as a whole, with other means. Files are made where they stay.
    pub(crate) fn whole(folder: PathBuf) -> Result<Self, Error> {
        create_folder(&folder)?;
        Ok(Self { folder, claim: None })
    }

    /// A folder whose files appear one by one. Fails if another run is writing to it.
    pub(crate) fn shared(folder: PathBuf) -> Result<Self, Error> {
        create_folder(&folder)?;
        let place = folder.join(UNFINISHED);
        let refused = |problem| Error::Place { path: folder.clone(), what: "data set", problem };
        let place = place.to_str().ok_or_else(|| refused("its name is not valid UTF-8"))?;
        let claim = Destination::claim(place, Existing::Keep, &[])?;
        create_folder(Path::new(claim.uri()))?;
        Ok(Self { folder, claim: Some(claim) })
    }

    /// The folder of finished files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder in which files are made.
    pub(crate) fn making(&self) -> &Path {
        self.claim.as_ref().map_or(&self.folder, |claim| Path::new(claim.uri()))
    }

    /// The marked folder of a killed run that was removed.
    pub(crate) fn leftover(&self) -> Option<PathBuf> {
        self.claim.as_ref().and_then(Destination::leftover).map(Into::into)
    }

    /// Whether there is a finished file of this name.
    pub(crate) fn has(&self, name: &str) -> Result<bool, Error> {
        let path = self.folder.join(name);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => Ok(true),
            Ok(_) => Err(Error::write(&path, "it exists, and is not a file; move it away")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::write(&path, error)),
        }
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.making().join(name);
        fs::write(&path, bytes).map_err(|error| Error::write(&path, error))?;
        self.finish(name)
    }

    /// Gives a file that was made in [`making`](Self::making) its place.
    pub(crate) fn finish(&self, name: &str) -> Result<(), Error> {
        if self.claim.is_none() {
            return Ok(());
        }
        let (made, path) = (self.making().join(name), self.folder.join(name));
        let finish = || {
            // A crash of the machine must not leave a name without its content either.
            File::open(&made)?.sync_all()?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::rename(&made, &path)
        };
        finish().map_err(|error| Error::write(&path, error))
    }
}

/// Creates a folder and those that contain it.
fn create_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| Error::write(folder, error))
}
