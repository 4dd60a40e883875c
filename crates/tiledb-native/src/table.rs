//! Tables: sparse arrays of one integer dimension and any attributes, read by columns; and, as they
//! are stored, those of any dimensions ([`merge`]).
//!
//! A read takes these steps ([`read`]):
//!
//! 1. The bounding rectangles of the fragments give the tiles that may have wanted rows.
//! 2. The tiles are grouped into windows of coordinates ([`window`]), and windows into batches.
//! 3. The cells of a batch are selected ([`select`]). Mostly the metadata show that a tile's cells
//!    all belong to the result; coordinates are decoded only at the edges of the wanted ranges,
//!    where tiles overlap, and where the times of cells or deletes decide.
//! 4. All columns of the batch's tiles are fetched at once ([`fetched`]), decoded, and appended to
//!    the result ([`column`]).
//!
//! Besides the result a read takes the memory of one batch. [`Table::read_each`] gives the result
//! batch by batch.

mod column;
mod fetched;
mod form;
mod fragment;
mod load;
mod merge;
mod read;
mod select;
mod snapshot;
mod window;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::ThreadPool;
use storage::{Files, Storage};

use crate::array::OpenOptions;
use crate::description::ArrayDescription;
use crate::error::Error;
pub use column::TableColumn;
use form::Indexing;
use merge::Kept;
use read::{Memory, Plan};
use snapshot::{Column, Snapshot};
use window::joined;

/// A sparse array of one integer dimension and any attributes, open for reading.
///
/// Attributes may be of any type, var-sized and nullable. Rows of fragments from before an
/// attribute was added have its fill value.
///
/// ```no_run
/// use std::sync::{Arc, OnceLock};
///
/// use storage::LocalStorage;
/// use tiledb_native::{OpenOptions, Table};
///
/// let storage = Arc::new(LocalStorage::new("experiment/obs"));
/// let table = Table::open(storage, &OpenOptions::new(4))?;
/// let columns = table.read(&["soma_joinid", "cell_type"], Some(&[0..1000]))?;
/// let n_rows = columns[0].bytes.len() / 8;
/// assert!(n_rows <= 1000);
/// # Ok::<(), tiledb_native::Error>(())
/// ```
#[derive(Debug)]
pub struct Table {
    description: ArrayDescription,
    snapshot: Snapshot,
    pool: Arc<ThreadPool>,
    /// The cells that count, if rows are not found by coordinates and others are stored, too; found
    /// when first needed.
    kept: OnceLock<Kept>,
}

impl Table {
    /// Opens the array at the root of `storage`: lists its folders and reads its schema and the
    /// footers of its fragments.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if libtiledb can read the array but this crate cannot, or it is no
    /// table; [`Error::NotAnArray`], [`Error::Storage`], [`Error::Damaged`] if it cannot be opened
    /// at all; [`Error::Threads`].
    pub fn open(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Self, Error> {
        Self::open_as(storage, options, Indexing::ByPosition)
    }

    /// Opens a sparse array of any dimensions, which become columns like the attributes. Reads
    /// return all of its rows, whatever ranges they name, in the order in which they are stored,
    /// each once.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_as_stored(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Self, Error> {
        Self::open_as(storage, options, Indexing::AsStored)
    }

    fn open_as(
        storage: Arc<dyn Storage>,
        options: &OpenOptions,
        indexing: Indexing,
    ) -> Result<Self, Error> {
        let timestamp = options.timestamp.unwrap_or(u64::MAX);
        let (snapshot, description) = Snapshot::load(&Files::new(storage), timestamp, indexing)?;
        Ok(Self { description, snapshot, pool: options.threads.pool()?, kept: OnceLock::new() })
    }

    /// Schema, metadata and extents.
    pub fn description(&self) -> &ArrayDescription {
        &self.description
    }

    /// Reads `columns`, attributes or the dimension, of the rows whose coordinates lie in `ranges`;
    /// `None` means all rows. Rows come by ascending coordinate, each once: ranges may be in any
    /// order, overlap, and reach beyond the array. If the array allows duplicates, all rows of one
    /// coordinate stay, those of older fragments first; otherwise only the latest.
    ///
    /// # Errors
    /// [`Error::NoColumn`] for an unknown column; [`Error::Storage`], [`Error::Damaged`] if data
    /// cannot be read; [`Error::Memory`] if there is too little memory for them.
    pub fn read(
        &self,
        columns: &[&str],
        ranges: Option<&[Range<u64>]>,
    ) -> Result<Vec<TableColumn>, Error> {
        let columns = self.columns(columns)?;
        self.pool.install(|| self.plan(&columns, ranges)?.read(&columns))
    }

    /// Reads like [`read`](Self::read), and gives `each` the columns of some 2^18 rows per thread
    /// at a time, in order. Takes the memory of these rows, not that of the whole columns.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and the first error of `each`, after which it is not called
    /// again.
    pub fn read_each<E: From<Error>>(
        &self,
        columns: &[&str],
        ranges: Option<&[Range<u64>]>,
        mut each: impl FnMut(Vec<TableColumn>) -> Result<(), E>,
    ) -> Result<(), E> {
        let columns = self.columns(columns)?;
        let plan = self.pool.install(|| self.plan(&columns, ranges))?;
        let mut memory = Memory::default();
        let fields: Vec<usize> = columns.iter().map(|(field, _)| *field).collect();
        for batch in plan.batches(&fields, self.pool.current_num_threads()) {
            each(self.pool.install(|| plan.read_batch(batch, &columns, &mut memory))?)?;
        }
        Ok(())
    }

    /// Number of rows. Reads cells only where the metadata of fragments do not settle it: where
    /// fragments overlap in an array without duplicates, where cells may be later than the opening
    /// time or may have been deleted, and where they may lie outside the current domain.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Damaged`] if these cannot be read.
    pub fn n_rows(&self) -> Result<u64, Error> {
        if let Some(n_rows) = self.snapshot.n_rows_by_footers() {
            return Ok(n_rows);
        }
        self.pool.install(|| self.plan(&[], None)?.n_rows())
    }

    /// Plans to read columns of the rows in `ranges`.
    fn plan(
        &self,
        columns: &[(usize, &Column)],
        ranges: Option<&[Range<u64>]>,
    ) -> Result<Plan<'_>, Error> {
        let fields: Vec<usize> = columns.iter().map(|(field, _)| *field).collect();
        let ranges = ranges.filter(|_| self.snapshot.indexing == Indexing::ByPosition);
        let plan = Plan::new(&self.snapshot, joined(ranges, self.snapshot.current), &fields)?;
        Ok(plan.with_kept(self.kept()?))
    }

    /// The cells that count, if rows are not found by coordinates and others are stored, too.
    fn kept(&self) -> Result<Option<&Kept>, Error> {
        if self.snapshot.indexing == Indexing::ByPosition || !self.snapshot.needs_merge() {
            return Ok(None);
        }
        if let Some(kept) = self.kept.get() {
            return Ok(Some(kept));
        }
        let kept = Kept::find(&self.snapshot)?;
        // Two threads may both have found them; either result serves.
        Ok(Some(self.kept.get_or_init(|| kept)))
    }

    /// The columns with these names, and the indices of their fields.
    fn columns(&self, names: &[&str]) -> Result<Vec<(usize, &Column)>, Error> {
        names.iter().map(|name| self.column(name)).collect()
    }

    /// The column with this name, and the index of its field.
    fn column(&self, name: &str) -> Result<(usize, &Column), Error> {
        let mut columns = self.snapshot.columns.iter().enumerate();
        columns.find(|(_, column)| column.name == name).ok_or_else(|| Error::NoColumn {
            place: self.snapshot.files.place(),
            column: name.to_owned(),
        })
    }
}
