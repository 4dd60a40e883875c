//! Matrices with a row for each cell: the layers of X, and the arrays of obsm.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_schema::DataType;

use crate::{Error, ReaderChoice, XReader, is_within_f32};

/// The first and the last of some rows and columns, both included.
pub type Bounds = ((u64, u64), (u64, u64));

/// A matrix of two dimensions: cells by genes, or in obsm cells by other columns.
#[derive(Debug, Clone)]
pub struct Matrix {
    stored: Arc<dyn StoredMatrix>,
}

/// A matrix in one of the two formats.
pub(crate) trait StoredMatrix: Debug + Send + Sync {
    fn uri(&self) -> &str;
    fn shape(&self) -> (u64, u64);
    fn used_columns(&self) -> Result<u64, Error> {
        Ok(self.shape().1)
    }
    fn data_type(&self) -> Result<DataType, Error>;
    fn nnz(&self) -> Result<u64, Error>;
    fn non_empty_domain(&self) -> Result<Option<Bounds>, Error>;
    fn why_not_native(&self) -> Option<&str> {
        None
    }
    fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error>;
}

impl Matrix {
    pub(crate) fn new(stored: impl StoredMatrix + 'static) -> Self {
        Self { stored: Arc::new(stored) }
    }

    /// The matrix's URI.
    pub fn uri(&self) -> &str {
        self.stored.uri()
    }

    /// The reason why libtiledb describes the matrix, or why it had to read a part of its
    /// description; `None` if it did not. A reader of its values has [a reason of its
    /// own](XReader::why_not_native).
    pub fn why_not_native(&self) -> Option<&str> {
        self.stored.why_not_native()
    }

    /// Number of rows (cells) and of columns (genes).
    pub fn shape(&self) -> (u64, u64) {
        self.stored.shape()
    }

    /// Number of columns in use. tiledbsoma makes arrays of obsm as wide as their matrix from 1.15
    /// on, so it is the [shape](Self::shape)'s. In older arrays, which have no current domain, the
    /// shape is only the largest one possible: there it is one more than the last written column,
    /// and 0 if nothing was written.
    pub fn used_columns(&self) -> Result<u64, Error> {
        self.stored.used_columns()
    }

    /// The type of the values.
    pub fn data_type(&self) -> Result<DataType, Error> {
        self.stored.data_type()
    }

    /// The number of values. If the array allows duplicates, values written twice count twice; in a
    /// dense matrix, all places count.
    pub fn nnz(&self) -> Result<u64, Error> {
        self.stored.nnz()
    }

    /// The least and greatest written rows and columns; `None` if nothing was written.
    pub fn non_empty_domain(&self) -> Result<Option<Bounds>, Error> {
        self.stored.non_empty_domain()
    }

    /// Opens a reader of the values that never rounds: where `f32` does not have a value, its reads
    /// fail with [`Error::Inexact`].
    ///
    /// # Errors
    /// Those of [`reader`](Self::reader), and those of [`XReader::exact`].
    pub fn exact_reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        let reader = self.reader(choice)?;
        if is_within_f32(reader.data_type()) { Ok(reader) } else { reader.exact() }
    }

    /// Opens a reader of the values: a [`RowCacheReader`](crate::RowCacheReader) if the config sets
    /// `soma.row_cache_folder` and the native reader supports the array. Both readers of SOMA
    /// decode with as many threads as the config gives libtiledb (`sm.compute_concurrency_level`),
    /// by default one per processor. An AnnData has one reader, and no cache of rows.
    ///
    /// Fails if the choice is the native reader and it does not support the array, or if the array
    /// cannot be opened: `Auto` never falls back to libtiledb because of a damaged or missing file.
    /// If reads of X have a [rate limit](crate::Experiment::with_read_limit), fails with
    /// [`Error::NotHeld`] instead of reading through libtiledb.
    pub fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        self.stored.reader(choice)
    }
}
