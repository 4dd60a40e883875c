//! The values of generated cubes, in all forms.

use std::fs;
use std::sync::Arc;

use cubes::generate::{CubeSpec, GeneratedImage, image};
use cubes::{Form, FormSpec, Normalization, ZarrCodec};
use half::f16;
use images::files::FileFormat;
use zarrs::array::Array;
use zarrs::filesystem::FilesystemStore;

use crate::{SMALL, forms, read_array, read_cube, write};

const IMAGES: [&str; 5] =
    ["P001_000001", "P001_000002", "P001_000003", "P001_000004", "P002_000005"];

#[test]
fn files_have_the_generated_values() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let report = write(&data, forms(&[Form::Dat, Form::Raw32, Form::Raw16])).unwrap();
    for (idx, name) in (0..).zip(IMAGES) {
        let GeneratedImage { cube, labels, valid_pixels } = image(&SMALL, idx).unwrap();
        assert_eq!(read_cube(&data, Form::Dat, name), cube);
        assert_eq!(read_cube(&data, Form::Raw32, name), cube);
        let halves: Vec<f32> = cube.iter().map(|value| f16::from_f32(*value).to_f32()).collect();
        assert_eq!(read_cube(&data, Form::Raw16, name), halves);

        let path = data.join("segmentations").join(format!("{name}.blosc"));
        let read = |array: &str| {
            let (shape, values) = read_array(&path, FileFormat::Blosc, array);
            assert_eq!(shape, SMALL.shape[..2]);
            values
        };
        assert_eq!(read("labels"), labels.iter().map(|x| f32::from(*x)).collect::<Vec<_>>());
        let valid_pixels = valid_pixels.iter().map(|x| f32::from(u8::from(*x)));
        assert_eq!(read("valid_pixels"), valid_pixels.collect::<Vec<_>>());
    }
    let precision = report.precision.unwrap();
    assert_eq!(precision.n_values, 5 * 18 * 24 * 20);
    assert!((1e-5..1e-4).contains(&precision.mean()), "{precision:?}");
    // Half of the distance of two 16-bit numbers between 0.5 and 1.
    assert!((1e-4..=2.5e-4).contains(&precision.largest), "{precision:?}");
    assert!((1e-4..5e-4).contains(&precision.mean_relative()), "{precision:?}");
}

#[test]
fn zarr_has_the_values_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    for (idx, codec) in ["none", "blosc", "zstd:3"].into_iter().enumerate() {
        let data = folder.path().join(idx.to_string());
        let zarr_codec: ZarrCodec = codec.parse().unwrap();
        write(&data, FormSpec { zarr_codec, ..forms(&[Form::Zarr]) }).unwrap();
        let files = Arc::new(FilesystemStore::new(data.join("cubes.zarr")).unwrap());
        let open = |name: &str| Array::open(Arc::clone(&files), name).unwrap();
        let (features, labels) = (open("/features"), open("/labels"));
        assert_eq!(features.shape(), [5, 18, 24, 20]);
        assert_eq!([labels.shape(), open("/valid_pixels").shape()], [&[5, 18, 24]; 2]);
        for image_idx in 0..5 {
            let expect = image(&SMALL, image_idx).unwrap();
            let cube: Vec<f16> = features.retrieve_chunk(&[image_idx, 0, 0, 0]).unwrap();
            let halves: Vec<f16> = expect.cube.iter().map(|x| f16::from_f32(*x)).collect();
            assert!(cube == halves, "{codec}");
            let found: Vec<u8> = labels.retrieve_chunk(&[image_idx, 0, 0]).unwrap();
            assert_eq!(found, expect.labels);
            let valid = open("/valid_pixels");
            let found: Vec<bool> = valid.retrieve_chunk(&[image_idx, 0, 0]).unwrap();
            assert_eq!(found, expect.valid_pixels);
        }
        let size = fs::metadata(data.join("cubes.zarr/features/c/0/0/0/0")).unwrap().len();
        assert_eq!(size < 2 * 18 * 24 * 20, codec != "none", "{codec}: {size}");
    }
}

#[test]
fn normalised_spectra_have_a_norm_of_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, normalization) in [("l1", Normalization::L1), ("l2", Normalization::L2)] {
        let data = folder.path().join(name);
        write(&data, FormSpec { normalization, ..forms(&[Form::Dat, Form::Raw32]) }).unwrap();
        let reflectances = image(&SMALL, 0).unwrap().cube;
        assert_eq!(read_cube(&data, Form::Dat, IMAGES[0]), reflectances);
        let cube = read_cube(&data, Form::Raw32, IMAGES[0]);
        for (spectrum, reflectances) in cube.chunks(20).zip(reflectances.chunks(20)) {
            let norm = |values: &[f32]| -> f64 {
                let values = values.iter().map(|value| f64::from(value.abs()));
                if normalization == Normalization::L1 {
                    values.sum()
                } else {
                    values.map(|value| value * value).sum::<f64>().sqrt()
                }
            };
            assert!((norm(spectrum) - 1.0).abs() < 1e-5);
            for (value, reflectance) in spectrum.iter().zip(reflectances) {
                let expect = f64::from(*reflectance) / norm(reflectances);
                assert!((f64::from(*value) - expect).abs() < 1e-6, "{value}, {expect}");
            }
        }
    }
}

#[test]
fn cubes_are_reflectances_and_differ_by_seed_and_image() {
    let all: Vec<GeneratedImage> = [(11, 0), (11, 1), (11, 4), (12, 0)]
        .map(|(seed, idx)| image(&CubeSpec { seed, ..SMALL }, idx).unwrap())
        .into();
    for (idx, one) in all.iter().enumerate() {
        assert!(one.cube.iter().all(|value| (-0.3..2.0).contains(value)));
        let mean = one.cube.iter().sum::<f32>() / one.cube.len() as f32;
        assert!((0.1..0.7).contains(&mean), "{mean}");
        assert!(one.labels.iter().all(|label| *label < 4));
        for other in &all[idx + 1..] {
            assert!(one.cube != other.cube && one.labels != other.labels);
        }
    }
    // The number of images changes no image.
    let fewer = CubeSpec { n_images: 1, ..SMALL };
    assert!(image(&fewer, 0).unwrap() == all[0]);
    for (spec, idx) in [(fewer, 1), (CubeSpec { shape: [0, 1, 1], ..SMALL }, 0)] {
        assert!(image(&spec, idx).unwrap_err().is_usage());
    }
}

/// The classes can be learnt from the spectra: the nearest mean spectrum tells the class of most
/// pixels of images that it has not seen, of other subjects and cameras.
#[test]
fn labels_can_be_learnt_from_spectra() {
    let spec = CubeSpec {
        n_images: 24,
        shape: [24, 32, 100],
        n_classes: 8,
        n_domains: 3,
        ..CubeSpec::default()
    };
    for seed in 0..4 {
        let spec = CubeSpec { seed, ..spec };
        let mut sums = vec![vec![0.0; 100]; 8];
        for idx in 0..16 {
            each_pixel(&spec, idx, &mut |label, spectrum| {
                sums[label].iter_mut().zip(spectrum).for_each(|(sum, value)| *sum += value);
            });
        }
        for sum in &mut sums {
            let norm = sum.iter().sum::<f32>().max(f32::MIN_POSITIVE);
            for value in sum {
                *value /= norm;
            }
        }
        let (mut n_right, mut n_pixels) = (0, 0);
        for idx in 16..24 {
            each_pixel(&spec, idx, &mut |label, spectrum| {
                let distance = |mean: &[f32]| -> f32 {
                    mean.iter().zip(spectrum).map(|(a, b)| (a - b) * (a - b)).sum()
                };
                let distances: Vec<f32> = sums.iter().map(|mean| distance(mean)).collect();
                let nearest = (0..8).min_by(|a, b| distances[*a].total_cmp(&distances[*b]));
                n_right += usize::from(nearest == Some(label));
                n_pixels += 1;
            });
        }
        let share = n_right as f64 / f64::from(n_pixels);
        assert!(0.9 < share, "seed {seed}: {share}");
    }
}

/// Calls `found` with the label and the normalised spectrum of each valid pixel.
fn each_pixel(spec: &CubeSpec, idx: u64, found: &mut dyn FnMut(usize, &[f32])) {
    let GeneratedImage { mut cube, labels, valid_pixels } = image(spec, idx).unwrap();
    let spectra = cube.chunks_exact_mut(spec.shape[2]).zip(&labels).zip(&valid_pixels);
    for ((spectrum, label), _) in spectra.filter(|(_, valid)| **valid) {
        let norm: f32 = spectrum.iter().map(|value| value.abs()).sum();
        for value in &mut *spectrum {
            *value /= norm;
        }
        found(usize::from(*label), spectrum);
    }
}
