//! Ranges and probabilities of random maps, and draws from them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use shuffle::RandomKey;

use super::error::AugmentError;
use super::parameters::{AffineMap, Parameters};

/// Keeps our streams apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 16] = *b"somafeed augment";

/// Ranges of a random rotation, shift and scaling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// Largest angle to either side, in degrees.
    pub degrees: f64,
    /// Largest shift to either side, as a fraction of the width and of the height.
    pub translate: [f64; 2],
    /// Smallest and largest factor by which an image is enlarged.
    pub scale: [f64; 2],
    /// Probability that an image is rotated, shifted and scaled, from 0 to 1.
    pub probability: f64,
}

/// Random affine maps and flips.
///
/// The default is that of htc's data-loading benchmark: with a probability of one half each, an
/// affine map (up to 45 degrees, shifts up to a sixteenth, scale 0.9 to 1.1), a horizontal flip and
/// a vertical flip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augmentation {
    affine: Option<Affine>,
    horizontal_flip: f64,
    vertical_flip: f64,
}

impl Default for Augmentation {
    fn default() -> Self {
        let affine = Affine {
            degrees: 45.0,
            translate: [0.0625, 0.0625],
            scale: [0.9, 1.1],
            probability: 0.5,
        };
        Self { affine: Some(affine), horizontal_flip: 0.5, vertical_flip: 0.5 }
    }
}

impl Augmentation {
    /// Makes an augmentation of these ranges and of the flips' probabilities.
    ///
    /// # Errors
    /// A probability or a part of `translate` is outside 0 to 1, `degrees` is outside 0 to 360,
    /// `scale` is not positive, not finite or in the wrong order, or any of them is not a number.
    pub fn new(
        affine: Option<Affine>,
        horizontal_flip: f64,
        vertical_flip: f64,
    ) -> Result<Self, AugmentError> {
        if let Some(affine) = affine {
            affine.check()?;
        }
        check_fraction("probability of a horizontal flip", horizontal_flip)?;
        check_fraction("probability of a vertical flip", vertical_flip)?;
        Ok(Self { affine, horizontal_flip, vertical_flip })
    }

    /// Ranges of the affine map; `None` if there is none.
    pub fn affine(&self) -> Option<Affine> {
        self.affine
    }

    /// Probability that left and right are exchanged.
    pub fn horizontal_flip(&self) -> f64 {
        self.horizontal_flip
    }

    /// Probability that top and bottom are exchanged.
    pub fn vertical_flip(&self) -> f64 {
        self.vertical_flip
    }

    /// Draws the parameters of a sample, whose images are of `[height, width]` pixels.
    ///
    /// The same numbers give the same parameters, on any machine and in any order. A change of one
    /// probability or range leaves the other draws as they are.
    pub fn draw(
        &self,
        seed: u64,
        epoch: u64,
        sample: u64,
        [height, width]: [usize; 2],
    ) -> Parameters {
        let mut generator = RandomKey { domain: DOMAIN, seed, number: epoch }.stream(sample);
        // Always as many numbers, so that no draw depends on another one's outcome.
        let [is_affine, angle, scale, right, down, horizontal, vertical] =
            std::array::from_fn(|_| unit(&mut generator));
        let affine = self.affine.filter(|affine| is_affine < affine.probability);
        Parameters {
            affine: affine.map(|ranges| AffineMap {
                degrees: between(-ranges.degrees, ranges.degrees, angle),
                translation: [
                    between(-ranges.translate[0], ranges.translate[0], right) * width as f64,
                    between(-ranges.translate[1], ranges.translate[1], down) * height as f64,
                ],
                scale: between(ranges.scale[0], ranges.scale[1], scale),
            }),
            horizontal_flip: horizontal < self.horizontal_flip,
            vertical_flip: vertical < self.vertical_flip,
        }
    }
}

impl Affine {
    fn check(&self) -> Result<(), AugmentError> {
        if !(0.0..=360.0).contains(&self.degrees) {
            let range = "from 0 to 360";
            return Err(AugmentError::Setting { setting: "degrees", value: self.degrees, range });
        }
        check_fraction("horizontal translate", self.translate[0])?;
        check_fraction("vertical translate", self.translate[1])?;
        for value in self.scale {
            if !(value.is_finite() && value > 0.0) {
                let range = "positive and finite";
                return Err(AugmentError::Setting { setting: "scale", value, range });
            }
        }
        let [from, to] = self.scale;
        if from > to {
            return Err(AugmentError::ScaleOrder { from, to });
        }
        check_fraction("probability of an affine map", self.probability)
    }
}

fn check_fraction(setting: &'static str, value: f64) -> Result<(), AugmentError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(AugmentError::Setting { setting, value, range: "from 0 to 1" })
}

/// A uniform random number from 0 to below 1, of 53 bits.
fn unit(generator: &mut ChaCha8Rng) -> f64 {
    (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn between(from: f64, to: f64, fraction: f64) -> f64 {
    from + (to - from) * fraction
}
