//! The table of a batch with neighbours: the cells of the batch, then their neighbours, each once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// The rows of a batch in the making, in memory that the next batch uses again. A batch is cut
/// across blocks, whose cells may be neighbours of each other, so rows are collected as CSR, each
/// cell once, and put in order when the batch is full.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The rows that were collected.
    rows: BlockMatrix,
    /// The experiment and the joinid of each cell, by its first occurrence in the batch.
    cells: Vec<(u32, u64)>,
    /// The place of each cell among `rows`.
    places: Vec<u32>,
    number_of: HashMap<(u32, u64), u32, BuildHasherDefault<CellHasher>>,
    /// The number of each of the batch's own cells.
    centres: Vec<u32>,
    /// The number of each neighbour; [`MISSING`] if there is none.
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
        // The number of each new cell, and its row in the block or beside it.
        let (mut own, mut further) = (Vec::new(), Vec::new());
        let mut number = |place: u32| {
            if place == MISSING {
                return MISSING;
            }
            let of_further = (place as usize).checked_sub(n_rows);
            let cell = match of_further {
                Some(further) => of_block.further[further],
                None => {
                    let (experiment, joinid) = dataset.origin(block.selection_row(place));
                    (experiment as u32, joinid)
                }
            };
            let next = self.cells.len() as u32;
            *self.number_of.entry(cell).or_insert_with(|| {
                self.cells.push(cell);
                match of_further {
                    Some(row) => further.push((next, row as u32)),
                    None => own.push((next, place)),
                }
                next
            })
        };
        self.centres.extend(order.iter().map(|row| number(*row)));
        for row in order {
            let slots = *row as usize * k..(*row as usize + 1) * k;
            self.neighbours.extend(of_block.places[slots.clone()].iter().map(|at| number(*at)));
            self.values.extend(&of_block.values[slots]);
        }
        self.places.resize(self.cells.len(), 0);
        let first = self.rows.n_rows as u32;
        for (place, (number, _)) in (first..).zip(own.iter().chain(&further)) {
            self.places[*number as usize] = place;
        }
        let rows = |of: &[(u32, u32)]| of.iter().map(|(_, row)| *row).collect::<Vec<_>>();
        self.collect(&block.x, &rows(&own))?;
        self.collect(&of_block.x, &rows(&further))
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
    /// the threads that helped to write it. The table is empty then.
    pub(crate) fn finish<B: BatchBuffers>(
        &mut self,
        buffers: &B,
        (maker, k): (&mut MatrixMaker, usize),
        (transforms, n_threads): (Option<RowTransforms<'_>>, usize),
    ) -> Result<(Matrix<B::Buffer>, Neighbours, ThreadTime), LoaderError> {
        let mut numbers = self.centres.clone();
        let mut row_of = vec![MISSING; self.cells.len()];
        for (row, number) in (0..).zip(&numbers) {
            let first = &mut row_of[*number as usize];
            // A cell that was drawn twice is there twice; its first row counts.
            *first = (*first).min(row);
        }
        // By their first occurrence: the order in which rows were collected depends on the blocks.
        for number in self.neighbours.iter().filter(|number| **number != MISSING) {
            let row = &mut row_of[*number as usize];
            if *row == MISSING {
                *row = numbers.len() as u32;
                numbers.push(*number);
            }
        }
        let positions = self.neighbours.iter().enumerate().map(|(idx, number)| match *number {
            MISSING => (idx / k) as u32,
            number => row_of[number as usize],
        });
        let cells = numbers.iter().map(|number| self.cells[*number as usize]);
        let neighbours = Neighbours {
            k,
            positions: positions.collect(),
            values: self.values.clone(),
            present: self.neighbours.iter().map(|number| *number != MISSING).collect(),
            joinids: cells.clone().map(|(_, joinid)| joinid as i64).collect(),
            experiments: cells.map(|(experiment, _)| experiment).collect(),
        };
        let order: Vec<u32> = numbers.iter().map(|number| self.places[*number as usize]).collect();
        let mut made = maker.begin(buffers, order.len())?;
        let rows = Rows { first: 0, order: &order, transforms, n_threads };
        let others = if order.is_empty() {
            ThreadTime::default()
        } else {
            made.add(buffers, &self.rows, rows).map_err(|error| self.named(error))?
        };
        self.clear();
        Ok((maker.finish(buffers, (made, order.len()))?, neighbours, others))
    }

    /// Empties the table, whose memory stays.
    pub(crate) fn clear(&mut self) {
        self.rows.n_rows = 0;
        if let Values::Csr(csr) = &mut self.rows.values {
            csr.clear();
        }
        self.cells.clear();
        self.places.clear();
        self.number_of.clear();
        self.centres.clear();
        self.neighbours.clear();
        self.values.clear();
    }

    /// The error of a row that was collected, by the name of its cell.
    fn named(&self, error: LoaderError) -> LoaderError {
        match error {
            LoaderError::Densify { source: densify::Error::Total { row_idx, total }, .. } => {
                let number = self.places.iter().position(|row| *row as usize == row_idx);
                let (experiment, joinid) = number.map_or((0, 0), |number| self.cells[number]);
                LoaderError::Total { experiment: experiment as usize, joinid, total }
            }
            error => error,
        }
    }
}

/// Hashes cells by multiplying their numbers: a batch looks up each neighbour once.
#[derive(Debug, Default)]
struct CellHasher(u64);

impl Hasher for CellHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number near 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
