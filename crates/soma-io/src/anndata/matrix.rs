//! Matrices of an AnnData.

use std::sync::Arc;

use arrow_schema::DataType;

use super::reader::AnnDataReader;
use crate::matrix::{Bounds, StoredMatrix};
use crate::soma_object::Place;
use crate::{Error, ReaderChoice, XReader, row_cache};

/// A matrix, which has one reader.
#[derive(Debug)]
pub(super) struct AnnDataMatrix {
    pub(super) place: Place,
    pub(super) reader: Arc<AnnDataReader>,
}

impl StoredMatrix for AnnDataMatrix {
    fn uri(&self) -> &str {
        &self.place.uri
    }

    fn shape(&self) -> (u64, u64) {
        (self.reader.n_rows(), self.reader.n_columns())
    }

    fn data_type(&self) -> Result<DataType, Error> {
        Ok(self.reader.data_type().clone())
    }

    fn nnz(&self) -> Result<u64, Error> {
        let (n_rows, n_columns) = self.shape();
        Ok(self.reader.nnz()?.unwrap_or_else(|| n_rows.saturating_mul(n_columns)))
    }

    fn non_empty_domain(&self) -> Result<Option<Bounds>, Error> {
        let (rows, columns) = self.shape();
        let last = rows.checked_sub(1).zip(columns.checked_sub(1));
        Ok(last.map(|(row, column)| ((0, row), (0, column))))
    }

    fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        let option = if choice == ReaderChoice::Libtiledb {
            "reader libtiledb: choose `auto` or `native`"
        } else if row_cache::spec(&self.place)?.is_some() {
            "cache of rows: rewrite it for training instead (relayout)"
        } else {
            return Ok(Arc::<AnnDataReader>::clone(&self.reader));
        };
        Err(Error::NotForAnnData { uri: self.uri().to_owned(), option })
    }
}
