//! Sparse arrays: the layers of X, and the arrays of obsm.

use std::sync::Arc;

use arrow_schema::DataType;
use tiledb_native::Threads;
use tiledb_schema::{ArrayType, Datatype};

use crate::columns::{DATA, DIM_0, DIM_1};
use crate::native::{NativeReader, NotNative, OpenArray};
use crate::row_cache::{self, RowCacheReader};
use crate::soma_object::{Place, StoredArray, open_array};
use crate::{Error, ReaderChoice, XReader, is_within_f32};

/// The parameter for the buffer of each column of a read, in bytes.
#[cfg(feature = "libtiledb")]
const BUFFER_PARAMETER: &str = "soma.init_buffer_bytes";

/// The type that can be read, and how a dense array becomes one.
const SPARSE: &str = "SOMASparseNDArray, and only sparse arrays can be read: write it again from a \
                      scipy.sparse.csr_matrix (tiledbsoma.io.from_anndata)";

/// A `SOMASparseNDArray` of two dimensions: cells by genes, or in obsm cells by other columns; or a
/// matrix of an AnnData.
#[derive(Debug, Clone)]
pub struct SparseNdArray {
    array: Arc<dyn StoredArray>,
    place: Place,
    shape: (u64, u64),
    /// The reader, if it is a matrix of an AnnData.
    of_anndata: Option<Arc<dyn XReader>>,
}

impl SparseNdArray {
    /// Default buffer for each column of a read: 64 MiB, in bytes. A read touches only the pages
    /// that it fills.
    pub const BUFFER_BYTES: usize = 64 << 20;

    pub(crate) fn open(place: Place) -> Result<Self, Error> {
        let (array, metadata) =
            open_array(&place, "SOMASparseNDArray").map_err(|error| match error {
                Error::NotA { uri, found, .. } if found == "SOMADenseNDArray" => {
                    Error::NotA { uri, wanted: SPARSE, found: format!("a dense array ({found})") }
                }
                other => other,
            })?;
        let uri = place.uri.clone();
        let schema = array.schema();
        let broken = |problem: String| Error::Schema { uri: uri.clone(), problem };
        let dimensions: Vec<_> =
            schema.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
        if dimensions != [DIM_0, DIM_1]
            || schema.dimensions.iter().any(|dimension| dimension.datatype != Datatype::Int64)
        {
            let problem = format!(
                "its dimensions are {}, not {DIM_0} and {DIM_1} of 64-bit integers",
                dimensions.join(", ")
            );
            return Err(broken(problem));
        }
        let attributes: Vec<_> =
            schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        if attributes != [DATA] {
            return Err(broken(format!(
                "its attributes are {}, not {DATA} alone",
                attributes.join(", ")
            )));
        }
        if schema.array_type != ArrayType::Sparse {
            return Err(broken(format!("it is a dense array, not a {SPARSE}")));
        }
        if schema.attributes[0].var_sized
            || schema.attributes[0].nullable
            || schema.attributes[0].values_per_cell != 1
        {
            return Err(broken(format!("{DATA} does not hold one number in each cell")));
        }
        let non_empty = array.non_empty_domain()?;
        let extent = |dimension_idx: usize| {
            // In this order: the current domain, the extent in the metadata of old arrays, the
            // domain. Some writers did not update the metadata, so that extent is raised to include
            // all written cells, but is at most the domain.
            let noted = format!("soma_dim_{dimension_idx}_domain_upper");
            let noted = metadata.iter().find(|(key, _)| *key == noted);
            let domain = schema.dimensions[dimension_idx].domain.map(|bounds| bounds.1);
            let current = schema.current_domain.as_ref().map(|bounds| bounds[dimension_idx].1);
            let last = current.or_else(|| {
                let noted = noted.and_then(|(_, value)| value.as_integer())?;
                let used = non_empty.as_ref().map_or(-1, |bounds| bounds[dimension_idx].1);
                Some(noted.max(used).min(domain.unwrap_or(noted)))
            });
            last.or(domain)
                .and_then(|last| u64::try_from(last + 1).ok())
                .ok_or_else(|| broken("its extent is not known".into()))
        };
        let shape = (extent(0)?, extent(1)?);
        Ok(Self { array: Arc::from(array), place, shape, of_anndata: None })
    }

    /// A matrix of an AnnData, with its reader.
    #[cfg(feature = "anndata")]
    pub(crate) fn of_anndata(
        place: Place,
        array: Arc<dyn StoredArray>,
        reader: Arc<dyn XReader>,
    ) -> Self {
        let shape = (reader.n_rows(), reader.n_columns());
        Self { array, place, shape, of_anndata: Some(reader) }
    }

    /// The array's URI.
    pub fn uri(&self) -> &str {
        &self.place.uri
    }

    /// The reason why libtiledb describes the array, or why it had to read a part of its
    /// description; `None` if all was read natively. A reader of its values has [a reason of its
    /// own](XReader::why_not_native).
    pub fn why_not_native(&self) -> Option<&str> {
        self.array.why_not_native()
    }

    /// Number of rows (cells) and of columns (genes).
    pub fn shape(&self) -> (u64, u64) {
        self.shape
    }

    /// Number of columns in use. tiledbsoma makes arrays of obsm as wide as their matrix from 1.15
    /// on, so it is the [shape](Self::shape)'s. In older arrays, which have no current domain, the
    /// shape is only the largest one possible: there it is one more than the last written column,
    /// and 0 if nothing was written.
    pub fn used_columns(&self) -> Result<u64, Error> {
        if self.array.schema().current_domain.is_some() {
            return Ok(self.shape.1);
        }
        let last = self.non_empty_domain()?.map(|(_, (_, last))| last);
        Ok(last.map_or(0, |last| last.saturating_add(1)).min(self.shape.1))
    }

    /// TileDB's type of the values.
    pub fn value_type(&self) -> Datatype {
        self.array.schema().attributes[0].datatype
    }

    /// The number of values. If the array allows duplicates, values written twice count twice.
    pub fn nnz(&self) -> Result<u64, Error> {
        self.array.n_cells()
    }

    /// The least and greatest written rows and columns; `None` if nothing was written.
    #[expect(clippy::type_complexity, reason = "two bounds of two dimensions")]
    pub fn non_empty_domain(&self) -> Result<Option<((u64, u64), (u64, u64))>, Error> {
        let bounds = self.array.non_empty_domain()?;
        let bound = |(least, greatest): (i128, i128)| (least as u64, greatest as u64);
        Ok(bounds.map(|bounds| (bound(bounds[0]), bound(bounds[1]))))
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

    /// Opens a reader of the values: a [`RowCacheReader`] if the config sets
    /// `soma.row_cache_folder` and the native reader supports the array. Both readers decode with
    /// as many threads as the config gives libtiledb (`sm.compute_concurrency_level`), by default
    /// one per processor.
    ///
    /// Fails if the choice is the native reader and it does not support the array, or if the array
    /// cannot be opened: `Auto` never falls back to libtiledb because of a damaged or missing file.
    /// If reads of X have a [rate limit](crate::Experiment::with_read_limit), fails with
    /// [`Error::NotHeld`] instead of reading through libtiledb.
    pub fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        if let Some(reader) = &self.of_anndata {
            return self.anndata_reader(reader, choice);
        }
        if choice == ReaderChoice::Libtiledb {
            return self.libtiledb_reader(None);
        }
        let data_type = self.data_type()?;
        let opened = self.place.open_x().map_err(NotNative::from);
        let reader = opened.and_then(|opened| {
            // Threads that wait for an answer from far away must not keep another array waiting,
            // whose requests could be under way at the same time.
            let threads = match opened.storage.request_counts() {
                Some(_) => Threads::Own(self.place.n_threads()?),
                None => self.place.threads()?,
            };
            let (uri, timestamp) = (self.place.uri.as_str(), self.place.timestamp);
            OpenArray { uri, timestamp, threads }.reader(opened, Some((self.shape, data_type)))
        });
        match reader {
            Ok(reader) => self.with_row_cache(reader),
            Err(NotNative::Failed(error)) => Err(error),
            Err(NotNative::Unsupported(reason)) if choice == ReaderChoice::Auto => {
                self.libtiledb_reader(Some(reason))
            }
            Err(NotNative::Unsupported(reason)) => {
                Err(Error::NotNative { uri: self.uri().to_owned(), reason })
            }
        }
    }

    fn anndata_reader(
        &self,
        reader: &Arc<dyn XReader>,
        choice: ReaderChoice,
    ) -> Result<Arc<dyn XReader>, Error> {
        let option = if choice == ReaderChoice::Libtiledb {
            "reader libtiledb: choose `auto` or `native`"
        } else if row_cache::spec(&self.place)?.is_some() {
            "cache of rows: rewrite it for training instead (relayout)"
        } else {
            return Ok(Arc::clone(reader));
        };
        Err(Error::NotForAnnData { uri: self.uri().to_owned(), option })
    }

    /// The reader, behind the cache of rows that the config sets.
    fn with_row_cache(&self, reader: NativeReader) -> Result<Arc<dyn XReader>, Error> {
        let Some(spec) = row_cache::spec(&self.place)? else { return Ok(Arc::new(reader)) };
        // One folder may have several names.
        let local = storage::local_path(self.uri());
        let path = local.and_then(|path| path.canonicalize().ok());
        let place = path.map_or_else(|| self.uri().to_owned(), |path| path.display().to_string());
        let x = format!("{place}\n{}", reader.version());
        let pool = self.place.threads()?.pool()?;
        let reader = RowCacheReader::with_pool(Arc::new(reader), (self.uri(), &x), &spec, pool)?;
        Ok(Arc::new(reader))
    }

    #[cfg(feature = "libtiledb")]
    fn libtiledb_reader(&self, why_not_native: Option<String>) -> Result<Arc<dyn XReader>, Error> {
        if self.place.read_limit.is_some() {
            return Err(Error::NotHeld { uri: self.uri().to_owned(), why_not_native });
        }
        let buffer_bytes =
            self.place.parameter(BUFFER_PARAMETER, "bytes")?.unwrap_or(Self::BUFFER_BYTES);
        let kind = (self.shape, self.data_type()?);
        let reader = crate::LibtiledbReader::open(&self.place, kind, buffer_bytes, why_not_native)?;
        Ok(Arc::new(reader))
    }

    #[cfg(not(feature = "libtiledb"))]
    fn libtiledb_reader(&self, why_not_native: Option<String>) -> Result<Arc<dyn XReader>, Error> {
        let reason = why_not_native.unwrap_or_else(|| "that reader was chosen".to_owned());
        Err(Error::NeedsLibtiledb { uri: self.uri().to_owned(), reason })
    }

    /// The Arrow type of the values.
    fn data_type(&self) -> Result<DataType, Error> {
        crate::arrow::data_type(self.value_type(), false).ok_or_else(|| Error::Values {
            uri: self.uri().to_owned(),
            datatype: format!("{:?}", self.value_type()),
        })
    }
}
