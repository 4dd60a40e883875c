//! A folder for what is needed for a while: beside the new experiment, gone at the end, after a failure, and after a kill with the next
//! run to the same place.

use std::path::{Path, PathBuf};

use soma_io::{Destination, Existing};

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
        let path = uri.strip_prefix("file://").unwrap_or(uri).trim_end_matches('/');
        let place = match folder {
            Some(folder) => {
                let name = path.rsplit('/').next().unwrap_or_default();
                folder.join(format!("{name}.temporary"))
            }
            None if path.contains("://") => {
                return Err(Error::NoTemporary { uri: uri.to_owned() });
            }
            None => PathBuf::from(format!("{path}.temporary")),
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
