//! The reader of matrices of an AnnData.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use ::anndata::{Matrix, MatrixKind};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use csr::Narrowing;
use rayon::ThreadPool;
use storage::CachedStorage;

use super::OpenMatrix;
use super::packed;
use super::selected::SelectedColumns;
use crate::exact::{Request, is_within_f32};
use crate::{
    CacheUse, CsrBuffers, Error, GeneSelection, PackedCsr, ReadForm, ReadStats, RowRanges,
    WholeRows, XReader, coo,
};

/// Values of whole rows in memory that are packed, or from which genes are selected; a longer row
/// is read alone.
const PIECE_VALUES: u64 = 8 << 20;

/// Bytes of a value with its column in memory.
const CELL_BYTES: u64 = 8;

/// Reads rows of a matrix of an AnnData, and selects genes afterwards: chunks have all genes.
#[derive(Debug)]
pub(super) struct AnnDataReader {
    matrix: Arc<Matrix>,
    uri: String,
    narrowing: Narrowing,
    is_remote: bool,
    cache: Option<Arc<CachedStorage>>,
    pool: Arc<ThreadPool>,
    /// Rows with all genes, which are packed or from which those of a selection are taken; and the
    /// rows of a read as COO. Both are used again by the next read.
    whole: Mutex<CsrBuffers>,
    csr: Mutex<CsrBuffers>,
}

impl AnnDataReader {
    pub(super) fn new(opened: &OpenMatrix, uri: &str, pool: Arc<ThreadPool>) -> Self {
        Self {
            matrix: Arc::clone(&opened.matrix),
            uri: uri.to_owned(),
            narrowing: Narrowing::Nearest,
            is_remote: opened.is_remote,
            cache: opened.cache.clone(),
            pool,
            whole: Mutex::default(),
            csr: Mutex::default(),
        }
    }

    /// Reads rows with all genes piece by piece, and hands each to `take` on the pool.
    fn read_pieces(
        &self,
        rows: &RowRanges,
        mut take: impl FnMut(&CsrBuffers) + Send,
    ) -> Result<ReadStats, Error> {
        // A concurrent read uses memory of its own.
        let mut own = CsrBuffers::default();
        let mut shared = self.whole.try_lock().ok();
        let whole = shared.as_deref_mut().unwrap_or(&mut own);
        let mut counts = ReadStats::nothing();
        for piece in self.pieces(rows) {
            let piece = (&piece[..], rows.next_reads());
            counts += self.matrix.read_rows_again(piece, self.narrowing, whole)?;
            self.pool.install(|| take(whole));
        }
        Ok(counts)
    }

    /// The request whose values are to be checked, if the reader must not round any.
    fn exact_request<'a>(
        &'a self,
        rows: &'a RowRanges,
        genes: &'a GeneSelection,
    ) -> Option<Request<'a>> {
        let data_type = self.data_type();
        let is_checked = self.narrowing == Narrowing::Exact && !is_within_f32(data_type);
        is_checked.then_some(Request { uri: &self.uri, rows, genes, data_type })
    }

    /// The counts of a read that returns `nnz` values.
    fn stats(counts: ReadStats, nnz: usize) -> ReadStats {
        let values = nnz as u64;
        let cell_bytes = counts.bytes_decoded.zip(counts.values_decoded);
        let cell_bytes = cell_bytes.and_then(|(bytes, values)| bytes.checked_div(values));
        let bytes_needed = Some(values.saturating_mul(cell_bytes.unwrap_or(0)));
        ReadStats { values, bytes_needed, requests: None, times: None, ..counts }
    }

    /// Cuts rows so that each piece has at most [`PIECE_VALUES`] values, or one row.
    fn pieces(&self, rows: &RowRanges) -> Vec<Vec<Range<u64>>> {
        let mut pieces: Vec<Vec<Range<u64>>> = Vec::new();
        let mut n_values = PIECE_VALUES;
        for range in rows.ranges() {
            let all = || range.clone().map(|row| (row, self.matrix.shape().1));
            let lengths: Box<dyn Iterator<Item = (u64, u64)>> =
                match self.matrix.row_lengths(range.clone()) {
                    Some(lengths) => Box::new(range.clone().zip(lengths)),
                    None => Box::new(all()),
                };
            for (row, len) in lengths {
                if PIECE_VALUES <= n_values.saturating_add(len) {
                    pieces.push(Vec::new());
                    n_values = 0;
                }
                n_values = n_values.saturating_add(len);
                let Some(piece) = pieces.last_mut() else { continue };
                match piece.last_mut() {
                    Some(last) if last.end == row => last.end = row + 1,
                    _ => piece.push(row..row + 1),
                }
            }
        }
        pieces
    }
}

impl XReader for AnnDataReader {
    fn name(&self) -> &'static str {
        "anndata"
    }

    fn n_rows(&self) -> u64 {
        self.matrix.shape().0
    }

    fn n_columns(&self) -> u64 {
        self.matrix.shape().1
    }

    fn data_type(&self) -> &DataType {
        self.matrix.value_type()
    }

    fn nnz(&self) -> Result<Option<u64>, Error> {
        Ok(self.matrix.nnz())
    }

    fn working_bytes(&self, nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64 {
        let whole = match genes {
            GeneSelection::All if !self.packs(genes) => 0,
            _ => (PIECE_VALUES + self.n_columns()).saturating_mul(CELL_BYTES),
        };
        let of_form = coo::working_bytes(nnz, form);
        of_form.saturating_add(whole).saturating_add(self.matrix.working_bytes())
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn cache(&self) -> Option<CacheUse> {
        self.cache.as_ref().map(|cache| cache.usage())
    }

    fn index_bytes(&self) -> u64 {
        self.matrix.index_bytes()
    }

    fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
        self.matrix.keep_decoded(holder, limit_bytes);
    }

    fn asks_next_reads(&self) -> bool {
        self.matrix.asks_next_reads()
    }

    fn decoded_bytes(&self) -> u64 {
        self.matrix.decoded_bytes()
    }

    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        let (matrix, cache) = (Arc::clone(&self.matrix), self.cache.clone());
        let opened = OpenMatrix { matrix, is_remote: self.is_remote, cache };
        let same = Self::new(&opened, &self.uri, Arc::clone(&self.pool));
        Ok(Arc::new(Self { narrowing: Narrowing::Exact, ..same }))
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        rows.check_within(&self.uri, self.n_rows())?;
        let n_columns = genes.n_columns(self.n_columns())?;
        let counts = if *genes == GeneSelection::All {
            let wanted = (rows.ranges(), rows.next_reads());
            self.matrix.read_rows_again(wanted, self.narrowing, out)?
        } else {
            let selected = SelectedColumns::new(genes, self.n_columns());
            out.clear();
            self.read_pieces(rows, |piece| selected.append(piece, out))?
        };
        out.n_columns = n_columns;
        self.exact_request(rows, genes).map_or(Ok(()), |request| request.check_csr(out))?;
        Ok(Self::stats(counts, out.nnz()))
    }

    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        Some(self)
    }

    /// Rows are packed only if all genes of a CSR matrix are read. Otherwise the number of values
    /// of a row is not known before it is read.
    fn packs(&self, genes: &GeneSelection) -> bool {
        let is_narrow = self.n_columns() <= PackedCsr::MAX_COLUMNS as u64;
        *genes == GeneSelection::All && self.matrix.kind() == MatrixKind::Csr && is_narrow
    }

    fn read_packed(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        let n_columns = genes.n_columns(self.n_columns())?;
        if !self.packs(genes) {
            return Err(Error::Unpacked { reader: self.name() });
        }
        rows.check_within(&self.uri, self.n_rows())?;
        out.set_n_columns(n_columns)?;
        out.begin(rows.n_rows() as usize, |lengths| {
            let of_range = |range: &Range<u64>| self.matrix.row_lengths(range.clone());
            let all = rows.ranges().iter().filter_map(of_range).flatten();
            // The place behind the first offset is that of the first row.
            lengths.iter_mut().skip(1).zip(all).for_each(|(to, len)| *to = len as usize);
        });
        let mut start = 0;
        let counts = self.read_pieces(rows, |piece| {
            packed::put(piece, start, out);
            start += piece.nnz();
        })?;
        self.exact_request(rows, genes).map_or(Ok(()), |request| request.check_packed(out))?;
        Ok(Self::stats(counts, out.nnz()))
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

impl WholeRows for AnnDataReader {
    fn read_selections(
        &self,
        rows: &RowRanges,
        selections: &mut [(&GeneSelection, &mut CsrBuffers)],
    ) -> Result<ReadStats, Error> {
        rows.check_within(&self.uri, self.n_rows())?;
        let mut columns = Vec::with_capacity(selections.len());
        for (genes, out) in &mut *selections {
            out.clear();
            out.n_columns = genes.n_columns(self.n_columns())?;
            columns.push(SelectedColumns::new(genes, self.n_columns()));
        }
        let counts = self.read_pieces(rows, |piece| {
            for ((_, out), columns) in selections.iter_mut().zip(&columns) {
                columns.append(piece, out);
            }
        })?;
        let mut nnz = 0;
        for (genes, out) in selections {
            self.exact_request(rows, genes).map_or(Ok(()), |request| request.check_csr(out))?;
            nnz += out.nnz();
        }
        Ok(Self::stats(counts, nnz))
    }
}
