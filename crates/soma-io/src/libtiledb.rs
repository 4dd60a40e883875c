//! The reader of X that uses libtiledb.

use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use csr::{CooList, Narrow as _, Narrowing, first_inexact};
use tiledb::{Array, ArrayType, Column, Context, Datatype, Layout, Piece, ReadQuery};

use crate::arrow::{data_type, fixed};
use crate::columns::{DATA, DIM_0, DIM_1, coo_batch};
use crate::exact::{Request, is_within_f32};
use crate::genes::{GeneIndex, inclusive};
use crate::soma_object::{Place, approximate_cells};
use crate::{CsrBuffers, Error, GeneSelection, ReadForm, ReadStats, RowRanges, XReader};

/// The parameter that limits libtiledb's memory in bytes; libtiledb keeps to it roughly.
const TOTAL_BUDGET: &str = "sm.mem.total_budget";
/// libtiledb's default for the parameter.
const DEFAULT_TOTAL_BUDGET: u64 = 10 << 30;

/// Reads X through libtiledb, in the order in which it returns cells, and sorts them into rows by
/// counting.
///
/// A list of genes is read as a few ranges that cover it, and the genes in between are dropped,
/// because many ranges cost libtiledb more than they save.
#[derive(Debug)]
pub struct LibtiledbReader {
    array: Array,
    /// Not shared, so that its count of bytes read belongs to this reader alone.
    context: Context,
    shape: (u64, u64),
    data_type: DataType,
    buffer_bytes: usize,
    why_not_native: Option<String>,
    /// How values become f32.
    narrowing: Narrowing,
    /// Buffer for the cells of a read, reused by the next one.
    cells: Mutex<CooList>,
    place: Place,
    /// Number of values, once requested.
    nnz: OnceLock<u64>,
}

impl LibtiledbReader {
    pub(crate) fn open(
        place: &Place,
        (shape, data_type): ((u64, u64), DataType),
        buffer_bytes: usize,
        why_not_native: Option<String>,
    ) -> Result<Self, Error> {
        let context = Context::new(place.config())?;
        let array = Array::open(&context, &place.uri, place.timestamp)?;
        Ok(Self {
            array,
            context,
            shape,
            data_type,
            buffer_bytes,
            why_not_native,
            narrowing: Narrowing::Nearest,
            cells: Mutex::default(),
            place: place.clone(),
            nnz: OnceLock::new(),
        })
    }

    /// Reads the cells piece by piece. Returns the number of bytes read.
    fn pieces(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        mut each: impl FnMut(&Piece<'_>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        rows.check_within(self.array.uri(), self.shape.0)?;
        let n_columns = genes.n_columns(self.shape.1)?;
        if rows.n_rows() == 0 || n_columns == 0 {
            return Ok(0);
        }
        let before = self.context.bytes_read()?;
        let gene_ranges = inclusive(genes).unwrap_or_else(|| self.all_genes());
        let columns = [DIM_0, DIM_1, DATA];
        let mut query = ReadQuery::new(
            &self.array,
            if self.is_dense() { Layout::RowMajor } else { Layout::Unordered },
            &[&rows.inclusive(), &gene_ranges],
            &columns,
            self.buffer_bytes,
        )?;
        while let Some(piece) = query.next_piece()? {
            each(&piece)?;
        }
        Ok(self.context.bytes_read()?.saturating_sub(before))
    }

    fn is_dense(&self) -> bool {
        self.array.schema().array_type == ArrayType::Dense
    }

    /// The range of all genes; no range, which reads everything, if the array has no other genes.
    fn all_genes(&self) -> Vec<(i64, i64)> {
        let schema = self.array.schema();
        let n_columns = i128::from(self.shape.1);
        let bounds = schema.current_domain.as_ref().map(|bounds| bounds[1]);
        // In old arrays, the size in the metadata can be smaller than the domain.
        match bounds.or(schema.dimensions[1].domain) {
            Some((_, last)) if last < n_columns && !self.is_dense() => Vec::new(),
            _ => vec![(0, n_columns as i64 - 1)],
        }
    }

    /// The request of a read, for the errors of an exact one.
    fn request<'a>(&'a self, rows: &'a RowRanges, genes: &'a GeneSelection) -> Request<'a> {
        Request { uri: self.array.uri(), rows, genes, data_type: &self.data_type }
    }

    fn broken(&self, column: &str, problem: String) -> Error {
        Error::broken_column(self.array.uri(), column, problem)
    }

    /// The position of a value that f32 does not have, if the read is exact.
    fn find_inexact(&self, values: &[f32]) -> Option<usize> {
        if self.narrowing == Narrowing::Exact { first_inexact(values) } else { None }
    }

    /// Fails if a piece of an exact read as COO has a value that f32 does not have.
    fn check_exact(&self, piece: &RecordBatch, request: &Request<'_>) -> Result<(), Error> {
        let Some(values) = piece.column(2).as_primitive_opt::<Float32Type>() else {
            return Ok(());
        };
        self.find_inexact(values.values()).map_or(Ok(()), |at| {
            let joinid = |column: usize| piece.column(column).as_primitive::<Int64Type>().value(at);
            Err(request.inexact(joinid(0) as u64, joinid(1) as u64))
        })
    }

    /// Converts the values of a piece of X to an Arrow array: of their type, or of f32 if the read
    /// is exact.
    fn values_array(&self, values: Column<'_>) -> Result<ArrayRef, Error> {
        let uri = self.array.uri();
        if self.narrowing == Narrowing::Exact {
            let mut exact = Vec::new();
            extend_f32(&mut exact, values, self.narrowing, uri)?;
            return Ok(Arc::new(Float32Array::from(exact)));
        }
        let broken = |problem: String| self.broken(DATA, problem);
        let data_type = data_type(values.datatype(), false).ok_or_else(|| Error::Values {
            uri: uri.to_owned(),
            datatype: format!("{:?}", values.datatype()),
        })?;
        fixed(&data_type, Buffer::from_slice_ref(values.bytes()), None, &broken)
    }

    fn stats(nnz: usize, bytes_read: u64) -> ReadStats {
        // libtiledb counts reads, many of them answered by its cache, instead of requests.
        ReadStats { values: nnz as u64, bytes_read: Some(bytes_read), ..ReadStats::default() }
    }

    /// Appends a piece to the list: joinids become positions, and unselected genes are dropped.
    fn add(
        &self,
        cells: &mut CooList,
        piece: &Piece<'_>,
        locator: &mut crate::rows::RowLocator<'_>,
        index: &GeneIndex,
    ) -> Result<(), Error> {
        let first = cells.values.len();
        for joinid in piece.column(0).values::<i64>()? {
            let position = locator.position(*joinid).ok_or_else(|| {
                self.broken(DIM_0, format!("cell {joinid} came without being asked for"))
            })?;
            cells.rows.push(position as u32);
        }
        extend_f32(&mut cells.values, piece.column(2), self.narrowing, self.array.uri())?;
        // Columns are appended last, so cells of unselected genes are removed here.
        let mut n_kept = first;
        for (cell_idx, joinid) in (first..).zip(piece.column(1).values::<i64>()?) {
            let is_zero = self.is_dense() && cells.values[cell_idx] == 0.0;
            if let Some(column) = index.column(*joinid).filter(|_| !is_zero) {
                cells.columns.push(column);
                cells.rows[n_kept] = cells.rows[cell_idx];
                cells.values[n_kept] = cells.values[cell_idx];
                n_kept += 1;
            }
        }
        cells.rows.truncate(n_kept);
        cells.values.truncate(n_kept);
        Ok(())
    }
}

impl XReader for LibtiledbReader {
    fn name(&self) -> &'static str {
        "libtiledb"
    }

    fn why_not_native(&self) -> Option<&str> {
        self.why_not_native.as_deref()
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
        // Counted on first use, because only limited memory and sparse batches need it.
        if let Some(nnz) = self.nnz.get() {
            return Ok(Some(*nnz));
        }
        let nnz = if self.is_dense() {
            self.shape.0.saturating_mul(self.shape.1)
        } else {
            approximate_cells(&self.place, &self.array)?
        };
        Ok(Some(*self.nnz.get_or_init(|| nnz)))
    }

    fn working_bytes(&self, nnz: u64, _genes: &GeneSelection, form: ReadForm) -> u64 {
        // CSR is sorted from a list of cells, each with a row, a column and a value.
        let list = if form == ReadForm::Csr { nnz * 12 } else { 0 };
        let of_libtiledb =
            self.context.config().get(TOTAL_BUDGET).and_then(|bytes| bytes.parse().ok());
        list + 3 * self.buffer_bytes as u64 + of_libtiledb.unwrap_or(DEFAULT_TOTAL_BUDGET)
    }

    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        let kind = (self.shape, self.data_type.clone());
        let opened = Self::open(&self.place, kind, self.buffer_bytes, self.why_not_native.clone())?;
        let is_within = is_within_f32(&self.data_type);
        let narrowing = if is_within { Narrowing::Nearest } else { Narrowing::Exact };
        Ok(Arc::new(Self { narrowing, ..opened }))
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        rows.check_within(self.array.uri(), self.shape.0)?;
        let n_columns = genes.n_columns(self.shape.1)?;
        let n_rows = u32::try_from(rows.n_rows()).map_err(|_| Error::RowsOutside {
            uri: self.array.uri().to_owned(),
            start: 0,
            end: rows.n_rows(),
            n_rows: u32::MAX.into(),
        })?;
        // A concurrent read uses memory of its own.
        let mut own = CooList::default();
        let mut shared = self.cells.try_lock().ok();
        let cells = shared.as_deref_mut().unwrap_or(&mut own);
        cells.clear();
        let (mut locator, index) = (rows.locator(), GeneIndex::new(genes));
        let bytes_read =
            self.pieces(rows, genes, |piece| self.add(cells, piece, &mut locator, &index))?;
        if let Some(at) = self.find_inexact(&cells.values) {
            let (row, column) = (cells.rows[at] as usize, cells.columns[at]);
            return Err(self.request(rows, genes).inexact_in_row(row, column));
        }
        cells.count_into(n_rows as usize, n_columns, out);
        Ok(Self::stats(out.nnz(), bytes_read))
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        let index = GeneIndex::new(genes);
        let has_others = self.is_dense() || matches!(index, GeneIndex::Sorted(_));
        let mut nnz = 0;
        let bytes_read = self.pieces(rows, genes, |piece| {
            let uri = self.array.uri();
            let genes = piece.column(1).values::<i64>()?;
            let values = self.values_array(piece.column(2))?;
            let batch = coo_batch(
                uri,
                Int64Array::from(piece.column(0).values::<i64>()?.to_vec()),
                Int64Array::from(genes.to_vec()),
                values,
            )?;
            let batch = if has_others {
                let mut of_cells = Vec::new();
                extend_f32(&mut of_cells, piece.column(2), self.narrowing, uri)?;
                let is_wanted = |(gene, value): (&i64, &f32)| {
                    index.column(*gene).is_some() && !(self.is_dense() && *value == 0.0)
                };
                let wanted = genes.iter().zip(&of_cells).map(is_wanted).map(Some).collect();
                arrow_select::filter::filter_record_batch(&batch, &wanted).map_err(|source| {
                    Error::Arrow { uri: uri.to_owned(), what: "a piece".into(), source }
                })?
            } else {
                batch
            };
            self.check_exact(&batch, &self.request(rows, &GeneSelection::All))?;
            nnz += batch.num_rows();
            if batch.num_rows() == 0 { Ok(()) } else { each(&batch) }
        })?;
        Ok(Self::stats(nnz, bytes_read))
    }
}

/// Appends values of every numeric type to `out` as `f32`.
fn extend_f32(
    out: &mut Vec<f32>,
    values: Column<'_>,
    narrowing: Narrowing,
    uri: &str,
) -> Result<(), Error> {
    match values.datatype() {
        Datatype::Float32 => out.extend_from_slice(values.values()?),
        Datatype::Float64 => {
            out.extend(values.values::<f64>()?.iter().map(|value| value.narrow(narrowing)));
        }
        Datatype::Int8 => out.extend(values.values::<i8>()?.iter().map(|value| f32::from(*value))),
        Datatype::UInt8 => out.extend(values.values::<u8>()?.iter().map(|value| f32::from(*value))),
        Datatype::Bool => {
            out.extend(values.values::<u8>()?.iter().map(|value| f32::from(u8::from(*value != 0))));
        }
        Datatype::Int16 => {
            out.extend(values.values::<i16>()?.iter().map(|value| f32::from(*value)));
        }
        Datatype::UInt16 => {
            out.extend(values.values::<u16>()?.iter().map(|value| f32::from(*value)));
        }
        Datatype::Int32 => {
            out.extend(values.values::<i32>()?.iter().map(|value| value.narrow(narrowing)));
        }
        Datatype::UInt32 => {
            out.extend(values.values::<u32>()?.iter().map(|value| value.narrow(narrowing)));
        }
        Datatype::Int64 => {
            out.extend(values.values::<i64>()?.iter().map(|value| value.narrow(narrowing)));
        }
        Datatype::UInt64 => {
            out.extend(values.values::<u64>()?.iter().map(|value| value.narrow(narrowing)));
        }
        other => return Err(Error::Values { uri: uri.to_owned(), datatype: format!("{other:?}") }),
    }
    Ok(())
}
