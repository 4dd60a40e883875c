//! Batches as Arrow record batches.

use std::sync::Arc;

use arrow_array::types::{Float16Type, Float32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Int64Array, ListArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::batch::{Batch, Matrix, Modality};
use crate::buffers::ReadableBuffer;
use crate::cells::JOINID;
use crate::element_type::ElementType;
use crate::elements::{ElementTypeError, Elements, wrong_type};

/// A batch could not be converted to an Arrow record batch.
#[derive(Debug, thiserror::Error)]
#[error("cannot convert batch {batch_idx} to an Arrow record batch")]
pub struct ToArrowError {
    /// The batch's index in the epoch, from 0.
    pub batch_idx: u64,
    /// The reason.
    #[source]
    pub source: ArrowError,
}

impl<B: ReadableBuffer> Batch<B> {
    /// Copies the batch into one Arrow record batch with a row per cell.
    ///
    /// Its columns are the obs columns, `soma_joinid` (unless obs has it), `experiment` (the index
    /// of the cell's experiment), the codes of each encoder (its name plus `_code`), and X. X of a
    /// dense batch is one column, `x`, a fixed-size list with one value per gene. X of a sparse
    /// batch is two columns of lists with equal lengths: `genes` (columns of the batch) and
    /// `values`. A further layer has the columns of X, each with `_` and the layer's name after it;
    /// an array of obsm is one column of fixed-size lists, `obsm_` and its name. A modality has the
    /// columns of X in its own form, each with the modality's name and `_` before it, and one of
    /// booleans, its name and `_present`.
    ///
    /// # Errors
    /// The batch has neighbours; two columns have one name; there are more genes, or more values in
    /// the batch, than Arrow's 32-bit sizes can count.
    pub fn to_arrow(&self) -> Result<RecordBatch, ToArrowError> {
        self.arrow().map_err(|source| ToArrowError { batch_idx: self.batch_idx, source })
    }

    fn arrow(&self) -> Result<RecordBatch, ArrowError> {
        if self.neighbours.is_some() {
            let problem = "the batch has neighbours, whose rows have no obs: leave them out";
            return Err(ArrowError::SchemaError(problem.to_owned()));
        }
        let mut fields: Vec<Arc<Field>> = self.obs.schema_ref().fields().iter().cloned().collect();
        let mut columns: Vec<ArrayRef> = self.obs.columns().to_vec();
        let mut add = |name: &str, column: ArrayRef| {
            if fields.iter().any(|field| field.name() == name) {
                return Err(ArrowError::SchemaError(format!(
                    "the batch has two columns {name}: leave one of them out"
                )));
            }
            fields.push(Arc::new(Field::new(name, column.data_type().clone(), false)));
            columns.push(column);
            Ok(())
        };
        if self.obs.column_by_name(JOINID).is_none() {
            add(JOINID, Arc::new(Int64Array::from(self.joinids.clone())))?;
        }
        add("experiment", Arc::new(UInt32Array::from(self.experiments.clone())))?;
        for (field, codes) in self.codes.schema_ref().fields().iter().zip(self.codes.columns()) {
            add(&format!("{}_code", field.name()), Arc::clone(codes))?;
        }
        for (name, column) in matrix_columns(&self.x)? {
            add(name, column)?;
        }
        for (layer, matrix) in &self.layers {
            for (name, column) in matrix_columns(matrix)? {
                add(&format!("{name}_{layer}"), column)?;
            }
        }
        for (array, matrix) in &self.obsm {
            // Always one column, because it is dense.
            for (_, column) in matrix_columns(matrix)? {
                add(&format!("obsm_{array}"), column)?;
            }
        }
        for (modality, Modality { x, present }) in &self.modalities {
            for (name, column) in matrix_columns(x)? {
                add(&format!("{modality}_{name}"), column)?;
            }
            add(&format!("{modality}_present"), Arc::new(BooleanArray::from(present.clone())))?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.n_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
    }
}

/// The columns of X: `x`, or `genes` and `values`.
fn matrix_columns<B: ReadableBuffer>(
    matrix: &Matrix<B>,
) -> Result<Vec<(&'static str, ArrayRef)>, ArrowError> {
    let (lengths, genes, values) = match matrix {
        Matrix::Dense { values, n_rows, n_columns } => {
            let x = dense(values.elements(), *n_columns, *n_rows)?;
            return Ok(vec![("x", x)]);
        }
        Matrix::Csr(csr) => {
            let lengths = csr.row_offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let (genes, values) = csr.unpacked().map_err(external)?;
            (lengths, genes, values)
        }
        Matrix::Coo(coo) => {
            let mut lengths = vec![0; coo.shape.0];
            coo.rows().map_err(external)?.iter().for_each(|row| lengths[*row as usize] += 1);
            let (genes, values) =
                (coo.columns().map_err(external)?, coo.values().map_err(external)?);
            (lengths, genes.to_vec(), values.to_vec())
        }
    };
    let [genes, values] = lists(lengths, genes, values)?;
    Ok(vec![("genes", genes), ("values", values)])
}

fn external(error: ElementTypeError) -> ArrowError {
    ArrowError::ExternalError(Box::new(error))
}

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, false))
}

fn dense(values: Elements<'_>, n_columns: usize, n_rows: usize) -> Result<ArrayRef, ArrowError> {
    let size = i32::try_from(n_columns).map_err(|_| {
        ArrowError::InvalidArgumentError(format!("{n_columns} genes exceed 32 bits"))
    })?;
    let values: ArrayRef = match values {
        Elements::F32(values) => {
            Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(values.iter().copied()))
        }
        Elements::F16(values) => {
            Arc::new(PrimitiveArray::<Float16Type>::from_iter_values(values.iter().copied()))
        }
        _ => {
            return Err(external(wrong_type(ElementType::F32, values.element_type())));
        }
    };
    let field = item(values.data_type().clone());
    let rows = FixedSizeListArray::try_new_with_length(field, size, values, None, n_rows)?;
    Ok(Arc::new(rows))
}

fn lists(
    lengths: Vec<usize>,
    genes: Vec<u32>,
    values: Vec<f32>,
) -> Result<[ArrayRef; 2], ArrowError> {
    if i32::try_from(values.len()).is_err() {
        return Err(ArrowError::InvalidArgumentError(format!(
            "{} values exceed 32 bits",
            values.len()
        )));
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let genes = UInt32Array::new(ScalarBuffer::from(genes), None);
    let values = PrimitiveArray::<Float32Type>::new(ScalarBuffer::from(values), None);
    let list = |items: ArrayRef| -> Result<ArrayRef, ArrowError> {
        let field = item(items.data_type().clone());
        Ok(Arc::new(ListArray::try_new(field, offsets.clone(), items, None)?))
    };
    Ok([list(Arc::new(genes))?, list(Arc::new(values))?])
}
