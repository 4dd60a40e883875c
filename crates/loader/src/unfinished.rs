//! The matrices of a batch that is not yet full.

use densify::{Column, RowTransforms};
use worktime::ThreadTime;

use crate::batch::{CooBatch, CsrBatch, Matrix};
use crate::block::BlockMatrix;
use crate::buffers::{BatchBuffer, BatchBuffers};
use crate::element_type::ElementType;
use crate::elements::wrong_type;
use crate::error::LoaderError;
use crate::spec::BatchForm;

/// Makes one matrix of each batch.
pub(crate) struct MatrixMaker {
    pub(crate) form: BatchForm,
    pub(crate) n_columns: usize,
    /// Number of values of the largest sparse batch so far, or the estimate before the first.
    pub(crate) most_nnz: usize,
    /// The type of the values of the last sparse batch, with which the next begins.
    pub(crate) sparse_type: ElementType,
}

/// A matrix of a batch that is not yet full. COO is made from CSR when it is full.
pub(crate) enum Unfinished<V> {
    Dense { values: V, n_columns: usize },
    Csr(CsrBatch<V>),
}

/// Rows of a block, in the order of the batch that they are appended to.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Rows of the batch before these.
    pub(crate) first: usize,
    /// The rows' positions in the block.
    pub(crate) order: &'a [u32],
    pub(crate) transforms: Option<RowTransforms<'a>>,
    /// Most threads that write them.
    pub(crate) n_threads: usize,
}

impl MatrixMaker {
    /// Makes matrices of this form. `nnz` is the expected number of values of a sparse one.
    pub(crate) fn new(form: BatchForm, n_columns: usize, nnz: usize, is_transformed: bool) -> Self {
        let are_counts = form == BatchForm::Packed && !is_transformed;
        let sparse_type = if are_counts { ElementType::U8 } else { ElementType::F32 };
        Self { form, n_columns, most_nnz: nnz, sparse_type }
    }

    /// The type of the columns of a sparse matrix.
    fn column_type(&self) -> ElementType {
        let is_narrow = self.form == BatchForm::Packed && self.n_columns <= <u16 as Column>::MOST;
        if is_narrow { ElementType::U16 } else { ElementType::U32 }
    }

    /// An empty matrix with room for `n_rows` rows.
    pub(crate) fn begin<B: BatchBuffers>(
        &self,
        buffers: &B,
        n_rows: usize,
    ) -> Result<Unfinished<B::Buffer>, LoaderError> {
        let n_columns = self.n_columns;
        let Some(element_type) = self.form.dense_type() else {
            // An eighth more than the largest batch so far, so that most batches fit.
            let room = self.most_nnz + self.most_nnz / 8;
            return Ok(Unfinished::Csr(CsrBatch {
                row_offsets: vec![0],
                columns: take(buffers, room, self.column_type())?,
                values: take(buffers, room, self.sparse_type)?,
                n_columns,
            }));
        };
        let n_values = n_rows.checked_mul(n_columns).ok_or_else(|| LoaderError::OutOfMemory {
            what: "a batch",
            bytes: n_rows as u128 * n_columns as u128 * element_type.bytes() as u128,
            n_rows: n_rows as u64,
            n_columns: n_columns as u64,
            advice: "make the batches smaller",
        })?;
        let values = take(buffers, n_values, element_type)?;
        Ok(Unfinished::Dense { values, n_columns })
    }

    /// The matrix of the `n_rows` rows that were added, in the form of the batches.
    pub(crate) fn finish<B: BatchBuffers>(
        &mut self,
        buffers: &B,
        (full, n_rows): (Unfinished<B::Buffer>, usize),
    ) -> Result<Matrix<B::Buffer>, LoaderError> {
        let mut csr = match full {
            Unfinished::Dense { mut values, n_columns } => {
                // Fewer than there is room for, if some could not be read.
                values.truncate(n_rows * n_columns);
                return Ok(Matrix::Dense { values, n_rows, n_columns });
            }
            Unfinished::Csr(csr) => csr,
        };
        let nnz = csr.nnz();
        self.most_nnz = self.most_nnz.max(nnz);
        self.sparse_type = csr.values.elements_mut().element_type();
        csr.columns.truncate(nnz);
        csr.values.truncate(nnz);
        if self.form != BatchForm::Coo {
            return Ok(Matrix::Csr(csr));
        }
        let shape = (csr.n_rows(), csr.n_columns);
        let mut rows = take(buffers, nnz, ElementType::U32)?;
        densify::csr_rows_to_coo(&csr.row_offsets, rows.elements_mut().into_u32()?);
        let CsrBatch { columns, values, .. } = csr;
        Ok(Matrix::Coo(CooBatch { rows, columns, values, shape }))
    }
}

impl<V: BatchBuffer> Unfinished<V> {
    /// Appends rows of a block. Returns the time of the threads that helped to write them.
    pub(crate) fn add<B: BatchBuffers<Buffer = V>>(
        &mut self,
        buffers: &B,
        block: &BlockMatrix,
        rows: Rows<'_>,
    ) -> Result<ThreadTime, LoaderError> {
        let Rows { first, order, transforms, n_threads } = rows;
        match self {
            Self::Dense { values, n_columns, .. } => {
                let out = first * *n_columns..(first + order.len()) * *n_columns;
                let out = values.elements_mut().slice(out);
                block.rows_to_dense_on(n_threads, order, transforms, out)
            }
            Self::Csr(csr) => {
                let (nnz, added) = (csr.nnz(), block.nnz_of(order)?);
                make_room(buffers, csr, added)?;
                let mut all = ThreadTime::default();
                loop {
                    let (columns, values) = (csr.columns.elements_mut(), csr.values.elements_mut());
                    let element_type = values.element_type();
                    let to = nnz..nnz + added;
                    let out = (columns.slice(to.clone()), values.slice(to));
                    let offsets = &mut csr.row_offsets;
                    let (has_each, others) =
                        block.rows_to_csr_on(n_threads, order, transforms, offsets, out)?;
                    all += others;
                    if has_each {
                        return Ok(all);
                    }
                    widen_values(buffers, csr, element_type)?;
                }
            }
        }
    }
}

/// Takes a buffer from the pool. Fails if its elements have another type.
pub(crate) fn take<B: BatchBuffers>(
    buffers: &B,
    n: usize,
    element_type: ElementType,
) -> Result<B::Buffer, LoaderError> {
    let mut buffer = buffers.take(n, element_type)?;
    let found = buffer.elements_mut().element_type();
    if found == element_type { Ok(buffer) } else { Err(wrong_type(element_type, found).into()) }
}

/// Makes room for `added` more values, in larger buffers if necessary.
fn make_room<B: BatchBuffers>(
    buffers: &B,
    csr: &mut CsrBatch<B::Buffer>,
    added: usize,
) -> Result<(), LoaderError> {
    let (nnz, needed) = (csr.nnz(), csr.nnz() + added);
    if csr.values.elements_mut().as_elements().len() >= needed {
        return Ok(());
    }
    let room = needed + needed / 8;
    for buffer in [&mut csr.columns, &mut csr.values] {
        let element_type = buffer.elements_mut().element_type();
        *buffer = moved(buffers, buffer, (room, element_type), nnz)?;
    }
    Ok(())
}

/// Takes the next wider type for the values, which are of this one.
fn widen_values<B: BatchBuffers>(
    buffers: &B,
    csr: &mut CsrBatch<B::Buffer>,
    element_type: ElementType,
) -> Result<(), LoaderError> {
    let is_byte = element_type == ElementType::U8;
    let wider = if is_byte { ElementType::U16 } else { ElementType::F32 };
    let (nnz, room) = (csr.nnz(), csr.values.elements_mut().as_elements().len());
    csr.values = moved(buffers, &mut csr.values, (room, wider), nnz)?;
    Ok(())
}

/// A buffer with this room and type that begins with the first `n` elements of another.
fn moved<B: BatchBuffers>(
    buffers: &B,
    from: &mut B::Buffer,
    (room, element_type): (usize, ElementType),
    n: usize,
) -> Result<B::Buffer, LoaderError> {
    let mut to = take(buffers, room, element_type)?;
    to.elements_mut().widen_from(from.elements_mut().slice(0..n).as_elements())?;
    Ok(to)
}
