//! Maps of images on a device are those of crate `images`.

use half::f16;
use images::augment::{AffineMap, Augmentation, ImageElement, Parameters, warp_image, warp_mask};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};
use torch_feed::{Error, ImageMaps};

/// Values from 0 to below 1 that look random.
fn values(n: usize) -> Vec<f32> {
    let value = |idx: usize| (idx as u32).wrapping_mul(2_654_435_761) >> 8;
    (0..n).map(|idx| value(idx) as f32 / (1 << 24) as f32).collect()
}

/// A batch of images as `images::augment` maps it.
fn warped<S: ImageElement>(
    parameters: &[Parameters],
    [height, width, channels]: [usize; 3],
    batch: &[S],
) -> Vec<f32> {
    let mut warped = vec![0.0; batch.len()];
    let n_values = height * width * channels;
    let pairs = batch.chunks_exact(n_values).zip(warped.chunks_exact_mut(n_values));
    for ((image, into), parameters) in pairs.zip(parameters) {
        warp_image(parameters, [height, width, channels], image, 0..height, into).unwrap();
    }
    warped
}

/// A batch of masks as `images::augment` maps it.
fn warped_masks<E: Copy>(parameters: &[Parameters], shape: [usize; 2], batch: &[E]) -> Vec<E> {
    let mut warped = batch.to_vec();
    let n_pixels = shape[0] * shape[1];
    let pairs = batch.chunks_exact(n_pixels).zip(warped.chunks_exact_mut(n_pixels));
    for ((mask, into), parameters) in pairs.zip(parameters) {
        warp_mask(parameters, shape, mask, 0..shape[0], into).unwrap();
    }
    warped
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    let contiguous = tensor.to_kind(Kind::Float).contiguous();
    Vec::try_from(contiguous.flatten(0, -1)).unwrap()
}

/// Asserts that both maps of a batch are those of crate `images`.
fn assert_same(parameters: &[Parameters], shape: [usize; 3]) {
    let [height, width, channels] = shape;
    let n_pixels = parameters.len() * height * width;
    let size = [parameters.len(), height, width, channels].map(|size| size as i64);
    let maps = ImageMaps::new(parameters, [height, width], Device::Cpu).unwrap();

    let batch = values(n_pixels * channels);
    let tensor = Tensor::from_slice(&batch).view(size);
    let found = maps.warp_images(&tensor, Kind::Float).unwrap();
    assert_eq!(found.size(), size);
    assert!(found.permute([0, 3, 1, 2]).is_contiguous());
    let expected = warped(parameters, shape, &batch);
    let pairs = numbers(&found).into_iter().zip(&expected).enumerate();
    for (idx, (found, expected)) in pairs {
        let is_copy = parameters[idx / (height * width * channels)].affine.is_none();
        let tolerance = if is_copy { 0.0 } else { 1e-4 };
        assert!((found - expected).abs() <= tolerance, "{idx}: {found} {expected}");
    }

    let halves: Vec<f16> = batch.iter().map(|value| f16::from_f32(*value)).collect();
    let narrow = tensor.to_kind(Kind::Half);
    let found = maps.warp_images(&narrow, Kind::Float).unwrap();
    let expected = warped(parameters, shape, &halves);
    assert!(numbers(&found).iter().zip(&expected).all(|(of, other)| (of - other).abs() <= 1e-4));
    let found = maps.warp_images(&narrow, Kind::Half).unwrap();
    assert_eq!(found.kind(), Kind::Half);
    // Rounded to f16, which may go to the next number.
    assert!(numbers(&found).iter().zip(&expected).all(|(of, other)| (of - other).abs() <= 1e-3));

    // Labels that f32 does not have.
    let labels: Vec<i64> = (0..n_pixels as i64).map(|pixel| pixel + (1 << 53) + 1).collect();
    let found = maps.warp_masks(&Tensor::from_slice(&labels).view([size[0], size[1], size[2]]));
    let found: Vec<i64> = Vec::try_from(found.unwrap().flatten(0, -1)).unwrap();
    assert_eq!(found, warped_masks(parameters, [height, width], &labels));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn drawn_maps_are_those_of_the_cpu(
        (seed, n_samples) in (any::<u64>(), 1..7_u64),
        shape in [1..20_usize, 1..20_usize, 1..6_usize],
    ) {
        let draw = |sample| Augmentation::default().draw(seed, 0, sample, [shape[0], shape[1]]);
        assert_same(&(0..n_samples).map(draw).collect::<Vec<_>>(), shape);
    }

    #[test]
    fn maps_far_beyond_the_edges_are_those_of_the_cpu(
        degrees in -400.0..400.0_f64,
        translation in [-90.0..90.0_f64, -90.0..90.0_f64],
        (scale, horizontal_flip, vertical_flip) in (0.2..4.0_f64, any::<bool>(), any::<bool>()),
    ) {
        let affine = Some(AffineMap { degrees, translation, scale });
        let affine = Parameters { affine, horizontal_flip, vertical_flip };
        assert_same(&[affine, Parameters { affine: None, ..affine }], [7, 11, 3]);
    }
}

#[test]
fn a_large_image_is_that_of_the_cpu() {
    // Positions in f32 are least exact here.
    let draw = |sample| Augmentation::default().draw(3, 0, sample, [480, 640]);
    let maps: Vec<Parameters> = (0..100).map(draw).filter(|of| of.affine.is_some()).collect();
    assert_same(&maps[..2], [480, 640, 1]);
}

#[test]
fn masks_of_bool_and_images_of_bytes() {
    let parameters = [Parameters { horizontal_flip: true, ..Parameters::IDENTITY }];
    let maps = ImageMaps::new(&parameters, [1, 3], Device::Cpu).unwrap();
    let mask = Tensor::from_slice(&[true, false, false]).view([1, 1, 3]);
    let found = maps.warp_masks(&mask).unwrap();
    assert_eq!(Vec::<bool>::try_from(found.flatten(0, -1)).unwrap(), [false, false, true]);
    let bytes = Tensor::from_slice(&[200_u8, 100, 7]).view([1, 1, 3, 1]);
    let found = maps.warp_images(&bytes, Kind::Float).unwrap();
    assert_eq!(numbers(&found), [7.0, 100.0, 200.0]);
}

#[test]
fn the_source_stays_as_it_is() {
    let maps = ImageMaps::new(&[Parameters::IDENTITY], [2, 2], Device::Cpu).unwrap();
    let mask = Tensor::from_slice(&[1_u8, 2, 3, 4]).view([1, 2, 2]);
    let mut found = maps.warp_masks(&mask).unwrap();
    let _filled = found.fill_(9);
    assert_eq!(Vec::<u8>::try_from(mask.flatten(0, -1)).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn batches_of_another_shape_are_refused() {
    let maps = ImageMaps::new(&[Parameters::IDENTITY; 2], [3, 4], Device::Cpu).unwrap();
    let blank = |shape: &[i64]| Tensor::zeros(shape, (Kind::Float, Device::Cpu));
    for shape in [&[2, 3, 4][..], &[1, 3, 4, 1], &[2, 4, 3, 1], &[2, 3, 4, 1, 1]] {
        let refused = maps.warp_images(&blank(shape), Kind::Float).unwrap_err();
        let message = format!("images must be of shape [2, 3, 4, channels], not {shape:?}");
        assert_eq!(refused.to_string(), message);
    }
    let refused = maps.warp_masks(&blank(&[2, 3, 4, 1])).unwrap_err();
    assert!(matches!(refused, Error::ImageShape { what: "masks", .. }), "{refused}");
    let nothing = ImageMaps::new(&[], [3, 4], Device::Cpu).unwrap();
    assert_eq!(nothing.warp_masks(&blank(&[0, 3, 4])).unwrap().size(), [0, 3, 4]);
}
