//! A store of AnnData: which elements there are.

use std::io;
use std::sync::Arc;

use rayon::ThreadPool;
use storage::Storage;

use crate::elements::{Elements, is_anndata};
use crate::error::Error;
use crate::frame::{Frame, NOT_IN_ALL};
use crate::matrix::Matrix;
use crate::uns::Uns;

/// An opened AnnData in Zarr, or a collection of several over the same genes, as annbatch writes
/// it.
///
/// In a collection, the rows of the data sets follow each other.
///
/// Opening reads the metadata of the root alone; tables and matrices read theirs when they are
/// asked for.
#[derive(Debug, Clone)]
pub struct AnnData {
    elements: Arc<Elements>,
}

/// The element `raw`: the matrix before genes were selected, with its own var.
#[derive(Debug, Clone)]
pub struct Raw {
    elements: Arc<Elements>,
}

impl AnnData {
    /// Opens the AnnData or the collection at the root of `storage`. Chunks are decoded by the
    /// threads of `pool`.
    ///
    /// # Errors
    /// [`Error::NotAnnData`], and [`Error::Metadata`] if the storage cannot be read.
    pub fn open(storage: Arc<dyn Storage>, pool: Arc<ThreadPool>) -> Result<Self, Error> {
        let place = storage.place();
        let not_anndata = || Error::NotAnnData { place: place.clone() };
        let elements = Elements::open(storage, pool)?.ok_or_else(not_anndata)?;
        let encoding = elements.get("")?.encoding().to_owned();
        // Versions of Python's anndata before 0.8 did not mark the root.
        let is_old = encoding.is_empty()
            && elements.find("obs")?.is_some_and(|obs| obs.encoding() == "dataframe")
            && elements.find("X")?.is_some();
        if encoding != "anndata" && !is_old && !elements.is_collection() {
            return Err(not_anndata());
        }
        Ok(Self { elements: Arc::new(elements) })
    }

    /// Whether the root of `storage` is marked as AnnData in Zarr, after one read of two small
    /// files.
    ///
    /// # Errors
    /// If the storage cannot be reached or refuses.
    pub fn is_at(storage: &dyn Storage) -> io::Result<bool> {
        is_anndata(storage)
    }

    /// Opens the table of observations.
    pub fn obs(&self) -> Result<Frame, Error> {
        Frame::open(&self.elements, "obs")
    }

    /// Opens the table of variables.
    pub fn var(&self) -> Result<Frame, Error> {
        genes(&self.elements, "var")
    }

    /// The number of variables, which is that of columns of X and of the layers.
    pub fn n_vars(&self) -> Result<u64, Error> {
        Ok(Frame::open_first(&self.elements, "var")?.n_rows())
    }

    /// Whether there is an X: an AnnData of annotations alone has none.
    pub fn has_x(&self) -> Result<bool, Error> {
        Ok(self.elements.find(&self.elements.first("X"))?.is_some_and(|x| x.encoding() != "null"))
    }

    /// Opens X. For a CSR matrix, this reads where the rows begin.
    pub fn x(&self) -> Result<Matrix, Error> {
        Matrix::open(&self.elements, "X")
    }

    /// The names of the layers, sorted; of a collection those that all data sets have.
    pub fn layers(&self) -> Result<Vec<String>, Error> {
        self.names("layers")
    }

    /// Opens a layer.
    pub fn layer(&self, name: &str) -> Result<Matrix, Error> {
        Matrix::open(&self.elements, &format!("layers/{name}"))
    }

    /// The names of the arrays of obsm, sorted; of a collection those that all data sets have.
    pub fn obsm_names(&self) -> Result<Vec<String>, Error> {
        self.names("obsm")
    }

    /// Opens an array of obsm.
    pub fn obsm(&self, name: &str) -> Result<Matrix, Error> {
        Matrix::open(&self.elements, &format!("obsm/{name}"))
    }

    /// The names of the graphs of obsp, sorted. A collection has none: each data set has its own.
    pub fn obsp_names(&self) -> Result<Vec<String>, Error> {
        if self.elements.is_collection() { Ok(Vec::new()) } else { self.names("obsp") }
    }

    /// Opens a graph of obsp: a row and a column for each observation.
    pub fn obsp(&self, name: &str) -> Result<Matrix, Error> {
        Matrix::open(&self.elements, &format!("obsp/{name}"))
    }

    /// Reads the plain values of uns. A collection has none: each data set has its own.
    ///
    /// # Errors
    /// If the metadata cannot be read; a value that cannot is among [`Uns::unread`].
    pub fn uns(&self) -> Result<Uns, Error> {
        Uns::read(&self.elements)
    }

    /// Identifies the state of its files: a text that differs once the file was written to, if it
    /// is HDF5, and once an element that is read, apart from obsp, was written anew, if it is Zarr.
    /// Chunks beyond the first of an array of Zarr that were written to in place are not noticed.
    ///
    /// # Errors
    /// [`Error::Metadata`] if the storage cannot be reached or refuses.
    pub fn version(&self) -> Result<String, Error> {
        self.elements.version()
    }

    /// The element `raw`; `None` if there is none, or if some data sets of a collection have none.
    pub fn raw(&self) -> Result<Option<Raw>, Error> {
        let (n_found, n_datasets) = self.n_raw()?;
        Ok((n_found == n_datasets).then(|| Raw { elements: Arc::clone(&self.elements) }))
    }

    /// The paths of the elements that are not read, or like obsp are not read with X, each with the
    /// reason, apart from those of tables ([`Frame::unsupported`]) and of uns ([`Uns::unread`]).
    ///
    /// # Errors
    /// [`Error::Metadata`] if the storage cannot be reached or refuses.
    pub fn unread(&self) -> Result<Vec<(String, String)>, Error> {
        let mut unread = Vec::new();
        for group in ["obsp", "varm", "varp", "raw/varm"] {
            let members = self.elements.members(group)?;
            let reason = match group {
                "obsp" => "obsp is read for neighbours only".to_owned(),
                _ => format!("{group} is not read"),
            };
            let not_read = |(name, _)| (format!("{group}/{name}"), reason.clone());
            unread.extend(members.into_iter().map(not_read));
        }
        for group in ["layers", "obsm"] {
            let members = self.elements.members(group)?.into_iter();
            let partial = members.filter(|(_, in_all)| !in_all);
            unread.extend(partial.map(|(name, _)| (format!("{group}/{name}"), NOT_IN_ALL.into())));
        }
        let (n_found, n_datasets) = self.n_raw()?;
        if (1..n_datasets).contains(&n_found) {
            unread.push(("raw".to_owned(), NOT_IN_ALL.to_owned()));
        }
        Ok(unread)
    }

    fn names(&self, group: &str) -> Result<Vec<String>, Error> {
        let members = self.elements.members(group)?.into_iter();
        Ok(members.filter(|(_, in_all)| *in_all).map(|(name, _)| name).collect())
    }

    /// The number of data sets that have the element `raw`, and of all.
    fn n_raw(&self) -> Result<(usize, usize), Error> {
        let paths = self.elements.paths("raw/X");
        self.elements.gather(&paths)?;
        let found = paths.iter().map(|path| Ok(usize::from(self.elements.find(path)?.is_some())));
        Ok((found.sum::<Result<usize, Error>>()?, paths.len()))
    }
}

impl Raw {
    /// Opens its matrix.
    pub fn x(&self) -> Result<Matrix, Error> {
        Matrix::open(&self.elements, "raw/X")
    }

    /// The number of its variables, which is that of columns of its matrix.
    pub fn n_vars(&self) -> Result<u64, Error> {
        Ok(Frame::open_first(&self.elements, "raw/var")?.n_rows())
    }

    /// Opens its table of variables.
    pub fn var(&self) -> Result<Frame, Error> {
        genes(&self.elements, "raw/var")
    }
}

/// Opens a table of variables, which all data sets of a collection have in common.
fn genes(elements: &Arc<Elements>, name: &str) -> Result<Frame, Error> {
    let all = Frame::open(elements, name)?;
    match all.part_with_other_index()? {
        Some(part) => {
            let what = format!("its index is not that of {}", elements.first(name));
            Err(elements.damaged(&elements.paths(name)[part], what))
        }
        None => Frame::open_first(elements, name),
    }
}
