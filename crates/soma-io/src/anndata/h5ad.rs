//! An AnnData in an HDF5 file, `.h5ad`.

use std::sync::Arc;

use hdf5::Hdf5Storage;
use storage::{Client, OpenedStorage, Storage};

use crate::Error;
use crate::soma_object::Place;

/// An HDF5 file.
#[derive(Debug, Clone)]
pub(super) struct H5ad {
    /// The folder that has the file.
    folder: Client,
    hdf5: Hdf5Storage,
}

impl H5ad {
    /// Opens the file at `place`; `None` if its name does not end with `.h5ad`.
    pub(super) fn at(place: &Place) -> Result<Option<Self>, Error> {
        if !place.names_h5ad() {
            return Ok(None);
        }
        let (folder, name) = place.uri.rsplit_once('/').unwrap_or((".", &place.uri));
        let folder = if folder.is_empty() { "/" } else { folder };
        let folder = Client::open(folder, place.config())?;
        let files = folder.storage("", None, None)?.storage;
        let hdf5 = Hdf5Storage::open(files, name).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                return Error::Missing { uri: place.uri.clone() };
            }
            Error::Hdf5(error)
        })?;
        Ok(Some(Self { folder, hdf5 }))
    }

    /// The file as a store of Zarr.
    pub(super) fn files(&self) -> Arc<dyn Storage> {
        Arc::new(self.hdf5.clone())
    }

    /// The same, read with the limit on the rate and with the cache of X.
    pub(super) fn open_x(&self, place: &Place) -> Result<OpenedStorage, storage::Error> {
        let opened = self.folder.storage("", place.read_limit.as_ref(), None)?;
        let storage = Arc::new(self.hdf5.reading(opened.storage));
        Ok(OpenedStorage { storage, ..opened })
    }
}
