//! The selected part of one experiment's X: its reader, its cells, and the columns of its genes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use densify::AxisIndex;
use pipeline::BlockPlace;
use soma_io::{CsrBuffers, GeneSelection, XReader};

use crate::cells::Cells;
use crate::error::Error;

/// Selected cells and genes of one X.
#[derive(Clone)]
pub(crate) struct SelectedX {
    pub(crate) x: Arc<dyn XReader>,
    pub(crate) cells: Cells,
    pub(crate) genes: GenePlaces,
}

/// The genes that are read, and the batch column of each.
#[derive(Clone, Debug)]
pub(crate) struct GenePlaces {
    /// The genes that are read from X.
    pub(crate) selection: GeneSelection,
    /// Number of genes that are read.
    n_read: usize,
    /// The batch column of each gene that is read, ascending; `None` if they are all columns of the
    /// batch, in order.
    columns: Option<Arc<[u32]>>,
    /// Number of batch columns, including those of genes that X lacks.
    pub(crate) n_columns: usize,
}

impl GenePlaces {
    /// One column for each gene of a selection.
    pub(crate) fn new(selection: GeneSelection, x_columns: u64) -> Result<Self, Error> {
        let n_columns = selection
            .n_columns(x_columns)
            .map_err(|source| Error::GenesOutsideX { x_columns, source: Box::new(source) })?;
        Ok(Self { selection, n_read: n_columns, columns: None, n_columns })
    }

    /// One column for each entry: the gene with this joinid, or zeros for `None`.
    pub(crate) fn aligned(genes: &[Option<u64>], x_columns: u64) -> Result<Self, Error> {
        let read: Vec<u64> = genes.iter().copied().flatten().collect();
        let all_there = read.len() == genes.len();
        let consecutive = read.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let selection = match (read.first(), read.last()) {
            (Some(0), Some(last)) if consecutive && last + 1 == x_columns => GeneSelection::All,
            (Some(first), Some(last)) if consecutive && *last < x_columns => {
                GeneSelection::Range(*first..last + 1)
            }
            _ => GeneSelection::List(read),
        };
        let mut aligned = Self::new(selection, x_columns)?;
        if !all_there {
            let columns = (0_u32..).zip(genes).filter_map(|(at, gene)| gene.map(|_| at));
            aligned.columns = Some(columns.collect());
            aligned.n_columns = genes.len();
        }
        Ok(aligned)
    }

    /// Number of genes that are read.
    pub(crate) fn n_read(&self) -> usize {
        self.n_read
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

impl fmt::Debug for SelectedX {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedX")
            .field("x", &self.x)
            .field("n_rows", &self.cells.n_rows())
            .field("n_genes_read", &self.genes.n_read)
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
}

impl Part {
    /// Fails if the reader returned another number of rows or columns than was requested.
    pub(crate) fn check_shape(
        &self,
        source: &SelectedX,
        (found_rows, found_columns): (usize, usize),
        block_idx: u64,
    ) -> Result<(), Error> {
        if (found_rows, found_columns) == (self.n_rows, source.genes.n_read) {
            return Ok(());
        }
        Err(Error::BlockShape {
            reader: source.x.name(),
            block_idx,
            found_rows,
            found_columns,
            n_rows: self.n_rows,
            n_columns: source.genes.n_read,
        })
    }

    /// The error of a reader that returned a column beyond the requested ones.
    pub(crate) fn column_error(&self, source: &SelectedX, column: u32, block_idx: u64) -> Error {
        Error::BlockShape {
            reader: source.x.name(),
            block_idx,
            found_rows: self.n_rows,
            found_columns: column as usize + 1,
            n_rows: self.n_rows,
            n_columns: source.genes.n_read,
        }
    }

    /// The error of a block for which X could not be read.
    pub(crate) fn read_error(
        &self,
        BlockPlace { epoch, block_idx }: BlockPlace,
        error: soma_io::Error,
    ) -> Error {
        let first = self.joinids.first().map_or(0, |first| first.start);
        let end = self.joinids.last().map_or(0, |last| last.end);
        Error::Read {
            epoch,
            block_idx,
            experiment: self.source,
            joinids: first..end,
            source: Box::new(error),
        }
    }
}
