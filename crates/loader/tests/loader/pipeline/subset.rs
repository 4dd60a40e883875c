//! Splits, groups and codes: every cell is in one part, with its own label.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray};
use loader::encode::{BatchKeyEncoder, Encoders, LabelEncoder, Rules, Unseen};
use loader::split::{self, Method};
use loader::{Cells, ConcatError, Dataset, GeneSelection, Loader, LoaderSpec, SubsetError};
use proptest::prelude::*;
use soma_io::{CsrBuffers, MemoryReader};

use crate::pipeline::sample::{self, WAYS};

fn donor(joinid: u64) -> Option<String> {
    (joinid % 5 != 4).then(|| format!("donor {}", joinid % 5))
}

fn assay(joinid: u64) -> i32 {
    (joinid / 7 % 3) as i32
}

fn dataset(cells: Cells) -> Dataset {
    let joinids = sample::joinids(&cells);
    let n_rows = joinids.last().map_or(0, |last| last + 1);
    let donors: StringArray = joinids.iter().map(|id| donor(*id)).collect();
    let assays = Int32Array::from_iter_values(joinids.iter().map(|id| assay(*id)));
    let plain = sample::obs(&joinids);
    let obs = RecordBatch::try_from_iter_with_nullable([
        ("label", Arc::clone(plain.column(0)), false),
        ("doubled", Arc::clone(plain.column(1)), false),
        ("donor_id", Arc::new(donors) as ArrayRef, true),
        ("assay", Arc::new(assays) as ArrayRef, false),
    ])
    .unwrap();
    let x = Arc::new(sample::reader(n_rows, 4));
    let totals = joinids.iter().map(|id| *id as f64).collect();
    Dataset::new(x, cells, obs, GeneSelection::All).unwrap().with_totals(totals).unwrap()
}

/// The joinids that an epoch delivers; checks the values and obs of each.
fn delivered(dataset: &Dataset) -> Vec<u64> {
    let mut seen = Vec::new();
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        seen.clear();
        for batch in Loader::new(dataset.clone(), spec).unwrap().epoch(3).unwrap() {
            sample::check_rows(&batch.unwrap(), &[0, 1, 2, 3], &mut seen);
        }
        seen.sort_unstable();
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn parts_of_a_split_are_data_sets_of_their_own(
        first in proptest::collection::btree_set(0_u64..60, 0..40),
        second in 0_u64..30,
        seed in any::<u64>(),
    ) {
        let first: Vec<u64> = first.into_iter().collect();
        let parts = [dataset(Cells::List(first.clone().into())), dataset(Cells::Range(0..second))];
        let both = Dataset::concat(&parts).unwrap();
        let split = split::by_fraction(both.n_rows(), &[0.5, 0.3, 0.2], Method::Multinomial, seed);
        let mut seen = Vec::new();
        for rows in split.unwrap() {
            let part = both.part(&rows).unwrap();
            prop_assert_eq!(part.n_rows(), rows.len());
            let rows: Vec<u64> = rows.iter().collect();
            // A list of the same rows gives the same.
            let of_list = both.rows(&rows).unwrap();
            prop_assert_eq!(of_list.obs(), part.obs());
            prop_assert!((0..2).all(|idx| of_list.cells(idx) == part.cells(idx)));
            prop_assert_eq!(part.n_experiments(), 2);
            for (place, row) in rows.iter().enumerate() {
                prop_assert_eq!(part.origin(place as u64), both.origin(*row));
                prop_assert_eq!(part.totals().unwrap()[place], both.totals().unwrap()[*row as usize]);
            }
            seen.extend(delivered(&part));
        }
        seen.sort_unstable();
        let mut expected: Vec<u64> = first.into_iter().chain(0..second).collect();
        expected.sort_unstable();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn groups_are_those_of_the_columns_and_stay_on_one_side() {
    let dataset = dataset(Cells::Range(3..80));
    let groups = dataset.groups(&["donor_id", "assay"]).unwrap();
    let mut keys = BTreeMap::new();
    for (group, joinid) in groups.iter().zip(3..80) {
        let key = (donor(joinid), assay(joinid));
        assert_eq!(*keys.entry(*group).or_insert_with(|| key.clone()), key);
    }
    assert_eq!(keys.values().collect::<BTreeSet<_>>().len(), keys.len());

    let groups = dataset.groups(&["donor_id"]).unwrap();
    let parts = split::by_group(&groups, &[0.6, 0.4], 1).unwrap();
    let donors: Vec<BTreeSet<Option<String>>> = parts
        .iter()
        .map(|rows| delivered(&dataset.part(rows).unwrap()).into_iter().map(donor).collect())
        .collect();
    assert_eq!(
        (donors[0].len() + donors[1].len(), donors[0].intersection(&donors[1]).count()),
        (5, 0)
    );
    let error = dataset.groups(&["donor"]).unwrap_err().to_string();
    assert!(error.contains("donor_id"), "{error}");
}

#[test]
fn codes_come_beside_the_rows_they_are_of() {
    let dataset = dataset(Cells::Range(0..60));
    let rules = Rules { unseen: Unseen::Code, ..Rules::default() };
    let donors = LabelEncoder::fit("donor_id", dataset.obs().column(2), rules).unwrap();
    let keys =
        BatchKeyEncoder::fit("batch", &["assay", "doubled"], dataset.obs(), Rules::default());
    let encoders = Encoders::new(vec![Arc::new(donors), Arc::new(keys.unwrap())]).unwrap();
    let dataset = dataset.with_encoders(&encoders).unwrap();
    assert_eq!(dataset.codes_of("batch").unwrap().len(), 60);
    assert!(dataset.codes_of("assay").is_none());
    // Codes stay with their cells in a part, and in a concatenation.
    let part = dataset.rows(&(0..60).filter(|row| row % 3 != 1).collect::<Vec<_>>()).unwrap();
    let twice = Dataset::concat(&[part.clone(), dataset.clone()]).unwrap();
    for (dataset, n_rows) in [(&part, 40), (&twice, 100)] {
        let mut n_seen = 0;
        for batch in Loader::new(dataset.clone(), sample::spec()).unwrap().epoch(0).unwrap() {
            let batch = batch.unwrap();
            let codes = |name: &str| {
                batch.codes.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone()
            };
            let donors = encoders.inverse("donor_id", &codes("donor_id")).unwrap();
            let keys = encoders.inverse("batch", &codes("batch")).unwrap();
            let doubled = keys.as_struct().column(1).as_primitive::<Int64Type>();
            for (row, joinid) in batch.joinids.iter().enumerate() {
                let name = donors.is_valid(row).then(|| donors.as_string::<i64>().value(row));
                assert_eq!(name, donor(*joinid as u64).as_deref());
                assert_eq!(doubled.value(row), 2 * joinid);
                n_seen += 1;
            }
        }
        assert_eq!(n_seen, n_rows);
    }
    let plain = self::dataset(Cells::Range(0..3));
    let error = Dataset::concat(&[dataset, plain]).unwrap_err();
    assert!(matches!(error, ConcatError::Obs { idx: 1, .. }), "{error}");
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let dataset = dataset(Cells::Range(0..5));
    for rows in [&[0, 5][..], &[1, 0], &[2, 2]] {
        let error = dataset.rows(rows).unwrap_err();
        assert!(matches!(error, SubsetError::Rows { .. }), "{error}");
    }
    assert_eq!(dataset.rows(&[]).unwrap().n_rows(), 0);
}

/// More rows than one window, by which labels are fitted and encoded.
#[test]
fn codes_of_several_windows_are_those_of_all_rows() {
    const N: u64 = (1 << 20) + 5_000;
    // The last labels come in the second window only.
    let label = |row: u64| if row < 1 << 20 { (row * 7 % 400) as i32 } else { -((row % 3) as i32) };
    let labels: ArrayRef = Arc::new(Int32Array::from_iter_values((0..N).map(label)));
    let obs = RecordBatch::try_from_iter([("label", Arc::clone(&labels))]).unwrap();
    let csr =
        CsrBuffers { row_offsets: vec![0; N as usize + 1], n_columns: 1, ..CsrBuffers::default() };
    let x = Arc::new(MemoryReader::new(csr).unwrap());
    let dataset = Dataset::new(x, Cells::Range(0..N), obs, GeneSelection::All).unwrap();

    let distinct: BTreeSet<i32> = (0..N).map(label).collect();
    let code_of: BTreeMap<i32, i64> = distinct.iter().copied().zip(0..).collect();
    let encoder = LabelEncoder::fit("label", &labels, Rules::default()).unwrap();
    let known = LabelEncoder::fit("label", &labels.slice(0, 400), Rules::default()).unwrap();
    assert_eq!(encoder.classes().len(), distinct.len());
    let encoders = Encoders::new(vec![Arc::new(encoder)]).unwrap();
    let whole = encoders.encode(dataset.obs()).unwrap();
    let encoded = dataset.clone().with_encoders(&encoders).unwrap();
    assert_eq!(encoded.codes().unwrap(), whole);
    assert!(encoded.codes_of("label").unwrap().eq((0..N).map(|row| code_of[&label(row)])));
    // Two bytes for each row are enough.
    assert!((2 * N..2 * N + 4096).contains(&encoded.cell_memory().codes));
    let groups = dataset.groups(&["label"]).unwrap();
    assert!(groups.iter().copied().map(i64::from).eq((0..N).map(|row| code_of[&label(row)])));

    // Rows of errors are counted from the first row of all.
    let error = dataset.with_encoders(&Encoders::new(vec![Arc::new(known)]).unwrap()).unwrap_err();
    let message = format!("{error}");
    let first_unknown = (0..N).find(|row| label(*row) < 0).unwrap();
    assert!(message.contains(&format!("{first_unknown}")), "{message}");
}
