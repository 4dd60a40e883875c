//! The choice of cells: by joinid, by a filter on obs, by data set. obs is scanned in parts.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, LargeStringArray, RecordBatch};
use arrow_schema::DataType;
use soma_io::{AxisQuery, DataFrame, Joinids, RowRanges, ValueFilter};

use crate::rows::Rows;
use crate::{Error, JOINID};

/// Rows of obs that are scanned together.
const PART_ROWS: u64 = 1 << 18;

/// Joinids per row from which on the rows of a frame are found by reading their joinids.
const SPARSE: u64 = 16;

/// A range of an experiment's data sets, ordered by their first cell or by their number of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetSlice {
    /// The obs column with the data set's name, for instance `dataset_id`.
    pub column: String,
    /// First data set, counted from 0.
    pub start: usize,
    /// End of the range (exclusive); `None` for all from `start` on.
    pub end: Option<usize>,
    /// Whether data sets are ordered by their number of cells, fewest first; those with equally
    /// many by their first cell.
    pub sorted: bool,
}

/// Conditions on the cells; a cell must meet all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) joinids: Option<&'a RowRanges>,
    pub(crate) filter: Option<&'a ValueFilter>,
    pub(crate) datasets: Option<&'a DatasetSlice>,
}

/// The chosen cells, and the number of chosen data sets if a range of them was requested.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) cells: RowRanges,
    pub(crate) n_datasets: Option<usize>,
}

/// Called with the number of cells scanned; an error ends the scan.
type Watch<'a> = dyn FnMut(u64) -> Result<(), Error> + 'a;

/// Scans obs once, and once more before if data sets are requested.
pub(crate) fn choose(
    obs: &DataFrame,
    wanted: &Wanted<'_>,
    watch: &mut Watch<'_>,
) -> Result<Chosen, Error> {
    let mut n_told = 0;
    let mut watch = |n_rows: u64| {
        n_told += n_rows;
        watch(n_told)
    };
    let names = wanted.datasets.map(|slice| slice.names(obs, &mut watch)).transpose()?;
    let column = wanted.datasets.map(|slice| slice.column.as_str());
    let columns: Vec<&str> = [JOINID].into_iter().chain(column).collect();
    let mut cells = Rows::default();
    let mut n_scanned = 0;
    for (part, n_rows) in parts(obs)? {
        watch(n_rows)?;
        if wanted.joinids.is_some_and(|rows| overlapping(rows, &part).is_empty()) {
            continue;
        }
        let query = AxisQuery {
            joinids: Joinids::Range(part.clone()),
            value_filter: wanted.filter.cloned(),
        };
        let batch = obs.query(Some(&columns), &query)?;
        let found = column.map(|column| texts(obs, &batch, column)).transpose()?;
        let mut asked = wanted.joinids.map(|rows| overlapping(rows, &part));
        n_scanned += asked.map_or(n_rows, |ranges| {
            let here = |rows: &Range<u64>| rows.end.min(part.end) - rows.start.max(part.start);
            ranges.iter().map(here).sum()
        });
        for (row_idx, joinid) in
            joinids(obs, &batch)?.iter().map(|joinid| *joinid as u64).enumerate()
        {
            let of_dataset = match (&found, &names) {
                (Some(found), Some(names)) => {
                    found.is_valid(row_idx) && names.contains(found.value(row_idx))
                }
                _ => true,
            };
            if of_dataset && asked.as_mut().is_none_or(|ranges| is_in(ranges, joinid)) {
                cells.push(joinid);
            }
        }
    }
    let cells = cells.finish()?;
    if cells.n_rows() == 0 {
        return Err(Error::NoCells { uri: obs.uri().to_owned(), n_scanned });
    }
    Ok(Chosen { cells, n_datasets: names.map(|names| names.len()) })
}

impl DatasetSlice {
    /// The names of the data sets.
    fn names(&self, obs: &DataFrame, watch: &mut Watch<'_>) -> Result<HashSet<String>, Error> {
        let mut place_of: HashMap<String, usize> = HashMap::new();
        let mut datasets: Vec<(String, u64)> = Vec::new();
        for (part, n_rows) in parts(obs)? {
            watch(n_rows)?;
            let batch = obs.query(Some(&[&self.column]), &AxisQuery::range(part))?;
            for name in texts(obs, &batch, &self.column)?.iter().flatten() {
                if let Some(place) = place_of.get(name) {
                    datasets[*place].1 += 1;
                } else {
                    place_of.insert(name.to_owned(), datasets.len());
                    datasets.push((name.to_owned(), 1));
                }
            }
        }
        if self.sorted {
            // The sort is stable: data sets with equally many cells stay in the order of their
            // first cell.
            datasets.sort_by_key(|(_, n_cells)| *n_cells);
        }
        let end = self.end.unwrap_or(datasets.len()).min(datasets.len());
        if self.start >= end {
            return Err(Error::NoDatasets {
                uri: obs.uri().to_owned(),
                start: self.start,
                end: self.end.map_or_else(|| "the last".to_owned(), |end| end.to_string()),
                n_datasets: datasets.len(),
            });
        }
        Ok(datasets.drain(self.start..end).map(|(name, _)| name).collect())
    }
}

/// A range of joinids, and the number of rows that it may have.
type Part = (Range<u64>, u64);

/// Ranges of joinids that together cover all rows.
fn parts(frame: &DataFrame) -> Result<Vec<Part>, Error> {
    let Some((least, greatest)) = frame.joinid_bounds()? else { return Ok(Vec::new()) };
    let n_between = (greatest - least) / SPARSE;
    if n_between > PART_ROWS && n_between > frame.n_rows()? {
        return sparse_parts(frame);
    }
    let starts = (least..=greatest).step_by(PART_ROWS as usize);
    let part = |start: u64| start..(greatest + 1).min(start + PART_ROWS);
    Ok(starts.map(part).map(|part| (part.clone(), part.end - part.start)).collect())
}

/// The parts of a frame most of whose joinids are no row's: to step through them could take for
/// ever.
fn sparse_parts(frame: &DataFrame) -> Result<Vec<Part>, Error> {
    let mut parts: Vec<Part> = Vec::new();
    let mut add = |joinid: u64| match parts.last_mut() {
        Some((range, n_rows)) if *n_rows < PART_ROWS => {
            range.end = joinid + 1;
            *n_rows += 1;
        }
        _ => parts.push((joinid..joinid + 1, 1)),
    };
    let mut each = |joinids: &[u64]| joinids.iter().copied().for_each(&mut add);
    frame.select(Some(&[]), &AxisQuery::default(), &mut each)?;
    Ok(parts)
}

/// The ranges that may intersect `part`.
fn overlapping<'a>(rows: &'a RowRanges, part: &Range<u64>) -> &'a [Range<u64>] {
    let ranges = rows.ranges();
    let first = ranges.partition_point(|range| range.end <= part.start);
    let last = ranges.partition_point(|range| range.start < part.end);
    &ranges[first..last.max(first)]
}

/// Whether a joinid is in one of the ranges. Drops the ranges before it, because joinids ascend.
fn is_in(ranges: &mut &[Range<u64>], joinid: u64) -> bool {
    while let Some((_, later)) = ranges.split_first().filter(|(first, _)| first.end <= joinid) {
        *ranges = later;
    }
    ranges.first().is_some_and(|first| first.contains(&joinid))
}

/// The joinids of rows that were read with them. Fails if the column is missing or has another
/// type.
pub(crate) fn joinids<'a>(frame: &DataFrame, batch: &'a RecordBatch) -> Result<&'a [i64], Error> {
    let column =
        batch.column_by_name(JOINID).and_then(|column| column.as_primitive_opt::<Int64Type>());
    let broken = || soma_io::Error::BrokenColumn {
        uri: frame.uri().to_owned(),
        column: JOINID.to_owned(),
        problem: "it is not an array of int64".to_owned(),
    };
    Ok(column.ok_or_else(broken)?.values())
}

/// Reads a column of strings.
pub(crate) fn texts(
    frame: &DataFrame,
    batch: &RecordBatch,
    column: &str,
) -> Result<LargeStringArray, Error> {
    let failed =
        |source| Error::Arrow { uri: frame.uri().to_owned(), column: column.to_owned(), source };
    let array = batch.column(batch.schema_ref().index_of(column).map_err(failed)?);
    let value_type = match array.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    if *value_type != DataType::LargeUtf8 {
        return Err(Error::NotTexts {
            uri: frame.uri().to_owned(),
            column: column.to_owned(),
            data_type: value_type.clone(),
        });
    }
    let texts = arrow_cast::cast(array, &DataType::LargeUtf8).map_err(failed)?;
    Ok(texts.as_string().clone())
}
