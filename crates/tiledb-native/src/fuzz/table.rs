//! Whole tables: stored ones with overwritten bytes, and files with arbitrary content, opened and
//! read in every way.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::array::options;
use super::first_byte;
use crate::{Error, OpenOptions, Table, TableColumn};
use storage::MemoryStorage;

/// A table of which the index is a text and a number.
const INDEXED: &[u8] = include_bytes!("../../tests/data/table-indexed.files");
const STORED: [&[u8]; 4] = [
    include_bytes!("../../tests/data/table.files"),
    include_bytes!("../../tests/data/table-consolidated.files"),
    include_bytes!("../../tests/data/table-texts.files"),
    include_bytes!("../../tests/data/table-deleted.files"),
];

/// Input: index of a stored table (1 byte), or beyond those, files packed in the same form; the
/// opening time (1 byte); the first row to read (1 byte); then changes, as for `array`.
pub(super) fn table(input: &[u8]) {
    let (choice, rest) = first_byte(input);
    let (timestamp, rest) = first_byte(rest);
    let (first, rest) = first_byte(rest);
    let served = match stored().get(usize::from(choice)) {
        Some(stored) => stored.changed(rest),
        None => MemoryStorage::unpack(rest),
    };
    // The stored tables change at times 1 to 9.
    let timestamp = (timestamp < 10).then_some(timestamp.into());
    // An error is an acceptable result.
    let _read = read(served, timestamp, first.into());
}

/// Input: whether the stored table is read (first byte 0), or files packed in the same form; the
/// opening time (1 byte); then changes, as for `array`.
pub(super) fn as_stored(input: &[u8]) {
    static UNPACKED: OnceLock<MemoryStorage> = OnceLock::new();
    let (choice, rest) = first_byte(input);
    let (timestamp, rest) = first_byte(rest);
    let served = match choice {
        0 => UNPACKED.get_or_init(|| MemoryStorage::unpack(INDEXED)).changed(rest),
        _ => MemoryStorage::unpack(rest),
    };
    let timestamp = (timestamp < 10).then_some(timestamp.into());
    // An error is an acceptable result.
    let _read = read_as_stored(served, timestamp);
}

fn read_as_stored(served: MemoryStorage, timestamp: Option<u64>) -> Result<(), Error> {
    let options = OpenOptions { timestamp, ..options() };
    let table = Table::open_as_stored(Arc::new(served), &options)?;
    let columns = table.read(&names(&table), None)?;
    // Counting reads no columns.
    let n_rows = usize::try_from(table.n_rows()?).unwrap_or(usize::MAX);
    for column in &columns {
        check(column, n_rows);
    }
    Ok(())
}

/// The names of all dimensions and attributes.
fn names(table: &Table) -> Vec<&str> {
    let schema = table.description().schema();
    let names = schema.dimensions.iter().map(|dimension| dimension.name.as_str());
    names.chain(schema.attributes.iter().map(|attribute| attribute.name.as_str())).collect()
}

fn stored() -> &'static [MemoryStorage] {
    static UNPACKED: OnceLock<Vec<MemoryStorage>> = OnceLock::new();
    UNPACKED.get_or_init(|| STORED.iter().map(|bytes| MemoryStorage::unpack(bytes)).collect())
}

fn read(served: MemoryStorage, timestamp: Option<u64>, first: u64) -> Result<(), Error> {
    let table = Table::open(Arc::new(served), &OpenOptions { timestamp, ..options() })?;
    let description = table.description();
    let _bounds = (description.non_empty_domain(), description.metadata());
    let schema = description.schema();
    for attribute in &schema.attributes {
        let _values = attribute.enumeration.as_deref().map(|name| description.enumeration(name));
    }
    let size = schema.dimensions[0].datatype.size().unwrap_or(1);
    let names = names(&table);
    let wanted = [first..first + 9, first + 20..first + 21];
    let all = table.read(&names, None)?;
    let some = table.read(&names, Some(&wanted))?;
    let (all_rows, some_rows) = (coordinates(&all[0], size), coordinates(&some[0], size));
    assert!(some_rows.iter().all(|row| wanted.iter().any(|range| range.contains(row))));
    for (columns, n_rows) in [(&all, all_rows.len()), (&some, some_rows.len())] {
        for column in columns {
            check(column, n_rows);
        }
    }
    assert!(all_rows.is_sorted() && some_rows.is_sorted());
    // Damage may give one tile a coordinate twice, of which a read of a part keeps one.
    let is_wanted = |row: &&u64| wanted.iter().any(|range: &Range<u64>| range.contains(row));
    assert!(some_rows.len() <= all_rows.iter().filter(is_wanted).count());
    Ok(())
}

fn coordinates(column: &TableColumn, size: usize) -> Vec<u64> {
    let wide = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    column.bytes.chunks_exact(size).map(wide).collect()
}

fn check(column: &TableColumn, n_rows: usize) {
    if let Some(offsets) = &column.offsets {
        assert!(offsets.is_sorted() && offsets.len() == n_rows + 1);
        assert_eq!(offsets.last(), Some(&(column.bytes.len() as i64)));
    } else {
        assert_eq!(column.bytes.len() % n_rows.max(1), 0);
    }
    assert!(column.validity.as_ref().is_none_or(|validity| validity.len() == n_rows));
}
