//! Tests which cells are visible at a time, in cases that are easily missed.

use std::path::Path;

use tiledb::{Array as TiledbArray, Datatype, Evolution, Filter};
use tiledb_native::{
    Array, ColumnSelection, CsrBuffers, Error, OpenOptions, PackedCsr, Unsupported,
};

use crate::differential::check;
use crate::differential::written::{Cell, Spec, context, plain};

/// Writes each of `fragments` at its time.
fn write_at(spec: &Spec, at: &Path, fragments: &[(u64, Vec<Cell>)]) {
    for (time, cells) in fragments {
        Spec { fragments: vec![cells.clone()], ..spec.clone() }.write_fragments(at, *time);
    }
}

fn consolidate(at: &Path, vacuum: bool) {
    let uri = at.to_str().unwrap();
    TiledbArray::consolidate(&context(), uri).unwrap();
    if vacuum {
        TiledbArray::vacuum(&context(), uri).unwrap();
    }
}

/// If cells have equal place and time, libtiledb uses the first within a tile, and of two tiles
/// that of the later one.
#[test]
fn equal_times_in_a_consolidated_fragment() {
    // With and without the end of a tile between cells of one place.
    for (capacity, vacuum) in [(50, false), (50, true), (4, true), (7, true)] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        let spec = Spec {
            allows_duplicates: false,
            capacity,
            attribute_filters: vec![],
            ..plain((100, 100), vec![])
        };
        spec.write(&at);
        let cells =
            |value: i32| vec![(5, 5, value), (6, 5, 10 * value), (7, 1, value), (7, 2, value)];
        let fragments = [(7, cells(4)), (7, cells(8)), (7, cells(12)), (9, vec![(80, 5, 99)])];
        write_at(&spec, &at, &fragments);
        consolidate(&at, vacuum);
        for time in [None, Some(6), Some(7), Some(8), Some(9)] {
            let columns = [ColumnSelection::All, ColumnSelection::List(vec![5, 1])];
            check(&spec, &at, time, &[4..8], &columns);
        }
    }
}

/// Sets the time of the array's only schema.
fn date_schema(at: &Path, time: u64) {
    let folder = at.join("__schema");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some((_, uuid)) = name.rsplit_once('_').filter(|_| name != "__enumerations") {
            let dated = folder.join(format!("__{time}_{time}_{uuid}"));
            std::fs::rename(folder.join(&name), dated).unwrap();
        }
    }
}

/// An array whose shape grew from 10 to 20 columns at time 5.
fn grown(at: &Path, fragments: &[(u64, Vec<Cell>)], is_consolidated: bool) -> Spec {
    let spec = Spec { extents: (100, 100), ..plain((10, 20), vec![]) };
    let schema = tiledb::Schema { current_domain: Some(vec![(0, 9), (0, 9)]), ..spec.schema() };
    TiledbArray::create(&context(), at.to_str().unwrap(), &schema).unwrap();
    date_schema(at, 1);
    let evolution = Evolution {
        current_domain: Some(vec![(0, 9), (0, 19)]),
        timestamp: Some(5),
        ..Evolution::default()
    };
    TiledbArray::evolve(&context(), at.to_str().unwrap(), &evolution).unwrap();
    write_at(&spec, at, fragments);
    if is_consolidated {
        consolidate(at, true);
    }
    spec
}

/// Cells from after the opening time may lie outside the shape of that time.
#[test]
fn a_shape_that_grew_after_the_opening_time() {
    for is_consolidated in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        let fragments = [(2, vec![(0, 1, 4), (0, 2, 8)]), (6, vec![(0, 18, 12), (0, 19, 16)])];
        let spec = grown(&at, &fragments, is_consolidated);
        for time in [None, Some(0), Some(2), Some(3), Some(5), Some(6)] {
            check(
                &spec,
                &at,
                time,
                &[0..1],
                &[ColumnSelection::All, ColumnSelection::Range(1..10)],
            );
        }
    }
}

/// Cells from before the opening time may lie outside its shape, too, because a write at an earlier
/// time uses the latest schema. libtiledb leaves them out.
#[test]
fn cells_outside_the_shape_of_their_time() {
    for is_consolidated in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        let fragments = [(2, vec![(0, 1, 4), (0, 15, 8)]), (6, vec![(3, 18, 12)])];
        let spec = grown(&at, &fragments, is_consolidated);
        for time in [None, Some(2), Some(3), Some(5), Some(6)] {
            check(
                &spec,
                &at,
                time,
                &[0..1],
                &[ColumnSelection::All, ColumnSelection::List(vec![9, 1])],
            );
        }
        let options = OpenOptions { timestamp: Some(3), ..OpenOptions::new(1) };
        let array = Array::open_local(&at, &options).unwrap();
        let mut packed = PackedCsr::default();
        array.read_packed(&[0..10], &ColumnSelection::All, &mut packed).unwrap();
        assert_eq!(packed.unpack().columns, [1]);
    }
}

/// XOR turns floats into integers, which the filters after it then see.
#[test]
fn filters_after_xor() {
    let chains = [
        vec![Filter::Xor, Filter::BitWidthReduction, Filter::Zstd(3)],
        vec![Filter::Xor, Filter::BitWidthReductionWithin(64)],
        vec![Filter::Xor, Filter::Delta(None), Filter::BitWidthReduction],
        vec![Filter::Xor, Filter::Delta(None), Filter::ByteShuffle, Filter::Gzip(1)],
    ];
    for attribute_type in [Datatype::Float32, Datatype::Float64, Datatype::UInt16] {
        for attribute_filters in chains.clone() {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path().join("array");
            let cells = (0..4000).map(|cell| (cell / 40, cell % 40, (cell % 7) as i32)).collect();
            let spec = Spec {
                attribute_type,
                attribute_filters,
                capacity: 10_000,
                ..plain((100, 100), vec![cells])
            };
            spec.write(&at);
            check(&spec, &at, None, &[3..9], &[ColumnSelection::All]);
        }
    }
}

#[test]
fn a_number_of_tiles_that_cannot_be_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    plain((20, 10), vec![vec![(1, 1, 1), (2, 2, 2)]]).write(&at);
    let fragment = std::fs::read_dir(at.join("__fragments")).unwrap().next().unwrap().unwrap();
    let file = fragment.path().join("__fragment_metadata.tdb");
    let mut bytes = std::fs::read(&file).unwrap();
    let word = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    };
    let footer = bytes.len() - 8 - word(&bytes, bytes.len() - 8);
    // Version, name of the schema, two flags, two bounds of two int64 each.
    let n_tiles = footer + 4 + 8 + word(&bytes, footer + 4) + 2 + 32;
    assert_eq!(word(&bytes, n_tiles), 1);
    bytes[n_tiles..n_tiles + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let opened = Array::open_local(&at, &OpenOptions::new(1)).map(|array| array.n_cells());
    assert!(matches!(opened, Err(Error::Damaged { .. })), "{opened:?}");
    // Each fragment's number of cells is possible, but their sum overflows.
    let most = u64::MAX / 50;
    bytes[n_tiles..n_tiles + 8].copy_from_slice(&most.to_le_bytes());
    bytes[n_tiles + 8..n_tiles + 16].copy_from_slice(&50_u64.to_le_bytes());
    std::fs::write(&file, &bytes).unwrap();
    plain((20, 10), vec![vec![(3, 3, 3)]; 60]).write_fragments(&at, 2);
    let array = Array::open_local(&at, &OpenOptions::new(1)).unwrap();
    assert!(array.n_cells() > u64::MAX / 2);
    assert!(array.working_bytes(u64::MAX, &ColumnSelection::List(vec![3, 1])) > u64::MAX / 2);
    let read = array.read_csr(&[0..20], &ColumnSelection::All, &mut CsrBuffers::new());
    assert!(matches!(read, Err(Error::Damaged { .. })), "{read:?}");
}

/// libtiledb sorts fragments by time alone, with a sort that is stable up to 16 of them.
#[test]
fn many_fragments_of_one_time() {
    let open = |allows_duplicates, fragments: Vec<(u64, Vec<Cell>)>| {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("array");
        let spec = Spec { allows_duplicates, ..plain((20, 20), vec![]) };
        spec.write(&at);
        write_at(&spec, &at, &fragments);
        let opened = Array::open_local(&at, &OpenOptions::new(1));
        if opened.is_ok() {
            check(&spec, &at, None, &[0..5], &[ColumnSelection::All]);
        }
        opened.map(|array| array.n_fragments())
    };
    let cells = |value: i32| vec![(3, 4, value * 4), (4, 4, 4)];
    let many = |n: i32, time: fn(u64) -> u64| {
        (0..n).map(|value| (time(value as u64), cells(value))).collect::<Vec<_>>()
    };
    assert!(matches!(open(false, many(16, |_| 7)), Ok(16)));
    for n in [17, 40] {
        let refused = open(false, many(n, |_| 7));
        let is_tied = |error: &Error| {
            matches!(
                error,
                Error::Unsupported { reason: Unsupported::TiedFragments { time: 7 }, .. }
            )
        };
        assert!(refused.as_ref().is_err_and(is_tied), "{refused:?}");
    }
    // With duplicates all cells count, and fragments that share no place do not affect each other.
    assert!(matches!(open(true, many(17, |_| 7)), Ok(17)));
    assert!(matches!(open(false, many(17, |value| value + 1)), Ok(17)));
    let apart = (0..18).map(|row| (7, vec![(row, 4, 4), (row, 5, 8)])).collect();
    assert!(matches!(open(false, apart), Ok(18)));
}
