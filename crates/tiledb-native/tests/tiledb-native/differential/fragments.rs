//! Fragments written by this crate: libtiledb reads the same cells from them as from its own, and
//! their metadata are equal.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use tiledb::{Array as TiledbArray, Filter};
use tiledb_native::{
    Array, ColumnSelection, CsrBuffers, Error, FragmentWriter, OpenOptions, Threads, Unsupported,
    WriteOptions,
};

use crate::differential::metadata::{Metadata, compare};
use crate::differential::written::{Cell, Spec, context, plain};
use crate::differential::{check, expected};

/// The time of this crate's fragments; libtiledb's is 1.
const TIME: u64 = 7;

/// Rows of columns, with values in quarters.
type Rows = Vec<BTreeMap<u32, i32>>;

#[derive(Debug, Clone)]
struct Case {
    n_columns: u32,
    rows: Rows,
    spec: Spec,
    chunk_cells: Option<usize>,
    /// Numbers of rows per call.
    pieces: Vec<usize>,
    n_threads: usize,
}

impl Case {
    fn options(&self) -> WriteOptions {
        let threads = Threads::Own(self.n_threads);
        WriteOptions { chunk_cells: self.chunk_cells, ..WriteOptions::new(threads, TIME) }
    }

    fn cells(&self) -> Vec<Cell> {
        let row = |(row, cells): (usize, &BTreeMap<u32, i32>)| {
            cells
                .iter()
                .map(move |(column, value)| (row as u64, u64::from(*column), *value))
                .collect::<Vec<_>>()
        };
        self.rows.iter().enumerate().flat_map(row).collect()
    }

    /// Creates the array and writes its cells with this crate.
    fn write(&self, at: &Path) {
        Spec { fragments: Vec::new(), ..self.spec.clone() }.write(at);
        let mut writer = FragmentWriter::create(at, &self.options()).unwrap();
        let mut rest = self.rows.as_slice();
        let mut pieces = self.pieces.iter().cycle();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*pieces.next().unwrap()).clamp(1, rest.len()));
            let (offsets, columns, values) = csr(piece);
            writer.write(&offsets, &columns, &values).unwrap();
            rest = after;
        }
        let written = writer.finish().unwrap();
        assert_eq!(written.n_cells, self.cells().len() as u64);
    }
}

fn csr(rows: &[BTreeMap<u32, i32>]) -> (Vec<usize>, Vec<u32>, Vec<f32>) {
    let mut offsets = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for row in rows {
        columns.extend(row.keys());
        values.extend(row.values().map(|value| *value as f32 / 4.0));
        offsets.push(values.len());
    }
    (offsets, columns, values)
}

fn coordinate_filters() -> impl Strategy<Value = Vec<Filter>> {
    prop_oneof![
        Just(vec![]),
        Just(vec![Filter::Rle]),
        Just(vec![Filter::Zstd(3)]),
        Just(vec![Filter::Lz4(-1)]),
        Just(vec![Filter::ByteShuffle, Filter::Zstd(1)]),
        Just(vec![Filter::Delta(None), Filter::ByteShuffle, Filter::Zstd(9)]),
        Just(vec![Filter::Delta(None), Filter::BitWidthReductionWithin(1024)]),
        Just(vec![Filter::Delta(None), Filter::BitWidthReduction, Filter::Zstd(1)]),
        Just(vec![Filter::BitWidthReduction]),
        Just(vec![Filter::BitWidthReduction, Filter::Lz4(-1)]),
        Just(vec![Filter::DoubleDelta(None), Filter::Zstd(1)]),
        Just(vec![Filter::DoubleDelta(None), Filter::BitWidthReduction, Filter::Zstd(1)]),
    ]
}

fn value_filters() -> impl Strategy<Value = (bool, Vec<Filter>)> {
    let whole = Filter::ScaleFloat { byte_width: 4, factor: 1.0, offset: 0.0 };
    let scaled = Filter::ScaleFloat { byte_width: 8, factor: 0.25, offset: 0.0 };
    prop_oneof![
        Just((false, vec![])),
        Just((false, vec![Filter::ByteShuffle, Filter::Zstd(2)])),
        Just((false, vec![Filter::Rle, Filter::Zstd(-5)])),
        Just((false, vec![scaled, Filter::Delta(None), Filter::BitWidthReduction])),
        Just((true, vec![whole, Filter::BitWidthReduction])),
        Just((true, vec![whole, Filter::BitWidthReductionWithin(512), Filter::Zstd(1)])),
        Just((true, vec![whole, Filter::ByteShuffle, Filter::Lz4(-1)])),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let shape = prop_oneof![Just(1_u32), 2..40_u32, Just(60_000), Just(3_000_000_000)];
    let filters = (coordinate_filters(), coordinate_filters(), value_filters());
    let layout = (
        prop_oneof![Just(1_u64), 2..20_u64, Just(500), Just(100_000)],
        (1_u64..30, prop::option::weighted(0.4, 1_u64..40)),
        prop::option::of(1_usize..200),
    );
    let ways = (prop::collection::vec(1_usize..20, 1..4), 1_usize..4);
    (shape, filters, layout, ways).prop_flat_map(
        |(n_columns, filters, layout, (pieces, n_threads))| {
            let (row_filters, column_filters, (whole, value_filters)) = filters;
            let (capacity, (extent, tile_columns), chunk_cells) = layout;
            let tile_columns = tile_columns.unwrap_or(u64::MAX).min(n_columns.into());
            let value = prop_oneof![6 => 0_i32..80, 1 => -4_000..4_000, 1 => 0..66_000_000];
            let value = value.prop_map(move |value| if whole { value / 4 * 4 } else { value });
            // Values of more than 24 bits do not fit f32.
            let value = value.prop_map(|value| (value as f32) as i32);
            let row =
                prop::collection::btree_map(0..n_columns, value, 0..(n_columns as usize).min(60));
            prop::collection::vec(row, 1..40).prop_map(move |rows| {
                let shape = (rows.len() as u64, n_columns.into());
                let spec = Spec {
                    extents: (extent, tile_columns),
                    capacity,
                    dimension_filters: (row_filters.clone(), column_filters.clone()),
                    attribute_filters: value_filters.clone(),
                    ..plain(shape, Vec::new())
                };
                Case { n_columns, rows, spec, chunk_cells, pieces: pieces.clone(), n_threads }
            })
        },
    )
}

fn metadata(array: &Path) -> Metadata {
    super::metadata::metadata(array, (1, 2))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rows_with_any_filters(case in case()) {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
        case.write(&ours);
        let cells = case.cells();
        let twin = Spec { fragments: vec![cells.clone()], ..case.spec.clone() };
        twin.write(&theirs);
        let read = twin.read_with_libtiledb(&theirs, None);
        prop_assert_eq!(&case.spec.read_with_libtiledb(&ours, None), &read);
        let wanted: Vec<_> = cells.iter().map(|(row, column, value)| (*row, *column, *value as f32 / 4.0)).collect();
        prop_assert_eq!(&read, &wanted);
        let n_columns = u64::from(case.n_columns);
        let some_rows = [0..case.rows.len() as u64 / 2 + 1];
        check(&case.spec, &ours, None, &some_rows, &[ColumnSelection::All, ColumnSelection::Range(0..n_columns.div_ceil(2))]);
        if !cells.is_empty() {
            compare(&metadata(&ours), &metadata(&theirs), &[0]);
        }
    }
}

/// 300 rows with a few columns each, in tiles of 100 cells.
fn ordinary() -> Case {
    let row = |row: u64| -> BTreeMap<u32, i32> {
        (0..row % 9)
            .map(|idx| ((row * 13 + idx * 31) as u32 % 400, (row + idx) as i32 * 4))
            .collect()
    };
    let rows: Rows = (0..300).map(row).collect();
    let spec = Spec {
        extents: (64, 400),
        capacity: 100,
        dimension_filters: (
            vec![Filter::Rle],
            vec![Filter::Delta(None), Filter::BitWidthReduction],
        ),
        ..plain((300, 400), Vec::new())
    };
    Case { n_columns: 400, rows, spec, chunk_cells: None, pieces: vec![40], n_threads: 2 }
}

#[test]
fn what_was_written_can_be_consolidated_and_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    let case = ordinary();
    case.write(&at);
    let cells = case.spec.read_with_libtiledb(&at, None);
    let uri = at.to_str().unwrap();
    for mode in ["fragment_meta", "commits", "fragments"] {
        if mode == "fragments" {
            // Cells that libtiledb adds, and then merges with the others.
            let added = Spec { fragments: vec![vec![(3, 399, 8)]], ..case.spec.clone() };
            added.write_fragments(&at, TIME + 1);
        }
        let context = context();
        let upkeep = context
            .with(&[
                ("sm.consolidation.mode", mode.to_owned()),
                ("sm.vacuum.mode", mode.to_owned()),
            ])
            .unwrap();
        TiledbArray::consolidate(&upkeep, uri).unwrap();
        TiledbArray::vacuum(&upkeep, uri).unwrap();
        let found = case.spec.read_with_libtiledb(&at, None);
        let mut wanted = cells.clone();
        if mode == "fragments" {
            wanted.push((3, 399, 2.0));
            wanted.sort_by_key(|cell| (cell.0, cell.1));
        }
        assert_eq!(found, wanted, "{mode}");
        check(&case.spec, &at, None, &[0..10, 290..300], &[ColumnSelection::All]);
    }
    assert_eq!(std::fs::read_dir(at.join("__fragments")).unwrap().count(), 1);
}

#[test]
fn several_fragments_hold_the_rows_of_an_array() {
    let case = ordinary();
    for extents in [(64, 400), (7, 90)] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        let spec = Spec { extents, fragments: Vec::new(), ..case.spec.clone() };
        spec.write(&at);
        for (first_row, rows) in [(0, &case.rows[..100]), (100, &case.rows[100..])] {
            let options = WriteOptions { first_row, ..case.options() };
            let mut writer = FragmentWriter::create(&at, &options).unwrap();
            let (offsets, columns, values) = csr(rows);
            writer.write(&offsets, &columns, &values).unwrap();
            writer.finish().unwrap();
        }
        assert_eq!(std::fs::read_dir(at.join("__fragments")).unwrap().count(), 2);
        let cells = case.cells();
        let wanted: Vec<_> =
            cells.iter().map(|cell| (cell.0, cell.1, cell.2 as f32 / 4.0)).collect();
        assert_eq!(spec.read_with_libtiledb(&at, None), wanted);
        check(&spec, &at, None, &[90..110], &[ColumnSelection::All]);
    }
}

#[test]
fn a_fragment_has_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    let case = ordinary();
    case.write(&at);
    assert!(case.spec.read_with_libtiledb(&at, Some(TIME - 1)).is_empty());
    assert!(!case.spec.read_with_libtiledb(&at, Some(TIME)).is_empty());
    let before = OpenOptions { timestamp: Some(TIME - 1), ..OpenOptions::new(1) };
    let mut out = CsrBuffers::new();
    Array::open_local(&at, &before)
        .unwrap()
        .read_csr(&[0..300], &ColumnSelection::All, &mut out)
        .unwrap();
    assert_eq!(out.nnz(), 0);
}

#[test]
fn nothing_counts_before_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    let case = ordinary();
    Spec { fragments: Vec::new(), ..case.spec.clone() }.write(&at);
    let (offsets, columns, values) = csr(&case.rows);
    let n_fragments = || std::fs::read_dir(at.join("__fragments")).unwrap().count();
    let mut writer = FragmentWriter::create(&at, &case.options()).unwrap();
    writer.write(&offsets, &columns, &values).unwrap();
    assert_eq!(n_fragments(), 1);
    assert!(case.spec.read_with_libtiledb(&at, None).is_empty());
    drop(writer);
    assert_eq!(n_fragments(), 0);
    // A writer without cells creates nothing.
    let mut writer = FragmentWriter::create(&at, &case.options()).unwrap();
    writer.write(&[0, 0, 0], &[], &[]).unwrap();
    assert_eq!(writer.finish().unwrap().n_cells, 0);
    assert_eq!(n_fragments(), 0);
    assert!(case.spec.read_with_libtiledb(&at, None).is_empty());
}

#[test]
fn what_are_no_rows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    let case = ordinary();
    Spec { fragments: Vec::new(), ..case.spec.clone() }.write(&at);
    let mut writer = FragmentWriter::create(&at, &case.options()).unwrap();
    writer.write(&[0, 1], &[5], &[1.0]).unwrap();
    let mut refused = |offsets: &[usize], columns: &[u32], values: &[f32]| {
        writer.write(offsets, columns, values).unwrap_err()
    };
    let no_row = |error: Error, wanted: u64| {
        assert!(matches!(error, Error::NoRow { row, .. } if row == wanted), "{error:?}");
    };
    no_row(refused(&[0, 1, 3], &[1, 2, 2], &[1.0; 3]), 2);
    no_row(refused(&[0, 2], &[9, 2], &[1.0; 2]), 1);
    no_row(refused(&[0, 2, 1], &[1, 2], &[1.0; 2]), 2);
    no_row(refused(&[0, 3], &[1, 2], &[1.0; 2]), 2);
    no_row(refused(&[0, 2], &[1, 2], &[1.0; 3]), 1);
    let error = refused(&[0, 1], &[400], &[1.0]);
    assert!(matches!(error, Error::ColumnOutOfBounds { column: 400, n_columns: 400 }), "{error:?}");
    let error = refused(&[0; 301], &[], &[]);
    assert!(matches!(error, Error::RowsOutOfBounds { start: 1, end: 301, .. }), "{error:?}");
    assert_eq!(writer.finish().unwrap().n_cells, 1);
    assert_eq!(case.spec.read_with_libtiledb(&at, None), [(0, 5, 1.0)]);
}

#[test]
fn arrays_that_only_libtiledb_can_write_are_refused() {
    let case = ordinary();
    let filters = |filter| (vec![filter], vec![]);
    let specs = [
        (
            Spec {
                orders: (tiledb::CellOrder::ColumnMajor, tiledb::CellOrder::RowMajor),
                ..case.spec.clone()
            },
            "row by row",
        ),
        (Spec { dimension_type: tiledb::Datatype::UInt64, ..case.spec.clone() }, "uint64"),
        (Spec { attribute_type: tiledb::Datatype::Int32, ..case.spec.clone() }, "int32"),
        (
            Spec { dimension_filters: filters(Filter::PositiveDelta), ..case.spec.clone() },
            "positive delta",
        ),
        (Spec { dimension_filters: filters(Filter::ChecksumMd5), ..case.spec.clone() }, "MD5"),
    ];
    for (spec, part) in specs {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        spec.write(&at);
        let refused = FragmentWriter::create(&at, &case.options()).unwrap_err();
        assert!(matches!(refused, Error::Unwritable { .. }), "{refused:?}");
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = FragmentWriter::create(folder.path(), &case.options()).unwrap_err();
    assert!(matches!(refused, Error::NotAnArray { .. }), "{refused:?}");
    assert!(!Unsupported::NotByRow.to_string().is_empty());
}

#[test]
fn values_that_are_no_numbers_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    let case = ordinary();
    let values = [f32::NAN, 1.0, f32::INFINITY, f32::MAX, f32::NEG_INFINITY, -0.0, 3e-45, 2.5];
    let columns: Vec<u32> = (0..values.len() as u32).collect();
    for at in [&ours, &theirs] {
        Spec { fragments: Vec::new(), capacity: 3, ..case.spec.clone() }.write(at);
    }
    let mut writer = FragmentWriter::create(&ours, &case.options()).unwrap();
    writer.write(&[0, values.len()], &columns, &values).unwrap();
    writer.finish().unwrap();
    Spec::write_values(&theirs, &columns, &values);
    compare(&metadata(&ours), &metadata(&theirs), &[0]);
    let array = Array::open_local(&ours, &OpenOptions::new(1)).unwrap();
    let mut out = CsrBuffers::new();
    array.read_csr(&[0..1], &ColumnSelection::All, &mut out).unwrap();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&out.values), bits(&values));
    let wanted: Vec<(u64, u64, f32)> =
        columns.iter().zip(values).map(|(column, value)| (0, u64::from(*column), value)).collect();
    assert_eq!(expected(&wanted, &[0..1], &ColumnSelection::All)[0].len(), values.len());
}
