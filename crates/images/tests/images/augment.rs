//! Random maps of images and masks: their draws, and both resamplings against an oracle and
//! against Kornia.

mod draws;
mod kornia;
mod oracle;
mod valid_pixels;
mod warps;

use half::f16;
use images::augment::{AffineMap, ImageElement, Parameters, warp_image, warp_mask};
use proptest::prelude::*;

/// A number for each index that looks random; `kornia_reference.py` has the same.
fn scrambled(idx: usize) -> u32 {
    (idx as u32).wrapping_mul(2_654_435_761)
}

/// An image of values from 0 to below 1.
fn image([height, width, channels]: [usize; 3]) -> Vec<f32> {
    let value = |idx| (scrambled(idx) >> 8) as f32 / (1 << 24) as f32;
    (0..height * width * channels).map(value).collect()
}

/// A mask of labels from 0 to 15.
fn mask([height, width]: [usize; 2]) -> Vec<u8> {
    (0..height * width).map(|idx| (scrambled(idx) >> 28) as u8).collect()
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|value| f16::from_f32(*value)).collect()
}

/// All rows of a warped image.
fn warped<S: ImageElement, T: ImageElement>(
    parameters: &Parameters,
    shape: [usize; 3],
    image: &[S],
) -> Vec<T> {
    let mut into = vec![T::zeroed(); image.len()];
    warp_image(parameters, shape, image, 0..shape[0], &mut into).unwrap();
    into
}

/// All rows of a warped mask.
fn warped_mask<E: Copy + Default>(
    parameters: &Parameters,
    shape: [usize; 2],
    mask: &[E],
) -> Vec<E> {
    let mut into = vec![E::default(); mask.len()];
    warp_mask(parameters, shape, mask, 0..shape[0], &mut into).unwrap();
    into
}

/// Affine maps beyond those of the default: any angle, and shifts by several images.
fn affine_maps() -> impl Strategy<Value = AffineMap> {
    let shift = -40.0..40.0_f64;
    (-400.0..400.0_f64, [shift.clone(), shift], 0.1..5.0_f64)
        .prop_map(|(degrees, translation, scale)| AffineMap { degrees, translation, scale })
}

fn parameters() -> impl Strategy<Value = Parameters> {
    (proptest::option::of(affine_maps()), any::<bool>(), any::<bool>()).prop_map(
        |(affine, horizontal_flip, vertical_flip)| Parameters {
            affine,
            horizontal_flip,
            vertical_flip,
        },
    )
}
