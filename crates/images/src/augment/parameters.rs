//! The drawn parameters of a sample's map.

use super::error::{AugmentError, check_sizes};
use super::mask::warped_pixels;

/// A rotation and scaling about the image's centre, then a shift.
///
/// `degrees`, `translation` and `scale` mean what `angle`, `translations` and `scale` mean to
/// Kornia's `RandomAffine`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AffineMap {
    /// Angle in degrees; positive is clockwise as displayed, row 0 at the top.
    pub degrees: f64,
    /// Shift to the right and down, in pixels.
    pub translation: [f64; 2],
    /// Factor by which the image is enlarged; positive.
    pub scale: f64,
}

/// What is done with the images and masks of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// The affine map, before the flips; `None` leaves the pixels in place.
    pub affine: Option<AffineMap>,
    /// Left and right are exchanged.
    pub horizontal_flip: bool,
    /// Top and bottom are exchanged.
    pub vertical_flip: bool,
}

impl Parameters {
    /// Leaves images as they are.
    pub const IDENTITY: Self = Self { affine: None, horizontal_flip: false, vertical_flip: false };

    /// Whether images are left as they are. False for an affine map, even one by 0 degrees.
    pub fn is_identity(&self) -> bool {
        *self == Self::IDENTITY
    }

    /// The map from a pixel of the result to a position in the source, for images of
    /// `[height, width]` pixels.
    ///
    /// Rows of `[[xx, xy, x], [yx, yy, y]]`: the pixel in column `c` and row `r` of the result is
    /// the source at column `xx * c + xy * r + x` and row `yx * c + yy * r + y`. Positions are
    /// counted from the centre of the pixel at the top left.
    pub fn source_matrix(&self, [height, width]: [usize; 2]) -> [[f64; 3]; 2] {
        let last = [width as f64 - 1.0, height as f64 - 1.0];
        // A flip is undone first.
        let (sign_x, start_x) = if self.horizontal_flip { (-1.0, last[0]) } else { (1.0, 0.0) };
        let (sign_y, start_y) = if self.vertical_flip { (-1.0, last[1]) } else { (1.0, 0.0) };
        let Some(affine) = self.affine else {
            return [[sign_x, 0.0, start_x], [0.0, sign_y, start_y]];
        };
        // From libm, so that it is the same to the bit on every machine.
        let (sin, cos) = libm::sincos(affine.degrees.to_radians());
        let (sin, cos) = (sin / affine.scale, cos / affine.scale);
        let center = [last[0] / 2.0, last[1] / 2.0];
        let from_center_x = start_x - center[0] - affine.translation[0];
        let from_center_y = start_y - center[1] - affine.translation[1];
        [
            [cos * sign_x, sin * sign_y, center[0] + cos * from_center_x + sin * from_center_y],
            [-sin * sign_x, cos * sign_y, center[1] - sin * from_center_x + cos * from_center_y],
        ]
    }

    /// These parameters if at least one valid pixel remains in each mask, otherwise
    /// [`Self::IDENTITY`]: htc's rule, so that no image without valid pixels is trained on.
    ///
    /// Each mask is of shape `[height, width]`; htc takes one for each annotator, and labels if
    /// there are no masks. `is_valid` judges a mask's pixel. Without masks the parameters are kept.
    ///
    /// # Errors
    /// A mask is not of that shape.
    pub fn keeping_valid_pixels<'a, E: Copy + 'a>(
        self,
        shape: [usize; 2],
        masks: impl IntoIterator<Item = &'a [E]>,
        is_valid: impl Fn(E) -> bool,
    ) -> Result<Self, AugmentError> {
        let rows = 0..shape[0];
        let mut keeps_all = true;
        for mask in masks {
            check_sizes(&shape, mask.len(), &rows, mask.len())?;
            keeps_all &= warped_pixels(&self, shape, mask, rows.clone()).any(&is_valid);
        }
        Ok(if keeps_all { self } else { Self::IDENTITY })
    }
}
