//! The values of a batch by row, to compare what two loaders deliver, in whatever order and form.

use tch::{Kind, TchError, Tensor};

use crate::error::Error;

/// Rows of a dense batch that are searched for values at a time.
const SLICE_ROWS: i64 = 64;

/// The values of a batch other than zero, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowValues {
    /// Where each row begins, and the last one ends.
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Default for RowValues {
    fn default() -> Self {
        Self { offsets: vec![0], columns: Vec::new(), values: Vec::new() }
    }
}

impl RowValues {
    /// The values of `x`: cells x genes, strided, sparse CSR or COO.
    pub(crate) fn from_tensor(x: &Tensor) -> Result<Self, Error> {
        let doing = || Error::torch("the values of a batch's rows");
        let shape = x.size();
        let [n_rows, _] = <[i64; 2]>::try_from(shape.as_slice())
            .map_err(|_| doing()(TchError::Shape(format!("{shape:?} is no matrix"))))?;
        if let Ok(row_offsets) = x.f_crow_indices() {
            return Self::of_csr(x, &row_offsets).map_err(doing());
        }
        let mut values = Self::default();
        if x.is_sparse() {
            values.add_coo(x, n_rows).map_err(doing())?;
            return Ok(values);
        }
        for start in (0..n_rows).step_by(SLICE_ROWS as usize) {
            let n_slice = SLICE_ROWS.min(n_rows - start);
            let slice = x.f_narrow(0, start, n_slice);
            slice.and_then(|rows| values.add_dense(&rows, n_slice)).map_err(doing())?;
        }
        Ok(values)
    }

    fn of_csr(x: &Tensor, row_offsets: &Tensor) -> Result<Self, TchError> {
        let offsets = Vec::<i64>::try_from(row_offsets)?;
        let rows = offsets
            .windows(2)
            .zip(0..)
            .flat_map(|(of_row, row)| (of_row[0]..of_row[1]).map(move |_| row));
        let (columns, values) = (x.f_col_indices()?, x.f_values()?);
        let mut all = Self::default();
        all.add_entries(offsets.len() as i64 - 1, rows, &columns, &values)?;
        Ok(all)
    }

    fn add_coo(&mut self, x: &Tensor, n_rows: i64) -> Result<(), TchError> {
        // Sorted by row, each place once.
        let x = x.f_coalesce()?;
        let places = x.f_internal_indices()?;
        let rows = Vec::<i64>::try_from(places.f_select(0, 0)?)?;
        let columns = places.f_select(0, 1)?;
        self.add_entries(n_rows, rows.into_iter(), &columns, &x.f_internal_values()?)
    }

    fn add_dense(&mut self, x: &Tensor, n_rows: i64) -> Result<(), TchError> {
        let places = x.f_nonzero()?;
        let rows = Vec::<i64>::try_from(places.f_select(1, 0)?.f_contiguous()?)?;
        let columns = places.f_select(1, 1)?.f_contiguous()?;
        let values = x.f_masked_select(&x.f_not_equal(0.0)?)?;
        self.add_entries(n_rows, rows.into_iter(), &columns, &values)
    }

    /// Adds rows whose entries come in order of the rows, counted from 0.
    fn add_entries(
        &mut self,
        n_rows: i64,
        rows: impl Iterator<Item = i64>,
        columns: &Tensor,
        values: &Tensor,
    ) -> Result<(), TchError> {
        let columns = Vec::<i64>::try_from(columns)?;
        let values = Vec::<f32>::try_from(values.f_to_kind(Kind::Float)?)?;
        let mut entries = rows.zip(columns.into_iter().zip(values)).peekable();
        for row in 0..n_rows {
            let of_row = std::iter::from_fn(|| entries.next_if(|(of, _)| *of == row));
            self.push_row(of_row.map(|(_, (column, value))| (column as u32, value)));
        }
        Ok(())
    }

    /// Adds a row: columns with their values, of which zeros are left out.
    pub fn push_row(&mut self, entries: impl Iterator<Item = (u32, f32)>) {
        for (column, value) in entries.filter(|(_, value)| *value != 0.0) {
            self.columns.push(column);
            self.values.push(value);
        }
        self.offsets.push(self.values.len());
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Columns and values of a row; none if there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let bounds = self.offsets.get(row).zip(self.offsets.get(row + 1));
        let range = bounds.map_or(0..0, |(start, end)| *start..*end);
        (&self.columns[range.clone()], &self.values[range])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dense(values: &[i64], n_columns: i64) -> Tensor {
        let n_rows = values.len() as i64 / n_columns;
        Tensor::from_slice(values).view([n_rows, n_columns]).to_kind(Kind::Float)
    }

    #[test]
    fn a_row_without_values_is_a_row() {
        let x = dense(&[0, 2, 3, 0, 0, 0], 3);
        for form in [x.shallow_clone(), x.to_sparse_csr(None), x.to_sparse_sparse_dim(2)] {
            let values = RowValues::from_tensor(&form).unwrap();
            assert_eq!(values.row(0), (&[1, 2][..], &[2.0, 3.0][..]));
            assert_eq!((values.n_rows(), values.row(1)), (2, (&[][..], &[][..])));
            assert_eq!(values.row(2), (&[][..], &[][..]));
        }
        assert_eq!(RowValues::from_tensor(&dense(&[], 3)).unwrap(), RowValues::default());
    }

    #[test]
    fn a_stored_zero_is_no_value() {
        let csr = Tensor::sparse_csr_tensor_crow_col_value_size(
            &Tensor::from_slice(&[0_i64, 2]),
            &Tensor::from_slice(&[0_i64, 1]),
            &Tensor::from_slice(&[0.0_f32, 5.0]),
            [1, 2],
            (Kind::Float, tch::Device::Cpu),
        );
        assert_eq!(RowValues::from_tensor(&csr).unwrap().row(0), (&[1][..], &[5.0][..]));
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        let error = RowValues::from_tensor(&Tensor::from_slice(&[1.0_f32])).unwrap_err();
        assert!(error.to_string().contains("the values of a batch's rows"), "{error}");
    }

    proptest! {
        #[test]
        fn each_form_gives_the_values(
            n_columns in 1_i64..40,
            rows in 1_usize..150,
            seed in any::<u64>(),
        ) {
            let at = |idx: u64| ((seed ^ idx.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40) as i64;
            let values: Vec<i64> = (0..rows as u64 * n_columns as u64)
                .map(|idx| at(idx).rem_euclid(5) * (at(idx) % 1000))
                .collect();
            let mut expect = RowValues::default();
            for row in values.chunks(n_columns as usize) {
                expect.push_row((0..).zip(row).map(|(column, value)| (column, *value as f32)));
            }
            let x = dense(&values, n_columns);
            for form in [x.shallow_clone(), x.to_sparse_csr(None), x.to_sparse_sparse_dim(2)] {
                prop_assert_eq!(&RowValues::from_tensor(&form).unwrap(), &expect);
            }
        }
    }
}
