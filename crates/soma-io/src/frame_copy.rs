//! Copies obs or var to a new experiment: columns of every type, selected rows, in pieces.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

use crate::columns::JOINID;
use crate::{AxisQuery, ColumnKind, ColumnSpec, DataFrame, Error, RowRanges};

/// The columns of a data frame to copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnChoice {
    /// All columns.
    #[default]
    All,
    /// These columns, in the order of the data frame.
    Only(Vec<String>),
    /// All columns except these.
    Without(Vec<String>),
}

/// Copies a data frame to a new experiment. New joinids count up from 0; the old ones can be kept
/// as a column.
#[derive(Debug)]
pub struct FrameCopy {
    frame: DataFrame,
    /// The columns to read, `soma_joinid` first.
    columns: Vec<String>,
    /// The name of the column for the old joinids.
    joinid_column: Option<String>,
    specs: Vec<ColumnSpec>,
}

/// Maximum number of ranges to read one by one. With more, the whole span from the first to the
/// last is read, and the rows are selected from it.
const MOST_RANGES: usize = 256;

impl FrameCopy {
    /// Prepares a copy of these columns of `frame`. `joinid_column` names a column for the old
    /// joinids; `None` drops them.
    ///
    /// # Errors
    /// [`Error::NoColumn`] if a column does not exist; [`Error::Uncopied`] if one cannot be
    /// written, or has the name `joinid_column`.
    pub fn new(
        frame: DataFrame,
        choice: &ColumnChoice,
        joinid_column: Option<&str>,
    ) -> Result<Self, Error> {
        let all = frame.column_specs()?;
        if let ColumnChoice::Only(named) | ColumnChoice::Without(named) = choice {
            let unknown = |name: &&String| all.iter().all(|column| column.name != **name);
            if let Some(name) = named.iter().find(unknown) {
                return Err(frame.no_column(name));
            }
        }
        let chosen = |name: &String| match choice {
            ColumnChoice::All => true,
            ColumnChoice::Only(names) => names.contains(name),
            ColumnChoice::Without(names) => !names.contains(name),
        };
        let mut specs: Vec<ColumnSpec> =
            all.into_iter().filter(|column| chosen(&column.name)).collect();
        let columns = [JOINID.to_owned()];
        let columns = columns.into_iter().chain(specs.iter().map(|column| column.name.clone()));
        let columns = columns.collect();
        if let Some(name) = joinid_column {
            if specs.iter().any(|column| column.name == name) {
                return Err(Error::Uncopied {
                    uri: frame.uri().to_owned(),
                    column: name.to_owned(),
                    problem: "the old joinids were to be kept under its name".into(),
                });
            }
            specs.push(ColumnSpec::new(name, ColumnKind::Int64));
        }
        Ok(Self { frame, columns, joinid_column: joinid_column.map(str::to_owned), specs })
    }

    /// The data frame.
    pub fn frame(&self) -> &DataFrame {
        &self.frame
    }

    /// The columns of the new data frame; the old joinids, if kept, are last.
    pub fn specs(&self) -> &[ColumnSpec] {
        &self.specs
    }

    /// Reads rows by ascending joinid, for [`ExperimentWriter`](crate::ExperimentWriter) to write.
    ///
    /// # Errors
    /// Those of [`DataFrame::query`]; [`Error::Joinid`] if no row has a joinid.
    pub fn read(&self, rows: &RowRanges) -> Result<RecordBatch, Error> {
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let batch = if rows.ranges().len() <= MOST_RANGES {
            self.frame.read(Some(&columns), Some(rows))?
        } else {
            let query = AxisQuery::list(rows.iter().collect::<Vec<_>>());
            self.frame.query(Some(&columns), &query)?
        };
        let found = joinids(&self.frame, &batch)?;
        if !found.iter().map(|joinid| *joinid as u64).eq(rows.iter()) {
            let missing = rows.iter().find(|row| found.binary_search(&(*row as i64)).is_err());
            return Err(Error::Joinid {
                uri: self.frame.uri().to_owned(),
                joinid: missing.unwrap_or_default(),
                problem: if missing.is_some() {
                    "belongs to no row"
                } else {
                    "is in no row, and others occur twice"
                },
            });
        }
        self.renamed(&batch)
    }

    /// Reads rows in any order, each once: row `i` of the result has joinid `joinids[i]`.
    ///
    /// # Errors
    /// Those of [`Self::read`]; [`Error::Joinid`] for a joinid that occurs twice.
    pub fn read_in_order(&self, joinids: &[u64]) -> Result<RecordBatch, Error> {
        let mut order: Vec<u64> = (0..joinids.len() as u64).collect();
        order.sort_unstable_by_key(|place| joinids[*place as usize]);
        let sorted: Vec<u64> = order.iter().map(|place| joinids[*place as usize]).collect();
        if let Some([joinid, _]) = sorted.array_windows().find(|[joinid, next]| joinid == next) {
            return Err(Error::Joinid {
                uri: self.frame.uri().to_owned(),
                joinid: *joinid,
                problem: "occurs twice in the list: name it once",
            });
        }
        let rows = RowRanges::new(sorted.into_iter().map(|joinid| joinid..joinid + 1).collect())?;
        let batch = self.read(&rows)?;
        // The position of each requested row among the rows read.
        let mut places = vec![0; joinids.len()];
        for (found, wanted) in (0..).zip(&order) {
            places[*wanted as usize] = found;
        }
        arrow_select::take::take_record_batch(&batch, &UInt64Array::from(places))
            .map_err(|source| self.arrow_error(source))
    }

    /// Splits rows into parts of at most `most_rows` rows, each of which can be read in the memory
    /// of that many rows. A part with many ranges is read as one span from its first to its last
    /// row, so that span is limited to `most_rows` as well.
    pub fn parts(rows: &RowRanges, most_rows: u64) -> impl Iterator<Item = RowRanges> {
        let most_rows = most_rows.max(1);
        let mut rest: std::collections::VecDeque<Range<u64>> =
            rows.ranges().iter().cloned().collect();
        std::iter::from_fn(move || {
            let mut part: Vec<Range<u64>> = Vec::new();
            let mut n_rows = 0;
            while let Some(mut range) = rest.pop_front() {
                let start = part.first().map_or(range.start, |first| first.start);
                let most = if part.len() < MOST_RANGES {
                    most_rows - n_rows
                } else {
                    // From here on, the whole span from the first row to the last is read.
                    (start + most_rows).saturating_sub(range.start).min(most_rows - n_rows)
                };
                if most < range.end - range.start {
                    rest.push_front(range.start + most..range.end);
                    range.end = range.start + most;
                }
                n_rows += range.end - range.start;
                if !range.is_empty() {
                    part.push(range);
                }
                if n_rows == most_rows || most == 0 {
                    break;
                }
            }
            RowRanges::new(part).ok().filter(|part| part.n_rows() > 0)
        })
    }

    /// Removes `soma_joinid`, or renames it to the name under which it is kept.
    fn renamed(&self, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        let schema = batch.schema_ref();
        let mut fields: Vec<Field> =
            schema.fields().iter().skip(1).map(|field| field.as_ref().clone()).collect();
        let mut arrays = batch.columns()[1..].to_vec();
        if let Some(name) = &self.joinid_column {
            fields.push(Field::new(name, DataType::Int64, false));
            arrays.push(Arc::clone(batch.column(0)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|source| self.arrow_error(source))
    }

    fn arrow_error(&self, source: arrow_schema::ArrowError) -> Error {
        Error::Arrow {
            uri: self.frame.uri().to_owned(),
            what: "the rows taken over".into(),
            source,
        }
    }
}

/// The joinids of a batch whose first column they are.
fn joinids<'a>(frame: &DataFrame, batch: &'a RecordBatch) -> Result<&'a [i64], Error> {
    let column = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
    let problem = "it is not an array of int64";
    let broken = || Error::broken_column(frame.uri(), JOINID, problem.to_owned());
    Ok(column.ok_or_else(broken)?.values())
}
