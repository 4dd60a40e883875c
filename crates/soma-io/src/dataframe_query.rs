//! Reads the rows of a data frame that a query selects.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;

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
        self.select(columns, query, &mut |_| {})
    }

    /// Reads the rows of a query like [`query`](Self::query), and gives their joinids, ascending,
    /// to
    /// `each`, batch by batch. So the joinids of 10^8 rows need not be in memory at once: the
    /// result has no more than `columns`.
    ///
    /// # Errors
    /// Those of [`query`](Self::query); a joinid is below 0.
    pub fn select(
        &self,
        columns: Option<&[&str]>,
        query: &AxisQuery,
        each: &mut dyn FnMut(&[u64]),
    ) -> Result<RecordBatch, Error> {
        let schema = self.project(columns)?;
        let filter = query.value_filter.as_ref();
        if let Some(filter) = filter {
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
        let mut list = list.map(|list| List { list, n_found: 0 });
        let tested = filter.map_or_else(Vec::new, ValueFilter::columns);
        let selected = self.collect(schema, rows.as_ref(), &tested, &mut |joinids, tested| {
            let wanted = match &mut list {
                Some(list) => list.among(joinids).map_err(|joinid| self.absent(joinid))?,
                None => None,
            };
            let matches = filter.map(|filter| filter.evaluate(tested)).transpose()?;
            let matches = matches.map(|matches| matches.values().clone());
            let keep = match (wanted, matches) {
                (Some(wanted), Some(matches)) => Some(&wanted & &matches),
                (wanted, matches) => wanted.or(matches),
            };
            each(&self.kept(joinids, keep.as_ref())?);
            Ok(keep)
        })?;
        match list.and_then(|list| list.list.get(list.n_found).copied()) {
            Some(joinid) => Err(self.absent(joinid)),
            None => Ok(selected),
        }
    }

    /// The joinids of the matching rows, ascending. Reads only the columns that the filter names.
    pub fn joinids(&self, filter: &ValueFilter) -> Result<Vec<u64>, Error> {
        let query = AxisQuery { joinids: Joinids::All, value_filter: Some(filter.clone()) };
        let mut joinids = Vec::new();
        self.select(Some(&[]), &query, &mut |batch| joinids.extend(batch))?;
        Ok(joinids)
    }

    /// The joinids that are kept.
    fn kept(&self, joinids: &[i64], keep: Option<&BooleanBuffer>) -> Result<Vec<u64>, Error> {
        let number = |joinid: i64| {
            u64::try_from(joinid).map_err(|_| {
                Error::broken_column(self.uri(), JOINID, format!("{joinid} is below 0"))
            })
        };
        match keep {
            Some(keep) => keep.set_indices().map(|row| number(joinids[row])).collect(),
            None => joinids.iter().map(|joinid| number(*joinid)).collect(),
        }
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

    /// The error of a listed joinid that no row has.
    fn absent(&self, joinid: u64) -> Error {
        self.list_error(joinid, ABSENT)
    }
}

/// A sorted list of joinids, each of which some row must have. Rows come by ascending joinid.
#[derive(Debug)]
struct List {
    list: Vec<u64>,
    /// Number of joinids of the list, from the first, that rows have had so far.
    n_found: usize,
}

impl List {
    /// Which rows of the next batch are in the list; `None` if all are. Fails with the first joinid
    /// of the list that no row has.
    fn among(&mut self, joinids: &[i64]) -> Result<Option<BooleanBuffer>, u64> {
        let mut wanted = Vec::with_capacity(joinids.len());
        for joinid in joinids {
            // Joinids below 0 are in no list.
            let joinid = u64::try_from(*joinid).ok();
            let next = self.list.get(self.n_found).copied();
            let before = self.n_found.checked_sub(1).map(|last| self.list[last]);
            let is_next = joinid.is_some() && joinid == next;
            if let Some(next) = next.filter(|next| joinid.is_some_and(|joinid| *next < joinid)) {
                return Err(next);
            }
            self.n_found += usize::from(is_next);
            // A row that was written twice may come twice.
            wanted.push(is_next || (joinid.is_some() && joinid == before));
        }
        Ok(wanted.contains(&false).then(|| BooleanBuffer::from(wanted)))
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
