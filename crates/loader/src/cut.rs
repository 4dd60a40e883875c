//! Cuts blocks into batches: across the borders of blocks, so that only the last batch is short.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;
use crossbeam_channel::{Receiver, Sender};
use densify::{RowTransforms, Transform};
use shuffle::{BatchLengths, EpochPlan};
use soma_io::{ThreadTime, clock};

use crate::batch::{Batch, CooBatch, CsrBatch, Matrix};
use crate::block::Block;
use crate::buffers::{BatchBuffer, BatchBuffers, ElementType};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::spec::{BatchForm, LoaderSpec, Totals};
use crate::stats::Counters;

/// The making of batches; runs on a thread of its own or on the consumer's.
pub(crate) struct Cutter<B: BatchBuffers> {
    dataset: Dataset,
    buffers: Arc<B>,
    form: BatchForm,
    /// None where values stay as they are.
    transform: Option<Transform>,
    totals: Totals,
    /// That write a dense batch.
    n_threads: usize,
    /// Blocks as they are read, in order.
    blocks: Receiver<Block>,
    /// Takes blocks that are used up, to be read into again.
    used: Sender<Block>,
    lengths: BatchLengths,
    /// The next batch, counted from the epoch's beginning.
    batch_idx: u64,
    /// Of the sparse batches made so far; before there is one, as many as are to be expected.
    most_nnz: usize,
    /// Rows of padding at the end of the last batch.
    n_padding: usize,
    /// The block that is being cut and how many of its rows are delivered.
    current: Option<(Block, usize)>,
    counters: Counters,
}

impl<B: BatchBuffers> Cutter<B> {
    /// `row_nnz` is the number of values that a row is expected to have.
    pub(crate) fn new(
        dataset: Dataset,
        buffers: Arc<B>,
        spec: &LoaderSpec,
        (blocks, used): (Receiver<Block>, Sender<Block>),
        (plan, row_nnz): (&EpochPlan, f64),
        counters: Counters,
    ) -> Self {
        Self {
            dataset,
            buffers,
            form: spec.form,
            transform: Some(spec.transform).filter(|transform| !transform.is_identity()),
            totals: spec.totals,
            n_threads: spec.batch_threads,
            blocks,
            used,
            lengths: BatchLengths::new(plan.n_rows(), spec.batch_rows),
            batch_idx: plan.first_batch(),
            most_nnz: (row_nnz * spec.batch_rows.min(plan.n_rows()) as f64) as usize,
            n_padding: plan.n_padding() as usize,
            current: None,
            counters,
        }
    }

    /// Has the memory of `n_batches` made while the first block is read, which later would keep the consumer waiting: memory is slow when
    /// it is touched for the first time. Where there is none to be had, a batch that needs it says so.
    pub(crate) fn prepare(&self, n_batches: usize) {
        let n_rows = self.lengths.clone().next().unwrap_or(0) as usize;
        let mut prepared = Vec::new();
        while prepared.len() < n_batches && self.blocks.is_empty() {
            let Ok(filling) = self.begin(n_rows) else { break };
            prepared.push(filling);
        }
    }

    /// The next batch. `None` at the end, and where no more blocks come: why, the reading thread says.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch<B::Buffer>>, Error> {
        let Some(n_rows) = self.lengths.next() else { return Ok(None) };
        let n_rows = n_rows as usize;
        let mut time = ThreadTime::default();
        let mut filling: Option<Filling<B::Buffer>> = None;
        let mut n_filled = 0;
        while n_filled < n_rows {
            let Some((block, n_taken)) = self.present_block() else { return Ok(None) };
            let start = clock::now();
            let taken = n_taken..block.n_rows().min(n_taken + n_rows - n_filled);
            let filling = match &mut filling {
                Some(filling) => filling,
                none => none.insert(self.begin(n_rows)?),
            };
            filling.add(self, &block, taken.clone(), n_filled)?;
            n_filled += taken.len();
            if taken.end < block.n_rows() {
                self.current = Some((block, taken.end));
            } else {
                // The reader may have ended already, having read all there is.
                drop(self.used.send(block));
            }
            time += clock::now() - start;
        }
        let start = clock::now();
        let filling = match filling {
            Some(filling) => filling,
            None => self.begin(0)?,
        };
        let others = filling.others;
        let batch = self.finish(filling)?;
        self.counters.batch_made(time + (clock::now() - start), others);
        Ok(Some(batch))
    }

    fn present_block(&mut self) -> Option<(Block, usize)> {
        self.current.take().or_else(|| {
            let block = self.blocks.recv().ok()?;
            self.counters.block_begun();
            Some((block, 0))
        })
    }

    fn begin(&self, n_rows: usize) -> Result<Filling<B::Buffer>, Error> {
        let n_columns = self.dataset.n_columns();
        let x = match self.form.dense_type() {
            Some(element_type) => {
                let n_values = n_rows.checked_mul(n_columns).ok_or_else(|| Error::OutOfMemory {
                    what: "a batch",
                    bytes: n_rows as u128 * n_columns as u128 * element_type.bytes() as u128,
                    n_rows: n_rows as u64,
                    n_columns: n_columns as u64,
                    advice: "make the batches smaller",
                })?;
                let values = self.buffers.take(n_values, element_type)?;
                Matrix::Dense { values, n_rows, n_columns }
            }
            // As much as the batches before had, and an eighth to spare, so that all fit into the same memory.
            None => self.sparse(vec![0], self.most_nnz + self.most_nnz / 8)?,
        };
        Ok(Filling { x, rows: Vec::with_capacity(n_rows), others: ThreadTime::default() })
    }

    /// A sparse batch with room for `room` values.
    fn sparse(&self, row_offsets: Vec<usize>, room: usize) -> Result<Matrix<B::Buffer>, Error> {
        Ok(Matrix::Csr(CsrBatch {
            row_offsets,
            columns: self.buffers.take(room, ElementType::U32)?,
            values: self.buffers.take(room, ElementType::F32)?,
            n_columns: self.dataset.n_columns(),
        }))
    }

    /// Makes room for `added` values behind those that the batch has.
    fn make_room(&self, csr: &mut CsrBatch<B::Buffer>, added: usize) -> Result<(), Error> {
        let (nnz, wanted) = (csr.nnz(), csr.nnz() + added);
        if csr.values.elements_mut().into_f32().len() >= wanted {
            return Ok(());
        }
        let room = wanted + wanted / 8;
        let mut columns = self.buffers.take(room, ElementType::U32)?;
        let mut values = self.buffers.take(room, ElementType::F32)?;
        columns.elements_mut().into_u32()[..nnz]
            .copy_from_slice(&csr.columns.elements_mut().into_u32()[..nnz]);
        values.elements_mut().into_f32()[..nnz]
            .copy_from_slice(&csr.values.elements_mut().into_f32()[..nnz]);
        (csr.columns, csr.values) = (columns, values);
        Ok(())
    }

    /// The values as they are delivered.
    fn finish_values(&mut self, x: Matrix<B::Buffer>) -> Result<Matrix<B::Buffer>, Error> {
        let Matrix::Csr(mut csr) = x else { return Ok(x) };
        let nnz = csr.nnz();
        self.most_nnz = self.most_nnz.max(nnz);
        csr.columns.truncate(nnz);
        csr.values.truncate(nnz);
        if self.form != BatchForm::Coo {
            return Ok(Matrix::Csr(csr));
        }
        let shape = (csr.n_rows(), csr.n_columns);
        let mut rows = self.buffers.take(nnz, ElementType::U32)?;
        densify::csr_rows_to_coo(&csr.row_offsets, rows.elements_mut().into_u32());
        let CsrBatch { columns, values, .. } = csr;
        Ok(Matrix::Coo(CooBatch { rows, columns, values, shape }))
    }

    fn finish(&mut self, filling: Filling<B::Buffer>) -> Result<Batch<B::Buffer>, Error> {
        let batch_idx = self.batch_idx;
        self.batch_idx += 1;
        let origins = filling.rows.iter().map(|&row| self.dataset.origin(row));
        let (experiments, joinids) =
            origins.map(|(experiment, joinid)| (experiment as u32, joinid as i64)).unzip();
        let rows = UInt64Array::from(filling.rows);
        let taken = |of: &RecordBatch| {
            take_record_batch(of, &rows).map_err(|source| Error::Obs { batch_idx, source })
        };
        let (obs, codes) = (taken(self.dataset.obs())?, taken(self.dataset.codes())?);
        let x = self.finish_values(filling.x)?;
        let n_padding = if self.lengths.len() == 0 { self.n_padding } else { 0 };
        Ok(Batch { batch_idx, x, obs, codes, joinids, experiments, n_padding })
    }
}

/// A batch that is not yet full.
struct Filling<V> {
    x: Matrix<V>,
    /// The selection's rows, in the batch's order.
    rows: Vec<u64>,
    /// Of threads that write a part of a dense batch.
    others: ThreadTime,
}

impl<V: BatchBuffer> Filling<V> {
    /// Adds the rows that a block delivers at `taken`; `n_filled` rows are there already.
    fn add<B: BatchBuffers<Buffer = V>>(
        &mut self,
        cutter: &Cutter<B>,
        block: &Block,
        taken: Range<usize>,
        n_filled: usize,
    ) -> Result<(), Error> {
        let order = &block.order[taken];
        let first = self.rows.len();
        self.rows.extend(order.iter().map(|&row| block.selection_row(row)));
        let totals: Option<Vec<f64>> = match (cutter.totals, cutter.dataset.totals()) {
            (Totals::Obs, Some(totals)) if cutter.transform.is_some() => {
                Some(self.rows[first..].iter().map(|&row| totals[row as usize]).collect())
            }
            _ => None,
        };
        let transforms = cutter
            .transform
            .as_ref()
            .map(|transform| RowTransforms { transform, totals: totals.as_deref() });
        let filled = match &mut self.x {
            Matrix::Dense { values, n_columns, .. } => {
                let out = n_filled * *n_columns..(n_filled + order.len()) * *n_columns;
                let out = values.elements_mut().slice(out);
                block
                    .rows_to_dense_on(cutter.n_threads, order, transforms, out)
                    .map(|others| self.others += others)
            }
            Matrix::Csr(csr) => {
                let (nnz, added) = (csr.nnz(), block.nnz_of(order)?);
                cutter.make_room(csr, added)?;
                let columns = &mut csr.columns.elements_mut().into_u32()[nnz..nnz + added];
                let values = &mut csr.values.elements_mut().into_f32()[nnz..nnz + added];
                block.rows_to_csr(order, transforms, &mut csr.row_offsets, (columns, values))
            }
            // Made of CSR when the batch is full.
            Matrix::Coo(_) => Ok(()),
        };
        filled.map_err(|error| match error {
            Error::Densify { source: densify::Error::Total { row_idx, total }, .. } => {
                let (experiment, joinid) =
                    cutter.dataset.origin(block.selection_row(row_idx as u32));
                Error::Total { experiment, joinid, total }
            }
            error => error,
        })
    }
}
