//! The table and the group of `tests/data/write_table.py`, which tiledbsoma wrote: as written, and
//! damaged.

use std::sync::Arc;

use csr::Narrowing;
use tiledb::{Filter, MetadataValue, ObjectType};
use tiledb_native::{
    Array, ColumnSelection, CsrBuffers, DenseArray, Error, Group, OpenOptions, Table, TableColumn,
};

use super::damage::{Numbers, damages};
use super::packed::MemoryStorage;
use super::stored;

const COLUMNS: [&str; 7] = ["soma_joinid", "name", "kind", "flag", "share", "when", "added"];

fn open(storage: MemoryStorage, timestamp: Option<u64>) -> Result<Table, Error> {
    Table::open(Arc::new(storage), &OpenOptions { timestamp, ..OpenOptions::new(1) })
}

fn numbers<T>(column: &TableColumn, number: impl Fn([u8; 8]) -> T) -> Vec<T> {
    column.bytes.as_chunks::<8>().0.iter().map(|bytes| number(*bytes)).collect()
}

/// The texts of a var-sized column.
fn texts(column: &TableColumn) -> Vec<&str> {
    let offsets = column.offsets.as_ref().unwrap();
    let text = |pair: &[i64]| {
        std::str::from_utf8(&column.bytes[pair[0] as usize..pair[1] as usize]).unwrap()
    };
    offsets.windows(2).map(text).collect()
}

/// The time at which a row was written last until `timestamp`.
fn written(row: i64, timestamp: u64) -> Option<u64> {
    let rows = [(2, 0..40), (3, 30..50), (5, 50..60)];
    let last = rows.iter().rev().find(|(time, of)| *time <= timestamp && of.contains(&row));
    last.map(|(time, _)| *time)
}

/// Reads all rows at `timestamp` and compares with what was written.
#[track_caller]
fn check(name: &str, timestamp: Option<u64>) {
    let table = open(stored(name), timestamp).unwrap();
    let at = timestamp.unwrap_or(9);
    let has_added = at >= 4;
    let columns: &[&str] = if has_added { &COLUMNS } else { &COLUMNS[..6] };
    let expected: Vec<(i64, u64)> =
        (0..60).filter_map(|row| Some((row, written(row, at)?))).collect();
    let found = table.read(columns, None).unwrap();
    let rows: Vec<i64> = expected.iter().map(|(row, _)| *row).collect();
    assert_eq!(numbers(&found[0], i64::from_le_bytes), rows, "{name} at {timestamp:?}");
    assert_eq!(table.n_rows().unwrap(), rows.len() as u64);
    let names: Vec<String> =
        rows.iter().map(|row| format!("row {row} ").repeat(*row as usize % 4)).collect();
    assert_eq!(texts(&found[1]), names);
    let kinds = expected.iter().map(|(row, time)| (row % if *time < 5 { 2 } else { 3 }) as u8);
    assert_eq!(found[2].bytes, kinds.collect::<Vec<_>>());
    let valid: Vec<bool> = rows.iter().map(|row| row % 5 != 0).collect();
    assert_eq!(found[3].validity.as_deref(), Some(&valid[..]));
    for ((row, is_valid), flag) in rows.iter().zip(&valid).zip(&found[3].bytes) {
        assert!(!is_valid || *flag == u8::from(row % 2 == 0));
    }
    let shares: Vec<f64> =
        expected.iter().map(|(row, time)| *row as f64 / 4.0 + *time as f64).collect();
    assert_eq!(numbers(&found[4], f64::from_le_bytes), shares, "{name} at {timestamp:?}");
    let times: Vec<i64> = rows.iter().map(|row| row * 1000).collect();
    assert_eq!(numbers(&found[5], i64::from_le_bytes), times);
    if has_added {
        let is_new = |(row, time): &(i64, u64)| (*time >= 5).then_some(*row as i32 * 3);
        let values =
            found[6].bytes.as_chunks::<4>().0.iter().map(|value| i32::from_le_bytes(*value));
        let valid = found[6].validity.as_ref().unwrap();
        let added = values.zip(valid).map(|(value, valid)| valid.then_some(value));
        assert_eq!(added.collect::<Vec<_>>(), expected.iter().map(is_new).collect::<Vec<_>>());
    }
    let some = table.read(&COLUMNS[..2], Some(&[55..70, 35..41])).unwrap();
    let some_rows: Vec<i64> =
        rows.iter().copied().filter(|row| (35..41).contains(row) || *row >= 55).collect();
    assert_eq!(numbers(&some[0], i64::from_le_bytes), some_rows);
    assert_eq!(texts(&some[1]).len(), some_rows.len());
}

#[test]
fn a_table_of_tiledbsoma_at_every_time() {
    for name in ["table", "table-consolidated"] {
        for timestamp in [Some(1), Some(2), Some(3), Some(4), Some(5), None] {
            check(name, timestamp);
        }
    }
}

/// Texts with the filters of obs in the Census of 2023.
#[test]
fn texts_behind_a_dictionary_and_run_lengths() {
    let table = open(stored("table-texts"), None).unwrap();
    let filters = &table.description().schema().attributes[0].filters;
    assert_eq!(filters, &[Filter::Dictionary, Filter::Zstd(19)]);
    let kinds = ["B cell", "T cell", "new"];
    for (range, ranges) in [(0..60, None), (25..41, Some(vec![25..41]))] {
        let rows: Vec<usize> = range.collect();
        let found = table.read(&["name", "kind", "note"], ranges.as_deref()).unwrap();
        let names: Vec<String> =
            rows.iter().map(|row| format!("row {row} ").repeat(row % 4)).collect();
        assert_eq!(texts(&found[0]), names);
        assert_eq!(texts(&found[1]), rows.iter().map(|row| kinds[row / 20]).collect::<Vec<_>>());
        let notes = rows.iter().map(|row| if row % 5 < 2 { "" } else { "seen" });
        assert_eq!(texts(&found[2]), notes.collect::<Vec<_>>());
        let valid: Vec<bool> = rows.iter().map(|row| row % 5 != 0).collect();
        assert_eq!(found[2].validity, Some(valid));
    }
}

#[test]
fn extended_categories_are_those_of_the_time() {
    for (timestamp, n_kinds) in [(Some(2), 2), (Some(4), 2), (Some(5), 3), (None, 3)] {
        let table = open(stored("table"), timestamp).unwrap();
        let schema = table.description().schema();
        let kind = schema.attributes.iter().find(|attribute| attribute.name == "kind").unwrap();
        let found = table.description().enumeration(kind.enumeration.as_ref().unwrap()).unwrap();
        assert_eq!(found.strings().unwrap(), ["B cell", "T cell", "new"][..n_kinds]);
    }
}

#[test]
fn a_group_of_tiledbsoma_at_every_time() {
    let group = |timestamp| Group::open(Arc::new(stored("group")), timestamp).unwrap();
    let names = |group: &Group| -> Vec<String> {
        group.members().iter().map(|member| member.name.clone()).collect()
    };
    assert_eq!(names(&group(Some(0))), [""; 0]);
    assert_eq!(names(&group(Some(1))), ["lost", "ms", "obs"]);
    let latest = group(None);
    assert_eq!(names(&latest), ["ms", "obs"]);
    assert_eq!(latest.members()[0].kind, Some(ObjectType::Group));
    assert_eq!(latest.members()[1].kind, Some(ObjectType::Array));
    let value = |group: &Group, key: &str| {
        group.metadata().iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    };
    assert_eq!(value(&group(Some(2)), "number"), Some(MetadataValue::from(5)));
    assert_eq!(value(&latest, "number"), None);
    assert_eq!(value(&latest, "text"), Some(MetadataValue::from("other")));
}

/// Reads everything of a table; columns are consistent.
fn read_all(storage: MemoryStorage, what: &str) -> Result<(), Error> {
    let table = open(storage, None)?;
    table.description().metadata()?;
    for attribute in &table.description().schema().attributes {
        if let Some(name) = &attribute.enumeration {
            table.description().enumeration(name)?;
        }
    }
    let names: Vec<&str> = ["soma_joinid"]
        .into_iter()
        .chain(table.description().schema().attributes.iter().map(|one| one.name.as_str()))
        .collect();
    for ranges in [None, Some(&[3..40, 45..57][..])] {
        let columns = table.read(&names, ranges)?;
        let rows = numbers(&columns[0], i64::from_le_bytes);
        assert!(rows.is_sorted(), "{what}");
        for column in &columns {
            let n = column.offsets.as_ref().map_or(rows.len(), |offsets| offsets.len() - 1);
            assert_eq!(n, rows.len(), "{what}");
            assert!(column.validity.as_ref().is_none_or(|valid| valid.len() == n), "{what}");
        }
    }
    Ok(())
}

fn check_damage(
    name: &str,
    n_each: usize,
    read: &dyn Fn(MemoryStorage, &str) -> Result<(), Error>,
) {
    let whole = stored(name);
    let (mut n_errors, mut n_cases) = (0, 0);
    damages(&whole, n_each, &mut Numbers(11), &mut |storage, damage| {
        let what = format!("{name}: {damage}");
        n_cases += 1;
        if let Err(error) = read(storage, &what) {
            n_errors += 1;
            if matches!(error, Error::Damaged { .. }) {
                assert!(error.to_string().contains("memory/"), "{what}: {error}");
            }
        }
    });
    assert!(n_errors * 3 > n_cases, "{n_errors} of {n_cases} were noticed");
}

#[test]
fn damaged_tables() {
    check_damage("table", 8, &read_all);
    check_damage("table-consolidated", 15, &read_all);
    check_damage("table-texts", 8, &read_all);
    check_damage("table-deleted", 8, &read_all);
}

/// Reads everything of a table of any index.
fn read_as_stored(storage: MemoryStorage, what: &str) -> Result<(), Error> {
    let table = Table::open_as_stored(Arc::new(storage), &OpenOptions::new(1))?;
    let columns = table.read(&INDEXED_COLUMNS, None)?;
    let n_rows = table.n_rows()? as usize;
    for column in &columns {
        let n = column.offsets.as_ref().map_or(n_rows, |offsets| offsets.len() - 1);
        assert_eq!(n, n_rows, "{what}");
        assert!(column.validity.as_ref().is_none_or(|valid| valid.len() == n), "{what}");
    }
    Ok(())
}

#[test]
fn damaged_tables_of_any_index() {
    check_damage("table-indexed", 15, &read_as_stored);
}

const INDEXED_COLUMNS: [&str; 5] = ["soma_joinid", "name", "share", "note", "count"];

/// The count of each row at a time, from 4 on; null if it has none.
fn counts(time: u64) -> Vec<(i64, Option<i32>)> {
    let is_kept = |row: i64| row % 5 != 0 && row <= 40;
    let count = |row: i64, of: i32| (row % 5 != 0).then_some(row as i32 + 100 * of);
    let before = |row: i64| (row, count(row, if row < 30 { 2 } else { 3 }));
    let is_new = |row: &i64| time >= 6 && (5..12).contains(row);
    let rows = (0..50).filter(|row| is_new(row) || is_kept(*row));
    let rows = rows.filter(|row| time < 7 || ![17, 9].contains(row));
    let rows = rows.map(|row| if is_new(&row) { (row, count(row, 6)) } else { before(row) });
    // The same name, and zeros of either sign.
    let zeros = if time >= 6 { vec![(60, None), (61, Some(661))] } else { Vec::new() };
    rows.chain(zeros).collect()
}

#[test]
fn a_table_indexed_by_texts_and_floats_at_every_time() {
    for timestamp in [Some(4), Some(6), None] {
        let options = OpenOptions { timestamp, ..OpenOptions::new(1) };
        let table = Table::open_as_stored(Arc::new(stored("table-indexed")), &options).unwrap();
        let found = table.read(&INDEXED_COLUMNS, None).unwrap();
        let expected = counts(timestamp.unwrap_or(7));
        assert_eq!(table.n_rows().unwrap(), expected.len() as u64, "{timestamp:?}");
        let counts = found[4].bytes.as_chunks::<4>().0.iter().map(|of| i32::from_le_bytes(*of));
        let counts = counts.zip(found[4].validity.as_ref().unwrap());
        let counts = counts.map(|(count, is_valid)| is_valid.then_some(count));
        let rows = numbers(&found[0], i64::from_le_bytes);
        let mut rows: Vec<_> = rows.into_iter().zip(counts).enumerate().collect();
        rows.sort_by_key(|(_, row)| *row);
        let sorted: Vec<_> = rows.iter().map(|(_, row)| *row).collect();
        assert_eq!(sorted, expected, "{timestamp:?}");
        let (names, notes) = (texts(&found[1]), texts(&found[3]));
        let shares = numbers(&found[2], f64::from_le_bytes);
        for (place, (row, _)) in rows {
            assert_eq!(names[place], format!("row {}", row / 2));
            let share =
                if row < 60 { (row % 2) as f64 - 0.5 } else { [0.0, -0.0][row as usize % 2] };
            assert_eq!(shares[place].to_bits(), share.to_bits());
            assert_eq!(notes[place], format!("note {row}"));
        }
    }
}

#[test]
fn values_are_counted_without_reading_them_if_whole_rows_were_deleted() {
    let mut files = stored("matrix-rows-deleted");
    let open =
        |files: &MemoryStorage| Array::open(Arc::new(files.clone()), &OpenOptions::new(1)).unwrap();
    let kept = |row: &u64| !(5..13).contains(row) && ![31, 42, 50].contains(row);
    let expected: u64 = (0..60).filter(kept).map(|row| row % 4).sum();
    let mut out = CsrBuffers::new();
    open(&files).read_csr(&[0..60], &ColumnSelection::All, &mut out).unwrap();
    assert_eq!(out.nnz() as u64, expected);
    // Neither columns nor values can be read.
    let unread = |path: &str| path.ends_with("/d1.tdb") || path.ends_with("/a0.tdb");
    let damaged = files.files.iter_mut().filter(|(path, _)| unread(path));
    damaged.for_each(|(_, bytes)| bytes.fill(0xff));
    assert_eq!(open(&files).n_values().unwrap(), expected);
    assert!(open(&files).read_csr(&[0..60], &ColumnSelection::All, &mut out).is_err());
}

/// The value of a place of the dense arrays.
fn dense_value((row, column): (u64, u64), time: u64) -> Option<f32> {
    let written = [(2, 0..37, 0..23), (3, 5..12, 3..15), (4, 30..37, 20..23)];
    let last = written.into_iter().rev().find(|(of, rows, columns)| {
        *of <= time && rows.contains(&row) && columns.contains(&column)
    });
    let (of, rows, columns) = last?;
    Some((((row - rows.start) * 7 + column - columns.start) % 5 * of) as f32)
}

#[test]
fn dense_arrays_of_tiledbsoma_at_every_time() {
    for name in ["dense", "dense-columns"] {
        for timestamp in [Some(1), Some(2), Some(3), None] {
            let options = OpenOptions { timestamp, ..OpenOptions::new(1) };
            let array = DenseArray::open(Arc::new(stored(name)), &options).unwrap();
            assert_eq!((array.n_rows(), array.n_columns()), (37, 23));
            let places = (0..37).flat_map(|row| (0..23).map(move |column| (row, column)));
            let expected = places.map(|place| dense_value(place, timestamp.unwrap_or(9)));
            let mut found = vec![0.0; 37 * 23];
            array.read(&[0..37], &[0..23], Narrowing::Nearest, &mut found).unwrap();
            for (value, expected) in found.iter().zip(expected) {
                assert!(
                    expected.is_none_or(|expected| *value == expected),
                    "{name}, {timestamp:?}"
                );
            }
        }
    }
}

#[test]
fn damaged_dense_arrays() {
    let read = |storage: MemoryStorage, _: &str| {
        let array = DenseArray::open(Arc::new(storage), &OpenOptions::new(1))?;
        let (n_rows, n_columns) = (array.n_rows().min(50), array.n_columns().min(50));
        let mut values = vec![0.0; (n_rows * n_columns) as usize];
        array.read(&[0..n_rows], &[0..n_columns], Narrowing::Nearest, &mut values).map(|_| ())
    };
    check_damage("dense", 15, &read);
    check_damage("dense-columns", 15, &read);
}

#[test]
fn damaged_groups() {
    let read = |storage: MemoryStorage, _: &str| Group::open(Arc::new(storage), None).map(|_| ());
    check_damage("group", 60, &read);
}
