//! AnnData in Zarr or HDF5, seen as an experiment: its tables as data frames, its matrices as
//! layers of X.
//!
//! Rows have no joinids of their own there, so a row's joinid is its position. The index of a table
//! is a column of its name; without a name it is `obs_id` or `var_id`, as in `tiledbsoma.io`.

mod h5ad;
mod matrix;
mod mudata;
mod mudata_table;
mod packed;
mod reader;
mod selected;
mod table;

use std::sync::{Arc, OnceLock};

use ::anndata::{AnnData, Frame, Matrix, MuData};
use storage::{CachedStorage, ReadLimit};

use self::h5ad::{H5ad, may_be_10x};
use self::matrix::AnnDataMatrix;
use self::mudata::MuDataExperiment;
use self::reader::AnnDataReader;
use self::table::AnnDataTable;
use crate::experiment::{GRAPH, StoredExperiment, StoredMeasurement};
use crate::file_kind::file_kind;
use crate::native::NotNative;
use crate::soma_object::Place;
use crate::{DataFrame, Error, Measurement, Uns};

/// The measurement that has X, the layers and obsm.
const MAIN: &str = "RNA";
/// The measurement of the element `raw`.
const RAW: &str = "raw";
/// The layer that is the element X.
const X: &str = "X";
/// The columns of indices without a name.
const OBS_ID: &str = "obs_id";
const VAR_ID: &str = "var_id";

/// An AnnData in Zarr at the root of an address, or in an HDF5 file at it.
#[derive(Debug, Clone)]
struct AnnDataExperiment {
    place: Place,
    /// The file, if it is HDF5.
    h5ad: Option<H5ad>,
    tables: AnnData,
    /// The same elements, read with the limit on the rate and with the cache of X.
    matrices: Arc<OnceLock<Matrices>>,
}

/// What reads the matrices of an AnnData.
#[derive(Debug, Clone)]
struct Matrices {
    anndata: AnnData,
    is_remote: bool,
    cache: Option<Arc<CachedStorage>>,
}

/// A matrix, and what its reader says of its storage.
#[derive(Debug, Clone)]
struct OpenMatrix {
    matrix: Arc<Matrix>,
    is_remote: bool,
    cache: Option<Arc<CachedStorage>>,
}

/// Which matrices and genes of an AnnData.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// X, the layers and obsm, with var.
    Main,
    /// The element `raw` with a var of its own.
    Raw,
}

/// X and layers over the same genes.
#[derive(Debug, Clone)]
struct AnnDataMeasurement {
    experiment: AnnDataExperiment,
    part: Part,
    uri: String,
}

/// Opens the AnnData at `place`; `None` if there is none, or if only libtiledb may read there.
///
/// # Errors
/// Its metadata cannot be read.
pub(crate) fn find_anndata(place: &Place) -> Result<Option<Arc<dyn StoredExperiment>>, Error> {
    let h5ad = H5ad::at(place)?;
    let files = match &h5ad {
        Some(h5ad) => h5ad.files(),
        None => match place.files() {
            Ok(files) => files,
            Err(NotNative::Unsupported(_)) => return Ok(None),
            Err(NotNative::Failed(error)) => return Err(error),
        },
    };
    let pool = place.threads()?.pool()?;
    let opened = AnnData::open(Arc::clone(&files), Arc::clone(&pool));
    if let Err(::anndata::Error::NotAnnData { .. }) = opened
        && let Some(mudata) = MuData::find(files, pool)?
    {
        check_no_timestamp(place)?;
        return Ok(Some(Arc::new(MuDataExperiment::new(place.clone(), h5ad, mudata))));
    }
    match opened {
        Ok(tables) => {
            check_no_timestamp(place)?;
            Ok(Some(Arc::new(AnnDataExperiment::new(place.clone(), h5ad, tables))))
        }
        Err(::anndata::Error::NotAnnData { .. }) if h5ad.is_none() => Ok(None),
        Err(::anndata::Error::NotAnnData { .. }) if may_be_10x(&place.uri) => {
            let found = file_kind(&place.uri).to_owned();
            Err(Error::NotA { uri: place.uri.clone(), wanted: "AnnData", found })
        }
        Err(error) => Err(error.into()),
    }
}

/// Fails if an earlier state is asked for.
fn check_no_timestamp(place: &Place) -> Result<(), Error> {
    if place.timestamp.is_none() {
        return Ok(());
    }
    let option = "timestamp: it has no earlier states";
    Err(Error::NotForAnnData { uri: place.uri.clone(), option })
}

impl StoredExperiment for AnnDataExperiment {
    fn uri(&self) -> &str {
        &self.place.uri
    }

    fn obs(&self) -> Result<DataFrame, Error> {
        Ok(self.frame(self.tables.obs()?, "obs", OBS_ID))
    }

    fn measurements(&self) -> Result<Vec<String>, Error> {
        let raw = self.tables.raw()?.map(|_| RAW.to_owned());
        Ok(std::iter::once(MAIN.to_owned()).chain(raw).collect())
    }

    fn measurement(&self, name: &str) -> Result<Measurement, Error> {
        let (part, uri) = match name {
            MAIN => (Part::Main, self.place.uri.clone()),
            RAW if self.tables.raw()?.is_some() => (Part::Raw, self.uri_of(RAW)),
            _ => {
                return Err(Error::NoMember {
                    uri: self.place.uri.clone(),
                    kind: "measurement",
                    name: name.to_owned(),
                    existing: self.measurements()?,
                });
            }
        };
        Ok(Measurement::new(AnnDataMeasurement { experiment: self.clone(), part, uri }))
    }

    fn with_read_limit(&self, limit: Arc<ReadLimit>) -> Arc<dyn StoredExperiment> {
        let mut limited = Self { matrices: Arc::default(), ..self.clone() };
        limited.place.read_limit = Some(limit);
        Arc::new(limited)
    }

    fn is_anndata(&self) -> bool {
        true
    }

    fn anndata_version(&self) -> Result<Option<String>, Error> {
        Ok(Some(self.tables.version()?))
    }

    fn unread_elements(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(self.tables.unread()?)
    }
}

impl AnnDataExperiment {
    fn new(place: Place, h5ad: Option<H5ad>, tables: AnnData) -> Self {
        Self { place, h5ad, tables, matrices: Arc::default() }
    }

    /// X, the layers and obsm, with var.
    fn main_measurement(&self) -> Measurement {
        let (experiment, uri) = (self.clone(), self.place.uri.clone());
        Measurement::new(AnnDataMeasurement { experiment, part: Part::Main, uri })
    }

    fn matrices(&self) -> Result<&Matrices, Error> {
        if let Some(matrices) = self.matrices.get() {
            return Ok(matrices);
        }
        let opened = match &self.h5ad {
            Some(h5ad) => h5ad.open_x(&self.place)?,
            None => self.place.open_x()?,
        };
        let is_remote = opened.storage.request_counts().is_some();
        let anndata = AnnData::open(opened.storage, self.place.threads()?.pool()?)?;
        Ok(self.matrices.get_or_init(|| Matrices { anndata, is_remote, cache: opened.cache }))
    }

    fn frame(&self, frame: Frame, path: &str, id: &str) -> DataFrame {
        let uri = self.uri_of(path);
        DataFrame::new(AnnDataTable::new(frame, id, &uri), uri)
    }

    fn uri_of(&self, path: &str) -> String {
        format!("{}/{path}", self.place.uri)
    }
}

impl StoredMeasurement for AnnDataMeasurement {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn var(&self) -> Result<DataFrame, Error> {
        let tables = &self.experiment.tables;
        match self.part {
            Part::Main => Ok(self.experiment.frame(tables.var()?, "var", VAR_ID)),
            Part::Raw => Ok(self.experiment.frame(raw(tables)?.var()?, "raw/var", VAR_ID)),
        }
    }

    fn layers(&self) -> Result<Vec<String>, Error> {
        let tables = &self.experiment.tables;
        let x = X.to_owned();
        match self.part {
            Part::Main => {
                let (has_x, layers) = (tables.has_x()?, tables.layers()?);
                if has_x && layers.contains(&x) {
                    let problem = "a layer has the name of the element X: rename it".to_owned();
                    return Err(Error::Schema { uri: self.uri.clone(), problem });
                }
                Ok(has_x.then_some(x).into_iter().chain(layers).collect())
            }
            Part::Raw => Ok(vec![x]),
        }
    }

    fn usual_layers(&self) -> &'static [&'static str] {
        &[X]
    }

    fn x(&self, layer: &str) -> Result<crate::Matrix, Error> {
        let existing = self.layers()?;
        if !existing.iter().any(|name| name == layer) {
            return Err(self.no_member("layer of X", layer, existing));
        }
        let anndata = &self.experiment.matrices()?.anndata;
        let matrix = match self.part {
            Part::Raw => raw(anndata)?.x()?,
            Part::Main if layer == X && anndata.has_x()? => anndata.x()?,
            Part::Main => anndata.layer(layer)?,
        };
        let n_vars = match self.part {
            Part::Main => anndata.n_vars()?,
            Part::Raw => raw(anndata)?.n_vars()?,
        };
        let (uri, n_columns) = (self.experiment.uri_of(matrix.path()), matrix.shape().1);
        if n_columns != n_vars {
            let problem = format!("it has {n_columns} columns, and var {n_vars} rows");
            return Err(Error::Schema { uri, problem });
        }
        self.array(matrix)
    }

    fn obsm_names(&self) -> Result<Vec<String>, Error> {
        match self.part {
            Part::Main => Ok(self.experiment.tables.obsm_names()?),
            Part::Raw => Ok(Vec::new()),
        }
    }

    fn obsm(&self, name: &str) -> Result<crate::Matrix, Error> {
        let existing = self.obsm_names()?;
        if !existing.iter().any(|of| of == name) {
            return Err(self.no_member("array of obsm", name, existing));
        }
        self.array(self.experiment.matrices()?.anndata.obsm(name)?)
    }

    fn obsp_names(&self) -> Result<Vec<String>, Error> {
        match self.part {
            Part::Main => Ok(self.experiment.tables.obsp_names()?),
            Part::Raw => Ok(Vec::new()),
        }
    }

    fn obsp(&self, name: &str) -> Result<crate::Matrix, Error> {
        let existing = self.obsp_names()?;
        if !existing.iter().any(|of| of == name) {
            return Err(self.no_member(GRAPH, name, existing));
        }
        let graph = self.experiment.matrices()?.anndata.obsp(name)?;
        let (n_columns, n_cells) = (graph.shape().1, self.experiment.tables.obs()?.n_rows());
        if n_columns != n_cells {
            let problem = format!("it has {n_columns} columns, and obs {n_cells} rows");
            return Err(Error::Schema { uri: self.experiment.uri_of(graph.path()), problem });
        }
        self.array(graph)
    }

    fn uns(&self) -> Result<Option<Uns>, Error> {
        match self.part {
            Part::Main => Ok(Some(self.experiment.tables.uns()?.into())),
            Part::Raw => Ok(None),
        }
    }
}

impl AnnDataMeasurement {
    /// A matrix whose rows are the cells.
    fn array(&self, matrix: Matrix) -> Result<crate::Matrix, Error> {
        let place = self.experiment.place.at(&self.experiment.uri_of(matrix.path()));
        let obs = self.experiment.tables.obs()?;
        if matrix.starts() != obs.starts() {
            let problem = if matrix.shape().0 == obs.n_rows() {
                let (of_matrix, of_obs) = (matrix.starts(), obs.starts());
                format!("its data sets begin at rows {of_matrix:?}, and those of obs at {of_obs:?}")
            } else {
                format!("it has {} rows, and obs {}", matrix.shape().0, obs.n_rows())
            };
            return Err(Error::Schema { uri: place.uri, problem });
        }
        let Matrices { is_remote, cache, .. } = self.experiment.matrices()?.clone();
        let opened = OpenMatrix { matrix: Arc::new(matrix), is_remote, cache };
        let reader = AnnDataReader::new(&opened, &place.uri, place.threads()?.pool()?);
        Ok(crate::Matrix::new(AnnDataMatrix { place, reader: Arc::new(reader) }))
    }

    fn no_member(&self, kind: &'static str, name: &str, existing: Vec<String>) -> Error {
        Error::NoMember { uri: self.uri.clone(), kind, name: name.to_owned(), existing }
    }
}

/// The element `raw`, which was there when the measurement was opened.
fn raw(anndata: &AnnData) -> Result<::anndata::Raw, Error> {
    let raw = anndata.raw()?;
    raw.ok_or_else(|| Error::Missing { uri: RAW.to_owned() })
}
