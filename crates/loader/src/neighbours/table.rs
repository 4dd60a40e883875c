//! The table of a batch with neighbours: the cells of the batch, then their neighbours, each once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use densify::RowTransforms;
use worktime::ThreadTime;

use super::{MISSING, Neighbours};
use crate::block::{Block, BlockMatrix, Values};
use crate::buffers::BatchBuffers;
use crate::elements::ElementsMut;
use crate::error::LoaderError;
use crate::unfinished::{MatrixMaker, Rows, Unfinished};

/// The cells of a batch in the making, in memory that the next batch uses again.
///
/// If all come from one block, as most do, its rows are written straight into the batch. Otherwise
/// they are collected as CSR, because cells of one block may be neighbours of those of another.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The experiment and the joinid of each cell, by its first occurrence.
    cells: Vec<(u32, u64)>,
    number_of: HashMap<(u32, u64), u32, BuildHasherDefault<CellHasher>>,
    /// The row in X of their block of the cells that came last.
    new_rows: Vec<u32>,
    /// The rows of all cells, if they come from several blocks.
    rows: BlockMatrix,
    /// The number of each of the batch's own cells.
    centres: Vec<u32>,
    /// The number of each neighbour; [`MISSING`] if there is none.
    nearest: Vec<u32>,
    values: Vec<f32>,
}

/// Writes the rows of a table.
pub(crate) struct TableMaker<'a, B> {
    pub(crate) buffers: &'a B,
    pub(crate) x: &'a MatrixMaker,
    /// Number of neighbours of each cell.
    pub(crate) k: usize,
    pub(crate) transforms: Option<RowTransforms<'a>>,
    pub(crate) n_threads: usize,
}

/// X of a table, its neighbours, and the time of the threads that helped to write it.
pub(crate) type Written<V> = (Unfinished<V>, Neighbours, ThreadTime);

impl Table {
    /// Appends rows of a block, in this order, with their neighbours. If `is_whole`, they are all
    /// of the batch, which is returned; otherwise more may follow, and then [`write`](Self::write).
    pub(crate) fn add<B: BatchBuffers>(
        &mut self,
        maker: &TableMaker<'_, B>,
        block: &Block,
        (order, is_whole): (&[u32], bool),
    ) -> Result<Option<Written<B::Buffer>>, LoaderError> {
        let (of, k) = (&block.neighbours, maker.k);
        self.new_rows.clear();
        for row in order {
            let centre = self.number(of.own[*row as usize], &of.cells);
            self.centres.push(centre);
        }
        for row in order {
            let slots = *row as usize * k..(*row as usize + 1) * k;
            for row in &of.nearest[slots.clone()] {
                let number = self.number(*row, &of.cells);
                self.nearest.push(number);
            }
            self.values.extend(&of.values[slots]);
        }
        if !is_whole {
            return self.collect(&block.x).map(|()| None);
        }
        let row_of = |number: u32| self.new_rows[number as usize];
        let written = self.written(maker, (&block.x, row_of), &of.cells);
        self.clear();
        written.map(Some)
    }

    /// The number of the cell in a row of a block's X.
    fn number(&mut self, row: u32, cells: &[(u32, u64)]) -> u32 {
        if row == MISSING {
            return MISSING;
        }
        let (cell, next) = (cells[row as usize], self.cells.len() as u32);
        *self.number_of.entry(cell).or_insert_with(|| {
            self.cells.push(cell);
            self.new_rows.push(row);
            next
        })
    }

    /// Appends the rows of the cells that came last.
    fn collect(&mut self, from: &BlockMatrix) -> Result<(), LoaderError> {
        (self.rows.place, self.rows.n_columns) = (from.place, from.n_columns);
        self.rows.n_rows += self.new_rows.len();
        let added = from.nnz_of(&self.new_rows)?;
        let csr = self.rows.csr_mut();
        csr.n_columns = from.n_columns;
        let nnz = csr.nnz();
        csr.columns.resize(nnz + added, 0);
        csr.values.resize(nnz + added, 0.0);
        let (columns, values) = (&mut csr.columns[nnz..], &mut csr.values[nnz..]);
        let out = (ElementsMut::U32(columns), ElementsMut::F32(values));
        from.rows_to_csr_on(1, &self.new_rows, None, &mut csr.row_offsets, out).map(drop)
    }

    /// The table of the rows that were collected. It is empty then.
    pub(crate) fn write<B: BatchBuffers>(
        &mut self,
        maker: &TableMaker<'_, B>,
    ) -> Result<Written<B::Buffer>, LoaderError> {
        // Rows were collected by number.
        let written = self.written(maker, (&self.rows, |number| number), &self.cells);
        self.clear();
        written
    }

    /// The table, written from the rows of a matrix: `row_of` is the row of each number, and
    /// `cells` has the cell of each row.
    fn written<B: BatchBuffers>(
        &self,
        maker: &TableMaker<'_, B>,
        (from, row_of): (&BlockMatrix, impl Fn(u32) -> u32),
        cells: &[(u32, u64)],
    ) -> Result<Written<B::Buffer>, LoaderError> {
        let TableMaker { buffers, x, k, transforms, n_threads } = *maker;
        let (numbers, neighbours) = self.in_order(k);
        let order: Vec<u32> = numbers.into_iter().map(row_of).collect();
        let mut made = x.begin(buffers, order.len())?;
        if order.is_empty() {
            return Ok((made, neighbours, ThreadTime::default()));
        }
        let rows = Rows { first: 0, order: &order, transforms, n_threads };
        let others = made.add(buffers, from, rows).map_err(|error| match error {
            LoaderError::Densify { source: densify::Error::Total { row_idx, total }, .. } => {
                let (experiment, joinid) = cells[row_idx];
                LoaderError::Total { experiment: experiment as usize, joinid, total }
            }
            error => error,
        })?;
        Ok((made, neighbours, others))
    }

    /// The number of the cell in each row of the table, and the neighbours by these rows.
    fn in_order(&self, k: usize) -> (Vec<u32>, Neighbours) {
        let mut numbers = self.centres.clone();
        let mut row_of = vec![MISSING; self.cells.len()];
        for (row, number) in (0..).zip(&numbers) {
            let first = &mut row_of[*number as usize];
            // A cell that was drawn twice is there twice; its first row counts.
            *first = (*first).min(row);
        }
        // By their first occurrence: the order in which rows were collected depends on the blocks.
        for number in self.nearest.iter().filter(|number| **number != MISSING) {
            let row = &mut row_of[*number as usize];
            if *row == MISSING {
                *row = numbers.len() as u32;
                numbers.push(*number);
            }
        }
        let positions = self.nearest.iter().enumerate().map(|(idx, number)| match *number {
            MISSING => (idx / k) as u32,
            number => row_of[number as usize],
        });
        let cells = numbers.iter().map(|number| self.cells[*number as usize]);
        let neighbours = Neighbours {
            k,
            positions: positions.collect(),
            values: self.values.clone(),
            present: self.nearest.iter().map(|number| *number != MISSING).collect(),
            joinids: cells.clone().map(|(_, joinid)| joinid as i64).collect(),
            experiments: cells.map(|(experiment, _)| experiment).collect(),
        };
        (numbers, neighbours)
    }

    /// Empties the table, whose memory stays.
    fn clear(&mut self) {
        self.rows.n_rows = 0;
        if let Values::Csr(csr) = &mut self.rows.values {
            csr.clear();
        }
        self.cells.clear();
        self.number_of.clear();
        self.centres.clear();
        self.nearest.clear();
        self.values.clear();
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
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number near 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
