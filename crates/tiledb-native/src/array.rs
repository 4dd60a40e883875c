//! Opens an array, and describes it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csr::{ColumnSelection, CsrBuffers, Narrowing, PackedCsr};
use rayon::{ThreadPool, ThreadPoolBuilder};
use storage::Files;
use storage::{LocalStorage, Storage};
use worktime::ReadStats;

use crate::datatype::Datatype;
use crate::decoded_cache::DecodedCache;
use crate::deletes::{Deleted, Deletes};
use crate::directory::Directory;
use crate::error::Error;
use crate::fragment::{Fragment, RawFooter};
use crate::index_cache::IndexCache;
use crate::read::{Output, ROWS, Reader};
use crate::schema::{Layout, Schema, Schemas};
use crate::unsupported::Unsupported;

/// The most fragments that libtiledb's sort, libstdc++'s `std::sort`, keeps in order if their times
/// are equal.
pub(crate) const MOST_SORTED_STABLY: usize = 16;

/// The threads that decode.
#[derive(Debug, Clone)]
pub enum Threads {
    /// This many threads of the array's own, which end when it is dropped.
    Own(usize),
    /// A pool that may have other users.
    Shared(Arc<ThreadPool>),
}

impl Threads {
    /// Starts this many threads, at least one, for several arrays.
    ///
    /// # Errors
    /// [`Error::Threads`] if they do not start.
    pub fn start(n_threads: usize) -> Result<Self, Error> {
        Self::Own(n_threads).pool().map(Self::Shared)
    }

    /// The shared pool, or a new one.
    ///
    /// # Errors
    /// [`Error::Threads`] if a new one does not start.
    pub fn pool(&self) -> Result<Arc<ThreadPool>, Error> {
        let n_threads = match self {
            Self::Shared(pool) => return Ok(Arc::clone(pool)),
            Self::Own(n_threads) => *n_threads,
        };
        let builder = ThreadPoolBuilder::new()
            .num_threads(n_threads.max(1))
            .thread_name(|idx| format!("tiledb-native-{idx}"))
            .start_handler(|_| worktime::run_in_background());
        builder.build().map(Arc::new).map_err(|source| Error::Threads { n_threads, source })
    }
}

/// Options for opening an array.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The time as of which to read, in milliseconds since 1970; `None` for the latest state.
    pub timestamp: Option<u64>,
    /// The threads that decode.
    pub threads: Threads,
    /// The most memory for row indices, in bytes. They take about 4 bytes for each row with cells
    /// in a tile: 5 kB for a tile of 65,536 cells in 1,200 rows.
    pub index_bytes: usize,
}

impl OpenOptions {
    /// Reads the latest state with `n_threads` decoding threads and up to 256 MiB of row indices,
    /// enough for 3 billion cells.
    pub fn new(n_threads: usize) -> Self {
        Self { timestamp: None, threads: Threads::Own(n_threads), index_bytes: 256 << 20 }
    }
}

/// A sparse array of two integer dimensions and one attribute, open for reading.
#[derive(Debug)]
pub struct Array {
    reader: Reader,
    pool: Arc<ThreadPool>,
}

impl Array {
    /// Opens the array in a local folder.
    ///
    /// # Errors
    /// Those of [`Array::open`].
    pub fn open_local(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, Error> {
        Self::open(Arc::new(LocalStorage::new(folder.as_ref())), options)
    }

    /// Opens the array at the root of `storage`: lists its folders and reads its schema and the
    /// footers of its fragments.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if libtiledb can read the array but this crate cannot;
    /// [`Error::NotAnArray`], [`Error::Storage`], [`Error::Damaged`] if it cannot be opened at all;
    /// [`Error::Threads`].
    pub fn open(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Self, Error> {
        let files = Files::new(storage);
        let timestamp = options.timestamp.unwrap_or(u64::MAX);
        let (layout, fragments, deletes) = load(&files, timestamp)?;
        let pool = options.threads.pool()?;
        let indices = Arc::new(IndexCache::new(options.index_bytes));
        let crop = crop(&layout, &fragments);
        let concerning = fragments.iter().map(|fragment| &fragment.deletes);
        let deleted = Deleted::from_fragments(concerning, ROWS);
        let counted = files.storage().request_counts().unwrap_or_default();
        let reader = Reader {
            files,
            layout,
            fragments: fragments.into(),
            indices,
            decoded: DecodedCache::default(),
            deletes: Arc::new(deletes),
            deleted,
            timestamp,
            narrowing: Narrowing::Nearest,
            crop,
            has_floats: AtomicBool::new(false),
            is_collected: AtomicBool::new(false),
            next: std::sync::Mutex::default(),
            counted: Arc::new(counted.into()),
            scratch: std::sync::Mutex::default(),
        };
        Ok(Self { reader, pool })
    }

    /// The same array, whose reads return [`csr::INEXACT`] for each value that f32 does not have,
    /// instead of the nearest one. Opens nothing again; shares threads and row indices with this
    /// one, but no decoded cells.
    #[must_use]
    pub fn exact(&self) -> Self {
        let Reader { files, layout, fragments, indices, deletes, timestamp, crop, counted, .. } =
            &self.reader;
        let reader = Reader {
            files: files.clone(),
            layout: Arc::clone(layout),
            fragments: Arc::clone(fragments),
            indices: Arc::clone(indices),
            decoded: DecodedCache::default(),
            deletes: Arc::clone(deletes),
            deleted: self.reader.deleted,
            timestamp: *timestamp,
            narrowing: Narrowing::Exact,
            crop: crop.clone(),
            has_floats: AtomicBool::new(false),
            is_collected: AtomicBool::new(false),
            next: std::sync::Mutex::default(),
            counted: Arc::clone(counted),
            scratch: std::sync::Mutex::default(),
        };
        Self { reader, pool: Arc::clone(&self.pool) }
    }

    /// Returns the reason why this crate cannot read the array at the root of `storage`; `None` if
    /// it can. Reads as much as [`Array::open`].
    ///
    /// # Errors
    /// The array cannot be opened at all.
    pub fn supports(
        storage: Arc<dyn Storage>,
        timestamp: Option<u64>,
    ) -> Result<Option<Unsupported>, Error> {
        match load(&Files::new(storage), timestamp.unwrap_or(u64::MAX)) {
            Ok(_) => Ok(None),
            Err(Error::Unsupported { reason, .. }) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    /// Reads `rows` into `out`: one CSR row for each requested row, in the requested order, empty
    /// if it has no cells. Columns ascend within a row. Rows may be requested in any order and
    /// repeatedly. If the array allows duplicates, all cells of a place stay, those of older
    /// fragments first; otherwise only the latest.
    ///
    /// Replaces the contents of `out` and reuses its memory. After an error it is empty.
    ///
    /// # Errors
    /// [`Error::RowsOutOfBounds`] and [`Error::Selection`] for an invalid request;
    /// [`Error::Storage`], [`Error::Damaged`] if data cannot be read; [`Error::Memory`] if there is
    /// too little memory for the bytes of a fetch.
    pub fn read_csr(
        &self,
        rows: &[Range<u64>],
        columns: &ColumnSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        self.pool.install(|| self.reader.read(rows, columns, Output::Wide(out)))
    }

    /// Reads `rows` into `out` like [`Array::read_csr`], in half the memory; values are the same
    /// bit for bit.
    ///
    /// # Errors
    /// Those of [`Array::read_csr`], and [`Error::TooManyToPack`] for more than
    /// [`PackedCsr::MAX_COLUMNS`].
    pub fn read_packed(
        &self,
        rows: &[Range<u64>],
        columns: &ColumnSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        match columns.n_columns(self.n_columns()) {
            Ok(n_columns) if PackedCsr::MAX_COLUMNS < n_columns => {
                out.clear();
                Err(Error::TooManyToPack { n_columns: n_columns as u64 })
            }
            _ => self.pool.install(|| self.reader.read(rows, columns, Output::Packed(out))),
        }
    }

    /// Number of rows: the end of the current domain if the array has one, otherwise of the domain.
    pub fn n_rows(&self) -> u64 {
        self.reader.layout.shape[0].1
    }

    /// Number of columns, from the same domain.
    pub fn n_columns(&self) -> u64 {
        self.reader.layout.shape[1].1
    }

    /// The bounds of rows and of columns that contain all cells; `None` if there are none.
    pub fn non_empty_domain(&self) -> Option<(Range<u64>, Range<u64>)> {
        let bounds = self.reader.fragments.iter().filter_map(|fragment| fragment.footer.bounds);
        let union = bounds
            .reduce(|a, b| [0, 1].map(|idx| (a[idx].0.min(b[idx].0), a[idx].1.max(b[idx].1))));
        union.map(|[rows, columns]| (rows.0..rows.1 + 1, columns.0..columns.1 + 1))
    }

    /// Number of cells in the array's fragments. It is the number of values unless later cells
    /// replace earlier ones.
    pub fn n_cells(&self) -> u64 {
        self.reader.n_cells()
    }

    /// Whether any cell may have been deleted at the opening time.
    pub fn has_deletes(&self) -> bool {
        self.reader.has_deletes()
    }

    /// Number of values as of the opening time. Reads cells only if later ones may replace earlier
    /// ones, if cells may be later than the opening time or may have been deleted, or if cells may
    /// lie outside the current domain; then as many at a time as take about 64 MB.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Damaged`] if cells cannot be read.
    pub fn n_values(&self) -> Result<u64, Error> {
        self.pool.install(|| self.reader.n_values())
    }

    /// The most memory, in bytes, that a read of `nnz` cells of these columns takes in addition to
    /// its result. More if cells repeat or are unordered, which is known only after a first read.
    pub fn working_bytes(&self, nnz: u64, columns: &ColumnSelection) -> u64 {
        self.reader.working_bytes(nnz, columns, self.pool.current_num_threads() as u64)
    }

    /// Names the rows that the read after the next one will want. The next read then has a remote
    /// storage fetch them once it has requested its own, within half of the memory for fetching
    /// ahead. Only for reads that follow each other: reads at the same time would drop what was
    /// fetched for the others. Has no effect on local arrays. Results do not change.
    pub fn announce_next(&self, rows: &[Range<u64>], columns: &ColumnSelection) {
        self.reader.set_next(rows, columns);
    }

    /// Number of fragments that count at the opening time.
    pub fn n_fragments(&self) -> usize {
        self.reader.fragments.len()
    }

    /// Identifies the cells that reads return among all states of this array: its shape, the
    /// fragments and deletes that count at the opening time, and this time if it decides between
    /// their cells.
    /// TileDB gives each fragment a name that no other has.
    pub fn version(&self) -> String {
        let Reader { layout, fragments, deletes, timestamp, .. } = &self.reader;
        let [(_, n_rows), (_, n_columns)] = layout.shape;
        let mut version = format!("{n_rows} x {n_columns}");
        let has_delete_times = fragments.iter().any(|fragment| fragment.footer.has_delete_times);
        if self.reader.is_by_time() || has_delete_times {
            version = format!("{version} as of {timestamp}");
        }
        let names = fragments.iter().map(|fragment| fragment.folder.name.as_str());
        for name in names.chain(deletes.names()) {
            version.push('\n');
            version.push_str(name);
        }
        version
    }

    /// Name and type of the attribute.
    pub fn attribute(&self) -> (&str, Datatype) {
        let (name, datatype) = &self.reader.layout.attribute;
        (name, *datatype)
    }

    /// Whether several cells may have the same coordinates.
    pub fn allows_duplicates(&self) -> bool {
        self.reader.layout.allows_duplicates
    }

    /// Keeps decoded cells of up to `limit_bytes` bytes for later reads, which then need not decode
    /// them. They take about 2 bytes a cell for counts, otherwise 5 to 6. Nothing is evicted for
    /// new cells; lowering the limit evicts. The initial limit is 0. [`Array::read_packed`] resets
    /// it to 0 when it first meets a value that is not a count, since its rows become larger then.
    /// It stays 0 if cells were deleted by their values.
    pub fn keep_decoded(&self, limit_bytes: u64) {
        let limit_bytes = if self.reader.has_deletes_by_value() { 0 } else { limit_bytes };
        self.reader.decoded.set_limit_bytes(limit_bytes);
    }

    /// Bytes of decoded cells kept at the moment.
    pub fn decoded_bytes(&self) -> u64 {
        self.reader.decoded.bytes()
    }

    /// Bytes of row indices at the moment.
    pub fn index_bytes(&self) -> usize {
        self.reader.indices.bytes()
    }
}

/// The time of overlapping fragments whose order is unknown because their times are equal.
/// libtiledb sorts fragments by time alone, and its sort is stable only for few of them.
fn tied(fragments: &[Fragment]) -> Option<u64> {
    if fragments.len() <= MOST_SORTED_STABLY {
        return None;
    }
    fragments.chunk_by(|a, b| a.folder.times.start == b.folder.times.start).find_map(|tied| {
        let mut bounds: Vec<_> =
            tied.iter().filter_map(|fragment| fragment.footer.bounds).collect();
        bounds.sort_unstable();
        let overlaps = |(idx, [rows, columns]): (usize, &[(u64, u64); 2])| {
            let in_rows = bounds[idx + 1..].iter().take_while(|[next, _]| next.0 <= rows.1);
            in_rows.into_iter().any(|[_, of]| of.0 <= columns.1 && columns.0 <= of.1)
        };
        bounds.iter().enumerate().any(overlaps).then_some(tied[0].folder.times.start)
    })
}

/// The rows and columns of the array, if fragments have cells outside them. Those were written when
/// the array had another shape; at the opening time they are not part of it.
fn crop(layout: &Layout, fragments: &[Fragment]) -> Option<[Range<u64>; 2]> {
    let within = layout.current.map(|(first, end)| first..end);
    let lies_within = |fragment: &Fragment| {
        fragment.footer.bounds.is_none_or(|[rows, columns]| {
            // Rows beyond the last cannot be requested.
            rows.0 >= within[0].start && columns.0 >= within[1].start && columns.1 < within[1].end
        })
    };
    (!fragments.iter().all(lies_within)).then_some(within)
}

fn load(files: &Files, timestamp: u64) -> Result<(Arc<Layout>, Vec<Fragment>, Deletes), Error> {
    let unsupported = |reason| Error::Unsupported { place: files.place(), reason };
    let directory = Directory::load(files, timestamp)?;
    let mut schemas = Schemas::new(files, &directory.schemas);
    let latest = schemas.get(directory.latest_schema)?;
    let layout = Arc::new(Layout::from_schema(&latest, latest.version, None).map_err(unsupported)?);
    if let Some(reason) = directory.obstacle {
        return Err(unsupported(reason));
    }
    let deletes = Deletes::load(files, &directory.deletes, &latest)?;
    let mut fragments = Vec::new();
    let mut layouts: Vec<((usize, u32), Arc<Layout>)> = Vec::new();
    let oldest = schemas.unnamed()?;
    let footers = RawFooter::load_all(files, &directory.fragments, oldest.as_deref())?;
    for (folder, raw) in directory.fragments.into_iter().zip(footers) {
        let schema_idx = schemas.find(raw.schema_name.as_deref(), &folder.path)?;
        let schema = schemas.get(schema_idx)?;
        let key = (schema_idx, raw.version);
        let known =
            layouts.iter().find(|(known, _)| *known == key).map(|(_, layout)| Arc::clone(layout));
        let of_fragment = if let Some(layout) = known {
            layout
        } else {
            let found = Layout::from_schema(&schema, raw.version, Some(&layout.attribute.0))
                .map_err(|reason| unsupported(evolved(&folder.name, &schema, &layout, reason)))?;
            let found = Arc::new(found);
            layouts.push((key, Arc::clone(&found)));
            found
        };
        if let Some(what) = layout.differs(&of_fragment) {
            return Err(unsupported(Unsupported::SchemaEvolution { fragment: folder.name, what }));
        }
        let fields = raw.parse(files, &folder, &schema)?;
        let footer = raw.matrix(files, &folder, &fields, of_fragment.attribute_idx)?;
        if let Some([_, (_, last)]) =
            footer.bounds.filter(|[_, (_, last)]| *last >= u64::from(u32::MAX))
        {
            return Err(unsupported(Unsupported::ColumnsTooWide { last }));
        }
        let concerning = deletes.concerning(files, &folder, &fields)?;
        fragments.push(Fragment::new(folder, footer, of_fragment, concerning));
    }
    if let Some(time) = tied(&fragments).filter(|_| !layout.allows_duplicates) {
        return Err(unsupported(Unsupported::TiedFragments { time }));
    }
    Ok((layout, fragments, deletes))
}

/// A fragment whose schema lacks the attribute belongs to an evolved array; other reasons are
/// returned unchanged.
fn evolved(fragment: &str, schema: &Schema, layout: &Layout, reason: Unsupported) -> Unsupported {
    if schema.attributes.iter().any(|attribute| attribute.name == layout.attribute.0) {
        return reason;
    }
    let what = format!("it has no attribute `{}`", layout.attribute.0);
    Unsupported::SchemaEvolution { fragment: fragment.to_owned(), what }
}
