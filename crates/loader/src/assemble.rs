//! Makes batches from rows of blocks, with their obs rows and joinids.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;
use densify::{RowTransforms, Transform};
use pipeline::{Assemble, BatchPlace, BlockPart};
use worktime::ThreadTime;

use crate::batch::{Batch, CooBatch, CsrBatch, Matrix};
use crate::block::Block;
use crate::buffers::{BatchBuffer, BatchBuffers};
use crate::dataset::Dataset;
use crate::element_type::ElementType;
use crate::elements::wrong_type;
use crate::error::Error;
use crate::spec::{BatchForm, LoaderSpec, Totals};

/// Makes the batches of an epoch, on its own thread or on the consumer's.
pub(crate) struct Assembler<B: BatchBuffers> {
    dataset: Dataset,
    buffers: Arc<B>,
    form: BatchForm,
    /// `None` if values are not transformed.
    transform: Option<Transform>,
    totals: Totals,
    /// Number of threads that write a dense batch.
    n_threads: usize,
    /// Number of values of the largest sparse batch so far, or the estimate before the first.
    most_nnz: usize,
    /// The batch in the making.
    filling: Option<Filling<B::Buffer>>,
}

impl<B: BatchBuffers> Assemble for Assembler<B> {
    type Block = Block;
    type Batch = Batch<B::Buffer>;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.filling = Some(self.filling(n_rows)?);
        Ok(())
    }

    fn add(&mut self, block: &Block, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        let mut filling = match self.filling.take() {
            Some(filling) => filling,
            None => self.filling(part.order.len())?,
        };
        let others = filling.add(self, block, part.order)?;
        self.filling = Some(filling);
        Ok(others)
    }

    fn finish(&mut self, place: BatchPlace) -> Result<Batch<B::Buffer>, Error> {
        let Filling { x, rows } = match self.filling.take() {
            Some(filling) => filling,
            None => self.filling(0)?,
        };
        let BatchPlace { batch_idx, n_padding, .. } = place;
        let origins = rows.iter().map(|&row| self.dataset.origin(row));
        let (experiments, joinids) =
            origins.map(|(experiment, joinid)| (experiment as u32, joinid as i64)).unzip();
        let rows = UInt64Array::from(rows);
        let gathered = |of: &RecordBatch| {
            take_record_batch(of, &rows).map_err(|source| Error::Obs { batch_idx, source })
        };
        let (obs, codes) = (gathered(self.dataset.obs())?, gathered(self.dataset.codes())?);
        let x = self.finish_values(x)?;
        Ok(Batch { batch_idx, x, obs, codes, joinids, experiments, n_padding })
    }

    fn prepare(&mut self, n_batches: usize, n_rows: usize, is_enough: &dyn Fn() -> bool) {
        let mut prepared = Vec::new();
        while prepared.len() < n_batches && !is_enough() {
            // If memory is short, the batch that needs it reports the error.
            let Ok(filling) = self.filling(n_rows) else { break };
            prepared.push(filling);
        }
    }
}

impl<B: BatchBuffers> Assembler<B> {
    /// Makes an assembler. `nnz` is the expected number of values in a sparse batch.
    pub(crate) fn new(dataset: Dataset, spec: &LoaderSpec, buffers: Arc<B>, nnz: usize) -> Self {
        Self {
            dataset,
            buffers,
            form: spec.batch_form,
            transform: Some(spec.transform).filter(|transform| !transform.is_identity()),
            totals: spec.totals,
            n_threads: spec.batch_threads,
            most_nnz: nnz,
            filling: None,
        }
    }

    /// An empty batch with room for `n_rows` rows.
    fn filling(&self, n_rows: usize) -> Result<Filling<B::Buffer>, Error> {
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
                let values = self.take(n_values, element_type)?;
                Unfinished::Dense { values, n_rows, n_columns }
            }
            // An eighth more than the largest batch so far, so that most batches fit.
            None => Unfinished::Csr(self.sparse(self.most_nnz + self.most_nnz / 8)?),
        };
        Ok(Filling { x, rows: Vec::with_capacity(n_rows) })
    }

    /// Takes a buffer from the pool. Fails if its elements have another type.
    fn take(&self, n: usize, element_type: ElementType) -> Result<B::Buffer, Error> {
        let mut buffer = self.buffers.take(n, element_type)?;
        let found = buffer.elements_mut().element_type();
        if found == element_type { Ok(buffer) } else { Err(wrong_type(element_type, found)) }
    }

    /// An empty sparse batch with room for `room` values.
    fn sparse(&self, room: usize) -> Result<CsrBatch<B::Buffer>, Error> {
        Ok(CsrBatch {
            row_offsets: vec![0],
            columns: self.take(room, ElementType::U32)?,
            values: self.take(room, ElementType::F32)?,
            n_columns: self.dataset.n_columns(),
        })
    }

    /// Makes room for `added` more values, in larger buffers if necessary.
    fn make_room(&self, csr: &mut CsrBatch<B::Buffer>, added: usize) -> Result<(), Error> {
        let (nnz, needed) = (csr.nnz(), csr.nnz() + added);
        if csr.values.elements_mut().into_f32()?.len() >= needed {
            return Ok(());
        }
        let room = needed + needed / 8;
        let mut columns = self.take(room, ElementType::U32)?;
        let mut values = self.take(room, ElementType::F32)?;
        columns.elements_mut().into_u32()?[..nnz]
            .copy_from_slice(&csr.columns.elements_mut().into_u32()?[..nnz]);
        values.elements_mut().into_f32()?[..nnz]
            .copy_from_slice(&csr.values.elements_mut().into_f32()?[..nnz]);
        (csr.columns, csr.values) = (columns, values);
        Ok(())
    }

    /// The full batch's values, in the form of the batches.
    fn finish_values(&mut self, x: Unfinished<B::Buffer>) -> Result<Matrix<B::Buffer>, Error> {
        let mut csr = match x {
            Unfinished::Dense { values, n_rows, n_columns } => {
                return Ok(Matrix::Dense { values, n_rows, n_columns });
            }
            Unfinished::Csr(csr) => csr,
        };
        let nnz = csr.nnz();
        self.most_nnz = self.most_nnz.max(nnz);
        csr.columns.truncate(nnz);
        csr.values.truncate(nnz);
        if self.form != BatchForm::Coo {
            return Ok(Matrix::Csr(csr));
        }
        let shape = (csr.n_rows(), csr.n_columns);
        let mut rows = self.take(nnz, ElementType::U32)?;
        densify::csr_rows_to_coo(&csr.row_offsets, rows.elements_mut().into_u32()?);
        let CsrBatch { columns, values, .. } = csr;
        Ok(Matrix::Coo(CooBatch { rows, columns, values, shape }))
    }
}

/// A batch that is not yet full.
struct Filling<V> {
    x: Unfinished<V>,
    /// Rows of the selection, in the batch's order.
    rows: Vec<u64>,
}

/// The values of a batch that is not yet full. COO batches are made from CSR when they are full.
enum Unfinished<V> {
    Dense { values: V, n_rows: usize, n_columns: usize },
    Csr(CsrBatch<V>),
}

impl<V: BatchBuffer> Filling<V> {
    /// Appends rows of a block. Returns the time of the threads that helped to write them.
    fn add<B: BatchBuffers<Buffer = V>>(
        &mut self,
        assembler: &Assembler<B>,
        block: &Block,
        order: &[u32],
    ) -> Result<ThreadTime, Error> {
        let first = self.rows.len();
        self.rows.extend(order.iter().map(|&row| block.selection_row(row)));
        let totals: Option<Vec<f64>> = match (assembler.totals, assembler.dataset.totals()) {
            (Totals::Obs, Some(totals)) if assembler.transform.is_some() => {
                Some(self.rows[first..].iter().map(|&row| totals[row as usize]).collect())
            }
            _ => None,
        };
        let transforms = assembler
            .transform
            .as_ref()
            .map(|transform| RowTransforms { transform, totals: totals.as_deref() });
        let filled = match &mut self.x {
            Unfinished::Dense { values, n_columns, .. } => {
                let out = first * *n_columns..(first + order.len()) * *n_columns;
                let out = values.elements_mut().slice(out);
                block.rows_to_dense_on(assembler.n_threads, order, transforms, out)
            }
            Unfinished::Csr(csr) => {
                let (nnz, added) = (csr.nnz(), block.nnz_of(order)?);
                assembler.make_room(csr, added)?;
                let columns = &mut csr.columns.elements_mut().into_u32()?[nnz..nnz + added];
                let values = &mut csr.values.elements_mut().into_f32()?[nnz..nnz + added];
                block
                    .rows_to_csr(order, transforms, &mut csr.row_offsets, (columns, values))
                    .map(|()| ThreadTime::default())
            }
        };
        filled.map_err(|error| match error {
            Error::Densify { source: densify::Error::Total { row_idx, total }, .. } => {
                let (experiment, joinid) =
                    assembler.dataset.origin(block.selection_row(row_idx as u32));
                Error::Total { experiment, joinid, total }
            }
            error => error,
        })
    }
}
