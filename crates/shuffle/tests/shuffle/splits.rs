//! Checks the promises of splits, and golden splits that no release may change.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use shuffle::RowSet;
use shuffle::split::{self, Error, Method, UnknownMethod};

const METHODS: [Method; 3] =
    [Method::Deterministic, Method::Multinomial, Method::StochasticRounding];

type Lists = Result<Vec<Vec<u64>>, Error>;

/// Lists of the rows of splits, which are easy to check.
fn lists(splits: Result<Vec<RowSet>, Error>) -> Lists {
    splits.map(|splits| splits.iter().map(|rows| rows.iter().collect()).collect())
}

fn by_fraction(n_rows: u64, fractions: &[f64], method: Method, seed: u64) -> Lists {
    lists(split::by_fraction(n_rows, fractions, method, seed))
}

fn stratified(labels: &[u32], fractions: &[f64], seed: u64) -> Lists {
    lists(split::stratified(labels, fractions, seed))
}

fn by_group(groups: &[u32], fractions: &[f64], seed: u64) -> Lists {
    lists(split::by_group(groups, fractions, seed))
}

fn by_group_stratified(groups: &[u32], labels: &[u32], fractions: &[f64], seed: u64) -> Lists {
    lists(split::by_group_stratified(groups, labels, fractions, seed))
}

/// Fractions of one to six splits; some are 0.
fn fractions() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(prop_oneof![Just(0_u32), 1_u32..1000], 1..=6)
        .prop_filter("some split gets something", |weights| {
            weights.iter().any(|weight| *weight > 0)
        })
        .prop_map(|weights| {
            let sum: u32 = weights.iter().sum();
            weights.iter().map(|weight| f64::from(*weight) / f64::from(sum)).collect()
        })
}

/// Rows in runs of the same code, like an atlas stores them, and some codes in no order.
fn codes(n_codes: u32) -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec((0..n_codes, 1_usize..8), 0..60)
        .prop_map(|runs| runs.iter().flat_map(|(code, n_rows)| vec![code * 7; *n_rows]).collect())
}

fn sizes(splits: &[Vec<u64>]) -> Vec<u64> {
    splits.iter().map(|rows| rows.len() as u64).collect()
}

#[track_caller]
fn check_partition(splits: &[Vec<u64>], n_rows: usize, fractions: &[f64]) {
    assert_eq!(splits.len(), fractions.len());
    for (rows, fraction) in splits.iter().zip(fractions) {
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
        assert!(*fraction > 0.0 || rows.is_empty());
    }
    let mut rows: Vec<u64> = splits.concat();
    rows.sort_unstable();
    assert_eq!(rows, (0..n_rows as u64).collect::<Vec<_>>());
}

/// Whether a size is its share rounded down or up. The slack covers the test's own share, which is
/// not exact.
fn is_rounded(size: u64, share: f64) -> bool {
    (share - 1e-6).floor() <= size as f64 && size as f64 <= (share + 1e-6).ceil()
}

/// Rows of a code in each split.
fn rows_of(code: u32, codes: &[u32], splits: &[Vec<u64>]) -> Vec<u64> {
    splits
        .iter()
        .map(|rows| rows.iter().filter(|row| codes[**row as usize] == code).count() as u64)
        .collect()
}

#[track_caller]
fn check_groups_are_whole(groups: &[u32], splits: &[Vec<u64>]) {
    for group in BTreeSet::from_iter(groups) {
        let n_splits = rows_of(*group, groups, splits).iter().filter(|n_rows| **n_rows > 0).count();
        assert_eq!(n_splits, 1, "group {group}");
    }
}

proptest! {
    #[test]
    fn every_row_is_in_one_split(n_rows in 0_usize..300, fractions in fractions(), seed in any::<u64>()) {
        for method in METHODS {
            let splits = by_fraction(n_rows as u64, &fractions, method, seed).unwrap();
            check_partition(&splits, n_rows, &fractions);
            prop_assert_eq!(&splits, &by_fraction(n_rows as u64, &fractions, method, seed).unwrap());
            if method != Method::Multinomial {
                for (size, fraction) in sizes(&splits).into_iter().zip(&fractions) {
                    prop_assert!(is_rounded(size, n_rows as f64 * fraction), "{size} of {fraction} x {n_rows}");
                }
            }
        }
    }

    #[test]
    fn deterministic_sizes_are_those_of_largest_remainders(n_rows in 0_u64..300, weights in proptest::collection::vec(0_u64..50, 1..6), seed in any::<u64>()) {
        // Multiples of 1/64 are exact in binary and in 12 decimals.
        let total: u64 = weights.iter().sum();
        prop_assume!(0 < total && total <= 64);
        let mut weights = weights;
        weights[0] += 64 - total;
        let fractions: Vec<f64> = weights.iter().map(|weight| *weight as f64 / 64.0).collect();
        let mut expect: Vec<u64> = weights.iter().map(|weight| n_rows * weight / 64).collect();
        while expect.iter().sum::<u64>() < n_rows {
            // The split furthest below its share; of equal ones, the last.
            let lack = |idx: usize| n_rows * weights[idx] - (expect[idx] * 64).min(n_rows * weights[idx]);
            let idx = (0..expect.len()).max_by_key(|idx| lack(*idx)).unwrap();
            expect[idx] += 1;
        }
        let splits = by_fraction(n_rows, &fractions, Method::Deterministic, seed).unwrap();
        prop_assert_eq!(sizes(&splits), expect);
    }

    #[test]
    fn every_label_has_its_share(labels in codes(12), fractions in fractions(), seed in any::<u64>()) {
        let splits = stratified(&labels, &fractions, seed).unwrap();
        check_partition(&splits, labels.len(), &fractions);
        for label in BTreeSet::from_iter(&labels) {
            let of_label = rows_of(*label, &labels, &splits);
            let n_rows: u64 = of_label.iter().sum();
            for (size, fraction) in of_label.iter().zip(&fractions) {
                prop_assert!(is_rounded(*size, n_rows as f64 * fraction), "{size} of {fraction} x {n_rows}");
            }
        }
        for (size, fraction) in sizes(&splits).into_iter().zip(&fractions) {
            prop_assert!(is_rounded(size, labels.len() as f64 * fraction), "{size} of {fraction} x {}", labels.len());
        }
        prop_assert_eq!(splits, stratified(&labels, &fractions, seed).unwrap());
    }

    #[test]
    fn groups_are_whole_and_sizes_near(groups in codes(30), fractions in fractions(), seed in any::<u64>()) {
        let n_splits = fractions.iter().filter(|fraction| **fraction > 0.0).count();
        let mut group_rows: BTreeMap<u32, f64> = BTreeMap::new();
        for group in &groups {
            *group_rows.entry(*group).or_default() += 1.0;
        }
        let splits = match by_group(&groups, &fractions, seed) {
            Ok(splits) => splits,
            Err(error) => {
                prop_assert!(!groups.is_empty() && group_rows.len() < n_splits);
                prop_assert_eq!(error, Error::FewerGroupsThanSplits { n_groups: group_rows.len(), n_splits });
                return Ok(());
            }
        };
        check_partition(&splits, groups.len(), &fractions);
        check_groups_are_whole(&groups, &splits);
        if !groups.is_empty() {
            prop_assert!(splits.iter().zip(&fractions).all(|(rows, fraction)| (*fraction > 0.0) != rows.is_empty()));
        }
        let largest = group_rows.values().copied().fold(0.0, f64::max);
        let bound = largest * (1.0 - 1.0 / n_splits as f64) + 1e-6;
        // The bound excepts a split that had to be given its only group.
        let n_groups = |rows: &[u64]| rows.iter().map(|row| groups[*row as usize]).collect::<BTreeSet<_>>().len();
        let is_filled = splits.iter().zip(&fractions).any(|(rows, fraction)| {
            n_groups(rows) == 1 && groups.len() as f64 * fraction <= bound
        });
        for (rows, fraction) in splits.iter().zip(&fractions) {
            let excess = rows.len() as f64 - groups.len() as f64 * fraction;
            prop_assert!(is_filled || excess.abs() <= bound, "{excess} of {bound}");
        }
        prop_assert_eq!(splits, by_group(&groups, &fractions, seed).unwrap());
    }

    #[test]
    fn groups_are_whole_with_labels_too(
        groups in codes(30),
        label_seed in any::<u64>(),
        fractions in fractions(),
        seed in any::<u64>(),
    ) {
        let labels: Vec<u32> = (0..groups.len() as u64).map(|row| ((row ^ label_seed) % 5) as u32).collect();
        let Ok(splits) = by_group_stratified(&groups, &labels, &fractions, seed) else { return Ok(()) };
        check_partition(&splits, groups.len(), &fractions);
        check_groups_are_whole(&groups, &splits);
        prop_assert_eq!(splits, by_group_stratified(&groups, &labels, &fractions, seed).unwrap());
    }

    #[test]
    fn what_groups_and_labels_are_called_does_not_matter(codes in codes(9), seed in any::<u64>()) {
        // Renaming keeps the order of the codes, which may become too large for a table.
        let renamed: Vec<u32> = codes.iter().map(|code| code * 40_000 + 2).collect();
        let fractions = [0.75, 0.25];
        prop_assert_eq!(by_group(&codes, &fractions, seed), by_group(&renamed, &fractions, seed));
        prop_assert_eq!(stratified(&codes, &fractions, seed), stratified(&renamed, &fractions, seed));
    }
}

/// Sums over seeds of the sizes of splits.
fn summed_sizes(n_seeds: u64, split: impl Fn(u64) -> Vec<Vec<u64>>) -> Vec<f64> {
    let mut sums = Vec::new();
    for seed in 0..n_seeds {
        let sizes = sizes(&split(seed));
        sums.resize(sizes.len(), 0.0);
        sums.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size as f64);
    }
    sums
}

/// For 20,000 draws with a probability of at most 1/2, six standard deviations are at most 424.
#[test]
fn expectations_are_the_shares() {
    let fractions = [0.4, 0.3, 0.2, 0.1];
    let n_seeds = 20_000;
    for method in [Method::Multinomial, Method::StochasticRounding] {
        for n_rows in [1, 4] {
            let sums = summed_sizes(n_seeds, |seed| {
                by_fraction(n_rows, &fractions, method, seed).unwrap()
            });
            for (sum, fraction) in sums.iter().zip(fractions) {
                let expect = fraction * (n_seeds * n_rows) as f64;
                assert!(
                    (sum - expect).abs() < 424.0 * n_rows as f64,
                    "{method:?}, {n_rows} rows: {sums:?}"
                );
            }
        }
    }
    // Two labels of one row, one of two, one of three.
    let labels = [0, 1, 2, 2, 3, 3, 3];
    let mut of_label = BTreeMap::<u32, Vec<f64>>::new();
    for seed in 0..n_seeds {
        let splits = stratified(&labels, &fractions, seed).unwrap();
        for label in 0..4 {
            let sums = of_label.entry(label).or_insert_with(|| vec![0.0; 4]);
            sums.iter_mut()
                .zip(rows_of(label, &labels, &splits))
                .for_each(|(sum, n)| *sum += n as f64);
        }
    }
    for (label, sums) in &of_label {
        let n_rows = labels.iter().filter(|other| *other == label).count() as f64;
        for (sum, fraction) in sums.iter().zip(fractions) {
            assert!(
                (sum - fraction * n_rows * n_seeds as f64).abs() < 424.0,
                "label {label}: {sums:?}"
            );
        }
    }
}

#[test]
fn sizes_of_a_multinomial_vary_as_they_should() {
    // The variance of the sizes of 0.25 of 16 rows is 3; 20,000 of them give it to about 1 %.
    let sizes: Vec<f64> = (0..20_000)
        .map(|seed| {
            by_fraction(16, &[0.25, 0.75], Method::Multinomial, seed).unwrap()[0].len() as f64
        })
        .collect();
    let variance = sizes.iter().map(|size| (size - 4.0).powi(2)).sum::<f64>() / sizes.len() as f64;
    assert!((2.8..3.2).contains(&variance), "{variance}");
}

#[test]
fn every_row_is_as_likely_in_test() {
    // 20,000 seeds with 3 of 10 rows each: each row comes 6,000 times, with a standard deviation of
    // 65.
    for split in [
        |seed| by_fraction(10, &[0.7, 0.3], Method::Deterministic, seed),
        |seed| stratified(&[5; 10], &[0.7, 0.3], seed),
        |seed| by_group(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[0.7, 0.3], seed),
    ] {
        let mut counts = [0_u32; 10];
        for seed in 0..20_000 {
            split(seed).unwrap()[1].iter().for_each(|row| counts[*row as usize] += 1);
        }
        assert!(counts.iter().all(|count| (5600..6400).contains(count)), "{counts:?}");
    }
}

/// The published sizes of TileDB-SOMA-ML's deterministic method.
#[test]
fn uneven_shares_are_rounded_as_stated() {
    let check = |n_rows, fractions: &[f64], expect: &[u64]| {
        let splits = by_fraction(n_rows, fractions, Method::Deterministic, 111).unwrap();
        assert_eq!(sizes(&splits), expect);
    };
    check(10, &[0.7, 0.3], &[7, 3]);
    check(10, &[0.7, 0.2, 0.1], &[7, 2, 1]);
    check(15, &[0.7, 0.3], &[10, 5]);
    check(15, &[0.7, 0.2, 0.1], &[10, 3, 2]);
    check(10, &[1.0], &[10]);
    check(0, &[0.5, 0.5], &[0, 0]);
    check(1, &[0.5, 0.5], &[0, 1]);
    check(7, &[0.0, 1.0, 0.0], &[0, 7, 0]);
    check(100, &[1.0 / 3.0; 3], &[34, 33, 33]);
}

#[test]
fn shares_that_are_whole_are_kept_by_all_but_the_multinomial() {
    for seed in 0..200 {
        for method in [Method::Deterministic, Method::StochasticRounding] {
            assert_eq!(sizes(&by_fraction(10, &[0.7, 0.2, 0.1], method, seed).unwrap()), [7, 2, 1]);
        }
    }
}

#[test]
fn wrong_fractions_are_refused() {
    for split in [
        |fractions: &[f64]| by_fraction(3, fractions, Method::Multinomial, 0),
        |fractions: &[f64]| by_group(&[1, 2, 3], fractions, 0),
        |fractions: &[f64]| by_group_stratified(&[1, 2, 3], &[1, 2, 3], fractions, 0),
        |fractions: &[f64]| stratified(&[1, 2, 3], fractions, 0),
    ] {
        for wrong in [&[][..], &[0.7], &[0.999], &[0.7, 0.7], &[0.5, 0.499_999]] {
            let sum = wrong.iter().sum();
            assert_eq!(split(wrong), Err(Error::FractionSum { n_splits: wrong.len(), sum }));
        }
        for wrong in [-0.1, 1.1, f64::INFINITY] {
            assert_eq!(
                split(&[0.5, wrong]),
                Err(Error::Fraction { split_idx: 1, fraction: wrong })
            );
        }
        assert!(matches!(split(&[f64::NAN, 1.0]), Err(Error::Fraction { split_idx: 0, .. })));
        let many = vec![1.0 / 2000.0; 2000];
        assert!(matches!(split(&many), Err(Error::TooManySplits { n_splits: 2000, .. })));
    }
    let error = by_fraction(3, &[0.5, 0.25], Method::Deterministic, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the fractions of 2 splits sum to 0.75, but every row goes into one split: give fractions that sum to 1"
    );
}

#[test]
fn more_rows_than_memory_holds_are_refused() {
    let error = by_fraction(u64::MAX, &[1.0], Method::Deterministic, 0).unwrap_err();
    assert_eq!(error, Error::TooLarge { n_rows: u64::MAX });
}

#[test]
fn methods_have_names() {
    for method in METHODS {
        assert_eq!(method.name().parse(), Ok(method));
    }
    assert_eq!("random".parse::<Method>(), Err(UnknownMethod { name: "random".into() }));
}

#[test]
fn every_split_that_is_due_rows_gets_a_group() {
    // By size alone all three donors would be in the training split.
    let donors: Vec<u32> = (0..300).map(|row| row / 100).collect();
    let splits = by_group(&donors, &[0.8, 0.1, 0.1], 0).unwrap();
    assert_eq!(sizes(&splits), [100, 100, 100]);
    assert_eq!(
        by_group(&donors, &[0.7, 0.1, 0.1, 0.1], 0),
        Err(Error::FewerGroupsThanSplits { n_groups: 3, n_splits: 4 })
    );
    assert_eq!(by_group(&[], &[0.5, 0.5], 0), Ok(vec![vec![], vec![]]));
    assert_eq!(
        by_group_stratified(&[1, 2], &[1], &[0.5, 0.5], 0),
        Err(Error::LabelsLength { n_groups: 2, n_labels: 1 })
    );
}

#[test]
fn labels_come_nearer_to_their_shares_when_they_are_looked_at() {
    // Forty donors of different sizes; each has mostly one of four cell types.
    let mut donors = Vec::new();
    let mut types = Vec::new();
    for donor in 0..40_u32 {
        for cell in 0..20 + donor * 7 % 31 {
            donors.push(donor);
            types.push(if cell % 5 == 0 { cell % 4 } else { donor % 4 });
        }
    }
    let fractions = [0.7, 0.15, 0.15];
    let distance = |splits: &[Vec<u64>]| -> f64 {
        let of_type = |label: u32| {
            let rows = rows_of(label, &types, splits);
            let total: u64 = rows.iter().sum();
            let distances =
                rows.iter().zip(fractions).map(|(n, f)| (*n as f64 / total as f64 - f).abs());
            distances.sum::<f64>()
        };
        (0..4).map(of_type).sum()
    };
    let mut sums = [0.0, 0.0];
    for seed in 0..20 {
        let splits = by_group_stratified(&donors, &types, &fractions, seed).unwrap();
        check_groups_are_whole(&donors, &splits);
        sums[0] += distance(&splits);
        sums[1] += distance(&by_group(&donors, &fractions, seed).unwrap());
    }
    assert!(2.0 * sums[0] < sums[1], "{sums:?}");
}

#[test]
fn golden_splits_for_seed_42() {
    let labels = [3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 8, 8, 8, 5, 5, 5, 5, 5, 5, 5];
    let groups = [0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 4, 5, 5, 5, 6, 7, 7, 7];
    let fractions = [0.7, 0.2, 0.1];
    let mut lines: Vec<String> = METHODS
        .iter()
        .map(|method| {
            format!("{}: {:?}", method.name(), by_fraction(15, &fractions, *method, 42).unwrap())
        })
        .collect();
    lines.push(format!("stratified: {:?}", stratified(&labels, &fractions, 42).unwrap()));
    lines.push(format!("by group: {:?}", by_group(&groups, &fractions, 42).unwrap()));
    lines.push(format!(
        "by group, stratified: {:?}",
        by_group_stratified(&groups, &labels, &fractions, 42).unwrap()
    ));
    insta::assert_snapshot!(lines.join("\n"));
}
