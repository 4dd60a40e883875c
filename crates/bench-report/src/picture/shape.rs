//! Twelve shapes of marks that are distinguishable when small and without color; the page has the
//! same.

use std::f64::consts::TAU;

use super::canvas::{Canvas, Ink};
use crate::Error;

/// Number of shapes; further series repeat them.
pub(crate) const N_SHAPES: usize = 12;

/// The corners of shape `idx` around its center, y downward, with the area of a circle of radius 1;
/// none for a circle.
pub(crate) fn corners(idx: usize) -> Vec<(f64, f64)> {
    let outline: &[(f64, f64)] = match idx % N_SHAPES {
        0 => return Vec::new(),
        1 => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
        2 => return scaled(&regular(3, 1.0, 0.0)),
        3 => return scaled(&regular(4, 1.0, 0.0)),
        4 => return scaled(&regular(3, 1.0, 0.5)),
        5 => &PLUS,
        6 => return scaled(&regular(5, 0.45, 0.0)),
        7 => return scaled(&PLUS.map(|(x, y)| (x - y, x + y))),
        8 => return scaled(&regular(3, 1.0, 0.25)),
        9 => &[(-1.0, -1.0), (1.0, -1.0), (0.12, 0.0), (1.0, 1.0), (-1.0, 1.0), (-0.12, 0.0)],
        10 => return scaled(&regular(3, 1.0, 0.75)),
        _ => &[(-1.0, -1.0), (0.0, -0.12), (1.0, -1.0), (1.0, 1.0), (0.0, 0.12), (-1.0, 1.0)],
    };
    scaled(outline)
}

/// A plus whose bars are three times as long as wide.
const PLUS: [(f64, f64); 12] = [
    (-1.0, -3.0),
    (1.0, -3.0),
    (1.0, -1.0),
    (3.0, -1.0),
    (3.0, 1.0),
    (1.0, 1.0),
    (1.0, 3.0),
    (-1.0, 3.0),
    (-1.0, 1.0),
    (-3.0, 1.0),
    (-3.0, -1.0),
    (-1.0, -1.0),
];

/// A regular polygon of `n` corners, the first rotated from straight up by `turn` (a share of a
/// full turn). A star if `inner`, the distance of the points between corners, is below 1.
fn regular(n: u32, inner: f64, turn: f64) -> Vec<(f64, f64)> {
    let (steps, distances) = if inner < 1.0 { (2 * n, [1.0, inner]) } else { (n, [1.0, 1.0]) };
    let corner = |idx: u32| {
        let angle = TAU * (f64::from(idx) / f64::from(steps) + turn);
        let distance = distances[(idx % 2) as usize];
        (distance * angle.sin(), -distance * angle.cos())
    };
    (0..steps).map(corner).collect()
}

fn scaled(outline: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let factor = (TAU / 2.0 / area(outline)).sqrt();
    outline.iter().map(|(x, y)| (x * factor, y * factor)).collect()
}

fn area(outline: &[(f64, f64)]) -> f64 {
    let next = outline.iter().cycle().skip(1);
    let twice: f64 = outline.iter().zip(next).map(|((x, y), (u, v))| x * v - u * y).sum();
    twice.abs() / 2.0
}

/// Largest distance from the center to the edge of a shape of `radius`.
pub(super) fn reach(idx: usize, radius: f64) -> f64 {
    radius * corners(idx).iter().map(|(x, y)| x.hypot(*y)).fold(1.0, f64::max)
}

/// Draws shape `idx` with the area of a circle of `radius`. Past the last shape they repeat with a
/// thick outline.
pub(super) fn draw_shape(
    canvas: &Canvas<'_>,
    idx: usize,
    (x, y): (f64, f64),
    radius: f64,
    fill: Ink,
) -> Result<(), Error> {
    let outline = Ink::TEXT.with_opacity(0.75);
    let width = if idx < N_SHAPES { 1.0 } else { 2.6 };
    let corners = corners(idx);
    if corners.is_empty() {
        return canvas.circle((x, y), radius, fill, outline, width);
    }
    let placed: Vec<(f64, f64)> =
        corners.iter().map(|(across, down)| (x + across * radius, y + down * radius)).collect();
    canvas.polygon(&placed, fill, outline, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_different_and_have_the_same_area() {
        let all: Vec<Vec<(f64, f64)>> = (0..N_SHAPES).map(corners).collect();
        for (idx, shape) in all.iter().enumerate() {
            assert!(!all[..idx].contains(shape), "{idx}");
            assert!(idx == 0 || (area(shape) - TAU / 2.0).abs() < 1e-9, "{idx}");
            assert!((1.0..2.2).contains(&reach(idx, 1.0)), "{idx}: {}", reach(idx, 1.0));
        }
    }
}
