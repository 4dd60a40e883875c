//! The table of weighted numbers: its probabilities and its draws.

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use shuffle::{AliasTable, AliasTableError};

fn counts() -> impl Strategy<Value = Vec<u64>> {
    let count = prop_oneof![
        2 => Just(0),
        4 => 1_u64..1000,
        1 => 1_u64..1_000_000_000_000,
    ];
    prop::collection::vec(count, 1..300)
        .prop_filter("a number must occur", |counts| counts.iter().any(|count| 0 < *count))
}

proptest! {
    #[test]
    fn probabilities_are_the_exact_ones(counts in counts(), exponent in -1.0_f64..1.5) {
        let found = AliasTable::new(&counts, exponent).unwrap().probabilities();
        let power = |count: &u64| match count {
            0 => 0.0,
            count => (*count as f64).powf(exponent),
        };
        let total: f64 = counts.iter().map(power).sum();
        prop_assert_eq!(found.len(), counts.len());
        for (found, count) in found.iter().zip(&counts) {
            prop_assert!((found - power(count) / total).abs() < 1e-9);
            prop_assert!(0 < *count || *found == 0.0);
        }
        prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn numbers_that_do_not_occur_are_never_drawn(counts in counts(), random in any::<u64>()) {
        let table = AliasTable::new(&counts, 0.75).unwrap();
        for random in [random, 0, u64::MAX] {
            prop_assert!(0 < counts[table.draw(random) as usize]);
        }
    }
}

#[test]
fn draws_have_the_table_s_probabilities() {
    let counts: Vec<u64> = (0..21).map(|word| word * word).collect();
    let table = AliasTable::new(&counts, 0.75).unwrap();
    let mut generator = ChaCha8Rng::seed_from_u64(4);
    let n_draws = 400_000;
    let mut drawn = vec![0_u32; counts.len()];
    for _ in 0..n_draws {
        drawn[table.draw(generator.next_u64()) as usize] += 1;
    }
    // Number 0 does not occur. With 19 degrees of freedom: above 43.8 once in a thousand.
    let expected = table.probabilities().into_iter().map(|part| part * f64::from(n_draws));
    let chi_squared: f64 = drawn
        .iter()
        .zip(expected)
        .skip(1)
        .map(|(drawn, expected)| (f64::from(*drawn) - expected).powi(2) / expected)
        .sum();
    assert!(chi_squared < 43.8, "{chi_squared}");
    assert_eq!(drawn[0], 0);
}

#[test]
fn equally_spaced_bits_give_equally_spaced_draws() {
    // Every number once per slot of 2^64 / 5, whatever the generator.
    let table = AliasTable::new(&[7; 5], 0.75).unwrap();
    let step = u64::MAX / 10;
    let drawn: Vec<u32> = (0..10).map(|idx| table.draw(idx * step + step / 2)).collect();
    assert_eq!(drawn, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(table.n_counts(), 5);
}

#[test]
fn no_counts_and_no_exponent_are_errors() {
    assert!(matches!(
        AliasTable::new(&[], 0.75),
        Err(AliasTableError::NothingToDraw { n_counts: 0 })
    ));
    assert!(matches!(
        AliasTable::new(&[0, 0], 0.75),
        Err(AliasTableError::NothingToDraw { n_counts: 2 })
    ));
    for exponent in [f64::NAN, f64::INFINITY] {
        let error = AliasTable::new(&[1], exponent).unwrap_err();
        assert!(error.to_string().contains("exponent"), "{error}");
    }
}
