//! Samples without weights, by shares of groups and by sets of classes, against probabilities that
//! are computed from the definition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use shuffle::sample::{ClassDraw, ClassSets, Error, Hierarchical, Replacement, Sampling};

use crate::samples::{check_frequencies, outcomes};

/// How often each row comes in 200 epochs.
fn counts(sampling: &Sampling) -> BTreeMap<u32, f64> {
    let mut counts = BTreeMap::new();
    for epoch in 0..200 {
        for row in &*sampling.rows(8, epoch).unwrap() {
            *counts.entry(*row).or_insert(0.0) += 1.0;
        }
    }
    counts
}

#[test]
fn any_row_is_drawn_with_replacement() {
    let sampling = Sampling::with_replacement(30, 100).unwrap();
    assert!(!sampling.is_listed() && sampling.batch_rows().is_none());
    check_frequencies(&counts(&sampling), &(0..30).map(|row| (row, 1.0 / 30.0)).collect());
    let pairs = Sampling::with_replacement(3, 2).unwrap();
    let found = outcomes(20_000, |epoch| pairs.rows(1, epoch).unwrap().to_vec());
    let pair = |a: u32, b: u32| (vec![a, b], if a == b { 1.0 / 9.0 } else { 2.0 / 9.0 });
    check_frequencies(&found, &(0..3).flat_map(|a| (a..3).map(move |b| pair(a, b))).collect());
    assert_eq!(Sampling::with_replacement(0, 1).unwrap_err(), Error::NoRows { n_samples: 1 });
    assert_eq!(Sampling::with_replacement(0, 0).unwrap().rows(0, 0).unwrap().len(), 0);
    let error = Sampling::with_replacement(1 << 32, 1).unwrap_err();
    assert_eq!(error, Error::TooLarge { n_samples: 1, n_rows: 1 << 32 });
}

#[test]
fn groups_come_in_proportion_to_their_shares() {
    // Three data sets of 3, 20 and 1 rows, and one that is left out.
    let groups: Vec<u32> = [(2, 3), (0, 20), (3, 1), (1, 9)]
        .iter()
        .flat_map(|(group, n_rows)| std::iter::repeat_n(*group, *n_rows))
        .collect();
    let shares = [3.0, 0.0, 5.0, 2.0];
    let sampling = Sampling::by_group(&groups, &shares, 100, Replacement::With).unwrap();
    let n_rows = |group: u32| groups.iter().filter(|other| **other == group).count() as f64;
    let expected = groups.iter().zip(0..).filter(|(group, _)| **group != 1);
    let of_row = |group: u32| shares[group as usize] / 10.0 / n_rows(group);
    check_frequencies(
        &counts(&sampling),
        &expected.map(|(group, row)| (row, of_row(*group))).collect(),
    );
    // Without replacement, all rows with a share come if as many are drawn.
    let sampling = Sampling::by_group(&groups, &shares, 24, Replacement::Without).unwrap();
    assert_eq!(*sampling.rows(0, 0).unwrap(), (0..24).collect::<Vec<u32>>());
}

#[test]
fn shares_that_cannot_be_met_are_refused() {
    let refused = |groups: &[u32], shares: &[f64]| {
        Sampling::by_group(groups, shares, 5, Replacement::With).unwrap_err()
    };
    assert_eq!(refused(&[0, 2], &[1.0, 0.0]), Error::LabelCode { code: 2, n_classes: 2 });
    assert_eq!(refused(&[0], &[1.0, 0.5]), Error::EmptyGroup { group: 1, share: 0.5 });
    assert_eq!(refused(&[0], &[-1.0]), Error::GroupShare { group: 0, share: -1.0 });
    assert_eq!(refused(&[0], &[0.0]), Error::NoWeights { n_rows: 1 });
    let error = refused(&[0], &[f64::NAN]);
    assert!(matches!(error, Error::GroupShare { group: 0, .. }), "{error}");
    // Extreme shares neither overflow nor vanish.
    for largest in [f64::MAX, f64::MIN_POSITIVE] {
        let shares = [largest, largest];
        let sampling = Sampling::by_group(&[0, 1, 1], &shares, 300, Replacement::With).unwrap();
        check_frequencies(&counts(&sampling), &[(0, 0.5), (1, 0.25), (2, 0.25)].into());
    }
}

#[test]
fn classes_of_sets_are_equally_likely() {
    let sets: [&[u32]; 6] = [&[9], &[9, 4], &[9], &[], &[4, 9, 77], &[9]];
    let classes = ClassSets::new(sets.map(|set| set.iter().copied())).unwrap();
    let sampling = Sampling::class_sets_balanced(&classes, 100, Replacement::With).unwrap();
    let mut expected = BTreeMap::new();
    for class in [4, 9, 77] {
        let with_class: Vec<usize> = (0..6).filter(|row| sets[*row].contains(&class)).collect();
        for row in &with_class {
            *expected.entry(*row as u32).or_insert(0.0) += 1.0 / 3.0 / with_class.len() as f64;
        }
    }
    check_frequencies(&counts(&sampling), &expected);
    let none = ClassSets::new([[]; 3]).unwrap();
    let error = Sampling::class_sets_balanced(&none, 1, Replacement::With).unwrap_err();
    assert_eq!(error, Error::NoWeights { n_rows: 3 });
}

proptest! {
    #[test]
    fn sets_have_each_code_once(sets in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..6), 0..40)) {
        let classes = ClassSets::new(sets.clone()).unwrap();
        prop_assert_eq!(classes.n_rows(), sets.len());
        prop_assert_eq!(classes.n_classes(), sets.iter().flatten().collect::<BTreeSet<_>>().len());
        for (row, set) in sets.into_iter().enumerate() {
            let set: BTreeSet<u32> = set.into_iter().collect();
            prop_assert_eq!(classes.codes_of(row).collect::<Vec<_>>(), set.into_iter().collect::<Vec<_>>());
        }
        prop_assert_eq!(classes.codes_of(classes.n_rows()).count(), 0);
    }

    /// Sets of one class each are labels.
    #[test]
    fn sets_of_one_class_are_labels(labels in prop::collection::vec(0_u32..5, 1..60), seed in any::<u64>()) {
        let sets = ClassSets::new(labels.iter().map(|label| [*label])).unwrap();
        for replacement in [Replacement::With, Replacement::Without] {
            let by_labels = Sampling::class_balanced(&labels, labels.len() as u64, replacement).unwrap();
            let by_sets = Sampling::class_sets_balanced(&sets, labels.len() as u64, replacement).unwrap();
            prop_assert_eq!(by_labels.rows(seed, 0).unwrap(), by_sets.rows(seed, 0).unwrap());
        }
    }
}

#[test]
fn fingerprints_tell_samples_apart() {
    let sets = |sets: [&[u32]; 3]| ClassSets::new(sets.map(|set| set.iter().copied())).unwrap();
    let (one, other) = (sets([&[1], &[1, 2], &[2]]), sets([&[1, 2], &[1, 2], &[2]]));
    let (uniform, least) = (ClassDraw::Uniform, ClassDraw::LeastDrawn);
    let composed = |subjects: &[u32], classes, batch_rows, n_batches| {
        let domains = &[0, 0, 0];
        Sampling::hierarchical(&Hierarchical { domains, subjects, classes, batch_rows, n_batches })
    };
    let all: Vec<Vec<u8>> = [
        Sampling::with_replacement(3, 6),
        Sampling::with_replacement(4, 6),
        Sampling::with_replacement(3, 4),
        Sampling::listed(3, [0, 1, 2, 0, 1, 2]),
        Sampling::listed(3, [0, 1, 2, 0, 2, 1]),
        composed(&[0, 0, 0], None, 2, 3),
        composed(&[0, 0, 0], None, 3, 2),
        composed(&[0, 0, 0], None, 3, 3),
        composed(&[0, 0, 1], None, 3, 2),
        composed(&[0, 1, 2], None, 3, 2),
        composed(&[0, 0, 0], Some((&one, uniform)), 3, 2),
        composed(&[0, 0, 0], Some((&one, least)), 3, 2),
        composed(&[0, 0, 0], Some((&other, least)), 3, 2),
    ]
    .into_iter()
    .map(|sampling| {
        let mut bytes = Vec::new();
        sampling.unwrap().write_to(&mut |more| bytes.extend_from_slice(more));
        bytes
    })
    .collect();
    for (idx, bytes) in all.iter().enumerate() {
        assert!(!all[..idx].contains(bytes), "sampling {idx}");
    }
}

#[test]
fn golden_samples_of_any_rows_for_seed_42() {
    let sampling = Sampling::with_replacement(1000, 8).unwrap();
    let rows = [0, 1].map(|epoch| sampling.rows(42, epoch).unwrap().to_vec());
    insta::assert_snapshot!(format!("{rows:?}"));
}
