//! Both resamplings: equal to the oracle, exact where nothing is interpolated, the same for any
//! split into rows.

use std::ops::Range;

use half::f16;
use images::augment::{AffineMap, AugmentError, Parameters, warp_image, warp_mask};
use proptest::prelude::*;

use super::{halves, image, mask, oracle, parameters, scrambled, warped, warped_mask};

/// Flips alone, in all combinations.
fn flips() -> [Parameters; 4] {
    [(false, false), (false, true), (true, false), (true, true)].map(
        |(horizontal_flip, vertical_flip)| Parameters {
            affine: None,
            horizontal_flip,
            vertical_flip,
        },
    )
}

proptest! {
    #[test]
    fn an_image_is_that_of_the_oracle(
        parameters in parameters(),
        (height, width, channels) in (1..9_usize, 1..9_usize, 1..20_usize),
    ) {
        let shape = [height, width, channels];
        let image = image(shape);
        let expected = oracle::image(&parameters, shape, &image);
        let found: Vec<f32> = warped(&parameters, shape, &image);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} {expected}");
        }
        // From f16, its values; to f16, rounded.
        let narrow = halves(&image);
        let widened: Vec<f32> = narrow.iter().map(|value| value.to_f32()).collect();
        let of_widened: Vec<f32> = warped(&parameters, shape, &widened);
        prop_assert_eq!(&warped::<_, f32>(&parameters, shape, &narrow), &of_widened);
        prop_assert_eq!(warped::<_, f16>(&parameters, shape, &narrow), halves(&of_widened));
        prop_assert_eq!(warped::<_, f16>(&parameters, shape, &image), halves(&found));
    }

    #[test]
    fn a_mask_is_that_of_the_oracle(
        parameters in parameters(),
        (height, width) in (1..30_usize, 1..30_usize),
    ) {
        let shape = [height, width];
        let mask: Vec<u32> = (0..height * width).map(scrambled).collect();
        let found = warped_mask(&parameters, shape, &mask);
        let positions = oracle::positions(&parameters, shape);
        for (found, [x, y]) in found.iter().zip(positions) {
            if !oracle::is_tie([x, y], 1e-9) {
                prop_assert_eq!(*found, mask[y.round() as usize * width + x.round() as usize]);
            }
        }
    }

    #[test]
    fn any_split_into_rows_gives_the_same(
        parameters in parameters(),
        (height, width, channels) in (1..9_usize, 1..9_usize, 1..5_usize),
        middle in 0..9_usize,
    ) {
        let (shape, middle) = ([height, width, channels], middle.min(height));
        let (image, mask) = (image(shape), mask([height, width]));
        let whole: Vec<f32> = warped(&parameters, shape, &image);
        let whole_mask = warped_mask(&parameters, [height, width], &mask);
        for rows in [0..middle, middle..height] {
            let n_pixels = rows.len() * width;
            let mut part = vec![0.0_f32; n_pixels * channels];
            warp_image(&parameters, shape, &image, rows.clone(), &mut part).unwrap();
            prop_assert_eq!(&part, &whole[rows.start * width * channels..][..part.len()]);
            let mut part = vec![0; n_pixels];
            warp_mask(&parameters, [height, width], &mask, rows.clone(), &mut part).unwrap();
            prop_assert_eq!(&part, &whole_mask[rows.start * width..][..part.len()]);
        }
    }
}

#[test]
fn flips_copy_pixels_bit_for_bit() {
    let [height, width, channels] = [3, 5, 4];
    let shape = [height, width, channels];
    // All bit patterns of f16 that matter: NaNs with a payload, infinities, -0.
    let values = (0..60).map(|idx| f16::from_bits(0x7bf0_u16.wrapping_add(idx * 619)));
    let image: Vec<f16> = values.collect();
    let mask = mask([height, width]);
    for parameters in flips() {
        let found: Vec<f16> = warped(&parameters, shape, &image);
        let found_mask = warped_mask(&parameters, [height, width], &mask);
        for row in 0..height {
            for column in 0..width {
                let from_row = if parameters.vertical_flip { height - 1 - row } else { row };
                let from_column =
                    if parameters.horizontal_flip { width - 1 - column } else { column };
                let (pixel, from) = (row * width + column, from_row * width + from_column);
                assert_eq!(found_mask[pixel], mask[from]);
                let bits = |values: &[f16], pixel: usize| -> Vec<u16> {
                    values[pixel * channels..][..channels]
                        .iter()
                        .map(|value| value.to_bits())
                        .collect()
                };
                assert_eq!(bits(&found, pixel), bits(&image, from), "{parameters:?}");
            }
        }
    }
}

#[test]
fn a_flip_twice_and_the_identity_change_nothing() {
    let shape = [4, 7, 3];
    let (image, mask) = (image(shape), mask([4, 7]));
    for parameters in flips() {
        let once: Vec<f32> = warped(&parameters, shape, &image);
        assert_eq!(warped::<_, f32>(&parameters, shape, &once), image);
        assert_eq!(once == image, parameters.is_identity());
        let once = warped_mask(&parameters, [4, 7], &mask);
        assert_eq!(warped_mask(&parameters, [4, 7], &once), mask);
    }
}

#[test]
fn a_map_by_nothing_and_whole_pixels_are_exact() {
    let shape = [4, 7, 3];
    let (image, mask) = (image(shape), mask([4, 7]));
    let affine = AffineMap { degrees: 0.0, translation: [0.0, 0.0], scale: 1.0 };
    let nothing = Parameters { affine: Some(affine), ..Parameters::IDENTITY };
    assert_eq!(warped::<_, f32>(&nothing, shape, &image), image);
    assert_eq!(warped_mask(&nothing, [4, 7], &mask), mask);
    // By two to the right: the edge's mirror image appears at the left.
    let affine = AffineMap { translation: [2.0, 0.0], ..affine };
    let right = Parameters { affine: Some(affine), ..Parameters::IDENTITY };
    let found = warped_mask(&right, [4, 7], &mask);
    for row in 0..4 {
        let columns = [1, 0, 0, 1, 2, 3, 4].map(|column| mask[row * 7 + column]);
        assert_eq!(found[row * 7..][..7], columns);
    }
}

#[test]
fn values_that_are_not_finite_stay_with_their_pixel() {
    let mut image = vec![0.5_f32; 4 * 4];
    image[15] = f32::INFINITY;
    // The last pixel's column and row have no neighbours beyond.
    let affine = AffineMap { degrees: 0.0, translation: [-0.25, -0.25], scale: 1.0 };
    let parameters = Parameters { affine: Some(affine), ..Parameters::IDENTITY };
    let found: Vec<f32> = warped(&parameters, [4, 4, 1], &image);
    assert_eq!((found[15], found[0]), (f32::INFINITY, 0.5));
}

#[test]
fn no_parameters_read_beyond_the_image() {
    let shape = [3, 2, 1];
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0, 1e-300] {
        let affine = AffineMap { degrees: value, translation: [value, -value], scale: value };
        let parameters = Parameters { affine: Some(affine), ..Parameters::IDENTITY };
        assert_eq!(warped::<_, f32>(&parameters, shape, &image(shape)).len(), 6);
        assert_eq!(warped_mask(&parameters, [3, 2], &mask([3, 2])).len(), 6);
    }
}

#[test]
fn empty_images_and_no_rows_are_empty() {
    let affine = AffineMap { degrees: 10.0, translation: [0.0, 0.0], scale: 1.0 };
    for affine in [None, Some(affine)] {
        let parameters = Parameters { affine, ..Parameters::IDENTITY };
        for shape in [[0, 0, 0], [0, 3, 2], [3, 0, 2], [3, 2, 0]] {
            assert!(warped::<f32, f32>(&parameters, shape, &[]).is_empty());
        }
        assert!(warped_mask::<u8>(&parameters, [0, 3], &[]).is_empty());
        warp_image(&parameters, [1, 1, 1], &[1.0_f32], 1..1, &mut [0.0_f32; 0]).unwrap();
    }
}

#[test]
fn other_sizes_are_refused() {
    let identity = Parameters::IDENTITY;
    let refusal = |shape, n_source: usize, rows, n_result: usize| {
        let image = vec![0.0_f32; n_source];
        warp_image(&identity, shape, &image, rows, &mut vec![0.0_f32; n_result]).unwrap_err()
    };
    assert_eq!(
        refusal([2, 3, 4], 23, 0..2, 24).to_string(),
        "the source of shape [2, 3, 4] has 24 values, the given slice has 23"
    );
    assert_eq!(
        refusal([2, 3, 4], 24, 1..2, 24).to_string(),
        "the result of shape [1, 3, 4] has 12 values, the given slice has 24"
    );
    assert_eq!(
        refusal([2, 3, 4], 24, 1..3, 24).to_string(),
        "rows 1 to 3 are not rows of an image of height 2"
    );
    let reversed = Range { start: 2, end: 1 };
    let refused = refusal([2, 3, 4], 24, reversed.clone(), 0);
    assert_eq!(refused, AugmentError::Rows { rows: reversed, height: 2 });
    assert_eq!(
        refusal([usize::MAX, 3, 4], 24, 0..1, 12),
        AugmentError::TooLarge { shape: vec![usize::MAX, 3, 4] }
    );
    let refused = warp_mask(&identity, [2, 2], &[0_u8; 4], 0..2, &mut [0; 3]).unwrap_err();
    assert!(matches!(refused, AugmentError::Length { expected: 4, found: 3, .. }), "{refused}");
}
