//! The reader of X that reads the array's files itself, without libtiledb.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use storage::{CacheUse, CachedStorage, Config, OpenedStorage};
use tiledb_native::{Array, DenseArray, OpenOptions, Threads};

use crate::coo;
use crate::dense::DenseReader;
use crate::exact::{Request, is_within_f32};
use crate::{CsrBuffers, Error, GeneSelection, PackedCsr, ReadForm, ReadStats, RowRanges, XReader};

/// Reads X from the files of the array, and decodes only the parts of tiles with requested rows.
///
/// Values are converted to `f32` while they are decoded, also for [`XReader::read_coo`].
#[derive(Debug)]
pub struct NativeReader {
    array: Array,
    /// Whether reads fail instead of rounding a value.
    is_exact: bool,
    uri: String,
    shape: (u64, u64),
    /// Number of values, once counted.
    nnz: OnceLock<u64>,
    data_type: DataType,
    is_remote: bool,
    /// The cache in front of an object store, if the config sets one.
    cache: Option<Arc<CachedStorage>>,
    /// Buffer for the rows of a read as COO, reused by the next one.
    csr: Mutex<CsrBuffers>,
    /// The limit of each holder, in bytes of decoded values.
    allowed: Mutex<BTreeMap<u64, u64>>,
}

/// Options for opening an array.
pub(crate) struct OpenArray<'a> {
    pub(crate) uri: &'a str,
    pub(crate) timestamp: Option<u64>,
    pub(crate) threads: Threads,
}

impl OpenArray<'_> {
    /// Opens a reader of the array in `opened`. Shape and type are those of the schema unless
    /// given. Fails if the native reader does not support the array, or if the array cannot be
    /// opened.
    pub(crate) fn reader(
        &self,
        opened: OpenedStorage,
        shape_and_type: Option<((u64, u64), DataType)>,
    ) -> Result<NativeReader, NotNative> {
        let (timestamp, threads) = (self.timestamp, self.threads.clone());
        let options = OpenOptions { timestamp, threads, ..OpenOptions::new(1) };
        let OpenedStorage { storage, cache } = opened;
        // Only remote storages have requests.
        let is_remote = storage.request_counts().is_some();
        let array = Array::open(storage, &options)?;
        let (shape, data_type) = match shape_and_type {
            Some(given) => given,
            None => ((array.n_rows(), array.n_columns()), value_type(&array, self.uri)?),
        };
        Ok(NativeReader {
            array,
            is_exact: false,
            uri: self.uri.to_owned(),
            shape,
            nnz: OnceLock::new(),
            data_type,
            is_remote,
            cache,
            csr: Mutex::default(),
            allowed: Mutex::default(),
        })
    }

    /// Opens a reader of the dense array in `opened`.
    pub(crate) fn dense_reader(
        &self,
        opened: OpenedStorage,
        kind: ((u64, u64), DataType),
    ) -> Result<DenseReader, NotNative> {
        let (timestamp, threads) = (self.timestamp, self.threads.clone());
        let options = OpenOptions { timestamp, threads, ..OpenOptions::new(1) };
        let OpenedStorage { storage, cache } = opened;
        let is_remote = storage.request_counts().is_some();
        let array = DenseArray::open(storage, &options)?;
        Ok(DenseReader::new(array, self.uri, kind, (is_remote, cache)))
    }
}

/// The Arrow type of the array's values.
fn value_type(array: &Array, uri: &str) -> Result<DataType, Error> {
    let (_, datatype) = array.attribute();
    Ok(match datatype.name().as_str() {
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "uint8" => DataType::UInt8,
        "int16" => DataType::Int16,
        "uint16" => DataType::UInt16,
        "int32" => DataType::Int32,
        "uint32" => DataType::UInt32,
        "int64" => DataType::Int64,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        other => {
            return Err(Error::Values { uri: uri.to_owned(), datatype: other.to_owned() });
        }
    })
}

impl NativeReader {
    /// Opens the array at `address` without its experiment and without libtiledb. `n_threads`
    /// threads decode. Row `i` is the cell of joinid `i`, column `j` the gene of joinid `j`, and
    /// the shape is that of the array's schema.
    ///
    /// [`storage::open`] documents `address` and `config`.
    ///
    /// # Errors
    /// [`Error::NotNative`] if only libtiledb supports the array or the address; [`Error::Native`]
    /// and [`Error::Storage`] if the array cannot be opened.
    pub fn open(address: &str, config: &Config, n_threads: usize) -> Result<Self, Error> {
        let options = storage::OpenOptions {
            never_changes: Some(tiledb_native::is_in_fragment),
            ..storage::OpenOptions::new(config)
        };
        let opened = storage::open(address, &options).map_err(NotNative::from);
        let threads = Threads::Own(n_threads);
        let open = OpenArray { uri: address, timestamp: None, threads };
        opened.and_then(|opened| open.reader(opened, None)).map_err(|error| match error {
            NotNative::Failed(error) => error,
            NotNative::Unsupported(reason) => Error::NotNative { uri: address.to_owned(), reason },
        })
    }

    /// The request of an exact read; `None` if reads may round.
    fn exact_request<'a>(
        &'a self,
        rows: &'a RowRanges,
        genes: &'a GeneSelection,
    ) -> Option<Request<'a>> {
        let (uri, data_type) = (self.uri.as_str(), &self.data_type);
        self.is_exact.then_some(Request { uri, rows, genes, data_type })
    }

    /// Identifies the array and the state in which it was opened.
    pub(crate) fn version(&self) -> String {
        self.array.version()
    }
}

/// The reason that an array has no native reader.
#[derive(Debug)]
pub(crate) enum NotNative {
    /// The native reader does not support the array or the address.
    Unsupported(String),
    /// The array could not be opened.
    Failed(Error),
}

impl From<Error> for NotNative {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<storage::Error> for NotNative {
    fn from(error: storage::Error) -> Self {
        match error {
            storage::Error::Unsupported { reason, .. } => Self::Unsupported(reason),
            other => Self::Failed(other.into()),
        }
    }
}

impl XReader for NativeReader {
    fn name(&self) -> &'static str {
        "native"
    }

    fn n_rows(&self) -> u64 {
        self.shape.0
    }

    fn n_columns(&self) -> u64 {
        self.shape.1
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn nnz(&self) -> Result<Option<u64>, Error> {
        // Possibly nearly all cells were deleted.
        if !self.array.has_deletes() {
            return Ok(Some(self.array.n_cells()));
        }
        if let Some(nnz) = self.nnz.get() {
            return Ok(Some(*nnz));
        }
        let nnz = self.array.n_values()?;
        Ok(Some(*self.nnz.get_or_init(|| nnz)))
    }

    fn most_nnz(&self) -> Result<Option<u64>, Error> {
        // To count them, X may have to be read as a whole.
        Ok(Some(self.array.n_cells()))
    }

    fn working_bytes(&self, nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64 {
        coo::working_bytes(nnz, form).saturating_add(self.array.working_bytes(nnz, genes))
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn cache(&self) -> Option<CacheUse> {
        self.cache.as_ref().map(|cache| cache.usage())
    }

    fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        match limit_bytes {
            0 => allowed.remove(&holder),
            limit_bytes => allowed.insert(holder, limit_bytes),
        };
        self.array.keep_decoded(allowed.values().copied().fold(0, u64::saturating_add));
    }

    fn index_bytes(&self) -> u64 {
        self.array.index_bytes() as u64
    }

    fn decoded_bytes(&self) -> u64 {
        self.array.decoded_bytes()
    }

    fn announce_next(&self, rows: &RowRanges, genes: &GeneSelection) {
        self.array.announce_next(rows.ranges(), genes);
    }

    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        Ok(Arc::new(Self {
            array: self.array.exact(),
            is_exact: !is_within_f32(&self.data_type),
            uri: self.uri.clone(),
            shape: self.shape,
            nnz: self.nnz.clone(),
            data_type: self.data_type.clone(),
            is_remote: self.is_remote,
            cache: self.cache.clone(),
            csr: Mutex::default(),
            allowed: Mutex::default(),
        }))
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        rows.check_within(&self.uri, self.shape.0)?;
        let n_columns = genes.n_columns(self.shape.1)?;
        let stats = self.array.read_csr(rows.ranges(), genes, out)?;
        out.n_columns = n_columns;
        self.exact_request(rows, genes).map_or(Ok(()), |request| request.check_csr(out))?;
        Ok(stats)
    }

    fn packs(&self, genes: &GeneSelection) -> bool {
        // An array may have room for more genes than the experiment has.
        let is_shape = *genes != GeneSelection::All || self.array.n_columns() == self.shape.1;
        let n_columns = genes.n_columns(self.shape.1);
        is_shape && n_columns.is_ok_and(|n_columns| n_columns <= PackedCsr::MAX_COLUMNS)
    }

    fn read_packed(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        if !self.packs(genes) {
            genes.n_columns(self.shape.1)?;
            return Err(Error::Unpacked { reader: self.name() });
        }
        rows.check_within(&self.uri, self.shape.0)?;
        let stats = self.array.read_packed(rows.ranges(), genes, out)?;
        self.exact_request(rows, genes).map_or(Ok(()), |request| request.check_packed(out))?;
        Ok(stats)
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        coo::read((self, &self.uri), (rows, genes), &self.csr, each)
    }
}
