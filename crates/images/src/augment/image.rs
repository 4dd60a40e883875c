//! Images: each pixel of the result is a weighted mean of four pixels of the source.

use std::ops::Range;

use super::element::{ImageElement, WidePixel, copy};
use super::error::{AugmentError, check_sizes};
use super::parameters::Parameters;
use super::source_position::{neighbours, reflect};

/// Applies `parameters` to an image of shape `[height, width, channels]`, and writes the given
/// rows of the result to `into`.
///
/// Values are interpolated bilinearly in `f32`, and beyond the edges in the image's mirror image.
/// Without an affine map they are copied: bit for bit if the types are the same, and otherwise
/// exactly or, to `f16`, rounded to nearest.
///
/// Threads can share an image: each takes some rows, and that part of the result.
///
/// # Errors
/// `image` or `into` is not of that shape, or `rows` are not rows of it.
pub fn warp_image<S: ImageElement, T: ImageElement>(
    parameters: &Parameters,
    shape: [usize; 3],
    image: &[S],
    rows: Range<usize>,
    into: &mut [T],
) -> Result<(), AugmentError> {
    check_sizes(&shape, image.len(), &rows, into.len())?;
    if into.is_empty() {
        return Ok(());
    }
    if parameters.affine.is_some() {
        interpolate(parameters, shape, image, rows, into);
    } else {
        flip(parameters, shape, image, rows, into);
    }
    Ok(())
}

/// Copies rows and, if left and right are exchanged, pixels.
fn flip<S: ImageElement, T: ImageElement>(
    parameters: &Parameters,
    [height, width, channels]: [usize; 3],
    image: &[S],
    rows: Range<usize>,
    into: &mut [T],
) {
    let row_values = width * channels;
    let piece = if parameters.horizontal_flip { channels } else { row_values };
    for (row, into) in rows.zip(into.chunks_exact_mut(row_values)) {
        let row = if parameters.vertical_flip { height - 1 - row } else { row };
        let from = &image[row * row_values..][..row_values];
        for (from, into) in from.rchunks_exact(piece).zip(into.chunks_exact_mut(piece)) {
            copy(from, into);
        }
    }
}

fn interpolate<S: ImageElement, T: ImageElement>(
    parameters: &Parameters,
    [height, width, channels]: [usize; 3],
    image: &[S],
    rows: Range<usize>,
    into: &mut [T],
) {
    let [[xx, xy, x0], [yx, yy, y0]] = parameters.source_matrix([height, width]);
    let mut wide = [(); 4].map(|()| WidePixel::new(channels));
    let mut blended = vec![0.0; channels];
    for (row, into) in rows.zip(into.chunks_exact_mut(width * channels)) {
        let (x0, y0) = (x0 + xy * row as f64, y0 + yy * row as f64);
        for (column, into) in into.chunks_exact_mut(channels).enumerate() {
            let x = neighbours(reflect(x0 + xx * column as f64, width), width);
            let y = neighbours(reflect(y0 + yx * column as f64, height), height);
            // Neighbours are odd and even, so each of the four has a place of its own, which the
            // next pixel of the result finds again.
            let taps = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[right, below]| {
                let (x, y) = (x.pixels[right], y.pixels[below]);
                let number = y * width + x;
                let values = &image[number * channels..][..channels];
                let place = 2 * (y % 2) + x % 2;
                S::widen(number, values, &mut wide[place]);
                (values, place)
            });
            let taps = taps.map(|(values, place)| S::widened(values, &wide[place]));
            let weights = [
                x.weights[0] * y.weights[0],
                x.weights[1] * y.weights[0],
                x.weights[0] * y.weights[1],
                x.weights[1] * y.weights[1],
            ];
            T::fill(into, &mut blended, |into| blend(taps, weights, into));
        }
    }
}

/// The weighted sum of four pixels.
fn blend(taps: [&[f32]; 4], weights: [f32; 4], into: &mut [f32]) {
    // Slices of one known length need no check in the loop, so it is vectorised.
    let [nw, ne, sw, se] = taps.map(|tap| &tap[..into.len()]);
    for channel in 0..into.len() {
        into[channel] = nw[channel] * weights[0]
            + ne[channel] * weights[1]
            + sw[channel] * weights[2]
            + se[channel] * weights[3];
    }
}
