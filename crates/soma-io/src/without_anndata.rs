//! In place of the reader of AnnData, if its Cargo feature is off: an error that names it.

use std::sync::Arc;

use storage::ReadLimit;

use crate::soma_object::Place;
use crate::{DataFrame, Error, Matrix, Uns};

/// The layer that is the element X.
pub(crate) const X: &str = "X";

/// There is none.
#[derive(Debug, Clone)]
pub(crate) enum AnnDataExperiment {}

/// There is none.
#[derive(Debug, Clone)]
pub(crate) enum AnnDataMeasurement {}

impl AnnDataExperiment {
    pub(crate) fn find(place: &Place) -> Result<Option<Self>, Error> {
        if place.names_h5ad() {
            return Err(Error::NeedsAnnData { uri: place.uri.clone() });
        }
        let Ok(files) = place.files() else { return Ok(None) };
        let is_marked = |bytes: Vec<u8>| {
            let text = String::from_utf8_lossy(&bytes);
            text.contains("encoding-type")
                && ["\"anndata\"", "\"annbatch-preshuffled\""].iter().any(|of| text.contains(of))
        };
        if files.read_files(&["zarr.json", ".zattrs"]).into_iter().flatten().any(is_marked) {
            return Err(Error::NeedsAnnData { uri: place.uri.clone() });
        }
        Ok(None)
    }

    pub(crate) fn uri(&self) -> &str {
        match *self {}
    }

    pub(crate) fn version(&self) -> Result<String, Error> {
        match *self {}
    }

    pub(crate) fn unread_elements(&self) -> Result<Vec<(String, String)>, Error> {
        match *self {}
    }

    pub(crate) fn limit_reads(&mut self, _: Arc<ReadLimit>) {
        match *self {}
    }

    pub(crate) fn obs(&self) -> Result<DataFrame, Error> {
        match *self {}
    }

    pub(crate) fn measurements(&self) -> Result<Vec<String>, Error> {
        match *self {}
    }

    pub(crate) fn measurement(&self, _: &str) -> Result<AnnDataMeasurement, Error> {
        match *self {}
    }
}

impl AnnDataMeasurement {
    pub(crate) fn uri(&self) -> &str {
        match *self {}
    }

    pub(crate) fn var(&self) -> Result<DataFrame, Error> {
        match *self {}
    }

    pub(crate) fn layers(&self) -> Result<Vec<String>, Error> {
        match *self {}
    }

    pub(crate) fn x(&self, _: &str) -> Result<Matrix, Error> {
        match *self {}
    }

    pub(crate) fn obsm_names(&self) -> Result<Vec<String>, Error> {
        match *self {}
    }

    pub(crate) fn obsm(&self, _: &str) -> Result<Matrix, Error> {
        match *self {}
    }

    pub(crate) fn uns(&self) -> Result<Option<Uns>, Error> {
        match *self {}
    }
}
