//! The table of a batch with neighbours: the cells of the batch, then their neighbours, each once.

use std::collections::HashMap;

use csr::CsrBuffers;
use densify::RowTransforms;
use worktime::ThreadTime;

use super::{MISSING, Neighbours};
use crate::batch::Matrix;
use crate::block::{Block, BlockMatrix, Values};
use crate::buffers::BatchBuffers;
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::unfinished::{MatrixMaker, Rows};

/// The rows of a batch in the making. A batch is cut across blocks, whose cells may be neighbours
/// of each other, so rows are collected as CSR, each cell once, and put in order when the batch is
/// full.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The rows that were collected.
    rows: BlockMatrix,
    /// The experiment and the joinid of each.
    cells: Vec<(u32, u64)>,
    row_of: HashMap<(u32, u64), u32>,
    /// The row of each cell of the batch.
    centres: Vec<u32>,
    /// The row of each neighbour; [`MISSING`] if there is none.
    neighbours: Vec<u32>,
    values: Vec<f32>,
}

impl Table {
    /// Appends rows of a block, in this order, with their neighbours.
    pub(crate) fn add(
        &mut self,
        dataset: &Dataset,
        block: &Block,
        (order, k): (&[u32], usize),
    ) -> Result<(), LoaderError> {
        let (n_rows, of_block) = (block.rows.len(), &block.neighbours);
        let cell = |place: u32| match (place as usize).checked_sub(n_rows) {
            Some(further) => of_block.further[further],
            None => {
                let (experiment, joinid) = dataset.origin(block.selection_row(place));
                (experiment as u32, joinid)
            }
        };
        let places = |row: &u32| *row as usize * k..(*row as usize + 1) * k;
        let of_order = order.iter().flat_map(|row| &of_block.places[places(row)]);
        let (mut own, mut further) = (Vec::new(), Vec::new());
        // Rows of the block are collected first.
        let all = || order.iter().chain(of_order.clone()).copied();
        for is_further in [false, true] {
            for place in all().filter(|place| *place != MISSING) {
                if (n_rows <= place as usize) != is_further {
                    continue;
                }
                let next = self.cells.len() as u32;
                self.row_of.entry(cell(place)).or_insert_with_key(|cell| {
                    self.cells.push(*cell);
                    if is_further {
                        further.push(place - n_rows as u32);
                    } else {
                        own.push(place);
                    }
                    next
                });
            }
        }
        let row_of = |place: &u32| match *place {
            MISSING => MISSING,
            place => self.row_of[&cell(place)],
        };
        self.centres.extend(order.iter().map(row_of));
        self.neighbours.extend(of_order.clone().map(row_of));
        self.values.extend(order.iter().flat_map(|row| &of_block.values[places(row)]));
        self.collect(&block.x, &own)?;
        self.collect(&of_block.x, &further)
    }

    /// Appends rows of a matrix.
    fn collect(&mut self, from: &BlockMatrix, rows: &[u32]) -> Result<(), LoaderError> {
        if rows.is_empty() {
            return Ok(());
        }
        let (place, n_columns) = (from.place, from.n_columns);
        if !matches!(self.rows.values, Values::Csr(_)) {
            self.rows = BlockMatrix {
                values: Values::Csr(CsrBuffers::empty(n_columns)),
                ..BlockMatrix::default()
            };
        }
        (self.rows.place, self.rows.n_columns) = (place, n_columns);
        self.rows.n_rows += rows.len();
        let added = from.nnz_of(rows)?;
        let csr = self.rows.csr_mut();
        let nnz = csr.nnz();
        csr.columns.resize(nnz + added, 0);
        csr.values.resize(nnz + added, 0.0);
        let out = (&mut csr.columns[nnz..], &mut csr.values[nnz..]);
        from.rows_to_csr_on(1, rows, None, &mut csr.row_offsets, out).map(drop)
    }

    /// The table as a matrix in the form of X, with the places of neighbours in it, and the time of
    /// the threads that helped to write it.
    pub(crate) fn finish<B: BatchBuffers>(
        mut self,
        buffers: &B,
        (maker, k): (&mut MatrixMaker, usize),
        (transforms, n_threads): (Option<RowTransforms<'_>>, usize),
    ) -> Result<(Matrix<B::Buffer>, Neighbours, ThreadTime), LoaderError> {
        let mut order = std::mem::take(&mut self.centres);
        let mut row_in = vec![MISSING; self.cells.len()];
        for (row, collected) in (0..).zip(&order) {
            let first = &mut row_in[*collected as usize];
            // A cell that was drawn twice is there twice; its first row counts.
            *first = (*first).min(row);
        }
        // By their first occurrence: the order in which rows were collected depends on the blocks.
        for collected in self.neighbours.iter().filter(|row| **row != MISSING) {
            let row = &mut row_in[*collected as usize];
            if *row == MISSING {
                *row = order.len() as u32;
                order.push(*collected);
            }
        }
        let positions = self.neighbours.iter().enumerate().map(|(idx, row)| match *row {
            MISSING => (idx / k) as u32,
            row => row_in[row as usize],
        });
        let cells = order.iter().map(|row| self.cells[*row as usize]);
        let neighbours = Neighbours {
            k,
            positions: positions.collect(),
            values: std::mem::take(&mut self.values),
            present: self.neighbours.iter().map(|row| *row != MISSING).collect(),
            joinids: cells.clone().map(|(_, joinid)| joinid as i64).collect(),
            experiments: cells.map(|(experiment, _)| experiment).collect(),
        };
        let mut made = maker.begin(buffers, order.len())?;
        let rows = Rows { first: 0, order: &order, transforms, n_threads };
        let others = if order.is_empty() {
            ThreadTime::default()
        } else {
            made.add(buffers, &self.rows, rows).map_err(|error| self.named(error))?
        };
        Ok((maker.finish(buffers, (made, order.len()))?, neighbours, others))
    }

    /// The error of a row that was collected, by the name of its cell.
    fn named(&self, error: LoaderError) -> LoaderError {
        match error {
            LoaderError::Densify { source: densify::Error::Total { row_idx, total }, .. } => {
                let (experiment, joinid) = self.cells[row_idx];
                LoaderError::Total { experiment: experiment as usize, joinid, total }
            }
            error => error,
        }
    }
}
