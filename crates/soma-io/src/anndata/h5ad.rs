//! An AnnData in an HDF5 file, `.h5ad`, a MuData, `.h5mu`, or a matrix of 10x Genomics, `.h5`.

use std::sync::Arc;

use ::anndata::TenX;
use hdf5::Hdf5Storage;
use storage::{Client, OpenedStorage, Storage, Subfolder};

use crate::Error;
use crate::soma_object::Place;

/// An HDF5 file.
#[derive(Debug, Clone)]
pub(super) struct H5ad {
    /// The folder that has the file.
    folder: Client,
    hdf5: Hdf5Storage,
    /// Where the elements lie in a matrix of 10x Genomics.
    ten_x: Option<Arc<TenX>>,
    /// The group that is the AnnData; empty for the whole file.
    group: String,
}

/// The setting that chooses one of the genomes in a file of 10x Genomics.
const GENOME: &str = "soma.genome";

impl H5ad {
    /// Opens the file at `place`; `None` if its name does not end with `.h5ad`, `.h5mu` or `.h5`.
    pub(super) fn at(place: &Place) -> Result<Option<Self>, Error> {
        if !place.names_hdf5() {
            return Ok(None);
        }
        let (folder, name) = storage::split_file(&place.uri);
        let folder = Client::open(folder, place.config())?;
        let files = folder.storage("", None, None)?.storage;
        let hdf5 = match Hdf5Storage::open(files, name) {
            Ok(hdf5) => hdf5,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // A folder of a store may have such a name, too.
                let may_be_folder =
                    may_be_10x(&place.uri) && storage::local_path(&place.uri).is_none();
                let missing = || Error::Missing { uri: place.uri.clone() };
                return if may_be_folder { Ok(None) } else { Err(missing()) };
            }
            Err(error) => return Err(Error::Hdf5(error)),
        };
        let genome = place.config().get(GENOME).map(String::as_str);
        let ten_x = if may_be_10x(&place.uri) {
            let (files, pool) = (Arc::new(hdf5.clone()), place.threads()?.pool()?);
            TenX::find(files, pool, genome)?.map(Arc::new)
        } else {
            None
        };
        if let (None, Some(genome)) = (&ten_x, genome) {
            return Err(Error::NoGenomes { uri: place.uri.clone(), genome: genome.to_owned() });
        }
        Ok(Some(Self { folder, hdf5, ten_x, group: String::new() }))
    }

    /// A group of the file.
    pub(super) fn within(&self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self.clone() }
    }

    /// The file as a store of Zarr.
    pub(super) fn files(&self) -> Arc<dyn Storage> {
        self.anndata(Arc::new(self.hdf5.clone()))
    }

    /// The same, read with the limit on the rate and with the cache of X.
    pub(super) fn open_x(&self, place: &Place) -> Result<OpenedStorage, storage::Error> {
        let opened = self.folder.storage("", place.read_limit.as_ref(), None)?;
        let storage = self.anndata(Arc::new(self.hdf5.reading(opened.storage)));
        Ok(OpenedStorage { storage, ..opened })
    }

    fn anndata(&self, file: Arc<dyn Storage>) -> Arc<dyn Storage> {
        match &self.ten_x {
            Some(ten_x) => ten_x.anndata(file),
            None => Subfolder::open(file, &self.group),
        }
    }
}

/// Whether a file of this name may have a matrix of 10x Genomics.
pub(super) fn may_be_10x(uri: &str) -> bool {
    uri.to_ascii_lowercase().ends_with(".h5")
}
