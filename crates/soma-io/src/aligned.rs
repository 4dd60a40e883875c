//! A reader of a matrix whose rows stand in another order than the cells, or are not all there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use crate::{
    CacheUse, CsrBuffers, Error, GeneSelection, PackedCsr, ReadForm, ReadStats, RowCacheUse,
    RowRanges, WholeRows, XReader, coo,
};

/// Bytes of a value with its column in memory.
const CELL_BYTES: u64 = 8;

/// Reads the rows of a matrix by the joinids of cells: `rows[joinid]` is the row of a cell in the
/// matrix, counted from 1, or 0 if the matrix lacks the cell, as in MuData's `obsmap`. A cell that
/// it lacks has a row without values.
///
/// For measurements that have some of the cells of obs, or have them in another order: the
/// modalities of a MuData, a matrix that was written before obs grew.
///
/// ```
/// use std::sync::Arc;
///
/// use soma_io::{AlignedReader, CsrBuffers, GeneSelection, MemoryReader, RowRanges, XReader};
///
/// // Two rows x one column; obs has three cells, and the matrix lacks the second.
/// let proteins = CsrBuffers {
///     row_offsets: vec![0, 1, 2],
///     columns: vec![0, 0],
///     values: vec![5.0, 7.0],
///     n_columns: 1,
/// };
/// let reader = Arc::new(MemoryReader::new(proteins)?);
/// let aligned = AlignedReader::new(reader, "proteins", Arc::new([2, 0, 1]))?;
/// let mut rows = CsrBuffers::default();
/// aligned.read_csr(&RowRanges::new(vec![0..3])?, &GeneSelection::All, &mut rows)?;
/// assert_eq!((rows.row_offsets, rows.values), (vec![0, 1, 1, 2], vec![7.0, 5.0]));
/// # Ok::<(), soma_io::Error>(())
/// ```
#[derive(Debug)]
pub struct AlignedReader {
    inner: Arc<dyn XReader>,
    /// What the matrix is called in errors.
    uri: String,
    rows: Arc<[u32]>,
    /// The joinid of each column, if the columns are cells, too.
    columns: Option<Arc<[u32]>>,
    /// The rows of the matrix in its own order, and those of a read as COO. Both are used again by
    /// the next read.
    stored: Mutex<CsrBuffers>,
    csr: Mutex<CsrBuffers>,
}

impl AlignedReader {
    /// Aligns the rows of `inner`. `uri` names the matrix in errors.
    ///
    /// # Errors
    /// [`Error::Alignment`] if a row is beyond the matrix, or belongs to two cells.
    pub fn new(inner: Arc<dyn XReader>, uri: &str, rows: Arc<[u32]>) -> Result<Self, Error> {
        check_rows(&rows, inner.n_rows())
            .map_err(|problem| Error::Alignment { uri: uri.to_owned(), problem })?;
        Ok(Self::checked(inner, uri, (rows, None)))
    }

    /// Aligns a graph, whose rows and columns are the same cells: columns are joinids, too.
    ///
    /// # Errors
    /// [`Error::Alignment`] if a row is beyond the matrix, belongs to two cells or to none, or if
    /// there are more or fewer columns than rows.
    pub fn graph(inner: Arc<dyn XReader>, uri: &str, rows: Arc<[u32]>) -> Result<Self, Error> {
        let failed = |problem| Error::Alignment { uri: uri.to_owned(), problem };
        let (n_rows, n_columns) = (inner.n_rows(), inner.n_columns());
        if n_columns != n_rows {
            let problem = format!("a graph has {n_rows} rows, but {n_columns} columns");
            return Err(failed(problem));
        }
        check_rows(&rows, n_rows).map_err(failed)?;
        let mut columns = vec![None; n_rows as usize];
        for (joinid, row) in
            (0..).zip(&*rows).filter_map(|(id, row)| Some((id, row.checked_sub(1)?)))
        {
            columns[row as usize] = Some(joinid);
        }
        let unused = |column| failed(format!("row {column} belongs to no cell"));
        let columns: Option<Arc<[u32]>> = match columns.iter().position(Option::is_none) {
            Some(column) => return Err(unused(column)),
            None => columns.into_iter().collect(),
        };
        Ok(Self::checked(inner, uri, (rows, columns)))
    }

    fn checked(
        inner: Arc<dyn XReader>,
        uri: &str,
        (rows, columns): (Arc<[u32]>, Option<Arc<[u32]>>),
    ) -> Self {
        let (stored, csr) = (Mutex::default(), Mutex::default());
        Self { inner, uri: uri.to_owned(), rows, columns, stored, csr }
    }

    /// Which cells the matrix has; `None` if it has all.
    pub fn present(&self) -> Option<BooleanBuffer> {
        self.rows.contains(&0).then(|| self.rows.iter().map(|row| *row > 0).collect())
    }

    /// The rows of these cells in the matrix, ascending, each with its place among the cells.
    fn places(&self, rows: &RowRanges) -> Vec<(u32, usize)> {
        let of_cells = rows.iter().map(|joinid| self.rows[joinid as usize]).zip(0..);
        let mut places: Vec<(u32, usize)> =
            of_cells.filter_map(|(row, place)| Some((row.checked_sub(1)?, place))).collect();
        places.sort_unstable();
        places
    }
}

/// Fails if a row, counted from 1, is beyond `n_rows` or occurs twice.
fn check_rows(rows: &[u32], n_rows: u64) -> Result<(), String> {
    let mut seen = vec![false; n_rows as usize];
    for (joinid, row) in (0_u64..).zip(rows) {
        let Some(row) = row.checked_sub(1) else { continue };
        match seen.get_mut(row as usize) {
            None => return Err(format!("cell {joinid} has row {row}, but there are {n_rows}")),
            Some(true) => return Err(format!("row {row} belongs to cell {joinid} and another")),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

/// The rows of `places` in the matrix.
fn stored_rows(places: &[(u32, usize)]) -> Result<RowRanges, Error> {
    let runs = places.chunk_by(|(row, _), (next, _)| row + 1 == *next);
    let range = |run: &[(u32, usize)]| {
        let first = u64::from(run[0].0);
        first..first + run.len() as u64
    };
    RowRanges::new(runs.map(range).collect())
}

/// Replaces columns by the places of their cells among the selected ones, which ascend in each row,
/// and leaves out the others.
fn name_columns(
    stored: &mut CsrBuffers,
    (joinids, n_cells): (&[u32], u64),
    genes: &GeneSelection,
) -> Result<(), Error> {
    let n_columns = genes.n_columns(n_cells)?;
    let listed: HashMap<u64, u32> = match genes {
        GeneSelection::List(list) => list.iter().copied().zip(0..).collect(),
        GeneSelection::All | GeneSelection::Range(_) => HashMap::new(),
    };
    let place = |joinid: u64| match genes {
        GeneSelection::All => Some(joinid as u32),
        GeneSelection::Range(range) => {
            range.contains(&joinid).then(|| (joinid - range.start) as u32)
        }
        GeneSelection::List(_) => listed.get(&joinid).copied(),
    };
    let mut named = CsrBuffers::empty(n_columns);
    let mut cells = Vec::new();
    for row in 0..stored.n_rows() {
        let (columns, values) = stored.row(row);
        let of_row = columns.iter().zip(values);
        cells.clear();
        cells.extend(of_row.filter_map(|(column, value)| {
            Some((place(u64::from(joinids[*column as usize]))?, *value))
        }));
        cells.sort_unstable_by_key(|(place, _)| *place);
        named.columns.extend(cells.iter().map(|(place, _)| *place));
        named.values.extend(cells.iter().map(|(_, value)| *value));
        named.row_offsets.push(named.values.len());
    }
    *stored = named;
    Ok(())
}

/// Puts the rows of `stored` at their places among `n_rows` rows.
fn place_rows(stored: &CsrBuffers, places: &[(u32, usize)], n_rows: usize, out: &mut CsrBuffers) {
    out.clear();
    out.n_columns = stored.n_columns;
    let mut of_row = vec![None; n_rows];
    for (row, (_, place)) in places.iter().enumerate() {
        of_row[*place] = Some(row);
    }
    out.columns.reserve(stored.nnz());
    out.values.reserve(stored.nnz());
    for row in of_row {
        if let Some(row) = row {
            let (columns, values) = stored.row(row);
            out.columns.extend_from_slice(columns);
            out.values.extend_from_slice(values);
        }
        out.row_offsets.push(out.values.len());
    }
}

#[deny(clippy::missing_trait_methods)]
impl XReader for AlignedReader {
    storage::forward! { inner:
        fn name() -> &'static str;
        fn why_not_native() -> Option<&str>;
        fn data_type() -> &DataType;
        fn nnz() -> Result<Option<u64>, Error>;
        fn most_nnz() -> Result<Option<u64>, Error>;
        fn is_remote() -> bool;
        fn cache() -> Option<CacheUse>;
        fn row_cache() -> Option<RowCacheUse>;
        fn keep_decoded(holder: u64, limit_bytes: u64);
        fn decoded_bytes() -> u64;
    }

    fn n_rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn n_columns(&self) -> u64 {
        if self.columns.is_some() { self.n_rows() } else { self.inner.n_columns() }
    }

    /// The rows behind it are others, which the plan does not number.
    fn asks_next_reads(&self) -> bool {
        false
    }

    fn index_bytes(&self) -> u64 {
        self.inner.index_bytes().saturating_add(size_of_val(&*self.rows) as u64)
    }

    fn working_bytes(&self, nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64 {
        let of_inner = self.inner.working_bytes(nnz, genes, ReadForm::Csr);
        let stored = nnz.saturating_mul(CELL_BYTES);
        of_inner.saturating_add(stored).saturating_add(coo::working_bytes(nnz, form))
    }

    fn announce_next(&self, rows: &RowRanges, genes: &GeneSelection) {
        if rows.check_within(&self.uri, self.n_rows()).is_ok()
            && let Ok(stored) = stored_rows(&self.places(rows))
        {
            let genes = if self.columns.is_some() { &GeneSelection::All } else { genes };
            self.inner.announce_next(&stored, genes);
        }
    }

    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        let inner = self.inner.exact()?;
        let places = (Arc::clone(&self.rows), self.columns.clone());
        Ok(Arc::new(Self::checked(inner, &self.uri, places)))
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        rows.check_within(&self.uri, self.n_rows())?;
        let places = self.places(rows);
        // A concurrent read uses memory of its own.
        let mut own = CsrBuffers::default();
        let mut shared = self.stored.try_lock().ok();
        let stored = shared.as_deref_mut().unwrap_or(&mut own);
        let of_inner = if self.columns.is_some() { &GeneSelection::All } else { genes };
        let mut stats = self.inner.read_csr(&stored_rows(&places)?, of_inner, stored)?;
        if let Some(joinids) = &self.columns {
            name_columns(stored, (joinids, self.n_rows()), genes)?;
            stats.values = stored.nnz() as u64;
        }
        place_rows(stored, &places, rows.n_rows() as usize, out);
        Ok(stats)
    }

    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        None
    }

    /// Rows are put in order as CSR.
    fn packs(&self, _genes: &GeneSelection) -> bool {
        false
    }

    fn read_packed(
        &self,
        _rows: &RowRanges,
        _genes: &GeneSelection,
        _out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        Err(Error::Unpacked { reader: self.name() })
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
