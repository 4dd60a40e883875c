//! Matrices of SOMA: its sparse and dense arrays.

use std::sync::Arc;

use arrow_schema::DataType;
use tiledb::{ArrayType, Datatype};
use tiledb_native::Threads;

use crate::columns::{DATA, DIM_0, DIM_1};
use crate::matrix::{Bounds, StoredMatrix};
use crate::native::{NotNative, OpenArray};
use crate::row_cache::{self, RowCacheReader};
use crate::soma_object::{OBJECT_TYPE, Place, StoredArray, open_array, text};
use crate::{Error, ReaderChoice, XReader};

/// The parameter for the buffer of each column of a read, in bytes.
#[cfg(feature = "libtiledb")]
const BUFFER_PARAMETER: &str = "soma.init_buffer_bytes";

/// The types of arrays.
const SPARSE: &str = "SOMASparseNDArray";
const DENSE: &str = "SOMADenseNDArray";

/// A `SOMASparseNDArray` or a `SOMADenseNDArray` of two dimensions.
///
/// Readers return the values of a dense array that are not zero. Places that were never written
/// have its fill value, as in tiledbsoma.
#[derive(Debug)]
pub struct NdArray {
    array: Box<dyn StoredArray>,
    place: Place,
    shape: (u64, u64),
}

impl NdArray {
    /// Default buffer for each column of a read: 64 MiB, in bytes. A read touches only the pages
    /// that it fills.
    pub const BUFFER_BYTES: usize = 64 << 20;

    pub(crate) fn open(place: Place) -> Result<Self, Error> {
        let (array, metadata) = open_array(&place, &[SPARSE, DENSE])?;
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
        let claimed = text(&metadata, OBJECT_TYPE);
        let is_dense = schema.array_type == ArrayType::Dense;
        if is_dense != (claimed == Some(DENSE)) {
            let found = if is_dense { "a dense" } else { "a sparse" };
            return Err(broken(format!(
                "it is {found} array, not a {}",
                claimed.unwrap_or(SPARSE)
            )));
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
        Ok(Self { array, place, shape })
    }

    fn is_dense(&self) -> bool {
        self.array.schema().array_type == ArrayType::Dense
    }

    /// Opens the native reader, and identifies the state of the array.
    fn native_reader(&self) -> Result<(Arc<dyn XReader>, String), NotNative> {
        let kind = (self.shape, self.data_type()?);
        let opened = self.place.open_x()?;
        // Threads that wait for a remote answer must not keep another array waiting, whose
        // requests could be under way at the same time.
        let threads = match opened.storage.request_counts() {
            Some(_) => Threads::Own(self.place.n_threads()?),
            None => self.place.threads()?,
        };
        let (uri, timestamp) = (self.place.uri.as_str(), self.place.timestamp);
        let open = OpenArray { uri, timestamp, threads };
        if self.is_dense() {
            let reader = open.dense_reader(opened, kind)?;
            let version = reader.version();
            return Ok((Arc::new(reader), version));
        }
        let reader = open.reader(opened, Some(kind))?;
        let version = reader.version();
        Ok((Arc::new(reader), version))
    }

    /// The reader, behind the cache of rows that the config sets.
    fn with_row_cache(
        &self,
        (reader, version): (Arc<dyn XReader>, String),
    ) -> Result<Arc<dyn XReader>, Error> {
        let Some(spec) = row_cache::spec(&self.place)? else { return Ok(reader) };
        // One folder may have several names.
        let local = storage::local_path(self.uri());
        let path = local.and_then(|path| path.canonicalize().ok());
        let place = path.map_or_else(|| self.uri().to_owned(), |path| path.display().to_string());
        let x = format!("{place}\n{version}");
        let pool = self.place.threads()?.pool()?;
        let reader = RowCacheReader::with_pool(reader, (self.uri(), &x), &spec, pool)?;
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
}

impl StoredMatrix for NdArray {
    fn uri(&self) -> &str {
        &self.place.uri
    }

    fn shape(&self) -> (u64, u64) {
        self.shape
    }

    fn used_columns(&self) -> Result<u64, Error> {
        if self.array.schema().current_domain.is_some() {
            return Ok(self.shape.1);
        }
        let last = self.non_empty_domain()?.map(|(_, (_, last))| last);
        Ok(last.map_or(0, |last| last.saturating_add(1)).min(self.shape.1))
    }

    fn data_type(&self) -> Result<DataType, Error> {
        let datatype = self.array.schema().attributes[0].datatype;
        crate::arrow::data_type(datatype, false).ok_or_else(|| Error::Values {
            uri: self.uri().to_owned(),
            datatype: format!("{datatype:?}"),
        })
    }

    fn nnz(&self) -> Result<u64, Error> {
        if self.is_dense() {
            return Ok(self.shape.0.saturating_mul(self.shape.1));
        }
        self.array.n_cells()
    }

    fn non_empty_domain(&self) -> Result<Option<Bounds>, Error> {
        let bounds = self.array.non_empty_domain()?;
        let bound = |(least, greatest): (i128, i128)| (least as u64, greatest as u64);
        Ok(bounds.map(|bounds| (bound(bounds[0]), bound(bounds[1]))))
    }

    fn why_not_native(&self) -> Option<&str> {
        self.array.why_not_native()
    }

    fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        if choice == ReaderChoice::Libtiledb {
            return self.libtiledb_reader(None);
        }
        match self.native_reader() {
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
}
