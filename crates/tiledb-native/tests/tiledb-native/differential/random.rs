//! Arrays drawn at random.

use std::ops::Range;

use proptest::prelude::*;
use tiledb::{CellOrder, Datatype, Filter};
use tiledb_native::ColumnSelection;

use crate::differential::check;
use crate::differential::written::{Cell, Spec, Upkeep};

/// Filters for any type.
fn general() -> impl Strategy<Value = Vec<Filter>> {
    prop_oneof![
        Just(vec![]),
        (1..20).prop_map(|level| vec![Filter::Zstd(level)]),
        (1..20).prop_map(|level| vec![Filter::ByteShuffle, Filter::Zstd(level)]),
        Just(vec![Filter::ByteShuffle]),
        Just(vec![Filter::BitShuffle, Filter::Lz4(-1)]),
        Just(vec![Filter::Gzip(6)]),
        Just(vec![Filter::ByteShuffle, Filter::Gzip(1), Filter::ChecksumMd5]),
        Just(vec![Filter::Bzip2(1)]),
        Just(vec![Filter::Rle]),
        Just(vec![Filter::Rle, Filter::Lz4(-1)]),
        Just(vec![Filter::BitShuffle]),
        Just(vec![Filter::None, Filter::ChecksumSha256]),
        Just(vec![
            Filter::ChecksumMd5,
            Filter::ByteShuffle,
            Filter::Zstd(1),
            Filter::ChecksumSha256
        ]),
        Just(vec![Filter::Xor, Filter::Zstd(1)]),
        Just(vec![Filter::ByteShuffle, Filter::BitShuffle, Filter::Zstd(1)]),
        Just(vec![Filter::Lz4(-1), Filter::Zstd(1)]),
    ]
}

/// Filters for integers.
fn for_integers() -> impl Strategy<Value = Vec<Filter>> {
    prop_oneof![
        3 => general(),
        1 => Just(vec![Filter::DoubleDelta(None), Filter::Zstd(1)]),
        1 => Just(vec![Filter::DoubleDelta(None)]),
        1 => Just(vec![Filter::Delta(None), Filter::Gzip(1)]),
        1 => prop_oneof![Just(16_u32), Just(1024), Just(65_536)].prop_map(|bytes| vec![Filter::BitWidthReductionWithin(bytes)]),
        1 => Just(vec![Filter::BitWidthReduction]),
        1 => Just(vec![Filter::BitWidthReduction, Filter::ByteShuffle, Filter::Zstd(1)]),
        1 => Just(vec![Filter::BitWidthReduction, Filter::BitShuffle, Filter::Lz4(-1), Filter::ChecksumSha256]),
    ]
}

fn for_floats() -> impl Strategy<Value = Vec<Filter>> {
    let scale = |byte_width| Filter::ScaleFloat { byte_width, factor: 0.25, offset: 0.5 };
    let whole = |byte_width| Filter::ScaleFloat { byte_width, factor: 1.0, offset: 0.0 };
    prop_oneof![
        3 => general(),
        1 => prop_oneof![Just(2_u64), Just(4), Just(8)].prop_map(move |width| vec![whole(width), Filter::BitWidthReductionWithin(64)]),
        1 => Just(vec![whole(2), Filter::ByteShuffle, Filter::Zstd(1)]),
        1 => prop_oneof![Just(2_u64), Just(4), Just(8)].prop_map(move |width| vec![scale(width), Filter::ByteShuffle, Filter::Zstd(5)]),
        1 => Just(vec![scale(4), Filter::BitWidthReduction, Filter::Zstd(1)]),
    ]
}

fn attribute() -> impl Strategy<Value = (Datatype, Vec<Filter>)> {
    let integer = prop_oneof![
        Just(Datatype::Int8),
        Just(Datatype::UInt8),
        Just(Datatype::Int16),
        Just(Datatype::UInt16),
        Just(Datatype::Int32),
        Just(Datatype::UInt32),
        Just(Datatype::Int64),
        Just(Datatype::UInt64),
    ];
    prop_oneof![
        3 => (Just(Datatype::Float32), for_floats()),
        1 => (Just(Datatype::Float64), for_floats()),
        2 => (integer, for_integers()),
    ]
}

fn orders() -> impl Strategy<Value = (CellOrder, CellOrder)> {
    let order = || prop_oneof![3 => Just(CellOrder::RowMajor), 1 => Just(CellOrder::ColumnMajor)];
    prop_oneof![4 => (order(), order()), 1 => Just((CellOrder::RowMajor, CellOrder::Hilbert))]
}

/// Cells of a fragment: scattered, or whole stretches of rows; places are distinct unless
/// `duplicates`.
fn cells(shape: (u64, u64), duplicates: bool) -> impl Strategy<Value = Vec<Cell>> {
    let (n_rows, n_columns) = shape;
    let strewn = prop::collection::vec((0..n_rows, 0..n_columns, 0_i32..100), 0..400);
    let stretch = (0..n_rows, 1..n_rows + 1, 1_u64..7).prop_map(move |(first, n, step)| {
        let rows = first..(first + n).min(n_rows);
        rows.flat_map(|row| {
            (row % step..n_columns)
                .step_by(step as usize)
                .map(move |column| (row, column, (row * 31 + column) as i32 % 90))
        })
        .collect()
    });
    prop_oneof![strewn, stretch].prop_map(move |mut cells: Vec<Cell>| {
        if !duplicates {
            cells.sort_unstable();
            cells.dedup_by_key(|cell| (cell.0, cell.1));
        }
        cells
    })
}

fn spec() -> impl Strategy<Value = Spec> {
    let dimension_type = prop_oneof![
        4 => Just(Datatype::Int64),
        1 => Just(Datatype::UInt64),
        1 => Just(Datatype::Int32),
        1 => Just(Datatype::UInt32),
    ];
    let upkeep = prop_oneof![
        Just(Upkeep::Nothing),
        Just(Upkeep::Consolidated),
        Just(Upkeep::Vacuumed),
        Just(Upkeep::CommitsVacuumed)
    ];
    let shape = (1_u64..150, prop_oneof![4 => 1_u64..120, 1 => 60_000_u64..80_000]);
    (shape, any::<bool>()).prop_flat_map(move |(shape, allows_duplicates)| {
        let cells_shape = (shape.0, shape.1.min(130));
        let fragments = prop::collection::vec(cells(cells_shape, allows_duplicates), 0..4);
        let layout =
            ((1..shape.0 + 1, 1..shape.1 + 1), prop_oneof![1_u64..40, 1000_u64..4000], orders());
        let stored = (dimension_type.clone(), (for_integers(), for_integers()), attribute());
        (layout, stored, fragments, upkeep.clone()).prop_map(
            move |(
                (extents, capacity, orders),
                (dimension_type, dimension_filters, attribute),
                fragments,
                upkeep,
            )| Spec {
                shape,
                extents,
                capacity,
                orders,
                allows_duplicates,
                dimension_type,
                dimension_filters,
                attribute_type: attribute.0,
                attribute_filters: attribute.1,
                fragments,
                upkeep,
            },
        )
    })
}

fn some_rows(n_rows: u64) -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::vec(
        (0..n_rows, 0_u64..20).prop_map(move |(first, n)| first..(first + n).min(n_rows)),
        0..8,
    )
}

fn some_columns(n_columns: u64) -> impl Strategy<Value = ColumnSelection> {
    let n = n_columns.min(130);
    prop_oneof![
        (0..n, 0..n).prop_map(|(a, b)| ColumnSelection::Range(a.min(b)..a.max(b))),
        prop::collection::btree_set(0..n, 0..20)
            .prop_map(|set| set.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(ColumnSelection::List),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn equal_cell_for_cell(
        (spec, rows, columns) in spec().prop_flat_map(|spec| {
            let (rows, columns) = (some_rows(spec.shape.0), some_columns(spec.shape.1));
            (Just(spec), rows, columns)
        }),
        timestamp in prop::option::of(0_u64..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        spec.write(&at);
        check(&spec, &at, timestamp, &rows, &[ColumnSelection::All, columns]);
    }
}
