//! A folder for what is needed for a while: beside the new experiment, gone at the end, after a failure, and after a kill with the next
//! run to the same place.

use std::path::{Path, PathBuf};

use soma_io::{Destination, Existing, local_path};

use crate::Error;

/// The folder. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub(crate) struct Temporary {
    claimed: Destination,
}

impl Temporary {
    /// Makes the folder for an experiment that is written to `uri`: in `folder`, or beside it if
    /// that is a local path. Fails if any of `sources` lies there.
    pub(crate) fn claim(uri: &str, folder: Option<&Path>, sources: &[&str]) -> Result<Self, Error> {
        let uri = uri.trim_end_matches('/');
        let place = match (folder, local_path(uri)) {
            (Some(folder), _) => {
                let name = uri.rsplit('/').next().unwrap_or_default();
                folder.join(format!("{name}.temporary"))
            }
            (None, Some(path)) => path.with_added_extension("temporary"),
            (None, None) => return Err(Error::NoTemporary { uri: uri.to_owned() }),
        };
        // It never gets its name: only the claim's lock, and its ways of cleaning up, are wanted.
        let claimed = Destination::claim(&place.to_string_lossy(), Existing::Keep, sources)?;
        let temporary = Self { claimed };
        let folder = temporary.folder();
        std::fs::create_dir_all(&folder).map_err(|source| Error::File {
            action: "create the folder",
            path: folder,
            source,
        })?;
        Ok(temporary)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(self.claimed.uri())
    }
}
