//! The selected part of one experiment: its cells, and of each matrix the reader and the columns.

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use densify::AxisIndex;
use pipeline::BlockPlace;
use soma_io::{AlignedReader, CsrBuffers, GeneSelection, NextReads, RowRanges, XReader};

use crate::cells::Cells;
use crate::error::{LoaderError, MatrixError, OpenError, open_error};

/// The selected cells of one experiment, with X and the matrices beside it.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) cells: Cells,
    pub(crate) x: SelectedMatrix,
    /// In the order of the data set's matrices beside X.
    pub(crate) beside: Vec<SelectedMatrix>,
    /// The graph of obsp by which cells have neighbours; not a matrix of the batches.
    pub(crate) graph: Option<SelectedMatrix>,
}

/// The selected columns of one matrix of an experiment.
#[derive(Clone)]
pub(crate) struct SelectedMatrix {
    pub(crate) reader: Arc<dyn XReader>,
    pub(crate) columns: ColumnPlaces,
    /// By joinid, whether the matrix has a cell; `None` if it has all.
    pub(crate) present: Option<BooleanBuffer>,
    /// The stored row of each joinid, counted from 1, if the reader was aligned by them.
    pub(crate) rows: Option<Arc<[u32]>>,
}

/// The columns that are read, and the batch column of each. Those of X and its layers are genes.
#[derive(Clone, Debug)]
pub(crate) struct ColumnPlaces {
    /// The columns that are read.
    pub(crate) selection: GeneSelection,
    /// Number of columns that are read.
    n_read: usize,
    /// The batch column of each column that is read, ascending; `None` if they are all columns of
    /// the batch, in order.
    columns: Option<Arc<[u32]>>,
    /// Number of batch columns, including those of genes that the matrix lacks.
    pub(crate) n_columns: usize,
}

impl Selected {
    /// Selected cells, with X alone.
    pub(crate) fn new(cells: Cells, reader: Arc<dyn XReader>, columns: ColumnPlaces) -> Self {
        let x = SelectedMatrix::new(reader, columns);
        Self { cells, x, beside: Vec::new(), graph: None }
    }

    /// X, then the matrices beside it, then the graph of neighbours.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &SelectedMatrix> {
        iter::once(&self.x).chain(&self.beside).chain(&self.graph)
    }
}

impl SelectedMatrix {
    /// A matrix that has all cells.
    pub(crate) fn new(reader: Arc<dyn XReader>, columns: ColumnPlaces) -> Self {
        Self { reader, columns, present: None, rows: None }
    }

    /// The same matrix with rows for joinids below `n_cells`; it lacks those beyond its own.
    pub(crate) fn with_rows(self, n_cells: u64, name: &str) -> Result<Self, MatrixError> {
        let n_rows = self.reader.n_rows();
        if n_cells <= n_rows {
            return Ok(self);
        }
        let rows = (1..=n_rows as u32).chain(iter::repeat_n(0, (n_cells - n_rows) as usize));
        let rows: Arc<[u32]> = rows.collect();
        let reader = aligned(self.reader, name, &rows)?;
        // Cells at or beyond the end of the mask are not there.
        let n_rows = n_rows as usize;
        let present = self.present.map_or_else(
            || BooleanBuffer::new_set(n_rows),
            |present| present.slice(0, n_rows.min(present.len())),
        );
        Ok(Self { reader, present: Some(present), rows: Some(rows), ..self })
    }

    /// Whether the matrix has the cell with this joinid.
    pub(crate) fn has_cell(&self, joinid: u64) -> bool {
        is_present(self.present.as_ref(), joinid)
    }

    /// Estimated mean number of values that are read of a row: the mean over all rows, times the
    /// share of the columns. 0 if the reader does not know its number of values.
    pub(crate) fn mean_row_nnz(&self) -> Result<f64, OpenError> {
        let (n_rows, n_columns) = (self.reader.n_rows().max(1), self.reader.n_columns().max(1));
        let nnz = self.reader.most_nnz().map_err(open_error("the number of values".to_owned()))?;
        let of_row = nnz.unwrap_or(0) as f64 / n_rows as f64;
        Ok(of_row * self.columns.n_read as f64 / n_columns as f64)
    }
}

impl ColumnPlaces {
    /// One column for each selected one of a matrix with `matrix_columns` columns.
    pub(crate) fn new(
        selection: GeneSelection,
        matrix_columns: u64,
    ) -> Result<Self, soma_io::Error> {
        let n_columns = selection.n_columns(matrix_columns)?;
        Ok(Self { selection, n_read: n_columns, columns: None, n_columns })
    }

    /// One column for each entry: the gene with this joinid, or zeros for `None`.
    pub(crate) fn aligned(
        genes: &[Option<u64>],
        matrix_columns: u64,
    ) -> Result<Self, soma_io::Error> {
        let read: Vec<u64> = genes.iter().copied().flatten().collect();
        let all_there = read.len() == genes.len();
        let consecutive = read.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let selection = match (read.first(), read.last()) {
            (Some(0), Some(last)) if consecutive && last + 1 == matrix_columns => {
                GeneSelection::All
            }
            (Some(first), Some(last)) if consecutive && *last < matrix_columns => {
                GeneSelection::Range(*first..last + 1)
            }
            _ => GeneSelection::List(read),
        };
        let mut aligned = Self::new(selection, matrix_columns)?;
        if !all_there {
            let columns = (0_u32..).zip(genes).filter_map(|(at, gene)| gene.map(|_| at));
            aligned.columns = Some(columns.collect());
            aligned.n_columns = genes.len();
        }
        Ok(aligned)
    }

    /// The index from a gene's joinid to its batch column.
    pub(crate) fn index(&self) -> Result<AxisIndex, densify::Error> {
        const AXIS: &str = "gene";
        let Some(columns) = &self.columns else {
            return match &self.selection {
                GeneSelection::List(list) => AxisIndex::list(AXIS, list),
                GeneSelection::Range(range) => AxisIndex::ranges(AXIS, [range.clone()]),
                GeneSelection::All => AxisIndex::ranges(AXIS, [0..self.n_columns as u64]),
            };
        };
        let read: Vec<u64> = match &self.selection {
            GeneSelection::List(list) => list.clone(),
            GeneSelection::Range(range) => range.clone().collect(),
            GeneSelection::All => (0..self.n_read as u64).collect(),
        };
        AxisIndex::at_positions(AXIS, &read, columns, self.n_columns)
    }

    /// Maps the reader's columns to batch columns. `Err` is a column beyond the requested genes.
    pub(crate) fn place(&self, csr: &mut CsrBuffers) -> Result<(), u32> {
        if let Some(places) = &self.columns {
            for column in &mut csr.columns {
                *column = *places.get(*column as usize).ok_or(*column)?;
            }
        }
        csr.n_columns = self.n_columns;
        Ok(())
    }

    /// Whether a batch column's gene is read.
    pub(crate) fn has(&self, column: usize) -> bool {
        match &self.columns {
            Some(columns) => columns.binary_search(&(column as u32)).is_ok(),
            None => column < self.n_columns,
        }
    }

    /// Whether the reader's columns must be mapped to batch columns.
    pub(crate) fn is_placed(&self) -> bool {
        self.columns.is_some()
    }
}

/// Whether a mask by joinid has a cell; without one all are there.
pub(crate) fn is_present(mask: Option<&BooleanBuffer>, joinid: u64) -> bool {
    let joinid = joinid as usize;
    mask.is_none_or(|mask| joinid < mask.len() && mask.value(joinid))
}

/// The reader of a matrix by the joinids of cells.
pub(crate) fn aligned(
    reader: Arc<dyn XReader>,
    name: &str,
    rows: &Arc<[u32]>,
) -> Result<Arc<dyn XReader>, MatrixError> {
    let failed = |source| MatrixError::Rows { matrix: name.to_owned(), source: Box::new(source) };
    Ok(Arc::new(AlignedReader::new(reader, name, Arc::clone(rows)).map_err(failed)?))
}

/// Whether both are one reader.
pub(crate) fn is_same(one: &Arc<dyn XReader>, other: &Arc<dyn XReader>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

impl fmt::Debug for SelectedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedMatrix")
            .field("reader", &self.reader)
            .field("n_columns_read", &self.columns.n_read)
            .finish_non_exhaustive()
    }
}

/// The rows of a block that come from one experiment.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Index of the experiment in the data set.
    pub(crate) source: usize,
    /// The rows, as ranges of joinids.
    pub(crate) joinids: Vec<Range<u64>>,
    pub(crate) n_rows: usize,
    /// When the experiment's cells are read again, if that is known.
    pub(crate) next_reads: Option<NextReads>,
}

impl Part {
    /// The rows as a reader takes them.
    pub(crate) fn rows(&self) -> Result<RowRanges, soma_io::Error> {
        Ok(RowRanges::new(self.joinids.clone())?.with_next_reads(self.next_reads.clone()))
    }

    /// Fails if the reader returned another number of rows or columns than was requested.
    pub(crate) fn check_shape(
        &self,
        matrix: &SelectedMatrix,
        (found_rows, found_columns): (usize, usize),
        block_idx: u64,
    ) -> Result<(), LoaderError> {
        if (found_rows, found_columns) == (self.n_rows, matrix.columns.n_read) {
            return Ok(());
        }
        Err(LoaderError::BlockShape {
            reader: matrix.reader.name(),
            block_idx,
            found_rows,
            found_columns,
            n_rows: self.n_rows,
            n_columns: matrix.columns.n_read,
        })
    }

    /// The error of a reader that returned a column beyond the requested ones.
    pub(crate) fn column_error(
        &self,
        matrix: &SelectedMatrix,
        column: u32,
        block_idx: u64,
    ) -> LoaderError {
        LoaderError::BlockShape {
            reader: matrix.reader.name(),
            block_idx,
            found_rows: self.n_rows,
            found_columns: column as usize + 1,
            n_rows: self.n_rows,
            n_columns: matrix.columns.n_read,
        }
    }

    /// The error of a block for which X, or a matrix beside it, could not be read.
    pub(crate) fn read_error(
        &self,
        BlockPlace { epoch, block_idx }: BlockPlace,
        error: soma_io::Error,
    ) -> LoaderError {
        let first = self.joinids.first().map_or(0, |first| first.start);
        let end = self.joinids.last().map_or(0, |last| last.end);
        LoaderError::Read {
            epoch,
            block_idx,
            experiment: self.source,
            joinids: first..end,
            source: Box::new(error),
        }
    }
}
