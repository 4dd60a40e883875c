//! Reads a table at one time with libtiledb and with this crate, and compares.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use storage::LocalStorage;
use tiledb::{Context, Layout, ReadQuery, Schema};
use tiledb_native::{Error, OpenOptions, Table, TableColumn, Threads, Unsupported};

use super::schema::DIMENSION;
pub(super) use crate::differential::histories::described_equally;
use crate::differential::histories::draw::Draw;

/// A value: whether there is one, and its bytes.
pub(super) type Cell = (bool, Vec<u8>);
/// The coordinate of a row, and its values.
pub(super) type Row = (u64, Vec<Cell>);

/// Result of comparing a table at one time.
pub(super) enum Outcome {
    /// With the number of rows.
    Equal(u64),
    /// This crate leaves the table to libtiledb, for this reason.
    Declined(String),
    /// libtiledb itself cannot read it.
    Unreadable(String),
    /// libtiledb's read of everything differs from its reads of single rows; this crate agrees
    /// with the latter.
    Disputed,
    Differs(String),
}

/// One pool for all tables.
pub(super) fn threads() -> Threads {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL
        .get_or_init(|| Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()));
    Threads::Shared(Arc::clone(pool))
}

fn columns(schema: &Schema) -> Vec<&str> {
    schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect()
}

/// All rows, or those with one coordinate, that libtiledb reads; sorted.
pub(super) fn with_libtiledb(
    array: &tiledb::Array,
    row: Option<u64>,
) -> Result<Vec<Row>, tiledb::Error> {
    let schema = array.schema();
    let names: Vec<&str> = [DIMENSION].into_iter().chain(columns(schema)).collect();
    let range = row.map(|row| [(row as i64, row as i64)]);
    let ranges: Vec<&[(i64, i64)]> = range.iter().map(<[_; 1]>::as_slice).collect();
    let mut query = ReadQuery::new(array, Layout::Unordered, &ranges, &names, 1 << 18)?;
    let mut rows = Vec::new();
    while let Some(piece) = query.next_piece()? {
        let n = piece.n_cells();
        let first = rows.len();
        let coordinates = piece.column(0).bytes();
        rows.extend(coordinates.chunks_exact(coordinates.len() / n).map(|bytes| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            (u64::from_le_bytes(wide), Vec::new())
        }));
        for column_idx in 1..names.len() {
            let column = piece.column(column_idx);
            let (bytes, validity) = (column.bytes(), column.validity());
            let bounds: Vec<usize> = match column.offsets() {
                Some(offsets) => {
                    offsets.iter().map(|at| *at as usize).chain([bytes.len()]).collect()
                }
                None => (0..=n).map(|cell| cell * (bytes.len() / n)).collect(),
            };
            for (cell, pair) in bounds.windows(2).enumerate() {
                let is_valid = validity.is_none_or(|validity| validity[cell] != 0);
                rows[first + cell].1.push((is_valid, bytes[pair[0]..pair[1]].to_vec()));
            }
        }
    }
    rows.sort();
    Ok(rows)
}

/// The rows in `columns`, the first of which has the coordinates.
fn rows(columns: &[TableColumn], coordinate_bytes: usize) -> Vec<Row> {
    let coordinates = columns[0].bytes.chunks_exact(coordinate_bytes).map(|bytes| {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    });
    let mut rows: Vec<Row> = coordinates.map(|coordinate| (coordinate, Vec::new())).collect();
    let n = rows.len();
    for column in &columns[1..] {
        let bounds: Vec<usize> = match &column.offsets {
            Some(offsets) => offsets.iter().map(|at| *at as usize).collect(),
            None => (0..=n).map(|cell| cell * (column.bytes.len() / n.max(1))).collect(),
        };
        assert_eq!(bounds.len(), n + 1);
        assert_eq!(bounds[n], column.bytes.len());
        assert!(column.validity.as_ref().is_none_or(|validity| validity.len() == n));
        for (cell, pair) in bounds.windows(2).enumerate() {
            let is_valid = column.validity.as_ref().is_none_or(|validity| validity[cell]);
            rows[cell].1.push((is_valid, column.bytes[pair[0]..pair[1]].to_vec()));
        }
    }
    rows
}

/// Opens the table at `at` as of `time` and compares it with libtiledb's.
pub(super) fn compare(draw: &mut Draw, context: &Context, at: &Path, time: Option<u64>) -> Outcome {
    let options = OpenOptions { timestamp: time, index_bytes: 0, threads: threads() };
    let theirs = tiledb::Array::open(context, at.to_str().unwrap(), time).unwrap();
    if let Err(difference) = described_equally(at, time, &theirs) {
        return Outcome::Differs(difference);
    }
    let table = match Table::open(Arc::new(LocalStorage::new(at)), &options) {
        Ok(table) => table,
        Err(Error::Unsupported { reason, .. }) => {
            // libtiledb does not evaluate these conditions either.
            let is_condition = matches!(reason, Unsupported::DeleteCondition { .. });
            if is_condition && with_libtiledb(&theirs, None).is_ok() {
                return Outcome::Differs(format!("only libtiledb reads it: {reason}"));
            }
            let kind = format!("{reason:?}");
            return Outcome::Declined(kind.split([' ', '{']).next().unwrap_or("").to_owned());
        }
        Err(error) => return Outcome::Differs(format!("could not be opened: {error}")),
    };
    let expected = match with_libtiledb(&theirs, None) {
        Ok(rows) => rows,
        Err(error) => {
            let words = error.to_string();
            return Outcome::Unreadable(words.split("array: ").nth(1).unwrap_or("").to_owned());
        }
    };
    let Err(difference) = reads_equal(draw, &table, theirs.schema(), &expected) else {
        return Outcome::Equal(expected.len() as u64);
    };
    // libtiledb loses cells in some reads of everything: see `histories`.
    let mut coordinates: Vec<u64> = expected.iter().map(|row| row.0).collect();
    let ours = table.read(&[DIMENSION], None).map(|columns| {
        rows(&columns, coordinate_bytes(theirs.schema())).into_iter().map(|row| row.0)
    });
    coordinates.extend(ours.into_iter().flatten());
    coordinates.sort_unstable();
    coordinates.dedup();
    let one_by_one: Result<Vec<Vec<Row>>, _> =
        coordinates.iter().map(|row| with_libtiledb(&theirs, Some(*row))).collect();
    let corrected = one_by_one.map(|rows| rows.concat()).unwrap_or_default();
    match reads_equal(draw, &table, theirs.schema(), &corrected) {
        Ok(()) => Outcome::Disputed,
        Err(_) => Outcome::Differs(difference),
    }
}

fn coordinate_bytes(schema: &Schema) -> usize {
    schema.dimensions[0].datatype.size().unwrap()
}

/// Compares reads of all rows and columns, and of some.
fn reads_equal(
    draw: &mut Draw,
    table: &Table,
    schema: &Schema,
    expected: &[Row],
) -> Result<(), String> {
    let n_rows = table.n_rows().map_err(|error| error.to_string())?;
    if n_rows != expected.len() as u64 {
        return Err(format!("{n_rows} rows, and libtiledb's {}", expected.len()));
    }
    for read_idx in 0..4 {
        let last = expected.last().map_or(1, |row| row.0 + 1);
        let ranges = (read_idx > 0).then(|| ranges(draw, expected, last));
        let mut some: Vec<usize> = (0..schema.attributes.len()).collect();
        if read_idx > 0 {
            some.retain(|_| draw.chance(60));
            draw.shuffle(&mut some);
        }
        let names = some.iter().map(|idx| schema.attributes[*idx].name.as_str());
        let names: Vec<&str> = [DIMENSION].into_iter().chain(names).collect();
        let what = || format!("columns {names:?}, rows {ranges:?}");
        let found = table
            .read(&names, ranges.as_deref())
            .map_err(|error| format!("{}: {error}", what()))?;
        let mut found = rows(&found, coordinate_bytes(schema));
        if !found.is_sorted_by_key(|row| row.0) {
            return Err(format!("{}: coordinates do not ascend", what()));
        }
        found.sort();
        let is_wanted = |row: &&Row| {
            let holds = |range: &Range<u64>| range.contains(&row.0);
            ranges.as_ref().is_none_or(|ranges| ranges.iter().any(holds))
        };
        let mut wanted: Vec<Row> = expected
            .iter()
            .filter(is_wanted)
            .map(|row| (row.0, some.iter().map(|idx| row.1[*idx].clone()).collect()))
            .collect();
        wanted.sort();
        if found != wanted {
            let at = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
            let at = at.unwrap_or_else(|| found.len().min(wanted.len()));
            let (ours, theirs) = (found.get(at), wanted.get(at));
            return Err(format!("{}: row {at} is {ours:?}, and libtiledb's {theirs:?}", what()));
        }
    }
    Ok(())
}

/// Ranges of coordinates: around written rows, or anywhere.
fn ranges(draw: &mut Draw, rows: &[Row], end: u64) -> Vec<Range<u64>> {
    if rows.is_empty() || draw.chance(30) {
        return draw.rows(end.min(700));
    }
    let n = draw.below(8);
    (0..n)
        .map(|_| {
            let start = rows[draw.below(rows.len())].0;
            start..start + draw.pick(&[0, 1, 1, 5, 100])
        })
        .collect()
}
