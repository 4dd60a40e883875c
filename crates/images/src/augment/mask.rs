//! Masks: each pixel of the result is a pixel of the source.

use std::ops::Range;

use super::error::{AugmentError, check_sizes};
use super::parameters::Parameters;
use super::source_position::{nearest, reflect};

/// Applies `parameters` to a mask of shape `[height, width]`, and writes the given rows of the
/// result to `into`.
///
/// The pixel that is nearest is taken, and beyond the edges its mirror image. A row of several
/// values a pixel is a mask whose elements are arrays.
///
/// # Errors
/// `mask` or `into` is not of that shape, or `rows` are not rows of it.
pub fn warp_mask<E: Copy>(
    parameters: &Parameters,
    shape: [usize; 2],
    mask: &[E],
    rows: Range<usize>,
    into: &mut [E],
) -> Result<(), AugmentError> {
    check_sizes(&shape, mask.len(), &rows, into.len())?;
    let pixels = warped_pixels(parameters, shape, mask, rows);
    into.iter_mut().zip(pixels).for_each(|(into, pixel)| *into = pixel);
    Ok(())
}

/// The pixels of the result's rows.
pub(super) fn warped_pixels<E: Copy>(
    parameters: &Parameters,
    shape: [usize; 2],
    mask: &[E],
    rows: Range<usize>,
) -> impl Iterator<Item = E> {
    let [height, width] = shape;
    let [[xx, xy, x0], [yx, yy, y0]] = parameters.source_matrix(shape);
    rows.flat_map(move |row| {
        let (x0, y0) = (x0 + xy * row as f64, y0 + yy * row as f64);
        (0..width).map(move |column| {
            let x = nearest(reflect(x0 + xx * column as f64, width));
            let y = nearest(reflect(y0 + yx * column as f64, height));
            mask[y * width + x]
        })
    })
}
