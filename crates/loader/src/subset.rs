//! Parts of a data set, for example a split, and a data set's groups, weights and codes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use shuffle::stop::{self, Steps};
use shuffle::{RowOrderError, RowSet, RowSetBuilder};

use crate::dataset::Dataset;
use crate::encode::{self, BatchKeyEncoder, EncodeError, Encoders, FitError};
use crate::error::{ColumnsError, columns_error};
use crate::selected::Selected;

/// A part of a data set that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubsetError {
    /// A list of rows does not ascend, or goes beyond the data set.
    #[error("row {row} {problem}: list rows of the data set in ascending order, each once")]
    Rows {
        /// The row.
        row: u64,
        /// The problem.
        problem: String,
    },

    /// Columns could not be selected.
    #[error(transparent)]
    Columns(#[from] ColumnsError),

    /// The [`Stop`](crate::Stop) of the thread was set.
    #[error(transparent)]
    Stopped(#[from] shuffle::Stopped),
}

/// An obs column cannot be used as weights.
#[derive(Debug, thiserror::Error)]
#[error("obs column {column:?} cannot be used as weights of cells: {problem}")]
pub struct WeightError {
    /// The column.
    pub column: String,
    /// The reason.
    pub problem: String,
}

impl Dataset {
    /// A data set of only these rows, in ascending order.
    ///
    /// # Errors
    /// The rows do not ascend, or go beyond the data set.
    pub fn rows(&self, rows: &[u64]) -> Result<Self, SubsetError> {
        self.check_last(rows.last().copied())?;
        let mut set = RowSetBuilder::default();
        stop::each(rows.iter(), |row| {
            set.push(*row).map_err(|RowOrderError { row, least }| {
                let problem = format!("stands after {}", least.saturating_sub(1));
                SubsetError::Rows { row, problem }
            })
        })?;
        self.part(&set.finish())
    }

    /// A data set of only these rows: a part of a [split](crate::split). Takes the memory of the
    /// part's obs columns and codes, and at most 2 bytes for each of its rows, mostly far less.
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
    /// let (train, test) = (dataset.part(train)?, dataset.part(test)?);
    /// assert_eq!((train.n_rows(), test.n_rows()), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The rows go beyond the data set.
    pub fn part(&self, rows: &RowSet) -> Result<Self, SubsetError> {
        self.check_last(rows.last())?;
        let mut sources = Vec::with_capacity(self.sources.len());
        for (source, bounds) in self.sources.iter().zip(self.starts.windows(2)) {
            let cells = source.cells.at(&rows.between(bounds[0]..bounds[1])?)?;
            sources.push(Selected { cells, ..source.clone() });
        }
        let filters = filters(rows, self.n_rows() as usize)?;
        let totals = self
            .totals
            .as_ref()
            .map(|totals| stop::collect(rows.len(), rows.iter().map(|row| totals[row as usize])));
        Ok(Self {
            starts: Self::starts_of(&sources),
            sources: sources.into(),
            obs: filtered("obs", &self.obs, &filters)?,
            codes: filtered("the codes", &self.codes, &filters)?,
            totals: totals.transpose()?.map(Into::into),
            ..self.clone()
        })
    }

    /// Fails if the last of some rows is outside the data set.
    fn check_last(&self, last: Option<u64>) -> Result<(), SubsetError> {
        match last.filter(|row| *row >= self.n_rows()) {
            Some(row) => {
                let problem = format!("is outside the data set of {} rows", self.n_rows());
                Err(SubsetError::Rows { row, problem })
            }
            None => Ok(()),
        }
    }

    /// Numbers the rows so that two rows have the same number if they agree in all these obs
    /// columns. Null is a value like any other. Returns groups for
    /// [`split::by_group`](crate::split::by_group) or labels for
    /// [`split::stratified`](crate::split::stratified).
    ///
    /// # Errors
    /// `columns` is empty; the data set lacks a column; a column has values other than texts,
    /// booleans or integers.
    pub fn groups(&self, columns: &[&str]) -> Result<Vec<u32>, FitError> {
        BatchKeyEncoder::groups(columns, &self.obs)
    }

    /// The weight of each row, from an obs column of numbers or booleans, plain or a dictionary,
    /// for [`Sampling::weighted`](crate::sample::Sampling::weighted). For equally frequent classes,
    /// use [`groups`](Self::groups) with
    /// [`Sampling::class_balanced`](crate::sample::Sampling::class_balanced).
    ///
    /// # Errors
    /// The data set lacks the column; the column is not numeric, or has nulls.
    pub fn weights(&self, column: &str) -> Result<Vec<f64>, WeightError> {
        let wrong = |problem: String| WeightError { column: column.to_owned(), problem };
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
    pub fn with_encoders(self, encoders: &Encoders) -> Result<Self, EncodeError> {
        Ok(Self { codes: encoders.encode_narrow(&self.obs)?, ..self })
    }

    /// The codes: one row per selected cell, one Int64 column per encoder. Makes the columns, of 8
    /// bytes per cell; the data set has them in the narrowest integers that have all codes.
    ///
    /// # Errors
    /// Arrow cannot make the columns.
    pub fn codes(&self) -> Result<RecordBatch, ColumnsError> {
        let widened = encode::widened(&self.codes);
        widened.map_err(columns_error("the codes"))
    }

    /// The names of the encoders, in the order of the codes' columns.
    pub fn encoders(&self) -> impl Iterator<Item = &str> {
        self.codes.schema_ref().fields().iter().map(|field| field.name().as_str())
    }

    /// The code of each selected cell by one encoder; `None` if there is no encoder of this name.
    pub fn codes_of(&self, encoder: &str) -> Option<impl ExactSizeIterator<Item = i64>> {
        let codes = self.codes.column_by_name(encoder)?;
        Some((0..codes.len()).map(move |row| encode::code_at(codes, row)))
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

/// The rows of a piece of a data set, and which of them are wanted.
type PieceFilter = (Range<usize>, FilterPredicate);

/// The filter of each piece of `n_rows` rows in which there are rows of the set.
fn filters(rows: &RowSet, n_rows: usize) -> Result<Vec<PieceFilter>, shuffle::Stopped> {
    let (mut mask, mut steps) = (BooleanBufferBuilder::new(n_rows), Steps::default());
    for range in rows.ranges() {
        steps.begin()?;
        mask.append_n(range.start as usize - mask.len(), false);
        mask.append_n((range.end - range.start) as usize, true);
    }
    mask.append_n(n_rows - mask.len(), false);
    let mask = BooleanArray::new(mask.finish(), None);
    let mut filters = Vec::new();
    for piece in stop::ranges(n_rows as u64) {
        let piece = piece?;
        let piece = piece.start as usize..piece.end as usize;
        let filter = FilterBuilder::new(&mask.slice(piece.start, piece.len())).build();
        if filter.count() > 0 {
            filters.push((piece, filter));
        }
    }
    Ok(filters)
}

/// The rows of the filters, column by column and piece by piece, so that a stop ends it. Arrow's
/// filter of a whole batch would list the places of these rows, in 8 bytes for each.
fn filtered(
    of: &'static str,
    batch: &RecordBatch,
    filters: &[PieceFilter],
) -> Result<RecordBatch, SubsetError> {
    let n_rows = filters.iter().map(|(_, filter)| filter.count()).sum();
    if n_rows == 0 {
        // Arrow's filter would lose the categories of an empty column.
        return Ok(batch.slice(0, 0));
    }
    let failed = columns_error(of);
    let column = |column: &ArrayRef| {
        let mut pieces: Vec<ArrayRef> = Vec::with_capacity(filters.len());
        for (rows, filter) in filters {
            stop::begin_rows(rows.len())?;
            pieces.push(filter.filter(&column.slice(rows.start, rows.len())).map_err(failed)?);
        }
        let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
        Ok(concat(&pieces).map_err(failed)?)
    };
    let columns: Vec<ArrayRef> =
        batch.columns().iter().map(column).collect::<Result<_, SubsetError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options).map_err(failed)?)
}
