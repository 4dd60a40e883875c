//! Parts of a data set, for example a split, and a data set's groups, weights and codes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, RecordBatch, UInt64Array};
use arrow_schema::DataType;
use arrow_select::take::take_record_batch;

use crate::cells::Cells;
use crate::dataset::Dataset;
use crate::encode::{BatchKeyEncoder, Encoder as _, Encoders, Nulls, Rules};
use crate::error::Error;
use crate::selected::Selected;

impl Dataset {
    /// A data set of only these rows, in ascending order: a part of a [split](crate::split).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::{ArrayRef, RecordBatch, StringArray};
    /// # use loader::{Cells, Dataset, GeneSelection};
    /// # use soma_io::{CsrBuffers, MemoryReader};
    /// # let csr = CsrBuffers { row_offsets: vec![0; 5], n_columns: 3, ..CsrBuffers::default() };
    /// # let x = Arc::new(MemoryReader::new(csr)?);
    /// let donors: ArrayRef = Arc::new(StringArray::from(vec!["d1", "d2", "d1", "d3"]));
    /// let obs = RecordBatch::try_from_iter([("donor_id", donors)])?;
    /// let dataset = Dataset::new(x, Cells::Range(0..4), obs, GeneSelection::All)?;
    ///
    /// // Every donor's cells on one side.
    /// let groups = dataset.groups(&["donor_id"])?;
    /// let [train, test] = &loader::split::by_group(&groups, &[0.75, 0.25], 42)?[..]
    /// else { panic!("two fractions give two parts") };
    /// let (train, test) = (dataset.rows(train)?, dataset.rows(test)?);
    /// assert_eq!((train.n_rows(), test.n_rows()), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The rows do not ascend, or go beyond the data set.
    pub fn rows(&self, rows: &[u64]) -> Result<Self, Error> {
        if let Some([row, next]) = rows.array_windows().find(|[row, next]| row >= next) {
            return Err(Error::Rows { row: *next, problem: format!("stands after {row}") });
        }
        if let Some(row) = rows.last().filter(|row| **row >= self.n_rows()) {
            let problem = format!("is outside the data set of {} rows", self.n_rows());
            return Err(Error::Rows { row: *row, problem });
        }
        let mut sources = Vec::with_capacity(self.sources.len());
        for (idx, source) in self.sources.iter().enumerate() {
            let (start, end) = (self.starts[idx], self.starts[idx + 1]);
            let from = rows.partition_point(|row| *row < start);
            let to = rows.partition_point(|row| *row < end);
            let joinids = rows[from..to].iter().map(|row| source.cells.joinid(row - start));
            sources.push(Selected { cells: Cells::of(joinids.collect()), ..source.clone() });
        }
        let places = UInt64Array::from(rows.to_vec());
        let taken = |of, batch| {
            take_record_batch(batch, &places).map_err(|source| Error::Columns { of, source })
        };
        let totals = self
            .totals
            .as_ref()
            .map(|totals| rows.iter().map(|row| totals[*row as usize]).collect());
        Ok(Self {
            starts: Self::starts_of(&sources),
            sources: sources.into(),
            obs: taken("obs", &self.obs)?,
            codes: taken("the codes", &self.codes)?,
            totals,
            ..self.clone()
        })
    }

    /// Numbers the rows so that two rows have the same number if they agree in all these obs
    /// columns. Null is a value like any other. Returns groups for
    /// [`split::by_group`](crate::split::by_group) or labels for
    /// [`split::stratified`](crate::split::stratified).
    ///
    /// # Errors
    /// `columns` is empty; the data set lacks a column; a column has values other than texts,
    /// booleans or integers.
    pub fn groups(&self, columns: &[&str]) -> Result<Vec<u32>, Error> {
        let rules = Rules { nulls: Nulls::Class, ..Rules::default() };
        let encoder = BatchKeyEncoder::fit("groups", columns, &self.obs, rules)?;
        let codes = encoder.encode(&self.obs)?;
        // Every group has a row, and `fit` fails from 2^32 rows on.
        Ok(codes.values().iter().map(|code| *code as u32).collect())
    }

    /// The weight of each row, from an obs column of numbers or booleans, plain or a dictionary,
    /// for [`Sampling::weighted`](crate::sample::Sampling::weighted). For equally frequent classes,
    /// use [`groups`](Self::groups) with
    /// [`Sampling::class_balanced`](crate::sample::Sampling::class_balanced).
    ///
    /// # Errors
    /// The data set lacks the column; the column is not numeric, or has nulls.
    pub fn weights(&self, column: &str) -> Result<Vec<f64>, Error> {
        let wrong = |problem: String| Error::WeightColumn { column: column.to_owned(), problem };
        let array = self.obs.column_by_name(column).ok_or_else(|| {
            wrong("the data set lacks it: request it in DatasetSpec::obs_columns".to_owned())
        })?;
        let values = match array.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            plain => plain,
        };
        if !values.is_numeric() && *values != DataType::Boolean {
            return Err(wrong(format!("it has type {}", array.data_type())));
        }
        let numbers = arrow_cast::cast(array, values)
            .and_then(|array| arrow_cast::cast(&array, &DataType::Float64))
            .map_err(|error| wrong(error.to_string()))?;
        match numbers.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => Err(wrong(format!("{} cells have no weight", nulls.null_count()))),
            None => Ok(numbers.as_primitive::<Float64Type>().values().to_vec()),
        }
    }

    /// Adds the codes of encoders: [`Batch::codes`](crate::Batch::codes) then has one Int64 column
    /// per encoder. The data set must have the obs columns that they need.
    ///
    /// # Errors
    /// The data set lacks a column; an encoder has no code for a label.
    pub fn with_encoders(self, encoders: &Encoders) -> Result<Self, Error> {
        Ok(Self { codes: encoders.encode(&self.obs)?, ..self })
    }

    /// The codes: one row per selected cell, one Int64 column per encoder.
    pub fn codes(&self) -> &RecordBatch {
        &self.codes
    }

    /// The code of each selected cell by one encoder; `None` if there is no encoder of this name.
    pub fn codes_of(&self, encoder: &str) -> Option<&[i64]> {
        let codes = self.codes.column_by_name(encoder)?.as_primitive_opt::<Int64Type>()?;
        Some(codes.values())
    }

    /// The first row of each source, then the number of rows.
    pub(crate) fn starts_of(sources: &[Selected]) -> Arc<[u64]> {
        let mut n_rows = 0;
        let mut starts = vec![0];
        for source in sources {
            n_rows += source.cells.n_rows();
            starts.push(n_rows);
        }
        starts.into()
    }
}
