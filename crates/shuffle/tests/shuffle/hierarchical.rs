//! Compares hierarchical batches with the definition: their composition exactly, their frequencies
//! with probabilities that are computed row by row.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use shuffle::sample::{ClassDraw, ClassSets, Error, Hierarchical, Sampling};
use shuffle::{BatchSpec, Order, PlanError, PlanSpec};

use crate::samples::{check_frequencies, outcomes};

/// The labels of rows.
#[derive(Debug, Clone)]
struct Rows {
    domains: Vec<u32>,
    subjects: Vec<u32>,
    classes: Vec<BTreeSet<u32>>,
}

impl Rows {
    fn sampling(&self, draw: Option<ClassDraw>, batch_rows: u64, n_batches: u64) -> Sampling {
        let sets = self.sets();
        let classes = draw.map(|draw| (&sets, draw));
        let (domains, subjects) = (&self.domains[..], &self.subjects[..]);
        let spec = Hierarchical { domains, subjects, classes, batch_rows, n_batches };
        Sampling::hierarchical(&spec).unwrap()
    }

    fn sets(&self) -> ClassSets {
        ClassSets::new(self.classes.iter().cloned()).unwrap()
    }

    fn all_domains(&self) -> BTreeSet<u32> {
        self.domains.iter().copied().collect()
    }

    fn all_classes(&self) -> BTreeSet<u32> {
        self.classes.iter().flatten().copied().collect()
    }

    fn of_domain(&self, domain: u32) -> Vec<usize> {
        (0..self.domains.len()).filter(|row| self.domains[*row] == domain).collect()
    }

    /// Probability of each row if one of `rows` is drawn by its subject.
    fn by_subject(&self, rows: &[usize]) -> BTreeMap<u32, f64> {
        let subjects: BTreeSet<u32> = rows.iter().map(|row| self.subjects[*row]).collect();
        let of_row = |row: usize| {
            let alike = rows.iter().filter(|other| self.subjects[**other] == self.subjects[row]);
            1.0 / subjects.len() as f64 / alike.count() as f64
        };
        rows.iter().map(|row| (*row as u32, of_row(*row))).collect()
    }

    /// The same if a class is drawn first.
    fn by_class(&self, rows: &[usize]) -> BTreeMap<u32, f64> {
        let classes = self.all_classes();
        let mut expected = BTreeMap::new();
        for class in &classes {
            let with_class: Vec<usize> =
                rows.iter().copied().filter(|row| self.classes[*row].contains(class)).collect();
            for (row, p) in self.by_subject(&with_class) {
                *expected.entry(row).or_insert(0.0) += p / classes.len() as f64;
            }
        }
        expected
    }
}

prop_compose! {
    /// Rows of up to 5 domains; every class is in every domain.
    fn rows()(
        labels in prop::collection::vec((0_u32..5, 0_u32..4, prop::collection::btree_set(0_u32..4, 0..4)), 1..40),
    ) -> Rows {
        let mut rows = Rows {
            domains: labels.iter().map(|(domain, _, _)| 7 * domain).collect(),
            subjects: labels.iter().map(|(_, subject, _)| *subject).collect(),
            classes: labels.into_iter().map(|(_, _, classes)| classes).collect(),
        };
        let mut classes = rows.all_classes();
        classes.insert(99);
        for domain in rows.all_domains() {
            rows.domains.push(domain);
            rows.subjects.push(100);
            rows.classes.push(classes.clone());
        }
        rows
    }
}

/// The draws of [`Hierarchical`], with and without classes.
const DRAWS: [Option<ClassDraw>; 3] = [None, Some(ClassDraw::Uniform), Some(ClassDraw::LeastDrawn)];

proptest! {
    #[test]
    fn every_batch_has_every_domain(rows in rows(), more in 0_u64..9, n_batches in 0_u64..6, seed in any::<u64>()) {
        let domains = rows.all_domains();
        let batch_rows = domains.len() as u64 + more;
        for draw in DRAWS {
            let sampling = rows.sampling(draw, batch_rows, n_batches);
            prop_assert!(sampling.is_listed());
            prop_assert_eq!(sampling.batch_rows(), Some(batch_rows));
            let found = sampling.rows(seed, 1).unwrap();
            prop_assert_eq!(&found, &sampling.rows(seed, 1).unwrap());
            prop_assert_eq!(found.len() as u64, n_batches * batch_rows);
            prop_assert_eq!(found.len() as u64, sampling.n_samples());
            let (few, many) = (batch_rows as usize / domains.len(), (batch_rows as usize).div_ceil(domains.len()));
            for batch in found.chunks(batch_rows as usize) {
                for domain in &domains {
                    let n = batch.iter().filter(|row| rows.domains[**row as usize] == *domain).count();
                    prop_assert!(n == few || n == many, "{n} rows of domain {domain} in {batch:?}");
                }
            }
            if draw.is_some() {
                prop_assert!(found.iter().all(|row| !rows.classes[*row as usize].is_empty()));
            }
        }
    }

    /// In batches of one round, the rows of all domains have a class in common; the one that was
    /// least drawn, if that is asked for.
    #[test]
    fn the_rows_of_a_round_share_the_class_that_is_due(rows in rows(), n_batches in 1_u64..30, seed in any::<u64>()) {
        let n_domains = rows.all_domains().len();
        for draw in [ClassDraw::Uniform, ClassDraw::LeastDrawn] {
            let found = rows.sampling(Some(draw), n_domains as u64, n_batches).rows(seed, 0).unwrap();
            let mut n_drawn: BTreeMap<u32, u32> = rows.all_classes().into_iter().map(|class| (class, 0)).collect();
            for batch in found.chunks(n_domains) {
                let least = n_drawn.values().min().copied().unwrap_or(0);
                let has_all = |class: u32| batch.iter().all(|row| rows.classes[*row as usize].contains(&class));
                prop_assert!(n_drawn.iter().any(|(class, n)| {
                    has_all(*class) && (*n == least || draw == ClassDraw::Uniform)
                }), "{batch:?} after {n_drawn:?}");
                for class in batch.iter().flat_map(|row| &rows.classes[*row as usize]) {
                    *n_drawn.entry(*class).or_insert(0) += 1;
                }
            }
        }
    }
}

/// Three domains; a subject is in two of them, and subjects have 1 to 5 rows.
fn uneven() -> Rows {
    let labels = [
        (0, 1, 5, &[0][..]),
        (0, 2, 1, &[0, 1]),
        (1, 2, 2, &[1]),
        (1, 3, 3, &[0, 1, 2]),
        (1, 4, 1, &[]),
        (2, 9, 4, &[0, 2]),
        (0, 5, 2, &[2]),
        (2, 3, 2, &[1]),
    ];
    let mut rows = Rows { domains: vec![], subjects: vec![], classes: vec![] };
    for (domain, subject, n_rows, classes) in labels {
        for _ in 0..n_rows {
            rows.domains.push(domain);
            rows.subjects.push(subject);
            rows.classes.push(classes.iter().copied().collect());
        }
    }
    rows
}

/// How often each row of a domain comes in 1,000 epochs of 5 batches of 7 rows.
fn counts(rows: &Rows, draw: Option<ClassDraw>, domain: u32) -> BTreeMap<u32, f64> {
    let sampling = rows.sampling(draw, 7, 5);
    let mut counts = BTreeMap::new();
    for epoch in 0..1000 {
        for row in &*sampling.rows(11, epoch).unwrap() {
            if rows.domains[*row as usize] == domain {
                *counts.entry(*row).or_insert(0.0) += 1.0;
            }
        }
    }
    counts
}

#[test]
fn subjects_and_their_rows_are_equally_likely() {
    let rows = uneven();
    for domain in rows.all_domains() {
        let expected = rows.by_subject(&rows.of_domain(domain));
        check_frequencies(&counts(&rows, None, domain), &expected);
    }
}

#[test]
fn classes_are_equally_likely() {
    let rows = uneven();
    for domain in rows.all_domains() {
        let expected = rows.by_class(&rows.of_domain(domain));
        check_frequencies(&counts(&rows, Some(ClassDraw::Uniform), domain), &expected);
    }
}

/// Each row's set of classes is one class, so the counts of a single domain stay within one round
/// of each other.
#[test]
fn least_drawn_classes_come_equally_often() {
    let rows = Rows {
        domains: vec![0; 100],
        subjects: (0..100).map(|row| row / 7).collect(),
        classes: (0..100).map(|row| [if row < 97 { 0 } else { row - 96 }].into()).collect(),
    };
    let sampling = rows.sampling(Some(ClassDraw::LeastDrawn), 6, 10);
    let mut counts = BTreeMap::new();
    for row in &*sampling.rows(0, 0).unwrap() {
        let class = rows.classes[*row as usize].first().copied();
        *counts.entry(class).or_insert(0) += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [15; 4]);
}

#[test]
fn draws_are_independent_and_places_too() {
    // A subject of one row, and one of two.
    let rows =
        Rows { domains: vec![3; 3], subjects: vec![0, 1, 1], classes: vec![BTreeSet::new(); 3] };
    let sampling = rows.sampling(None, 2, 1);
    let found = outcomes(20_000, |epoch| sampling.rows(5, epoch).unwrap().to_vec());
    let one = rows.by_subject(&[0, 1, 2]);
    let pairs = one.iter().flat_map(|(a, p)| one.iter().map(move |(b, q)| (vec![*a, *b], p * q)));
    check_frequencies(&found, &pairs.collect());
    // Every order of four domains is equally likely, and so is the domain that comes twice.
    let rows =
        Rows { domains: vec![0, 1, 2, 3], subjects: vec![0; 4], classes: vec![BTreeSet::new(); 4] };
    let sampling = rows.sampling(None, 4, 1);
    let found = outcomes(24_000, |epoch| sampling.rows(5, epoch).unwrap().to_vec());
    assert_eq!(found.len(), 24);
    check_frequencies(&found, &found.keys().map(|order| (order.clone(), 1.0 / 24.0)).collect());
    let sampling = rows.sampling(None, 5, 1);
    let twice = outcomes(20_000, |epoch| {
        sampling.rows(5, epoch).unwrap().iter().sum::<u32>() - (0..4).sum::<u32>()
    });
    check_frequencies(&twice, &(0..4).map(|domain| (domain, 0.25)).collect());
}

#[test]
fn another_epoch_or_seed_composes_other_batches() {
    let rows = uneven();
    for draw in DRAWS {
        let sampling = rows.sampling(draw, 6, 20);
        let found = sampling.rows(3, 0).unwrap();
        assert_ne!(found, sampling.rows(3, 1).unwrap());
        assert_ne!(found, sampling.rows(4, 0).unwrap());
    }
}

#[test]
fn what_cannot_be_composed_is_refused() {
    let sets =
        |sets: &[&[u32]]| ClassSets::new(sets.iter().map(|set| set.iter().copied())).unwrap();
    let refused = |domains: &[u32], subjects: &[u32], classes: Option<&ClassSets>, batch_rows| {
        let classes = classes.map(|classes| (classes, ClassDraw::Uniform));
        let spec = Hierarchical { domains, subjects, classes, batch_rows, n_batches: 2 };
        Sampling::hierarchical(&spec).unwrap_err()
    };
    assert_eq!(refused(&[], &[], None, 3), Error::NoRows { n_samples: 6 });
    assert_eq!(
        refused(&[1, 2], &[1], None, 3),
        Error::UnequalLists { first: "a domain", what: "a subject", n_rows: 2, n_found: 1 }
    );
    assert_eq!(
        refused(&[1, 2], &[1, 1], Some(&sets(&[&[1]])), 3),
        Error::UnequalLists { first: "a domain", what: "classes", n_rows: 2, n_found: 1 }
    );
    for batch_rows in [0, 1] {
        assert_eq!(
            refused(&[1, 2], &[1, 1], None, batch_rows),
            Error::FewerRowsThanDomains { batch_rows, n_domains: 2 }
        );
    }
    let none = sets(&[&[], &[]]);
    assert_eq!(refused(&[1, 2], &[1, 1], Some(&none), 2), Error::NoClasses { n_rows: 2 });
    for (classes, class, domain) in [
        (sets(&[&[5, 8], &[8]]), 5, 20),
        (sets(&[&[5], &[5, 8]]), 8, 10),
        (sets(&[&[], &[6]]), 6, 10),
    ] {
        assert_eq!(
            refused(&[10, 20], &[1, 1], Some(&classes), 2),
            Error::ClassNotInDomain { class, domain }
        );
    }
    let too_large = refused(&[1], &[1], None, 1 << 32);
    assert!(matches!(too_large, Error::TooLarge { .. }), "{too_large}");
}

#[test]
fn composed_batches_must_divide_global_batches() {
    let sampling = uneven().sampling(None, 6, 4);
    let spec = PlanSpec {
        n_rows: 20,
        chunk_rows: 1,
        chunks_per_block: 6,
        order: Order::Listed,
        seed: 0,
        ramp_blocks: 0,
    };
    let check = |batch_rows| spec.check_sampling(&BatchSpec::single(batch_rows), Some(&sampling));
    assert_eq!((check(6), check(12)), (Ok(()), Ok(())));
    assert_eq!(check(4), Err(PlanError::SamplingBatch { sampled_rows: 6, global_batch_rows: 4 }));
}

#[test]
fn golden_batches_for_seed_42() {
    let rows = uneven();
    let lines: Vec<String> = DRAWS
        .iter()
        .map(|draw| {
            let sampling = rows.sampling(*draw, 4, 3);
            format!("{:?} {:?}", sampling.rows(42, 0).unwrap(), sampling.rows(42, 1).unwrap())
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
