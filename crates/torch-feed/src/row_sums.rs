//! Sums of a batch's rows, in f64: enough to check that two loaders deliver the same cells with the
//! same values in the same columns, in any order and form.

use tch::{Kind, Tensor};

use crate::error::Error;

/// Rows of a dense batch that are converted to f64 at a time.
const SLICE_ROWS: i64 = 64;

/// Sums of each row of a batch. Exact for whole numbers as long as a sum stays below 2^53.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowSums {
    /// The sum of the values.
    pub values: Vec<f64>,
    /// The sum of each value times its column, counted from 1.
    pub by_column: Vec<f64>,
}

impl RowSums {
    /// Computes the sums of `x`: cells x genes, strided, sparse CSR or COO.
    pub(crate) fn of(x: &Tensor) -> Result<Self, Error> {
        let doing = || Error::torch("the sums of a batch's rows");
        let shape = x.size();
        let [n_rows, n_columns] = <[i64; 2]>::try_from(shape.as_slice())
            .map_err(|_| doing()(tch::TchError::Shape(format!("{shape:?} is not a matrix"))))?;
        if let Ok(row_offsets) = x.f_crow_indices() {
            let offsets = Vec::<i64>::try_from(row_offsets).map_err(doing())?;
            let columns = x.f_col_indices().and_then(Vec::<i64>::try_from).map_err(doing())?;
            let values = x.f_values().map_err(doing())?;
            let rows = offsets
                .windows(2)
                .zip(0..)
                .flat_map(|(of_row, row)| (of_row[0]..of_row[1]).map(move |_| row));
            return Self::of_entries(n_rows, rows.zip(columns), &values);
        }
        if x.is_sparse() {
            let places = x.f_internal_indices().map_err(doing())?;
            let of_axis = |axis| places.f_select(0, axis).and_then(Vec::<i64>::try_from);
            let places = of_axis(0).map_err(doing())?.into_iter().zip(of_axis(1).map_err(doing())?);
            return Self::of_entries(n_rows, places, &x.f_internal_values().map_err(doing())?);
        }
        Self::of_dense(x, n_rows, n_columns).map_err(doing())
    }

    fn of_entries(
        n_rows: i64,
        places: impl Iterator<Item = (i64, i64)>,
        values: &Tensor,
    ) -> Result<Self, Error> {
        let values = values.f_to_kind(Kind::Double).and_then(Vec::<f64>::try_from);
        let values = values.map_err(Error::torch("the values of a batch"))?;
        let none = vec![0.0; n_rows as usize];
        let mut sums = Self { values: none.clone(), by_column: none };
        for ((row, column), value) in places.zip(values) {
            sums.values[row as usize] += value;
            sums.by_column[row as usize] += value * (column + 1) as f64;
        }
        Ok(sums)
    }

    fn of_dense(x: &Tensor, n_rows: i64, n_columns: i64) -> Result<Self, tch::TchError> {
        let factors: Vec<f64> = (1..=n_columns).flat_map(|column| [1.0, column as f64]).collect();
        let factors = Tensor::f_from_slice(&factors)?.f_view([n_columns, 2])?.f_to(x.device())?;
        let mut sums = Self::default();
        for start in (0..n_rows).step_by(SLICE_ROWS as usize) {
            let rows = x.f_narrow(0, start, SLICE_ROWS.min(n_rows - start))?;
            let both = rows.f_to_kind(Kind::Double)?.f_matmul(&factors)?;
            sums.values.extend(Vec::<f64>::try_from(both.f_select(1, 0)?.f_contiguous()?)?);
            sums.by_column.extend(Vec::<f64>::try_from(both.f_select(1, 1)?.f_contiguous()?)?);
        }
        Ok(sums)
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
    fn a_row_without_values_sums_to_nothing() {
        let x = dense(&[0, 2, 3, 0, 0, 0], 3);
        let expect = RowSums { values: vec![5.0, 0.0], by_column: vec![13.0, 0.0] };
        for form in [x.shallow_clone(), x.to_sparse_csr(None), x.to_sparse_sparse_dim(2)] {
            assert_eq!(RowSums::of(&form).unwrap(), expect);
        }
        assert_eq!(RowSums::of(&dense(&[], 3)).unwrap(), RowSums::default());
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        let error = RowSums::of(&Tensor::from_slice(&[1.0_f32])).unwrap_err();
        assert!(error.to_string().contains("the sums of a batch's rows"), "{error}");
    }

    proptest! {
        #[test]
        fn each_form_gives_the_naive_sums(n_columns in 1_i64..40, rows in 1_usize..150, seed in any::<u64>()) {
            let at = |idx: u64| ((seed ^ idx.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40) as i64;
            let values: Vec<i64> = (0..rows as u64 * n_columns as u64).map(|idx| at(idx).rem_euclid(5) * (at(idx) % 1000)).collect();
            let mut expect = RowSums::default();
            for row in values.chunks(n_columns as usize) {
                expect.values.push(row.iter().sum::<i64>() as f64);
                expect.by_column.push(row.iter().zip(1..).map(|(value, column)| value * column).sum::<i64>() as f64);
            }
            let x = dense(&values, n_columns);
            for form in [x.shallow_clone(), x.to_sparse_csr(None), x.to_sparse_sparse_dim(2)] {
                prop_assert_eq!(&RowSums::of(&form).unwrap(), &expect);
            }
        }
    }
}
