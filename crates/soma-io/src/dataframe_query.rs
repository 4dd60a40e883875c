//! Reads the rows of a data frame that a query selects.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BooleanArray, RecordBatch};

use crate::axis_query::{AxisQuery, Joinids};
use crate::columns::JOINID;
use crate::{DataFrame, Error, RowRanges, ValueFilter};

/// Maximum number of ranges to read for a list. A list that needs more is read as one range from
/// its first to its last joinid, and filtered afterwards.
const MOST_RANGES: usize = 256;

const ABSENT: &str = "belongs to no row: leave it out, or select a range";

impl DataFrame {
    /// Reads the rows of a query, by ascending joinid. The result has `columns` in the given order;
    /// `None` means all.
    ///
    /// # Errors
    /// A column does not exist, here or in the filter; a list has a joinid twice, or one that no
    /// row has; a range extends beyond the data frame.
    pub fn query(&self, columns: Option<&[&str]>, query: &AxisQuery) -> Result<RecordBatch, Error> {
        if let Some(filter) = &query.value_filter {
            filter.check(self.schema())?;
        }
        let list = match &query.joinids {
            Joinids::List(joinids) => Some(self.sorted(joinids)?),
            _ => None,
        };
        let rows = match (&query.joinids, &list) {
            (Joinids::Range(range), _) if range.is_empty() => Some(RowRanges::default()),
            (Joinids::Range(range), _) => Some(RowRanges::new(vec![range.clone()])?),
            (_, Some(joinids)) => Some(few_ranges(joinids)?),
            _ => None,
        };
        let Some(columns) = columns else {
            let batch = self.read(None, rows.as_ref())?;
            return self.pick(&batch, query, list.as_deref());
        };
        // The columns of the filter are read in addition.
        let mut needed = columns.to_vec();
        if list.is_some() {
            needed.push(JOINID);
        }
        needed.extend(query.value_filter.iter().flat_map(ValueFilter::columns));
        let batch = self.read(Some(&needed), rows.as_ref())?;
        let picked = self.pick(&batch, query, list.as_deref())?;
        let mut wanted: Vec<usize> = Vec::with_capacity(columns.len());
        for name in columns {
            let position = picked.schema_ref().index_of(name);
            let position = position.map_err(|source| self.arrow_error("its columns", source))?;
            if !wanted.contains(&position) {
                wanted.push(position);
            }
        }
        picked.project(&wanted).map_err(|source| self.arrow_error("its columns", source))
    }

    /// The joinids of the matching rows, ascending. Reads only the columns that the filter names.
    pub fn joinids(&self, filter: &ValueFilter) -> Result<Vec<u64>, Error> {
        let query = AxisQuery { joinids: Joinids::All, value_filter: Some(filter.clone()) };
        let batch = self.query(Some(&[JOINID]), &query)?;
        let broken = |joinid: &i64| self.joinid_error(format!("{joinid} is below 0"));
        self.joinid_column(&batch)?
            .iter()
            .map(|joinid| u64::try_from(*joinid).map_err(|_| broken(joinid)))
            .collect()
    }

    /// Sorts a list of joinids. Fails if one occurs twice.
    fn sorted(&self, joinids: &[u64]) -> Result<Vec<u64>, Error> {
        let mut sorted = joinids.to_vec();
        sorted.sort_unstable();
        if let Some([joinid, _]) = sorted.array_windows().find(|[joinid, next]| joinid == next) {
            return Err(self.list_error(*joinid, "occurs twice in the list: name it once"));
        }
        match sorted.last() {
            Some(last) if i64::try_from(*last).is_err() => Err(self.list_error(*last, ABSENT)),
            _ => Ok(sorted),
        }
    }

    fn list_error(&self, joinid: u64, problem: &'static str) -> Error {
        Error::Joinid { uri: self.uri().to_owned(), joinid, problem }
    }

    /// Keeps the rows of `batch` that match `list` and the filter.
    fn pick(
        &self,
        batch: &RecordBatch,
        query: &AxisQuery,
        list: Option<&[u64]>,
    ) -> Result<RecordBatch, Error> {
        let mut picked = batch.clone();
        let filter = |batch: &RecordBatch, wanted: &BooleanArray| {
            if wanted.true_count() == 0 {
                // Arrow's filter would lose the categories of an empty column.
                return Ok(batch.slice(0, 0));
            }
            arrow_select::filter::filter_record_batch(batch, wanted)
                .map_err(|source| self.arrow_error("the selected rows", source))
        };
        if let Some(list) = list {
            let found = self.joinid_column(&picked)?;
            if let Some(joinid) =
                list.iter().find(|joinid| found.binary_search(&(**joinid as i64)).is_err())
            {
                return Err(self.list_error(*joinid, ABSENT));
            }
            if found.len() != list.len() {
                let among = |joinid: &i64| list.binary_search(&(*joinid as u64)).is_ok();
                let wanted = found.iter().map(|joinid| Some(among(joinid))).collect();
                picked = filter(&picked, &wanted)?;
            }
        }
        match &query.value_filter {
            Some(condition) => filter(&picked, &condition.evaluate(&picked)?),
            None => Ok(picked),
        }
    }

    fn joinid_column<'a>(&self, batch: &'a RecordBatch) -> Result<&'a [i64], Error> {
        batch
            .column_by_name(JOINID)
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .map(|column| column.values().as_ref())
            .ok_or_else(|| self.joinid_error("it is not a column of 64-bit integers".to_owned()))
    }

    fn joinid_error(&self, problem: String) -> Error {
        Error::BrokenColumn { uri: self.uri().to_owned(), column: JOINID.to_owned(), problem }
    }

    fn arrow_error(&self, what: &str, source: arrow_schema::ArrowError) -> Error {
        Error::Arrow { uri: self.uri().to_owned(), what: what.to_owned(), source }
    }
}

/// Ranges that contain all of `sorted`: nothing else if a few ranges suffice, otherwise one range
/// from the first to the last.
fn few_ranges(sorted: &[u64]) -> Result<RowRanges, Error> {
    let each = RowRanges::new(sorted.iter().map(|joinid| *joinid..*joinid + 1).collect())?;
    match (each.ranges().len(), sorted.first(), sorted.last()) {
        (n_ranges, Some(first), Some(last)) if n_ranges > MOST_RANGES => {
            RowRanges::new(vec![*first..*last + 1])
        }
        _ => Ok(each),
    }
}
