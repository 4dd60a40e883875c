//! The cube of an image: spectra, shading and noise.

use crate::Error;

use super::random::{Decision, Noise};
use super::scene::Scene;
use super::spec::CubeSpec;
use super::spectra::{Spectrum, background, noise_of, spectra_of};

/// Images of a subject.
const SUBJECT_IMAGES: u64 = 4;

/// A generated image.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedImage {
    /// Reflectances: height x width x channels, in C order.
    pub cube: Vec<f32>,
    /// The class of each pixel: height x width. 0 where it is not valid.
    pub labels: Vec<u8>,
    /// Whether each pixel shows one of the classes.
    pub valid_pixels: Vec<bool>,
}

/// Generates one image of a data set.
///
/// # Errors
/// A number is out of range, there are not so many images, or there is not enough memory.
pub fn image(spec: &CubeSpec, image: u64) -> Result<GeneratedImage, Error> {
    spec.check()?;
    let last = (spec.n_images - 1) as f64;
    Error::check_size("the number of the image, counted from 0,", image as f64, (0.0, last))?;
    let mut cube = Vec::new();
    let Segmentation { labels, valid_pixels } = fill(spec, image, &mut cube)?;
    Ok(GeneratedImage { cube, labels, valid_pixels })
}

/// The labels of an image: a value per pixel.
#[derive(Debug)]
pub(crate) struct Segmentation {
    pub(crate) labels: Vec<u8>,
    pub(crate) valid_pixels: Vec<bool>,
}

/// Number of an image's subject.
pub(crate) fn subject_of(image: u64) -> u64 {
    image / SUBJECT_IMAGES
}

/// Number of an image's domain: each subject is seen by one camera.
pub(crate) fn domain_of(spec: &CubeSpec, image: u64) -> u64 {
    subject_of(image) % spec.n_domains as u64
}

/// Generates an image into memory that is used again.
pub(crate) fn fill(
    spec: &CubeSpec,
    image: u64,
    cube: &mut Vec<f32>,
) -> Result<Segmentation, Error> {
    let n_channels = spec.shape[2];
    let cube = bench_run::reserved(cube, spec.cube_len(), "a cube")?;
    let spectra = spectra_of(spec, domain_of(spec, image), subject_of(image));
    let background = background(n_channels);
    let largest = noise_of(spec);
    let noise = Noise::new(Decision::Noise(image).choices(spec.seed).bits());
    let scene = Scene::new(spec, image);
    for (pixel, values) in cube.chunks_exact_mut(n_channels).enumerate() {
        let spectrum = if scene.valid[pixel] {
            &spectra[usize::from(scene.labels[pixel])]
        } else {
            &background
        };
        let Spectrum { mean, blood, scatter } = spectrum;
        let shading = scene.shading[pixel];
        let (more_blood, more_scatter) = (scene.blood[pixel], scene.scatter[pixel]);
        let first = (pixel * n_channels) as u32;
        let curves = mean.iter().zip(blood).zip(scatter).zip(&largest);
        for (position, (value, (((mean, blood), scatter), largest))) in
            (first..).zip(values.iter_mut().zip(curves))
        {
            let reflectance = mean + more_blood * blood + more_scatter * scatter;
            *value = shading * reflectance + noise.at(position) * largest;
        }
    }
    Ok(Segmentation { labels: scene.labels, valid_pixels: scene.valid })
}
