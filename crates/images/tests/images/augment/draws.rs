//! Draws: uniform in their ranges, reproducible, and different by epoch and sample.

use images::augment::{Affine, AffineMap, AugmentError, Augmentation, Parameters};
use proptest::prelude::*;

const SHAPE: [usize; 2] = [480, 640];

fn affine() -> Affine {
    Augmentation::default().affine().unwrap()
}

fn draws(augmentation: &Augmentation, n_samples: u64) -> Vec<Parameters> {
    (0..n_samples).map(|sample| augmentation.draw(7, 3, sample, SHAPE)).collect()
}

/// Asserts that 10,000 numbers are uniform: chi-squared of 10 classes with 9 degrees of freedom is
/// above 33.7 once in ten thousand.
#[track_caller]
fn assert_uniform(numbers: impl Iterator<Item = f64>, from: f64, to: f64) {
    let mut counts = [0_u32; 10];
    for number in numbers {
        assert!((from..=to).contains(&number), "{number}");
        counts[(((number - from) / (to - from) * 10.0) as usize).min(9)] += 1;
    }
    assert_eq!(counts.iter().sum::<u32>(), 10_000);
    let chi_squared: f64 =
        counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi_squared < 33.7, "{chi_squared} {counts:?}");
}

#[test]
fn draws_are_uniform_in_their_ranges() {
    let certain = Affine { probability: 1.0, ..affine() };
    let augmentation = Augmentation::new(Some(certain), 0.5, 0.5).unwrap();
    let drawn = draws(&augmentation, 10_000);
    let maps: Vec<AffineMap> = drawn.iter().map(|drawn| drawn.affine.unwrap()).collect();
    assert_uniform(maps.iter().map(|map| map.degrees), -45.0, 45.0);
    assert_uniform(maps.iter().map(|map| map.translation[0]), -40.0, 40.0);
    assert_uniform(maps.iter().map(|map| map.translation[1]), -30.0, 30.0);
    assert_uniform(maps.iter().map(|map| map.scale), 0.9, 1.1);
}

#[test]
fn each_map_comes_as_often_as_asked_independently() {
    // Eight outcomes of one in eight each; 7 degrees of freedom: above 29.9 once in ten thousand.
    let mut counts = [0_u32; 8];
    for drawn in draws(&Augmentation::default(), 8000) {
        let outcome = [drawn.affine.is_some(), drawn.horizontal_flip, drawn.vertical_flip];
        counts[outcome.iter().fold(0, |number, bit| 2 * number + usize::from(*bit))] += 1;
    }
    let chi_squared: f64 =
        counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi_squared < 29.9, "{chi_squared} {counts:?}");
    // Another probability than a half.
    let augmentation = Augmentation::new(None, 0.9, 0.1).unwrap();
    let n_flipped = draws(&augmentation, 10_000).iter().filter(|of| of.horizontal_flip).count();
    assert!((8_880..9_120).contains(&n_flipped), "{n_flipped}");
}

#[test]
fn probabilities_of_zero_and_one_are_certain() {
    for certain in [false, true] {
        let probability = if certain { 1.0 } else { 0.0 };
        let affine = Affine { probability, ..affine() };
        let augmentation = Augmentation::new(Some(affine), probability, probability).unwrap();
        for drawn in draws(&augmentation, 1000) {
            assert_eq!(drawn.affine.is_some(), certain);
            assert_eq!((drawn.horizontal_flip, drawn.vertical_flip), (certain, certain));
        }
    }
    let nothing = Augmentation::new(None, 0.0, 0.0).unwrap();
    assert!(draws(&nothing, 10).iter().all(Parameters::is_identity));
}

#[test]
fn each_number_of_a_draw_matters() {
    let certain = Affine { probability: 1.0, ..affine() };
    let augmentation = Augmentation::new(Some(certain), 0.5, 0.5).unwrap();
    let [drawn, seed, epoch, sample] = [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]
        .map(|(seed, epoch, sample)| augmentation.draw(seed, epoch, sample, SHAPE));
    assert_eq!(drawn, augmentation.draw(1, 2, 3, SHAPE));
    assert!([seed, epoch, sample].iter().all(|other| *other != drawn));
    assert!(seed != epoch && epoch != sample && seed != sample);
}

#[test]
fn a_draw_stays_what_it_was() {
    let affine = AffineMap {
        degrees: 16.766_083_996_182_82,
        translation: [-4.425_860_067_409_522, -1.348_426_782_757_332_6],
        scale: 0.975_390_271_445_484_3,
    };
    let drawn = Augmentation::default().draw(42, 1, 17, SHAPE);
    assert_eq!(drawn, Parameters { affine: Some(affine), ..Parameters::IDENTITY });
}

proptest! {
    #[test]
    fn one_setting_leaves_the_other_draws(
        (seed, epoch, sample) in (any::<u64>(), any::<u64>(), any::<u64>()),
    ) {
        let all = Augmentation::new(Some(affine()), 0.5, 0.5).unwrap();
        let flips_only = Augmentation::new(None, 0.5, 0.5).unwrap();
        let drawn = all.draw(seed, epoch, sample, SHAPE);
        let of_flips = flips_only.draw(seed, epoch, sample, SHAPE);
        prop_assert_eq!(of_flips, Parameters { affine: None, ..drawn });
        // Shifts are fractions of the image; everything else is independent of its size.
        let half_size = all.draw(seed, epoch, sample, [240, 320]);
        prop_assert_eq!(half_size.affine.is_some(), drawn.affine.is_some());
        if let (Some(half), Some(full)) = (half_size.affine, drawn.affine) {
            prop_assert_eq!(half.translation.map(|shift| shift * 2.0), full.translation);
            prop_assert_eq!((half.degrees, half.scale), (full.degrees, full.scale));
        }
    }
}

#[test]
fn settings_outside_their_range_are_refused() {
    let refused = |affine: Affine| Augmentation::new(Some(affine), 0.5, 0.5).unwrap_err();
    for degrees in [-1.0, 361.0, f64::NAN] {
        let error = refused(Affine { degrees, ..affine() });
        assert!(matches!(error, AugmentError::Setting { setting: "degrees", .. }), "{error}");
    }
    for scale in [[0.0, 1.0], [-1.0, 1.0], [f64::NAN, 1.0], [1.0, f64::INFINITY]] {
        let error = refused(Affine { scale, ..affine() });
        assert!(matches!(error, AugmentError::Setting { setting: "scale", .. }), "{error}");
    }
    let error = refused(Affine { scale: [1.1, 0.9], ..affine() });
    assert_eq!(error.to_string(), "the augmentation's scale is from 1.1 to 0.9: exchange the two");
    for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let error = refused(Affine { translate: [fraction, 0.0], ..affine() });
        assert!(error.to_string().contains("horizontal translate is"), "{error}");
        let error = refused(Affine { translate: [0.0, fraction], ..affine() });
        assert!(error.to_string().contains("vertical translate is"), "{error}");
        let error = refused(Affine { probability: fraction, ..affine() });
        assert!(error.to_string().contains("of an affine map is"), "{error}");
        let error = Augmentation::new(None, fraction, 0.5).unwrap_err();
        assert!(error.to_string().contains("of a horizontal flip is"), "{error}");
        let error = Augmentation::new(None, 0.5, fraction).unwrap_err();
        assert!(error.to_string().contains("of a vertical flip is"), "{error}");
    }
    let error = Augmentation::new(None, 0.5, 2.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the augmentation's probability of a vertical flip is 2, but must be from 0 to 1"
    );
}
