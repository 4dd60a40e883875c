//! What an image shows: regions of classes, shading, and the circle of the lens.

use std::f64::consts::TAU;

use libm::{cos, exp, hypot, sin};

use bench_run::Choices;

use super::random::{Decision, some_of};
use super::spec::CubeSpec;

/// Number of waves in a field.
const N_WAVES: usize = 8;
/// Most waves of a field across the longer side of the image.
const REGION_WAVES: f64 = 2.5;
const SHADING_WAVES: f64 = 1.5;
const VARIATION_WAVES: f64 = 4.0;
/// Most classes in an image.
const MAX_PRESENT: usize = 5;
/// Spread of the logarithm of the shading.
const SHADING: f64 = 0.15;
/// Radius of the lens's circle in shares of the image's diagonal. Corners lie beyond it.
const RADIUS: [f64; 2] = [0.40, 0.46];

/// Everything about an image but its spectra and its noise: a value per pixel, row by row.
#[derive(Debug)]
pub(crate) struct Scene {
    /// The class of each pixel; 0 outside of the circle.
    pub(crate) labels: Vec<u8>,
    /// Whether a pixel lies in the circle.
    pub(crate) valid: Vec<bool>,
    /// The factor of the pixel's light.
    pub(crate) shading: Vec<f32>,
    /// How much blood and how much scattering the pixel has, about -2 to 2.
    pub(crate) blood: Vec<f32>,
    pub(crate) scatter: Vec<f32>,
}

impl Scene {
    /// Draws an image.
    pub(crate) fn new(spec: &CubeSpec, image: u64) -> Self {
        let [height, width, _] = spec.shape;
        let size = [height, width];
        let mut choices = Decision::Scene(image).choices(spec.seed);
        let valid = circle(&mut choices, size);
        let mut labels = regions(&mut choices, spec);
        for (label, valid) in labels.iter_mut().zip(&valid) {
            *label *= u8::from(*valid);
        }
        let mut shading = smooth_field(&mut choices, size, SHADING_WAVES);
        for value in &mut shading {
            *value = exp(SHADING * f64::from(*value)) as f32;
        }
        Self {
            labels,
            valid,
            shading,
            blood: smooth_field(&mut choices, size, VARIATION_WAVES),
            scatter: smooth_field(&mut choices, size, VARIATION_WAVES),
        }
    }
}

/// The class of each pixel: that of the largest of several smooth fields.
fn regions(choices: &mut Choices, spec: &CubeSpec) -> Vec<u8> {
    let [height, width, _] = spec.shape;
    let most = spec.n_classes.min(MAX_PRESENT);
    let least = most.min(2);
    let n_present = least + choices.below((most - least + 1) as u32) as usize;
    let present = some_of(choices, n_present, spec.n_classes);
    let mut largest = vec![f32::NEG_INFINITY; height * width];
    let mut labels = vec![0; height * width];
    for class in present {
        let field = smooth_field(choices, [height, width], REGION_WAVES);
        for ((value, largest), label) in field.iter().zip(&mut largest).zip(&mut labels) {
            if *largest < *value {
                *largest = *value;
                *label = class as u8;
            }
        }
    }
    labels
}

/// Whether each pixel lies in the circle of the lens, whose center is near the image's.
fn circle(choices: &mut Choices, [height, width]: [usize; 2]) -> Vec<bool> {
    let diagonal = hypot(height as f64, width as f64);
    let radius = diagonal * choices.between(RADIUS[0], RADIUS[1]);
    let mut center = |length: usize| (length as f64) * choices.between(0.48, 0.52) - 0.5;
    let (row, column) = (center(height), center(width));
    (0..height * width)
        .map(|pixel| {
            let (down, right) = ((pixel / width) as f64 - row, (pixel % width) as f64 - column);
            down * down + right * right <= radius * radius
        })
        .collect()
}

/// A smooth random field with mean near 0 and standard deviation near 1: a sum of waves.
fn smooth_field(choices: &mut Choices, [height, width]: [usize; 2], most: f64) -> Vec<f32> {
    let mut field = vec![0.0; height * width];
    let longer = height.max(width) as f64;
    for _ in 0..N_WAVES {
        let (down, right) = (choices.between(-most, most), choices.between(-most, most));
        let phase = choices.share();
        let size = choices.between(0.5, 1.5) * (2.0 / N_WAVES as f64).sqrt();
        // cos(a + b) from the cosines and sines of the rows and the columns: one of each pixel
        // would take longer than the rest of the cube.
        let angle =
            |idx: usize, waves: f64, phase: f64| TAU * (waves * idx as f64 / longer + phase);
        let columns: Vec<[f32; 2]> = (0..width)
            .map(|column| angle(column, right, 0.0))
            .map(|angle| [cos(angle) as f32, sin(angle) as f32])
            .collect();
        for (row, values) in field.chunks_exact_mut(width).enumerate() {
            let angle = angle(row, down, phase);
            let (cosine, sine) = ((size * cos(angle)) as f32, (size * sin(angle)) as f32);
            for (value, [column_cosine, column_sine]) in values.iter_mut().zip(&columns) {
                *value += cosine * column_cosine - sine * column_sine;
            }
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_regions_of_several_classes_and_an_invalid_rim() {
        let spec = CubeSpec { shape: [48, 64, 1], ..CubeSpec::default() };
        let mut found = [false; 8];
        for image in 0..60 {
            let scene = Scene::new(&spec, image);
            let n_valid = scene.valid.iter().filter(|valid| **valid).count();
            assert!(48 * 64 * 3 / 4 < n_valid && n_valid < 48 * 64, "{n_valid}");
            assert!(!scene.valid[0] && scene.valid[24 * 64 + 32]);
            for (label, valid) in scene.labels.iter().zip(&scene.valid) {
                assert!(usize::from(*label) < 8 && (*valid || *label == 0));
                found[usize::from(*label)] = true;
            }
            // Blobs: most pixels have the label of their neighbour.
            let rows = scene.labels.chunks_exact(64);
            let n_same: usize =
                rows.map(|row| row.windows(2).filter(|pair| pair[0] == pair[1]).count()).sum();
            assert!(48 * 63 * 8 / 10 < n_same, "{n_same}");
        }
        assert_eq!(found, [true; 8]);
    }

    #[test]
    fn fields_have_mean_0_and_deviation_1() {
        let mut choices = Decision::Scene(0).choices(3);
        let (mut sum, mut squares, n) = (0.0, 0.0, 200.0 * 30.0 * 40.0);
        for _ in 0..200 {
            for value in smooth_field(&mut choices, [30, 40], 3.0) {
                sum += f64::from(value);
                squares += f64::from(value).powi(2);
            }
        }
        assert!((sum / n).abs() < 0.1, "{}", sum / n);
        assert!((0.8..1.3).contains(&(squares / n)), "{}", squares / n);
    }
}
