//! A map that would move all valid pixels out of the image is not applied.

use images::augment::{AffineMap, AugmentError, Parameters};
use proptest::prelude::*;

use super::{parameters, warped_mask};

#[test]
fn a_map_that_loses_the_annotated_part_is_not_applied() {
    let shape = [6, 8];
    let mut corner = [0_u8; 48];
    corner[0] = 1;
    let center = {
        let mut mask = [0_u8; 48];
        mask[20] = 1;
        mask
    };
    // Enlarged four times, only the middle remains.
    let affine = AffineMap { degrees: 0.0, translation: [0.0, 0.0], scale: 4.0 };
    let drawn = Parameters { affine: Some(affine), ..Parameters::IDENTITY };
    let kept = |masks: &[&[u8]]| {
        drawn.keeping_valid_pixels(shape, masks.iter().copied(), |valid| valid != 0).unwrap()
    };
    assert_eq!(kept(&[&center]), drawn);
    assert_eq!(kept(&[&corner]), Parameters::IDENTITY);
    // Each of several annotations must keep one.
    assert_eq!(kept(&[&center, &corner]), Parameters::IDENTITY);
    assert_eq!(kept(&[&center, &center]), drawn);
    // Nothing to lose, and nothing to keep.
    assert_eq!(kept(&[&[0; 48]]), Parameters::IDENTITY);
    assert_eq!(kept(&[]), drawn);
}

#[test]
fn labels_stand_for_a_mask() {
    let labels = [100_u8, 100, 3, 100];
    let drawn = Parameters { horizontal_flip: true, ..Parameters::IDENTITY };
    let kept = |threshold| {
        drawn.keeping_valid_pixels([2, 2], [&labels[..]], |label| label < threshold).unwrap()
    };
    assert_eq!(kept(100), drawn);
    assert_eq!(kept(3), Parameters::IDENTITY);
}

#[test]
fn a_mask_of_another_shape_is_refused() {
    let masks = [&[true; 5][..]];
    let refused = Parameters::IDENTITY.keeping_valid_pixels([2, 2], masks, |valid| valid);
    assert!(matches!(refused, Err(AugmentError::Length { expected: 4, found: 5, .. })));
}

proptest! {
    #[test]
    fn the_decision_is_that_of_the_warped_mask(
        parameters in parameters(),
        (height, width) in (1..9_usize, 1..9_usize),
        valid in 0..64_usize,
    ) {
        let shape = [height, width];
        let mask: Vec<bool> = (0..height * width).map(|pixel| pixel == valid).collect();
        let remains = warped_mask(&parameters, shape, &mask).contains(&true);
        let kept = parameters.keeping_valid_pixels(shape, [&mask[..]], |valid| valid).unwrap();
        prop_assert_eq!(kept, if remains { parameters } else { Parameters::IDENTITY });
    }
}
