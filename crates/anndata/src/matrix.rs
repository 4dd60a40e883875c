//! Matrices: rows of CSR groups and of dense arrays, as CSR.

mod dense;
mod exact;
mod sparse;

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use csr::{CsrBuffers, Narrowing};
use storage::NextReads;
use worktime::ReadStats;

use arrays::ElementType;

use self::dense::{Dense, DensePart};
use self::sparse::{Sparse, SparsePart};
use crate::column::data_type;
use crate::elements::Elements;
use crate::error::Error;
use crate::parts::starts;

/// The most columns of a matrix: larger numbers stand for columns that are wrong.
const MAX_COLUMNS: u64 = i32::MAX as u64;

/// A matrix: X, a layer, or an array of obsm.
#[derive(Debug)]
pub struct Matrix {
    elements: Arc<Elements>,
    path: String,
    shape: (u64, u64),
    starts: Vec<u64>,
    value_type: DataType,
    form: Form,
}

/// The matrix of one data set, opened.
struct OpenPart<Part> {
    part: Part,
    n_rows: u64,
    n_columns: u64,
    element: ElementType,
}

/// How a matrix is stored.
#[derive(Debug)]
enum Form {
    Csr(Sparse),
    Dense(Dense),
}

/// How the values of a matrix are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixKind {
    /// Compressed sparse rows.
    Csr,
    /// All values, row by row.
    Dense,
}

impl Matrix {
    /// Opens the matrices `name` of all data sets, whose rows follow each other.
    pub(crate) fn open(elements: &Arc<Elements>, name: &str) -> Result<Self, Error> {
        let (mut csr, mut dense) = (Vec::new(), Vec::new());
        let mut kind: Option<(ElementType, u64)> = None;
        let mut all_rows = Vec::new();
        for path in elements.paths(name) {
            let node = elements.readable(&path)?;
            let (n_rows, n_columns, element) = match (node.encoding(), node.array.is_some()) {
                ("csr_matrix", false) => {
                    let open = SparsePart::open(elements, &path, &node)?;
                    csr.push(open.part);
                    (open.n_rows, open.n_columns, open.element)
                }
                ("array" | "", true) => {
                    let open = DensePart::open(elements, &path)?;
                    dense.push(open.part);
                    (open.n_rows, open.n_columns, open.element)
                }
                ("csc_matrix", false) => {
                    return Err(elements.unsupported(&path, by_columns(name)));
                }
                (encoding, _) => {
                    let reason =
                        format!("its encoding-type is `{encoding}`; csr_matrix and array are read");
                    return Err(elements.unsupported(&path, reason));
                }
            };
            if MAX_COLUMNS < n_columns {
                let reason = format!("it has {n_columns} columns, {MAX_COLUMNS} are read");
                return Err(elements.unsupported(&path, reason));
            }
            let of_first = *kind.get_or_insert((element, n_columns));
            if of_first != (element, n_columns) || !(csr.is_empty() || dense.is_empty()) {
                let (first, of_first) = of_first;
                let what = format!(
                    "{n_columns} columns of {element} are not like {of_first} of {first} in {}",
                    elements.first(name)
                );
                return Err(elements.unsupported(&path, what));
            }
            all_rows.push(n_rows);
        }
        let Some((element, n_columns)) = kind else {
            return Err(elements.damaged(name, "there is no data set"));
        };
        let Some(value_type) = data_type(element) else {
            return Err(elements.unsupported(name, format!("its values are of type {element}")));
        };
        let form = if dense.is_empty() {
            Form::Csr(Sparse::new(csr, n_columns))
        } else {
            Form::Dense(Dense::new(dense))
        };
        let (elements, path) = (Arc::clone(elements), name.to_owned());
        let starts = starts(all_rows.into_iter());
        let shape = (starts.last().copied().unwrap_or_default(), n_columns);
        Ok(Self { elements, path, shape, starts, value_type, form })
    }

    /// The first row of each data set, and the number of all rows.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The path of its group or array; of a collection, within each data set.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Rows and columns.
    pub fn shape(&self) -> (u64, u64) {
        self.shape
    }

    /// The type of the stored values.
    pub fn value_type(&self) -> &DataType {
        &self.value_type
    }

    /// How it is stored.
    pub fn kind(&self) -> MatrixKind {
        match self.form {
            Form::Csr(_) => MatrixKind::Csr,
            Form::Dense(_) => MatrixKind::Dense,
        }
    }

    /// The number of stored values of a CSR matrix. For a dense one `None`: only reading all of it
    /// tells how many are not zero.
    pub fn nnz(&self) -> Option<u64> {
        match &self.form {
            Form::Csr(sparse) => Some(sparse.nnz()),
            Form::Dense(_) => None,
        }
    }

    /// The number of stored values in each row of `rows`, without reading them; `None` for a dense
    /// matrix.
    pub fn row_lengths(&self, rows: Range<u64>) -> Option<impl Iterator<Item = u64> + '_> {
        match &self.form {
            Form::Csr(sparse) => Some(sparse.row_lengths(rows)),
            Form::Dense(_) => None,
        }
    }

    /// Bytes of memory for the places of its rows.
    pub fn index_bytes(&self) -> u64 {
        match &self.form {
            Form::Csr(sparse) => sparse.index_bytes(),
            Form::Dense(_) => 0,
        }
    }

    /// Allows the loader with this number to keep so many bytes of decoded chunks of a dense matrix
    /// between reads; 0 withdraws it. What several loaders allow adds up.
    pub fn keep_decoded(&self, holder: u64, n_bytes: u64) {
        match &self.form {
            Form::Csr(_) => {}
            Form::Dense(dense) => dense.keep(holder, n_bytes),
        }
    }

    /// Whether decoded chunks are kept by when rows are read again: those of a dense matrix.
    pub fn asks_next_reads(&self) -> bool {
        matches!(self.form, Form::Dense(_))
    }

    /// Bytes of decoded chunks that are kept for loaders.
    pub fn decoded_bytes(&self) -> u64 {
        match &self.form {
            Form::Csr(_) => 0,
            Form::Dense(dense) => dense.kept_for_loaders(),
        }
    }

    /// Upper bound of the bytes of memory of a read, without the rows that it returns.
    pub fn working_bytes(&self) -> u64 {
        let of_thread = match &self.form {
            Form::Csr(sparse) => sparse.working_bytes(),
            Form::Dense(dense) => dense.working_bytes(),
        };
        let of_matrix = match &self.form {
            Form::Csr(_) => exact::WORKING_BYTES,
            Form::Dense(dense) => dense.piece_bytes(),
        };
        self.elements.working_bytes(of_thread).saturating_add(of_matrix)
    }

    /// Reads rows as CSR. `rows` ascend and do not overlap; `out` gets one row for each.
    ///
    /// Columns ascend within a row, also if they are not stored so; a row with a column twice is an
    /// error. `narrowing` says how values become `f32`; Booleans become 0 and 1. A dense
    /// matrix returns the values that are not zero. A caller that wants only some columns picks
    /// them afterwards: the stored chunks have all of them.
    ///
    /// # Errors
    /// [`Error::Rows`] before anything is read; [`Error::Array`] and [`Error::Damaged`] if stored
    /// bytes are missing or wrong. `out` then has any content.
    pub fn read_rows(
        &self,
        rows: &[Range<u64>],
        narrowing: Narrowing,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        self.read_rows_again((rows, None), narrowing, out)
    }

    /// Reads rows like [`read_rows`](Self::read_rows). `next_reads` says when rows are read again,
    /// if that is known: of a dense matrix the decoded chunks that are needed soonest stay.
    ///
    /// # Errors
    /// Those of `read_rows`.
    pub fn read_rows_again(
        &self,
        (rows, next_reads): (&[Range<u64>], Option<&NextReads>),
        narrowing: Narrowing,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        self.elements.check_rows(&self.path, rows, self.shape.0)?;
        out.n_columns = usize::try_from(self.shape.1).unwrap_or(usize::MAX);
        match &self.form {
            Form::Csr(sparse) => sparse.read(&self.elements, rows, narrowing, out),
            Form::Dense(dense) => dense.read(&self.elements, (rows, next_reads), narrowing, out),
        }
    }
}

/// What to do with a matrix that is stored by columns.
fn by_columns(name: &str) -> String {
    let by_rows = match name.split_once('/') {
        Some(("raw", _)) => {
            "raw = adata.raw.to_adata(); raw.X = raw.X.tocsr(); adata.raw = raw".to_owned()
        }
        Some((kind, name)) => format!("adata.{kind}[{name:?}] = adata.{kind}[{name:?}].tocsr()"),
        None => format!("adata.{name} = adata.{name}.tocsr()"),
    };
    format!(
        "it is stored by columns (csc_matrix), and rows are read; rewrite it as CSR, in a file of \
         its own: {by_rows}; adata.write_h5ad(...) or adata.write_zarr(...)"
    )
}
