//! Random affine maps and flips of images and masks.
//!
//! [`Augmentation`] holds ranges and probabilities. [`Augmentation::draw`] makes [`Parameters`]
//! from them, by seed, epoch and sample alone: neither threads nor order change them.
//! [`warp_image`] and [`warp_mask`] apply parameters; the affine map and the flips are one
//! resampling, so values are interpolated once. The result is that of Kornia 0.9 (Python) for the
//! same parameters: images bilinear, masks nearest, both reflected at their edges.
//!
//! Releases of Kornia before 0.9 normalise positions by another convention than they sample by
//! (<https://github.com/kornia/kornia/issues/3904>). In images of 480 x 640 pixels that moves a
//! position by up to a quarter of a pixel at the ends of the default's ranges.
//!
//! ```
//! use images::augment::{Augmentation, warp_image, warp_mask};
//!
//! let (height, width, channels) = (4, 6, 3);
//! let cube: Vec<f32> = (0..height * width * channels).map(|value| value as f32).collect();
//! let labels: Vec<u8> = (0..height * width).map(|pixel| (pixel % 5) as u8).collect();
//!
//! let (seed, epoch, sample) = (42, 0, 17);
//! let parameters = Augmentation::default().draw(seed, epoch, sample, [height, width]);
//!
//! let mut warped = vec![0.0_f32; cube.len()];
//! warp_image(&parameters, [height, width, channels], &cube, 0..height, &mut warped)?;
//! let mut warped_labels = vec![0; labels.len()];
//! warp_mask(&parameters, [height, width], &labels, 0..height, &mut warped_labels)?;
//! # Ok::<(), images::augment::AugmentError>(())
//! ```

mod augmentation;
mod element;
mod error;
mod image;
mod mask;
mod parameters;
mod source_position;

pub use augmentation::{Affine, Augmentation};
pub use element::ImageElement;
pub use error::AugmentError;
pub use image::warp_image;
pub use mask::warp_mask;
pub use parameters::{AffineMap, Parameters};
