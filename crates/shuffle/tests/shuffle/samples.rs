//! Checks the promises of samples, and the frequency of rows against their expectation.

use std::collections::BTreeMap;

use proptest::prelude::*;
use shuffle::sample::{Error, Replacement, Sampling};

const BOTH: [Replacement; 2] = [Replacement::With, Replacement::Without];

/// Counts each outcome over `n_epochs` epochs.
pub(crate) fn outcomes<T: Ord>(n_epochs: u64, outcome: impl Fn(u64) -> T) -> BTreeMap<T, f64> {
    let mut counts = BTreeMap::new();
    for epoch in 0..n_epochs {
        *counts.entry(outcome(epoch)).or_insert(0.0) += 1.0;
    }
    counts
}

/// Sum over all outcomes of (observed - expected)^2 / expected; fails on any other outcome.
#[track_caller]
pub(crate) fn chi_squared<T: Ord + std::fmt::Debug>(
    found: &BTreeMap<T, f64>,
    expected: &BTreeMap<T, f64>,
) -> f64 {
    let n: f64 = found.values().sum();
    assert!((expected.values().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(found.keys().all(|outcome| expected.contains_key(outcome)), "{found:?}");
    expected
        .iter()
        .map(|(outcome, probability)| {
            let expected = probability * n;
            (found.get(outcome).unwrap_or(&0.0) - expected).powi(2) / expected
        })
        .sum()
}

/// Fails if the outcomes are less likely than once in a thousand: the limit of chi-squared by the
/// approximation of Wilson and Hilferty (1931). Seeds are fixed, so a test that passes goes on
/// passing.
#[track_caller]
pub(crate) fn check_frequencies<T: Ord + std::fmt::Debug>(
    found: &BTreeMap<T, f64>,
    expected: &BTreeMap<T, f64>,
) {
    let ninth = 2.0 / (9.0 * (expected.len() as f64 - 1.0));
    let limit = (expected.len() as f64 - 1.0) * (1.0 - ninth + 3.09 * ninth.sqrt()).powi(3);
    let chi_squared = chi_squared(found, expected);
    assert!(chi_squared < limit, "{chi_squared} of at most {limit}: {found:?}, {expected:?}");
}

/// Probability of every set of `n` rows, computed by drawing them in each order.
fn sets_without_replacement(weights: &[f64], n: usize) -> BTreeMap<Vec<u32>, f64> {
    fn go(weights: &[f64], n: usize, drawn: &[u32], p: f64, sets: &mut BTreeMap<Vec<u32>, f64>) {
        if drawn.len() == n {
            let mut set = drawn.to_vec();
            set.sort_unstable();
            *sets.entry(set).or_insert(0.0) += p;
            return;
        }
        let rest = (0..weights.len() as u32).filter(|row| !drawn.contains(row));
        let total: f64 = rest.clone().map(|row| weights[row as usize]).sum();
        for row in rest.filter(|row| weights[*row as usize] > 0.0) {
            go(weights, n, &[drawn, &[row]].concat(), p * weights[row as usize] / total, sets);
        }
    }
    let mut sets = BTreeMap::new();
    go(weights, n, &[], 1.0, &mut sets);
    sets
}

/// 60,000 epochs; the limits are exceeded once in a thousand by chi-squared with that many degrees
/// of freedom.
#[test]
fn sets_drawn_without_replacement_are_as_likely_as_by_drawing_one_by_one() {
    for (weights, n, bound) in [
        (&[1.0, 2.0, 3.0, 4.0][..], 2, 20.5),    // 6 sets
        (&[1.0, 0.0, 10.0, 0.5, 3.0], 3, 16.3),  // 4 sets
        (&[0.1, 0.2, 0.3, 0.15, 0.25], 3, 27.9), // 10 sets
        (&[5.0; 6], 2, 36.1),                    // 15 sets
    ] {
        let sampling = Sampling::weighted(weights, n, Replacement::Without).unwrap();
        let found = outcomes(60_000, |epoch| sampling.rows(9, epoch).unwrap().to_vec());
        let found = chi_squared(&found, &sets_without_replacement(weights, n as usize));
        assert!(found < bound, "{weights:?}: {found}");
    }
}

#[test]
fn draws_with_replacement_are_independent() {
    let weights = [1.0, 0.0, 2.0, 5.0];
    let mut pairs = BTreeMap::new();
    for (a, p) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        for (b, q) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            *pairs.entry(vec![a.min(b) as u32, a.max(b) as u32]).or_insert(0.0) += p * q / 64.0;
        }
    }
    let sampling = Sampling::weighted(&weights, 2, Replacement::With).unwrap();
    let found = outcomes(60_000, |epoch| sampling.rows(1, epoch).unwrap().to_vec());
    // There are six pairs, so 20.5 is exceeded once in a thousand tries.
    let found = chi_squared(&found, &pairs);
    assert!(found < 20.5, "{found}");
}

/// Draws one epoch of many rows, each row by its weight: chi-squared is near the number of rows
/// less 1, with a standard deviation of the root of twice that.
#[test]
fn one_large_sample_has_each_row_as_often_as_expected() {
    let weights: Vec<f64> = (0..2000_u32).map(|row| f64::from(row % 7) + 0.5).collect();
    let total: f64 = weights.iter().sum();
    let sampling = Sampling::weighted(&weights, 400_000, Replacement::With).unwrap();
    let mut counts = vec![0.0; weights.len()];
    sampling.rows(5, 0).unwrap().iter().for_each(|row| counts[*row as usize] += 1.0);
    let found: f64 = counts
        .iter()
        .zip(&weights)
        .map(|(count, weight)| {
            let expected = weight / total * 400_000.0;
            (count - expected).powi(2) / expected
        })
        .sum();
    assert!((found - 1999.0).abs() < 4.0 * (2.0 * 1999.0_f64).sqrt(), "{found}");
}

/// One class of 900 rows, one of 90, one of 10.
fn labels() -> Vec<u32> {
    (0..1000)
        .map(|row| if row % 100 == 7 { 30 } else { [4, 4, 4, 4, 4, 4, 4, 4, 4, 1][row % 10] })
        .collect()
}

fn of_class(labels: &[u32], rows: &[u32]) -> BTreeMap<u32, f64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(labels[*row as usize]).or_insert(0.0) += 1.0;
    }
    counts
}

#[test]
fn balanced_classes_come_equally_often() {
    let labels = labels();
    let sampling = Sampling::class_balanced(&labels, 300, Replacement::With).unwrap();
    let mut counts = BTreeMap::new();
    for epoch in 0..200 {
        for (label, count) in of_class(&labels, &sampling.rows(2, epoch).unwrap()) {
            *counts.entry(label).or_insert(0.0) += count;
        }
    }
    let third = [1, 4, 30].map(|label| (label, 1.0 / 3.0)).into();
    let found = chi_squared(&counts, &third);
    assert!(found < 13.8, "{counts:?}: {found}");
    // Without replacement a class cannot give more rows than it has.
    let sampling = Sampling::class_balanced(&labels, 300, Replacement::Without).unwrap();
    let counts = of_class(&labels, &sampling.rows(2, 0).unwrap());
    assert!(counts[&30] > 7.0 && counts[&1] > 55.0 && counts[&4] > 180.0, "{counts:?}");
}

#[test]
fn strata_keep_their_proportion() {
    let labels = labels();
    for (n, expect) in
        [(100, [(1, 10.0), (4, 89.0), (30, 1.0)]), (995, [(1, 99.0), (4, 886.0), (30, 10.0)])]
    {
        let sampling = Sampling::stratified(&labels, n).unwrap();
        assert_eq!(of_class(&labels, &sampling.rows(0, 0).unwrap()), expect.into());
        assert_eq!(of_class(&labels, &sampling.rows(8, 5).unwrap()), expect.into());
    }
    let sampling = Sampling::at_most_per_class(&labels, 50).unwrap();
    assert_eq!(sampling.n_samples(), 110);
    let counts = of_class(&labels, &sampling.rows(0, 0).unwrap());
    assert_eq!(counts, [(1, 50.0), (4, 50.0), (30, 10.0)].into());
}

/// 4,000 epochs of 50 of 100 rows: each row comes 2,000 times, with a standard deviation of 32.
#[test]
fn rows_of_a_class_are_as_likely() {
    let labels = [3; 100];
    for sampling in [
        Sampling::stratified(&labels, 50).unwrap(),
        Sampling::at_most_per_class(&labels, 50).unwrap(),
        Sampling::class_balanced(&labels, 50, Replacement::Without).unwrap(),
    ] {
        let mut counts = [0_u32; 100];
        for epoch in 0..4000 {
            sampling.rows(1, epoch).unwrap().iter().for_each(|row| counts[*row as usize] += 1);
        }
        assert!(counts.iter().all(|count| (1860..2140).contains(count)), "{counts:?}");
    }
}

proptest! {
    #[test]
    fn samples_are_ascending_and_as_many(
        weights in prop::collection::vec(prop_oneof![Just(0.0), 1e-300..1e300_f64, Just(f64::MIN_POSITIVE / 8.0), Just(f64::MAX)], 1..3000),
        n_samples in 0_u64..3000,
        seed in any::<u64>(),
        epoch in 0_u64..3,
    ) {
        let n_drawable = weights.iter().filter(|weight| **weight > 0.0).count() as u64;
        for replacement in BOTH {
            let sampling = match Sampling::weighted(&weights, n_samples, replacement) {
                Ok(sampling) => sampling,
                Err(Error::NoWeights { .. }) => {
                    prop_assert!(n_drawable == 0 && n_samples > 0);
                    continue;
                }
                Err(error) => {
                    prop_assert_eq!(error, Error::TooManySamples { n_samples, n_rows: n_drawable });
                    prop_assert!(replacement == Replacement::Without && n_samples > n_drawable);
                    continue;
                }
            };
            let rows = sampling.rows(seed, epoch).unwrap();
            prop_assert_eq!(&rows, &sampling.rows(seed, epoch).unwrap());
            prop_assert_eq!(rows.len() as u64, sampling.n_samples());
            prop_assert!(rows.is_sorted());
            prop_assert!(rows.iter().all(|row| weights[*row as usize] > 0.0));
            if replacement == Replacement::Without {
                prop_assert!(rows.is_sorted_by(|a, b| a < b));
            }
        }
    }

    #[test]
    fn classes_get_what_they_are_due(labels in prop::collection::vec(0_u32..9, 1..400), part in 0.0..1.0_f64, seed in any::<u64>()) {
        let n_samples = (labels.len() as f64 * part) as u64;
        let sampling = Sampling::stratified(&labels, n_samples).unwrap();
        let rows = sampling.rows(seed, 1).unwrap();
        prop_assert_eq!(rows.len() as u64, n_samples);
        prop_assert!(rows.is_sorted_by(|a, b| a < b));
        let all = of_class(&labels, &(0..labels.len() as u32).collect::<Vec<_>>());
        let found = of_class(&labels, &rows);
        for (label, n_rows) in all {
            let due = n_rows * n_samples as f64 / labels.len() as f64;
            prop_assert!((found.get(&label).unwrap_or(&0.0) - due).abs() < 1.0);
        }
    }
}

#[test]
fn another_epoch_or_seed_draws_other_rows() {
    let weights = [1.0; 500];
    let labels = labels();
    for sampling in [
        Sampling::weighted(&weights, 100, Replacement::With).unwrap(),
        Sampling::weighted(&weights, 100, Replacement::Without).unwrap(),
        Sampling::stratified(&labels, 100).unwrap(),
        Sampling::at_most_per_class(&labels, 10).unwrap(),
    ] {
        let rows = sampling.rows(3, 0).unwrap();
        assert_ne!(rows, sampling.rows(3, 1).unwrap());
        assert_ne!(rows, sampling.rows(4, 0).unwrap());
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    for replacement in BOTH {
        for weight in [-1.0, f64::INFINITY] {
            assert_eq!(
                Sampling::weighted(&[1.0, weight], 1, replacement).unwrap_err(),
                Error::Weight { row_idx: 1, weight }
            );
        }
        let error = Sampling::weighted(&[f64::NAN], 1, replacement).unwrap_err();
        assert!(matches!(error, Error::Weight { row_idx: 0, .. }));
        for weights in [&[0.0, -0.0][..], &[]] {
            let error = Sampling::weighted(weights, 1, replacement).unwrap_err();
            assert_eq!(error, Error::NoWeights { n_rows: weights.len() });
        }
        let error = Sampling::weighted(&[1.0], 1 << 32, replacement).unwrap_err();
        assert_eq!(error, Error::TooLarge { n_samples: 1 << 32, n_rows: 1 });
        assert_eq!(Sampling::weighted(&[], 0, replacement).unwrap().rows(0, 0).unwrap().len(), 0);
    }
    let error = Sampling::weighted(&[1.0, 0.0, 2.0], 3, Replacement::Without).unwrap_err();
    assert_eq!(error, Error::TooManySamples { n_samples: 3, n_rows: 2 });
    let error = Sampling::stratified(&[1, 1], 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot draw 3 rows without replacement from 2: draw fewer, or with replacement"
    );
}

#[test]
fn fingerprints_tell_samples_apart() {
    let bytes = |sampling: Sampling| {
        let mut bytes = Vec::new();
        sampling.write_to(&mut |more| bytes.extend_from_slice(more));
        bytes
    };
    let labels = [0, 0, 1, 1, 1];
    let all = [
        bytes(Sampling::weighted(&[1.0, 2.0, 1.0, 1.0, 1.0], 2, Replacement::With).unwrap()),
        bytes(Sampling::weighted(&[1.0, 2.0, 1.0, 1.0, 1.5], 2, Replacement::With).unwrap()),
        bytes(Sampling::weighted(&[1.0, 2.0, 1.0, 1.0, 1.0], 2, Replacement::Without).unwrap()),
        bytes(Sampling::weighted(&[1.0, 2.0, 1.0, 1.0, 1.0], 3, Replacement::With).unwrap()),
        bytes(Sampling::stratified(&labels, 2).unwrap()),
        bytes(Sampling::stratified(&[0, 1, 1, 1, 1], 2).unwrap()),
        bytes(Sampling::at_most_per_class(&labels, 2).unwrap()),
    ];
    assert!((1..all.len()).all(|idx| !all[..idx].contains(&all[idx])));
}

#[test]
fn golden_samples_for_seed_42() {
    let weights = [1.0, 0.0, 4.0, 0.5, 2.0, 2.0, 8.0, 1.0];
    let labels = [0, 0, 0, 0, 1, 1, 1, 9];
    let samples = [
        Sampling::weighted(&weights, 8, Replacement::With).unwrap(),
        Sampling::weighted(&weights, 4, Replacement::Without).unwrap(),
        Sampling::class_balanced(&labels, 8, Replacement::With).unwrap(),
        Sampling::stratified(&labels, 4).unwrap(),
        Sampling::at_most_per_class(&labels, 2).unwrap(),
    ];
    let lines: Vec<String> = samples
        .iter()
        .map(|sampling| {
            format!("{:?} {:?}", sampling.rows(42, 0).unwrap(), sampling.rows(42, 1).unwrap())
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
