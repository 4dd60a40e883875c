//! Positions in a source image, reflected into it.
//!
//! The rules are those of torch's `grid_sample` with `padding_mode="reflection"` and
//! `align_corners=False`: positions are reflected at the outer edges of the outermost pixels, half
//! a pixel beyond their centres, and then clipped to the centres.

/// Reflects a position on an axis of `size` pixels, at least one, into 0 to `size - 1`.
pub(super) fn reflect(position: f64, size: usize) -> f64 {
    let span = size as f64;
    // From the outer edge of the first pixel.
    let from_edge = (position + 0.5).abs();
    let inside = if from_edge < span { from_edge } else { fold(from_edge, span) };
    (inside - 0.5).clamp(0.0, span - 1.0)
}

/// The position in a mirror image, that repeats every two spans.
#[cold]
fn fold(from_edge: f64, span: f64) -> f64 {
    let within = from_edge % (2.0 * span);
    if within < span { within } else { 2.0 * span - within }
}

/// The two pixels next to a position on an axis, and their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbours {
    pub(super) pixels: [usize; 2],
    pub(super) weights: [f32; 2],
}

/// The neighbours of a position from 0 to `size - 1`.
pub(super) fn neighbours(position: f64, size: usize) -> Neighbours {
    let first = position as usize;
    if first + 1 >= size {
        // There is no second pixel. Halves of the first are exact, and unlike a weight of zero they
        // make no NaN of an infinite value.
        return Neighbours { pixels: [first, first], weights: [0.5, 0.5] };
    }
    let fraction = position - first as f64;
    Neighbours { pixels: [first, first + 1], weights: [(1.0 - fraction) as f32, fraction as f32] }
}

/// The nearest pixel of a position from 0 to the last pixel; of two, the even one, like torch.
pub(super) fn nearest(position: f64) -> usize {
    position.round_ties_even() as usize
}
