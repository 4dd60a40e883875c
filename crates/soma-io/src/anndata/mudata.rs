//! A MuData, seen as an experiment: its modalities are the measurements.
//!
//! A cell's joinid is its position in obs of the whole. The rows of a modality, which may stand in
//! another order and lack cells, are read by the joinids of the cells.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ::anndata::MuData;
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use storage::ReadLimit;

use super::h5ad::H5ad;
use super::mudata_table::{ModalityColumns, MuDataTable};
use super::table::AnnDataTable;
use super::{AnnDataExperiment, OBS_ID};
use crate::experiment::{StoredExperiment, StoredMeasurement};
use crate::matrix::{Bounds, StoredMatrix};
use crate::soma_object::Place;
use crate::{AlignedReader, DataFrame, Error, Matrix, Measurement, ReaderChoice, Uns, XReader};

/// A MuData in Zarr at the root of an address, or in an HDF5 file at it.
#[derive(Debug, Clone)]
pub(super) struct MuDataExperiment {
    place: Place,
    /// The file, if it is HDF5.
    h5mu: Option<H5ad>,
    mudata: MuData,
    /// By modality, the row of each cell: see [`ModalityMeasurement`].
    rows: Arc<Mutex<HashMap<String, Rows>>>,
}

/// The row of each cell in a modality, counted from 1; 0 for a cell that it lacks. `None` if it has
/// all cells in order.
type Rows = Option<Arc<[u32]>>;

/// A modality, whose rows are those of all cells.
#[derive(Debug)]
struct ModalityMeasurement {
    inner: Measurement,
    rows: Rows,
}

/// A matrix of a modality.
#[derive(Debug)]
struct ModalityMatrix {
    inner: Matrix,
    rows: Arc<[u32]>,
    /// Whether its columns are cells, too.
    is_graph: bool,
}

impl MuDataExperiment {
    pub(super) fn new(place: Place, h5mu: Option<H5ad>, mudata: MuData) -> Self {
        Self { place, h5mu, mudata, rows: Arc::default() }
    }

    fn uri_of(&self, path: &str) -> String {
        format!("{}/{path}", self.place.uri)
    }

    fn modality(&self, name: &str) -> Result<AnnDataExperiment, Error> {
        let path = MuData::path_of(name);
        let place = self.place.at(&self.uri_of(&path));
        let group = self.h5mu.as_ref().map(|h5mu| h5mu.within(&path));
        Ok(AnnDataExperiment::new(place, group, self.mudata.modality(name)?))
    }

    /// The rows of the cells in a modality.
    fn rows_of(&self, name: &str) -> Result<Rows, Error> {
        let mut known = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = known.get(name) {
            return Ok(rows.clone());
        }
        let rows = self.mudata.rows_of(name)?;
        let is_whole = self.mudata.modality(name)?.obs()?.n_rows() == rows.len() as u64;
        let in_order = rows.iter().zip(1..).all(|(row, expected)| *row == expected);
        let rows: Rows = (!is_whole || !in_order).then(|| rows.into());
        known.insert(name.to_owned(), rows.clone());
        Ok(rows)
    }
}

impl StoredExperiment for MuDataExperiment {
    fn uri(&self) -> &str {
        &self.place.uri
    }

    fn obs(&self) -> Result<DataFrame, Error> {
        let uri = self.uri_of("obs");
        let whole = AnnDataTable::new(self.mudata.obs()?, OBS_ID, &uri);
        let mut columns = Vec::new();
        for name in self.mudata.modalities()? {
            let frame = self.mudata.modality(&name)?.obs()?;
            let uri = self.uri_of(&format!("{}/obs", MuData::path_of(&name)));
            let table = AnnDataTable::new(frame, OBS_ID, &uri);
            columns.push(ModalityColumns::new(&name, table, self.rows_of(&name)?));
        }
        Ok(DataFrame::new(MuDataTable::new(whole, columns, &uri), uri))
    }

    fn measurements(&self) -> Result<Vec<String>, Error> {
        Ok(self.mudata.modalities()?)
    }

    fn measurement(&self, name: &str) -> Result<Measurement, Error> {
        let existing = self.measurements()?;
        if !existing.iter().any(|of| of == name) {
            let (uri, name) = (self.place.uri.clone(), name.to_owned());
            return Err(Error::NoMember { uri, kind: "measurement", name, existing });
        }
        let (inner, rows) = (self.modality(name)?.main_measurement(), self.rows_of(name)?);
        Ok(Measurement::new(ModalityMeasurement { inner, rows }))
    }

    fn usual_measurements(&self) -> &'static [&'static str] {
        &["rna", "RNA"]
    }

    fn with_read_limit(&self, limit: Arc<ReadLimit>) -> Arc<dyn StoredExperiment> {
        let mut limited = self.clone();
        limited.place.read_limit = Some(limit);
        Arc::new(limited)
    }

    fn is_anndata(&self) -> bool {
        true
    }

    fn anndata_version(&self) -> Result<Option<String>, Error> {
        Ok(Some(self.mudata.version()?))
    }

    fn unread_elements(&self) -> Result<Vec<(String, String)>, Error> {
        Ok(self.mudata.unread()?)
    }
}

impl ModalityMeasurement {
    /// A matrix whose rows are those of the cells.
    fn aligned(&self, inner: Matrix) -> Matrix {
        match &self.rows {
            Some(rows) => {
                let rows = Arc::clone(rows);
                Matrix::new(ModalityMatrix { inner, rows, is_graph: false })
            }
            None => inner,
        }
    }
}

impl StoredMeasurement for ModalityMeasurement {
    fn uri(&self) -> &str {
        self.inner.uri()
    }

    fn var(&self) -> Result<DataFrame, Error> {
        self.inner.var()
    }

    fn layers(&self) -> Result<Vec<String>, Error> {
        self.inner.layers()
    }

    fn usual_layers(&self) -> &'static [&'static str] {
        &[super::X]
    }

    fn x(&self, layer: &str) -> Result<Matrix, Error> {
        Ok(self.aligned(self.inner.x(layer)?))
    }

    fn obsm_names(&self) -> Result<Vec<String>, Error> {
        self.inner.obsm_names()
    }

    fn obsm(&self, name: &str) -> Result<Matrix, Error> {
        Ok(self.aligned(self.inner.obsm(name)?))
    }

    fn obsp_names(&self) -> Result<Vec<String>, Error> {
        self.inner.obsp_names()
    }

    fn obsp(&self, name: &str) -> Result<Matrix, Error> {
        let inner = self.inner.obsp(name)?;
        Ok(match &self.rows {
            Some(rows) => {
                let rows = Arc::clone(rows);
                Matrix::new(ModalityMatrix { inner, rows, is_graph: true })
            }
            None => inner,
        })
    }

    fn present(&self) -> Result<Option<BooleanBuffer>, Error> {
        let lacking = self.rows.as_ref().filter(|rows| rows.contains(&0));
        Ok(lacking.map(|rows| rows.iter().map(|row| *row > 0).collect()))
    }

    fn uns(&self) -> Result<Option<Uns>, Error> {
        self.inner.uns()
    }
}

impl StoredMatrix for ModalityMatrix {
    fn uri(&self) -> &str {
        self.inner.uri()
    }

    fn shape(&self) -> (u64, u64) {
        let n_cells = self.rows.len() as u64;
        (n_cells, if self.is_graph { n_cells } else { self.inner.shape().1 })
    }

    fn data_type(&self) -> Result<DataType, Error> {
        self.inner.data_type()
    }

    fn nnz(&self) -> Result<u64, Error> {
        self.inner.nnz()
    }

    fn non_empty_domain(&self) -> Result<Option<Bounds>, Error> {
        let (n_rows, n_columns) = self.shape();
        let last = n_rows.checked_sub(1).zip(n_columns.checked_sub(1));
        Ok(last.map(|(row, column)| ((0, row), (0, column))))
    }

    fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        let (inner, rows) = (self.inner.reader(choice)?, Arc::clone(&self.rows));
        let aligned = if self.is_graph { AlignedReader::graph } else { AlignedReader::new };
        Ok(Arc::new(aligned(inner, self.uri(), rows)?))
    }
}
