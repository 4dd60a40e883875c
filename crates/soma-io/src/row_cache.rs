//! The reader of X that keeps rows on a local disk, laid out for training.

mod cache;
mod output;
mod page;
mod requests;
mod stats;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use rayon::ThreadPool;

pub use self::cache::RowCacheSpec;
use self::cache::{Columns, RowCache};
use self::output::Output;
pub use self::stats::{RowCacheStats, RowCacheUse};
use crate::soma_object::Place;
use crate::{
    CacheUse, CsrBuffers, Error, GeneSelection, PackedCsr, ReadForm, ReadStats, ReadTimes,
    RowRanges, WholeRows, XReader, coo,
};

/// The parameter of the config for the folder of the cache of rows.
pub const ROW_CACHE_FOLDER: &str = "soma.row_cache_folder";
/// The parameter of the config for the size limit of the cache of rows.
pub const ROW_CACHE_LIMIT: &str = "soma.row_cache_limit_bytes";
/// The size limit of the cache of rows without that parameter: 32 GiB.
pub const ROW_CACHE_DEFAULT_BYTES: u64 = 32 << 30;
/// Bytes of a joinid as it is stored.
const JOINID_BYTES: u64 = 8;

/// Reads rows of X from a cache on a local disk, and through another reader those that are not
/// there, which it then keeps.
///
/// The genes of a read belong to the identity of its rows: all genes, a range and a list each have
/// rows of their own. Values are kept as `f32`, as [`XReader::read_csr`] returns them, also for
/// [`XReader::read_coo`].
///
/// Rows are kept in *pages* of 64 consecutive rows, a file each, of the columns that were read. A
/// page may have only some of its rows: those that were read so far, for instance if training reads
/// a part of the rows. Whole numbers below 65,536 take about 1 to 2 bytes a value with its column,
/// other values up to 6.
///
/// # Promises
///
/// A read gives the values of the matrix, or its error. A page that is cut short, damaged or
/// foreign is read from the matrix and written again. A killed process leaves nothing that could be
/// taken for a page. If pages cannot be written (a full disk, a removed folder), reads go on
/// without; [`RowCacheUse::problem`] says why.
///
/// At the limit pages of matrices that no living process reads make room, first those that were not
/// read for the longest time. If there are none, no more pages are written: what is there stays,
/// so a matrix that is larger than the limit comes from the folder in part, in every epoch the same
/// part. `BlockStore` of crate `storage` has the details.
///
/// A thread that reads rows of the matrix encodes and writes them before its read returns.
///
/// [`Matrix::reader`](crate::Matrix::reader) returns such a reader if the config sets
/// `soma.row_cache_folder` and the native reader reads the array.
///
/// ```
/// use std::sync::Arc;
///
/// use soma_io::{
///     CsrBuffers, GeneSelection, MemoryReader, RowCacheReader, RowCacheSpec, RowRanges, XReader,
/// };
///
/// let x = CsrBuffers {
///     row_offsets: vec![0, 2, 3],
///     columns: vec![0, 2, 1],
///     values: vec![5.0, 1.0, 2.0],
///     n_columns: 3,
/// };
/// let folder = tempfile::tempdir()?;
/// let spec = RowCacheSpec { folder: folder.path().to_owned(), limit_bytes: 100 << 20 };
/// let reader = Arc::new(MemoryReader::new(x.clone())?);
/// let cached = RowCacheReader::open(reader, "small x, first version", &spec, 2)?;
/// let mut rows = CsrBuffers::new();
/// for _epoch in 0..2 {
///     cached.read_csr(&RowRanges::new(vec![0..2])?, &GeneSelection::All, &mut rows)?;
///     assert_eq!(rows, x);
/// }
/// let counts = cached.row_cache().expect("it has one").stats;
/// assert_eq!((counts.misses, counts.hits), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RowCacheReader {
    inner: Arc<dyn XReader>,
    cache: RowCache,
    spec: RowCacheSpec,
    pool: Arc<ThreadPool>,
    uri: String,
    /// Identifies X and its version.
    x: String,
    /// The genes of the last read, checked.
    selected: Mutex<Option<(GeneSelection, Selected)>>,
    /// Buffer for the rows of a read as COO, reused by the next one.
    csr: Mutex<CsrBuffers>,
}

/// Checked genes.
#[derive(Debug, Clone, Copy)]
struct Selected {
    columns: Columns,
    n_columns: usize,
}

impl RowCacheReader {
    /// Caches the rows that `inner` reads. `x` identifies X: it must differ between any two X, and
    /// between versions of one. `n_threads` threads decode and encode.
    ///
    /// # Errors
    /// [`Error::RowCache`] if the cache cannot be opened; [`Error::Native`] if threads do not
    /// start.
    pub fn open(
        inner: Arc<dyn XReader>,
        x: &str,
        spec: &RowCacheSpec,
        n_threads: usize,
    ) -> Result<Self, Error> {
        Self::with_pool(inner, (x, x), spec, tiledb_native::Threads::Own(n_threads).pool()?)
    }

    /// Caches the rows of the array at `uri`, whose version `x` identifies with it.
    pub(crate) fn with_pool(
        inner: Arc<dyn XReader>,
        (uri, x): (&str, &str),
        spec: &RowCacheSpec,
        pool: Arc<ThreadPool>,
    ) -> Result<Self, Error> {
        let cache = RowCache::open(spec, x, Arc::clone(&pool))
            .map_err(|source| Error::RowCache { uri: uri.to_owned(), source })?;
        let (selected, csr) = (Mutex::default(), Mutex::default());
        let (spec, uri, x) = (spec.clone(), uri.to_owned(), x.to_owned());
        Ok(Self { inner, cache, spec, pool, uri, x, selected, csr })
    }

    /// Checks genes, unless they are those of the read before.
    fn select(&self, genes: &GeneSelection) -> Result<Selected, Error> {
        let mut last = self.selected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of_last, selected)) = &*last
            && of_last == genes
        {
            return Ok(*selected);
        }
        let n_columns = genes.n_columns(self.inner.n_columns())?;
        let columns = self.cache.columns(&identity(genes, n_columns), n_columns);
        let selected = Selected { columns, n_columns };
        *last = Some((genes.clone(), selected));
        Ok(selected)
    }

    /// Reads rows into `out`, whose number of columns is set. The result's `values` is 0.
    fn read(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        selected: Selected,
        out: Output<'_>,
    ) -> Result<ReadStats, Error> {
        rows.check_within(&self.uri, self.inner.n_rows())?;
        let requests = self.is_remote().then_some(0);
        let mut stats = ReadStats { requests, ..ReadStats::nothing() };
        let counts = self.cache.read(rows.ranges(), &selected.columns, out, |ranges, out| {
            let rows = RowRanges::new(ranges.to_vec())?;
            let of_rest = match out {
                Output::Csr(csr) => self.inner.read_csr(&rows, genes, csr)?,
                Output::Packed(packed) => self.inner.read_packed(&rows, genes, packed)?,
            };
            add(&mut stats, of_rest);
            Ok::<(), Error>(())
        })?;
        let value_bytes = self.data_type().primitive_width().unwrap_or(1) as u64;
        let bytes = Some(counts.values * (2 * JOINID_BYTES + value_bytes));
        let requests = stats.requests.map(|_| 0);
        let of_cache = ReadStats { requests, bytes_decoded: bytes, bytes_needed: bytes, ..counts };
        add(&mut stats, of_cache);
        Ok(stats)
    }
}

/// Adds the counts of a part of a read. What one does not know, the sum does not either, except
/// that untimed parts take no time.
fn add(stats: &mut ReadStats, part: ReadStats) {
    *stats +=
        ReadStats { values: 0, times: part.times.or_else(|| Some(ReadTimes::default())), ..part };
}

/// Bytes that are the same for the same genes in the same order, and others for others.
fn identity(genes: &GeneSelection, n_columns: usize) -> Vec<u8> {
    match genes {
        GeneSelection::All => format!("range 0..{n_columns}").into(),
        GeneSelection::Range(range) => format!("range {}..{}", range.start, range.end).into(),
        GeneSelection::List(list) => b"list "
            .iter()
            .copied()
            .chain(list.iter().flat_map(|gene| gene.to_le_bytes()))
            .collect(),
    }
}

/// The cache that the config of an experiment sets; `None` without one.
pub(crate) fn spec(place: &Place) -> Result<Option<RowCacheSpec>, Error> {
    let limit_bytes = place.parameter(ROW_CACHE_LIMIT, "bytes")?;
    match place.config().get(ROW_CACHE_FOLDER).filter(|folder| !folder.is_empty()) {
        Some(folder) => Ok(Some(RowCacheSpec {
            folder: PathBuf::from(folder),
            limit_bytes: limit_bytes.map_or(ROW_CACHE_DEFAULT_BYTES, |bytes| bytes as u64),
        })),
        None if limit_bytes.is_some() => Err(Error::Schema {
            uri: place.uri.clone(),
            problem: format!("there is no {ROW_CACHE_FOLDER} that {ROW_CACHE_LIMIT} could limit"),
        }),
        None => Ok(None),
    }
}

#[deny(clippy::missing_trait_methods)]
impl XReader for RowCacheReader {
    storage::forward! { inner:
        fn name() -> &'static str;
        fn why_not_native() -> Option<&str>;
        fn n_rows() -> u64;
        fn n_columns() -> u64;
        fn data_type() -> &DataType;
        fn nnz() -> Result<Option<u64>, Error>;
        fn most_nnz() -> Result<Option<u64>, Error>;
        fn is_remote() -> bool;
        fn cache() -> Option<CacheUse>;
        fn keep_decoded(holder: u64, limit_bytes: u64);
        fn asks_next_reads() -> bool;
        fn decoded_bytes() -> u64;
        fn index_bytes() -> u64;
        fn packs(genes: &GeneSelection) -> bool;
    }

    fn working_bytes(&self, nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64 {
        // COO is converted from CSR.
        let of_inner = self.inner.working_bytes(nnz, genes, ReadForm::Csr);
        // An error is a later read's to report.
        let all = self.most_nnz().ok().flatten().unwrap_or(0);
        let of_pages = self.select(genes).map_or(0, |selected| {
            self.cache.working_bytes(all / self.n_rows().max(1), &selected.columns)
        });
        of_inner.saturating_add(of_pages).saturating_add(coo::working_bytes(nnz, form))
    }

    fn row_cache(&self) -> Option<RowCacheUse> {
        Some(self.cache.usage())
    }

    /// Names the rows that are not in the cache. If the reader behind is near, none: finding them
    /// would take as long as it could gain.
    fn announce_next(&self, rows: &RowRanges, genes: &GeneSelection) {
        if !self.is_remote() {
            return;
        }
        // Errors are the read's to report.
        let Ok(selected) = self.select(genes) else { return };
        // None takes the place of rows that were named before and came from the cache.
        if let Ok(missing) = RowRanges::new(self.cache.missing(rows.ranges(), &selected.columns)) {
            self.inner.announce_next(&missing, genes);
        }
    }

    /// A reader of exact values with the same cache, in which they have pages of their own: other
    /// pages may have rounded values.
    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        let (uri, x) = (self.uri.as_str(), format!("{}\nexact", self.x));
        let pool = Arc::clone(&self.pool);
        let reader = Self::with_pool(self.inner.exact()?, (uri, &x), &self.spec, pool)?;
        Ok(Arc::new(reader))
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        let selected = self.select(genes)?;
        out.n_columns = selected.n_columns;
        let stats = self.read(rows, genes, selected, Output::Csr(out))?;
        Ok(ReadStats { values: out.nnz() as u64, ..stats })
    }

    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        None
    }

    fn read_packed(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        let selected = self.select(genes)?;
        let unpacked = || Error::Unpacked { reader: self.name() };
        if !self.packs(genes) {
            return Err(unpacked());
        }
        out.set_n_columns(selected.n_columns).map_err(|_| unpacked())?;
        let stats = self.read(rows, genes, selected, Output::Packed(out))?;
        Ok(ReadStats { values: out.nnz() as u64, ..stats })
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
