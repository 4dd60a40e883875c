//! The background of a plot: grid lines at the ticks, their numbers, the two axes and their titles.

use super::{
    PLOT,
    canvas::{Align, Canvas, Ink},
    scale::Scale,
};
use crate::Error;

/// Draws the axes around `plot` (left, top, right, bottom). `labels_y` is false if a plot to the
/// left has the numbers.
pub(super) fn draw_axes(
    canvas: &Canvas<'_>,
    plot: [f64; 4],
    x: &Scale,
    y: &Scale,
    labels_y: bool,
) -> Result<(), Error> {
    let [left, upper, right, lower] = plot;
    for (tick, text) in x.ticks() {
        let at = x.position(tick);
        canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
        canvas.text(&text, (at, lower + 10.0), 13.0, Ink::TEXT, Align::Below)?;
    }
    for (tick, text) in y.ticks() {
        let at = y.position(tick);
        canvas.line(&[(left, at), (right, at)], Ink::GRID, 1.0)?;
        if labels_y {
            canvas.text(&text, (left - 9.0, at), 13.0, Ink::TEXT, Align::Right)?;
        }
    }
    canvas.line(&[(left, upper), (left, lower), (right, lower)], Ink::GRAY, 1.5)
}

/// Writes the axis titles of the picture's single plot.
pub(super) fn draw_titles(canvas: &Canvas<'_>, x: &str, y: &str) -> Result<(), Error> {
    let [left, upper, right, lower] = PLOT;
    let middle = (f64::midpoint(left, right), f64::midpoint(upper, lower));
    canvas.text(x, (middle.0, lower + 36.0), 15.0, Ink::TEXT, Align::Below)?;
    canvas.text(y, (14.0, middle.1), 15.0, Ink::TEXT, Align::Upward)
}
