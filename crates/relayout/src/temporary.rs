//! A folder for temporary files, beside the new experiment. It is removed at the end and after a
//! failure; after a kill, the next run to the same place removes it.

use std::path::{Path, PathBuf};

use soma_io::{Destination, Existing, local_path};

use crate::Error;

/// The folder. Dropping it removes it with all its contents.
#[derive(Debug)]
pub(crate) struct Temporary {
    claimed: Destination,
}

impl Temporary {
    /// Creates the folder for an experiment that is written to `uri`: in `folder`, or beside it if
    /// `uri` is a local path. Fails if any of `sources` is there.
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
        // The destination is never published: only its lock and its cleaning up are needed here.
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
