//! Sets of rows agree with sorted lists.

use proptest::prelude::*;
use shuffle::{RowOrderError, RowSet, RowSetBuilder};

/// Rows of all densities, within a few pieces of 65,536 numbers: runs of rows and gaps between.
fn rows() -> impl Strategy<Value = Vec<u64>> {
    let runs = |gap: u64, run: u64, n: usize| {
        proptest::collection::vec((0..gap, 1..run), 0..n).prop_map(|runs| {
            let mut rows: Vec<u64> = Vec::new();
            let mut at = 0;
            for (gap, n_rows) in runs {
                rows.extend(at + gap..at + gap + n_rows);
                at += gap + n_rows + 1;
            }
            rows
        })
    };
    prop_oneof![runs(4, 8, 20), runs(70_000, 4, 20), runs(6, 6, 6_000), runs(100_000, 150_000, 4)]
}

fn ranges_of(rows: &[u64]) -> Vec<std::ops::Range<u64>> {
    rows.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[0] + run.len() as u64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_set_is_its_list(rows in rows(), asked in proptest::collection::vec(0_u64..200_000, 20), places in (0_u64..40_000, 0_u64..40_000)) {
        let set = RowSet::from_ascending(rows.iter().copied()).unwrap();
        prop_assert_eq!((set.len(), set.is_empty()), (rows.len() as u64, rows.is_empty()));
        prop_assert!(set.iter().eq(rows.iter().copied()));
        prop_assert_eq!(set.last(), rows.last().copied());
        prop_assert!(set.ranges().eq(ranges_of(&rows)));
        for row in asked {
            prop_assert_eq!(set.contains(row), rows.binary_search(&row).is_ok());
            prop_assert_eq!(set.n_below(row), rows.partition_point(|other| *other < row) as u64);
            prop_assert_eq!(set.get(row), rows.get(row as usize).copied());
        }
        let (from, to) = (places.0.min(places.1), places.0.max(places.1));
        let of_places = &rows[(from as usize).min(rows.len())..(to as usize).min(rows.len())];
        prop_assert!(set.ranges_at(from..to).eq(ranges_of(of_places)));
        prop_assert!(set.memory_bytes() <= 2 * rows.len() + 56 * rows.len().min(24));
        let between = rows.iter().filter(|row| (from..to).contains(row)).map(|row| row - from);
        prop_assert_eq!(set.between(from..to).unwrap(), RowSet::from_ascending(between).unwrap());
        // The set is the same however its rows were added.
        let mut builder = RowSetBuilder::default();
        for range in ranges_of(&rows) {
            builder.push_range(range).unwrap();
        }
        prop_assert_eq!(builder.finish(), set);
    }

    #[test]
    fn rows_at_places_are_those_of_the_list(rows in rows(), places in rows()) {
        let set = RowSet::from_ascending(rows.iter().copied()).unwrap();
        let at = set.at(&RowSet::from_ascending(places.iter().copied()).unwrap()).unwrap();
        let expected: Vec<u64> = places.iter().filter_map(|place| rows.get(*place as usize)).copied().collect();
        prop_assert!(at.iter().eq(expected.iter().copied()));
        prop_assert_eq!(at, RowSet::from_ascending(expected).unwrap());
    }
}

#[test]
fn rows_that_do_not_ascend_are_refused() {
    assert_eq!(RowSet::from_ascending([4, 4]), Err(RowOrderError { row: 4, least: 5 }));
    assert_eq!(RowSet::from_ascending([70_000, 4]), Err(RowOrderError { row: 4, least: 70_001 }));
    let mut builder = RowSetBuilder::default();
    builder.push_range(5..9).unwrap();
    assert_eq!(builder.push_range(8..10), Err(RowOrderError { row: 8, least: 9 }));
    builder.push_range(3..3).unwrap();
    assert!(builder.push(u64::MAX).is_err());
    assert_eq!(builder.finish(), RowSet::from_range(5..9));
}

#[test]
fn sets_take_little_memory() {
    let bytes_per_row = |set: RowSet| set.memory_bytes() as f64 / set.len() as f64;
    let n_rows = 1 << 20;
    assert!(bytes_per_row(RowSet::from_range(0..n_rows)) < 0.001);
    let third = RowSet::from_ascending((0..n_rows).filter(|row| row % 3 == 1)).unwrap();
    assert!(bytes_per_row(third) < 0.4);
    let few = RowSet::from_ascending((0..n_rows).step_by(100)).unwrap();
    assert!(bytes_per_row(few) < 2.1);
}
