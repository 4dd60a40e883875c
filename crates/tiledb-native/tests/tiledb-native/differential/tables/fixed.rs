//! Tables made for one purpose each.

use std::path::Path;
use std::sync::Arc;

use storage::LocalStorage;
use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Comparison, Condition, Datatype, Dimension, Evolution,
    Filter, Schema, WriteColumn, WriteOrder, WriteQuery,
};
use tiledb_native::{ArrayDescription, Error, OpenOptions, Table, Unsupported};

use super::history::rename_schema;
use super::reads::{described_equally, threads, with_libtiledb};
use super::schema::DIMENSION;
use crate::differential::written::{context, plain};
use crate::stored::stored;

/// A table of a number and a text.
fn schema(n_rows: i128, capacity: u64) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![Dimension {
            name: DIMENSION.to_owned(),
            datatype: Datatype::Int64,
            domain: Some((0, n_rows - 1)),
            tile_extent: Some(n_rows.min(2048)),
            filters: vec![Filter::Zstd(1)],
        }],
        attributes: vec![
            Attribute { filters: vec![Filter::Zstd(1)], ..Attribute::new("n", Datatype::Int64) },
            Attribute {
                filters: vec![Filter::Zstd(1)],
                ..Attribute::new("text", Datatype::StringUtf8)
            },
        ],
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity,
        allows_duplicates: false,
        offsets_filters: vec![
            Filter::DoubleDelta(None),
            Filter::BitWidthReduction,
            Filter::Zstd(1),
        ],
        coords_filters: Vec::new(),
        validity_filters: Vec::new(),
        current_domain: None,
        enumerations: Vec::new(),
    }
}

fn create(at: &Path, schema: &Schema) {
    Array::create(&context(), at.to_str().unwrap(), schema).unwrap();
}

fn open(at: &Path) -> Result<Table, Error> {
    let options = OpenOptions { threads: threads(), ..OpenOptions::new(1) };
    Table::open(Arc::new(LocalStorage::new(at)), &options)
}

/// Writes rows with the numbers `row * 10 + time` and `texts`.
fn write(at: &Path, time: u64, rows: &[i64], texts: &[String]) {
    let array = Array::open_for_writing(&context(), at.to_str().unwrap(), Some(time)).unwrap();
    let numbers: Vec<i64> = rows.iter().map(|row| row * 10 + time as i64).collect();
    let lengths = texts.iter().scan(0, |end, text| {
        let start = *end;
        *end += text.len() as u64;
        Some(start)
    });
    let offsets: Vec<u64> = lengths.collect();
    let bytes = texts.concat();
    let mut query = WriteQuery::new(&Arc::new(array), WriteOrder::Unordered).unwrap();
    let columns = [
        WriteColumn::fixed(DIMENSION, rows),
        WriteColumn::fixed("n", &numbers),
        WriteColumn::var_sized("text", bytes.as_bytes(), &offsets),
    ];
    query.submit(&columns).unwrap();
    query.finish().unwrap();
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number)).collect()
}

/// Several batches, with fragments that overlap in some of them.
#[test]
fn many_rows_of_overlapping_fragments() {
    const N_ROWS: i64 = 1_200_000;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    create(&at, &schema(N_ROWS.into(), 10_000));
    let texts = |rows: &[i64]| rows.iter().map(|row| format!("{row}")).collect::<Vec<_>>();
    let first: Vec<i64> = (0..N_ROWS).filter(|row| row % 7 != 3).collect();
    let second: Vec<i64> = (300_000..500_000).filter(|row| row % 3 == 0).collect();
    write(&at, 1, &first, &texts(&first));
    write(&at, 2, &second, &texts(&second));
    let time = |row: i64| {
        if (300_000..500_000).contains(&row) && row % 3 == 0 {
            Some(2)
        } else {
            (row % 7 != 3).then_some(1)
        }
    };
    let table = open(&at).unwrap();
    for ranges in [None, Some(vec![299_995..300_010, 0..5, 499_000..900_000])] {
        let rows: Vec<i64> = (0..N_ROWS)
            .filter(|row| time(*row).is_some())
            .filter(|row| {
                let holds = |range: &std::ops::Range<u64>| range.contains(&(*row as u64));
                ranges.as_ref().is_none_or(|ranges| ranges.iter().any(holds))
            })
            .collect();
        let found = table.read(&["text", DIMENSION, "n"], ranges.as_deref()).unwrap();
        assert!(numbers(&found[1].bytes) == rows);
        let expected = rows.iter().map(|row| row * 10 + time(*row).unwrap());
        assert!(numbers(&found[2].bytes) == expected.collect::<Vec<_>>());
        assert!(found[0].bytes == texts(&rows).concat().as_bytes());
        let ends: Vec<i64> = found[0].offsets.clone().unwrap();
        assert!(ends.windows(2).zip(&rows).all(|(pair, row)| {
            pair[1] - pair[0] == i64::from(row.checked_ilog10().unwrap_or(0) + 1)
        }));
        if ranges.is_none() {
            assert_eq!(table.n_rows().unwrap(), rows.len() as u64);
        }
    }
}

/// libtiledb does not split a value: a long text is a chunk of its own.
#[test]
fn a_text_of_ten_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    create(&at, &schema(10, 10));
    let pieces: Vec<String> = (0..1_000_000_u64).map(|n| format!("{:010}", n * 7919)).collect();
    let long = pieces.concat();
    write(&at, 1, &[3, 4, 5], &["short".to_owned(), long.clone(), String::new()]);
    let found = open(&at).unwrap().read(&["text"], None).unwrap();
    assert_eq!(found[0].offsets, Some(vec![0, 5, 10_000_005, 10_000_005]));
    assert!(found[0].bytes == format!("short{long}").as_bytes());
}

#[test]
fn a_table_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    create(&at, &schema(10, 10));
    let table = open(&at).unwrap();
    let found = table.read(&["text", "n", "n"], None).unwrap();
    assert_eq!(found[0].offsets, Some(vec![0]));
    assert!(found.iter().all(|column| column.bytes.is_empty() && column.validity.is_none()));
    assert_eq!((table.n_rows().unwrap(), found.len()), (0, 3));
    assert_eq!(table.description().non_empty_domain().unwrap(), None);
    let error = table.read(&["n", "absent"], None).unwrap_err();
    assert!(matches!(&error, Error::NoColumn { column, .. } if column == "absent"), "{error}");
}

#[track_caller]
fn refused(schema: &Schema) -> Unsupported {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    create(&at, schema);
    // Whatever can be read as a table or not has a description.
    let theirs = Array::open(&context(), at.to_str().unwrap(), None).unwrap();
    let ours = ArrayDescription::open(Arc::new(LocalStorage::new(&at)), None).unwrap();
    assert_eq!(ours.schema(), theirs.schema());
    match open(&at) {
        Err(Error::Unsupported { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_table_is_refused_before_it_is_read() {
    let table_of = |datatype, domain: Option<(i128, i128)>| {
        let dimension = Dimension {
            datatype,
            domain,
            tile_extent: domain.map(|_| 4),
            ..schema(10, 10).dimensions[0].clone()
        };
        Schema { dimensions: vec![dimension], ..schema(10, 10) }
    };
    let reason = refused(&table_of(Datatype::Int16, Some((0, 9))));
    assert!(matches!(reason, Unsupported::DimensionType { .. }), "{reason}");
    let reason = refused(&table_of(Datatype::StringAscii, None));
    assert!(matches!(reason, Unsupported::DimensionType { .. }), "{reason}");
    let reason = refused(&table_of(Datatype::Int64, Some((-5, 9))));
    assert!(matches!(reason, Unsupported::NegativeDomain { .. }), "{reason}");
    let reason = refused(&plain((4, 4), Vec::new()).schema());
    assert_eq!(reason, Unsupported::DimensionCount { n_dimensions: 2 });
    let dense = Schema { array_type: ArrayType::Dense, ..table_of(Datatype::Int64, Some((0, 9))) };
    assert_eq!(refused(&dense), Unsupported::Dense);
}

/// The pipelines of the Census's obs, and others. Texts are few and many, empty, and longer than
/// one byte can count.
#[test]
fn texts_encoded_whole() {
    let texts: [fn(i64) -> String; 5] = [
        |row| ["B cell", "", "T \u{e4} cell"][(row / 7 % 3) as usize].to_owned(),
        |row| format!("{row}").repeat((row % 5) as usize),
        |row| "x".repeat(if row == 11 { 70_000 } else { 3 }),
        |_| "always the same".to_owned(),
        |row| format!("{:07}", row % 400),
    ];
    let rows: Vec<i64> = (0..1000).collect();
    for first in [Filter::Dictionary, Filter::Rle] {
        for rest in [vec![], vec![Filter::Zstd(19)], vec![Filter::ByteShuffle, Filter::Lz4(-1)]] {
            for datatype in [Datatype::StringUtf8, Datatype::StringAscii] {
                let mut schema = schema(1000, 300);
                let filters = [vec![first], rest.clone()].concat();
                schema.attributes[1] = Attribute { filters, ..Attribute::new("text", datatype) };
                for (idx, text) in texts.iter().enumerate() {
                    let folder = tempfile::tempdir().unwrap();
                    let at = folder.path().join("table");
                    create(&at, &schema);
                    let texts: Vec<String> = rows.iter().map(|row| text(*row)).collect();
                    write(&at, 1, &rows, &texts);
                    let what = format!("texts {idx}, {first:?}, {rest:?}, {datatype:?}");
                    let found = open(&at).unwrap().read(&["text", "n"], None);
                    let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(found[0].bytes == texts.concat().as_bytes(), "{what}");
                    let theirs = Array::open(&context(), at.to_str().unwrap(), None).unwrap();
                    let theirs = with_libtiledb(&theirs, None).unwrap();
                    let offsets = found[0].offsets.as_ref().unwrap();
                    for (pair, (_, cells)) in offsets.windows(2).zip(&theirs) {
                        let text = &found[0].bytes[pair[0] as usize..pair[1] as usize];
                        assert!(text == cells[1].1, "{what}");
                    }
                    assert_eq!(theirs.len(), rows.len(), "{what}");
                }
            }
        }
    }
}

#[test]
fn deleted_rows_are_gone_from_their_time_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    create(&at, &schema(10, 10));
    write(&at, 1, &[3, 4], &["a".to_owned(), "b".to_owned()]);
    let condition = Condition::text("text", Comparison::Equal, "a");
    Array::delete(&context(), at.to_str().unwrap(), Some(2), &condition).unwrap();
    let rows = |timestamp| {
        let storage = Arc::new(LocalStorage::new(&at));
        let table =
            Table::open(storage, &OpenOptions { timestamp, ..OpenOptions::new(1) }).unwrap();
        assert_eq!(
            table.n_rows().unwrap() * 8,
            table.read(&[DIMENSION], None).unwrap()[0].bytes.len() as u64
        );
        table.n_rows().unwrap()
    };
    assert_eq!([Some(1), Some(2), None].map(rows), [2, 1, 1]);
}

/// Writes two rows, and drops the number column and adds it again as `added`.
fn with_column_again(at: &Path, added: Attribute) {
    let (context, uri) = (context(), at.to_str().unwrap());
    create(at, &schema(10, 10));
    rename_schema(&at.join("__schema"), 0);
    write(at, 1, &[3, 4], &["a".to_owned(), "b".to_owned()]);
    let dropped = vec![added.name.clone()];
    let drop = Evolution { dropped, timestamp: Some(2), ..Evolution::default() };
    Array::evolve(&context, uri, &drop).unwrap();
    let add = Evolution { added: vec![added], timestamp: Some(3), ..Evolution::default() };
    Array::evolve(&context, uri, &add).unwrap();
}

#[test]
fn a_column_that_comes_again_has_its_old_values() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    with_column_again(&at, schema(10, 10).attributes[0].clone());
    let theirs = Array::open(&context(), at.to_str().unwrap(), None).unwrap();
    let rows = with_libtiledb(&theirs, None).unwrap();
    // The column is now the last one.
    let values: Vec<u8> = rows.into_iter().flat_map(|(_, mut row)| row.pop().unwrap().1).collect();
    let found = open(&at).unwrap().read(&["n", "text"], None).unwrap();
    assert_eq!((&found[0].bytes, &found[1].bytes[..]), (&values, &b"ab"[..]));
    assert_eq!(numbers(&values), [31, 41]);
}

/// libtiledb would take the old values for values of the new type.
#[test]
fn a_column_of_another_type_is_read_once_its_rows_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("table");
    with_column_again(&at, Attribute::new("n", Datatype::UInt16));
    let reason = match open(&at) {
        Err(Error::Unsupported { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(matches!(reason, Unsupported::SchemaEvolution { .. }), "{reason}");
    let array = Array::open_for_writing(&context(), at.to_str().unwrap(), Some(5)).unwrap();
    let mut query = WriteQuery::new(&Arc::new(array), WriteOrder::Unordered).unwrap();
    let columns = [
        WriteColumn::fixed(DIMENSION, &[3_i64, 4]),
        WriteColumn::fixed("n", &[7_u16, 8]),
        WriteColumn::var_sized("text", b"xyz", &[0, 2]),
    ];
    query.submit(&columns).unwrap();
    query.finish().unwrap();
    let table = open(&at).unwrap();
    let found = table.read(&["n", "text"], None).unwrap();
    assert_eq!(found[0].bytes, [7, 0, 8, 0]);
    assert_eq!(
        (found[1].offsets.as_deref(), &found[1].bytes[..]),
        (Some(&[0, 2, 3][..]), &b"xyz"[..])
    );
    assert_eq!(table.n_rows().unwrap(), 2);
}

/// The schemas and extents of arrays that every version of libtiledb wrote, at several times.
#[test]
fn arrays_of_every_format_are_described_as_libtiledb_describes_them() {
    for format in 6..=22 {
        for name in [format!("format-{format:02}"), format!("format-{format:02}-consolidated")] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path().join("array");
            for (path, bytes) in &stored(&name).files {
                let file = at.join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, bytes).unwrap();
            }
            for time in [Some(0), Some(2), None] {
                let theirs = Array::open(&context(), at.to_str().unwrap(), time).unwrap();
                described_equally(&at, time, &theirs)
                    .unwrap_or_else(|difference| panic!("{name} at {time:?}: {difference}"));
            }
        }
    }
}
