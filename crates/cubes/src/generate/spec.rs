//! What is generated: number, shape and seed of the cubes.

use crate::Error;

const MAX_IMAGES: u64 = 1_000_000;
const MAX_LENGTH: usize = 16_384;
/// Largest number of values in a cube: their positions have 32 bits.
const MAX_VALUES: usize = 1 << 30;
const MAX_CLASSES: usize = 255;
const MAX_DOMAINS: usize = 26;

/// Specifies generated cubes. The cube of an image depends on these numbers and the image's own
/// only, and not on the number of images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubeSpec {
    /// Number of images, 1 to a million.
    pub n_images: u64,
    /// Height, width and channels of each cube.
    pub shape: [usize; 3],
    /// Number of classes of the labels, 1 to 255.
    pub n_classes: usize,
    /// Number of domains (cameras), 1 to 26.
    pub n_domains: usize,
    /// Standard deviation of the noise in the middle of the spectrum, in reflectance, 0 to 1. At
    /// both ends of the spectrum it is four times as large.
    pub noise: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl CubeSpec {
    /// The noise for which cubes compress as well as htc's do.
    pub const DEFAULT_NOISE: f64 = 0.014;
}

impl Default for CubeSpec {
    /// 16 cubes in the shape of a Tivita camera, 480 x 640 x 100.
    fn default() -> Self {
        Self {
            n_images: 16,
            shape: [480, 640, 100],
            n_classes: 8,
            n_domains: 1,
            noise: Self::DEFAULT_NOISE,
            seed: 0,
        }
    }
}

impl CubeSpec {
    /// The number of values in a cube.
    pub(crate) fn cube_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Fails if a number is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let length = |what, value: usize, most: usize| {
            Error::check_size(what, value as f64, (1.0, most as f64))
        };
        length("the number of images", self.n_images as usize, MAX_IMAGES as usize)?;
        let [height, width, n_channels] = self.shape;
        length("the height of a cube", height, MAX_LENGTH)?;
        length("the width of a cube", width, MAX_LENGTH)?;
        length("the number of channels", n_channels, MAX_LENGTH)?;
        let n_values = height.saturating_mul(width).saturating_mul(n_channels);
        length("the number of values in a cube", n_values, MAX_VALUES)?;
        length("the number of classes", self.n_classes, MAX_CLASSES)?;
        length("the number of domains", self.n_domains, MAX_DOMAINS)?;
        Error::check_size("the noise", self.noise, (0.0, 1.0))
    }
}
