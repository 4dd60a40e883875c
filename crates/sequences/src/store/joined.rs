//! Several stores as one.

use std::ops::Range;
use std::sync::Arc;

use pipeline::Stop;

use super::{SequenceStore, Summary};
use crate::error::Error;
use crate::sequence_list::SequenceList;

/// Several stores as one: the sequences of the first, then those of the second and so on.
///
/// Words are counted over all of them, and names need to be unique in each store only.
#[derive(Debug)]
pub struct JoinedStores {
    stores: Vec<Arc<dyn SequenceStore>>,
    /// One past the last row of each store.
    ends: Vec<u64>,
    summary: Summary,
}

/// Ascending rows of one store.
type RowsOfStore<'a> = (&'a dyn SequenceStore, Vec<Range<u64>>);

impl JoinedStores {
    /// Joins stores, in their order.
    ///
    /// # Errors
    /// There are none.
    pub fn new(stores: Vec<Arc<dyn SequenceStore>>) -> Result<Self, Error> {
        if stores.is_empty() {
            return Err(Error::settings("there is no store to join: name at least one"));
        }
        let summary = Summary::of_all(stores.iter().map(|store| store.summary()));
        let end = |before: &mut u64, store: &Arc<dyn SequenceStore>| {
            *before += store.summary().n_sequences;
            Some(*before)
        };
        let ends = stores.iter().scan(0, end).collect();
        Ok(Self { stores, ends, summary })
    }

    /// The rows by their stores, in their order.
    fn by_store(&self, rows: &[Range<u64>]) -> Result<Vec<RowsOfStore<'_>>, Error> {
        let mut found: Vec<(usize, Vec<Range<u64>>)> = Vec::new();
        for Range { mut start, end } in rows.iter().cloned() {
            while start < end {
                let at = self.ends.partition_point(|end| *end <= start);
                let Some(of_store) = self.ends.get(at) else { return Err(self.no_row(end - 1)) };
                let first = self.ends[..at].last().copied().unwrap_or(0);
                let stop = end.min(*of_store);
                let rows = start - first..stop - first;
                match found.last_mut() {
                    Some((last, ranges)) if *last == at => ranges.push(rows),
                    _ => found.push((at, vec![rows])),
                }
                start = stop;
            }
        }
        Ok(found.into_iter().map(|(at, rows)| (&*self.stores[at], rows)).collect())
    }

    fn no_row(&self, row: u64) -> Error {
        let n = self.summary.n_sequences;
        Error::settings(format!("there is no sequence {row}: the stores have {n} together"))
    }
}

impl SequenceStore for JoinedStores {
    fn place(&self) -> String {
        let places: Vec<String> = self.stores.iter().map(|store| store.place()).collect();
        places.join(", ")
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn sizes(&self) -> Vec<u64> {
        self.stores.iter().flat_map(|store| store.sizes()).collect()
    }

    fn working_bytes(&self, n_rows: u64, with_names: bool) -> u64 {
        let of_store = |store: &Arc<dyn SequenceStore>| store.working_bytes(n_rows, with_names);
        self.stores.iter().map(of_store).max().unwrap_or(0)
    }

    fn read(
        &self,
        rows: &[Range<u64>],
        with_names: bool,
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error> {
        let by_store = self.by_store(rows)?;
        by_store.iter().map(|(store, rows)| store.read(rows, with_names, into, stop)).sum()
    }

    fn read_names(
        &self,
        rows: &[Range<u64>],
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error> {
        let by_store = self.by_store(rows)?;
        by_store.iter().map(|(store, rows)| store.read_names(rows, into, stop)).sum()
    }
}
