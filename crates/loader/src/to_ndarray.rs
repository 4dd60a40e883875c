//! Dense batches as matrices of ndarray.

use half::f16;
use ndarray::{ArrayView2, ShapeError};

use crate::batch::Matrix;
use crate::buffers::ReadableBuffer;

impl<B: ReadableBuffer> Matrix<B> {
    /// A dense batch of f32 as a matrix of ndarray, without a copy; `None` for other forms.
    pub fn as_ndarray(&self) -> Option<ArrayView2<'_, f32>> {
        view(self.shape(), self.dense()?).ok()
    }

    /// A dense batch of f16 as a matrix of ndarray, without a copy; `None` for other forms.
    pub fn as_ndarray_f16(&self) -> Option<ArrayView2<'_, f16>> {
        view(self.shape(), self.dense_f16()?).ok()
    }
}

fn view<V>(shape: (usize, usize), values: &[V]) -> Result<ArrayView2<'_, V>, ShapeError> {
    ArrayView2::from_shape(shape, values)
}
