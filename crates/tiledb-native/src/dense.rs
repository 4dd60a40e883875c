//! Dense arrays of two dimensions: matrices with a value in every place, read by blocks of rows and
//! columns.
//!
//! A fragment has the space tiles that meet its bounds, in the order of tiles, and each tile all of
//! its cells, in the order of cells. Only cells within the bounds count; the others of a tile at
//! the edge are padding. The latest of several fragments with a cell counts, and a cell without any
//! is the attribute's fill value. Dense arrays have no times of cells, and nothing is deleted from
//! them.
//!
//! | fact | source |
//! |---|---|
//! | A dense fragment's footer has no tiles; their number follows from its bounds | `fragment/fragment_metadata.cc` |
//! | Bounds decide which fragment has a cell, not its tiles | `query/readers/dense_reader.cc` |

mod blocks;
mod layout;
mod read;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use csr::Narrowing;
use rayon::ThreadPool;
use storage::{Files, RequestCounts, Storage};
use worktime::ReadStats;

use crate::array::{MOST_SORTED_STABLY, OpenOptions};
use crate::datatype::Datatype;
use crate::directory::{CellTimes, Directory};
use crate::error::{Error, Fault};
use crate::fragment::RawFooter;
use crate::schema::Schemas;
use crate::tile::Chunks;
use crate::unsupported::Unsupported;
use layout::{DenseFragment, DenseLayout};

/// A dense array of two integer dimensions and one attribute, open for reading.
#[derive(Debug)]
pub struct DenseArray {
    files: Files,
    layout: DenseLayout,
    /// Oldest first.
    fragments: Vec<DenseFragment>,
    pool: Arc<ThreadPool>,
    /// The filter chunks of the tiles that were fetched, by fragment and tile.
    chunks: Mutex<HashMap<(usize, u64), Arc<Chunks>>>,
    /// The requests that reads have counted as theirs.
    counted: Mutex<RequestCounts>,
}

/// The time of overlapping fragments whose order is unknown because there are many of one time:
/// libtiledb sorts so many in any order.
fn tied(fragments: &[DenseFragment]) -> Option<u64> {
    let start = |fragment: &DenseFragment| fragment.folder.times.start;
    let meet = |a: &DenseFragment, b: &DenseFragment| {
        let axes = a.bounds.iter().zip(&b.bounds);
        axes.into_iter().all(|(a, b)| a.start < b.end && b.start < a.end)
    };
    let of_one_time = fragments.chunk_by(|a, b| start(a) == start(b));
    let mut tied = of_one_time.filter(|_| fragments.len() > MOST_SORTED_STABLY).filter(|tied| {
        (1..tied.len()).any(|idx| tied[..idx].iter().any(|earlier| meet(earlier, &tied[idx])))
    });
    tied.next().map(|tied| start(&tied[0]))
}

impl DenseArray {
    /// Opens the array at the root of `storage`: lists its folders and reads its schema and the
    /// footers of its fragments.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if libtiledb can read the array but this crate cannot;
    /// [`Error::NotAnArray`], [`Error::Storage`], [`Error::Damaged`] if it cannot be opened at all;
    /// [`Error::Threads`].
    pub fn open(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Self, Error> {
        let files = Files::new(storage);
        let unsupported = |reason| Error::Unsupported { place: files.place(), reason };
        let timestamp = options.timestamp.unwrap_or(u64::MAX);
        let directory = Directory::load_for(&files, timestamp, CellTimes::None)?;
        let mut schemas = Schemas::new(&files, &directory.schemas);
        let latest = schemas.get(directory.latest_schema)?;
        let layout = DenseLayout::from_schema(&latest).map_err(unsupported)?;
        if let Some(reason) = directory.obstacle {
            return Err(unsupported(reason));
        }
        let oldest = schemas.unnamed()?;
        let footers = RawFooter::load_all(&files, &directory.fragments, oldest.as_deref())?;
        let mut fragments = Vec::new();
        for (folder, raw) in directory.fragments.into_iter().zip(footers) {
            let schema = schemas.get(schemas.find(raw.schema_name.as_deref(), &folder.path)?)?;
            let footer = raw.parse(&files, &folder, &schema)?;
            let values = layout.values_of(&schema, raw.version, &folder.name);
            let values = values.map_err(unsupported)?;
            let name = files.name(&folder.path);
            let fragment = DenseFragment::new(&layout, folder, &footer, values);
            fragments.extend(fragment.map_err(|fault| fault.in_file(name, 0))?);
        }
        if let Some(time) = tied(&fragments) {
            return Err(unsupported(Unsupported::TiedFragments { time }));
        }
        let pool = options.threads.pool()?;
        let counted = Mutex::new(files.storage().request_counts().unwrap_or_default());
        Ok(Self { files, layout, fragments, pool, chunks: Mutex::default(), counted })
    }

    /// Number of rows: the end of the current domain if the array has one, otherwise of the domain.
    pub fn n_rows(&self) -> u64 {
        self.layout.axes[0].end
    }

    /// Number of columns, from the same domain.
    pub fn n_columns(&self) -> u64 {
        self.layout.axes[1].end
    }

    /// Rows of a space tile, which are decoded most cheaply together.
    pub fn tile_rows(&self) -> u64 {
        self.layout.axes[0].extent
    }

    /// Name and type of the attribute.
    pub fn attribute(&self) -> (&str, Datatype) {
        let (name, datatype) = &self.layout.attribute;
        (name, *datatype)
    }

    /// Bytes of a stored value.
    pub fn value_bytes(&self) -> usize {
        self.layout.number.size()
    }

    /// Identifies the values that reads return among all states of this array.
    pub fn version(&self) -> String {
        let mut version = format!("dense {} x {}", self.n_rows(), self.n_columns());
        for fragment in &self.fragments {
            version.push('\n');
            version.push_str(&fragment.folder.name);
        }
        version
    }

    /// The most memory, in bytes, that a read takes in addition to its result.
    pub fn working_bytes(&self) -> u64 {
        let tile_bytes = self.layout.tile_cells() * self.layout.number.size() as u64;
        let n_threads = self.pool.current_num_threads() as u64;
        read::working_bytes(tile_bytes, n_threads)
    }

    /// Bytes of memory for the places of filter chunks.
    pub fn index_bytes(&self) -> u64 {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.values().map(|chunks| 8 * (chunks.n_chunks() as u64 + 1)).sum()
    }

    /// Reads the places of `rows` and `columns`, each ascending ranges without overlap, into `out`:
    /// row by row, the columns of all ranges one after another. Values become f32 as in
    /// [`Array::read_csr`](crate::Array::read_csr).
    ///
    /// # Errors
    /// [`Error::RowsOutOfBounds`], [`Error::ColumnOutOfBounds`] for an invalid request;
    /// [`Error::Storage`], [`Error::Damaged`] if data cannot be read; [`Error::Memory`] if there is
    /// too little memory for the bytes of a fetch.
    ///
    /// # Panics
    /// `out` has another length.
    pub fn read(
        &self,
        rows: &[Range<u64>],
        columns: &[Range<u64>],
        narrowing: Narrowing,
        out: &mut [f32],
    ) -> Result<ReadStats, Error> {
        self.check(rows, columns)?;
        let read = self.pool.install(|| self.read_blocks(rows, columns, narrowing, out));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.files.storage().request_counts();
        let sent = now.map(|now| now.since(std::mem::replace(&mut *counted, now)));
        let mut stats = read?;
        stats.requests = sent.map(|sent| sent.sent);
        stats.bytes_read = sent.map_or(stats.bytes_read, |sent| Some(sent.bytes));
        Ok(stats)
    }

    fn check(&self, rows: &[Range<u64>], columns: &[Range<u64>]) -> Result<(), Error> {
        let (n_rows, n_columns) = (self.n_rows(), self.n_columns());
        if let Some(range) = rows.iter().find(|range| range.end > n_rows) {
            return Err(Error::RowsOutOfBounds { start: range.start, end: range.end, n_rows });
        }
        if let Some(range) = columns.iter().find(|range| range.end > n_columns) {
            return Err(Error::ColumnOutOfBounds { column: range.end - 1, n_columns });
        }
        Ok(())
    }

    /// An error in a file of a fragment's metadata.
    fn damaged(&self, fragment: usize, fault: Fault, at: u64) -> Error {
        let folder = &self.fragments[fragment].folder;
        fault.in_unfiltered(self.files.name(&crate::fragment::metadata_file(folder)), at)
    }
}
