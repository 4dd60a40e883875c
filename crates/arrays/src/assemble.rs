//! Assembles batches from rows of blocks.

use std::sync::Arc;

use pipeline::{Assemble, BatchPlace};
use worktime::ThreadTime;

use crate::batch::{Buffers, RowBatch};
use crate::block::RowBlock;
use crate::element::Element;
use crate::error::Error;

/// Copies rows of blocks into the memory of a batch.
#[derive(Debug)]
pub struct RowAssembler<T: Element> {
    row_shape: Arc<[usize]>,
    row_len: usize,
    buffers: Arc<Buffers<T>>,
    values: Vec<T>,
    n_rows: usize,
}

impl<T: Element> RowAssembler<T> {
    pub(crate) fn new(row_shape: Arc<[usize]>, buffers: Arc<Buffers<T>>) -> Self {
        let row_len = row_shape.iter().product();
        Self { row_shape, row_len, buffers, values: Vec::new(), n_rows: 0 }
    }
}

impl<T: Element> Assemble for RowAssembler<T> {
    type Block = RowBlock<T>;
    type Batch = RowBatch<T>;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.values = self.buffers.take();
        self.n_rows = 0;
        let n_values = self.row_len.saturating_mul(n_rows);
        self.values.try_reserve_exact(n_values).map_err(|_| Error::BatchMemory {
            bytes: n_values.saturating_mul(size_of::<T>()),
            n_rows,
        })
    }

    fn add(&mut self, block: &RowBlock<T>, order: &[u32]) -> Result<ThreadTime, Error> {
        for row in order {
            self.values.extend_from_slice(block.row(*row as usize, self.row_len));
        }
        self.n_rows += order.len();
        Ok(ThreadTime::default())
    }

    fn finish(&mut self, place: BatchPlace) -> Result<RowBatch<T>, Error> {
        Ok(RowBatch {
            values: std::mem::take(&mut self.values),
            n_rows: self.n_rows,
            row_shape: Arc::clone(&self.row_shape),
            place,
            buffers: Arc::clone(&self.buffers),
        })
    }

    fn prepare(&mut self, n_batches: usize, n_rows: usize, is_enough: &dyn Fn() -> bool) {
        let n_values = self.row_len.saturating_mul(n_rows);
        for _ in 0..n_batches {
            let mut buffer = Vec::new();
            if is_enough() || buffer.try_reserve_exact(n_values).is_err() {
                return;
            }
            // The first touch of a page costs as much as decoding into it.
            buffer.resize(n_values, T::zeroed());
            self.buffers.give_back(buffer);
        }
    }
}
