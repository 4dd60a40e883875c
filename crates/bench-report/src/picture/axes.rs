//! The background of plots: grid lines at the ticks, their numbers, the two axes and their titles.

use super::{
    TEXT,
    canvas::{Align, Canvas, Ink},
    scale::Scale,
};
use crate::Error;

/// Height that numbers and title of the x axis take.
pub(super) const BELOW: f64 = 58.0;

/// Draws the axes around `plot` (left, top, right, bottom). `labels_x` is false if a plot below has
/// the numbers.
pub(super) fn draw_axes(
    canvas: &Canvas<'_>,
    plot: [f64; 4],
    x: &Scale,
    y: &Scale,
    labels_x: bool,
) -> Result<(), Error> {
    let [left, upper, right, lower] = plot;
    for (tick, text) in x.ticks() {
        let at = x.position(tick);
        canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
        if labels_x {
            canvas.text(&text, (at, lower + 9.0), TEXT, Ink::TEXT, Align::Below)?;
        }
    }
    for (tick, text) in y.ticks() {
        let at = y.position(tick);
        canvas.line(&[(left, at), (right, at)], Ink::GRID, 1.0)?;
        canvas.text(&text, (left - 8.0, at), TEXT, Ink::TEXT, Align::Right)?;
    }
    canvas.line(&[(left, upper), (left, lower), (right, lower)], Ink::GRAY, 1.5)
}

/// Writes the titles that `plots`, one above the other, share: below the last, and beside all.
pub(super) fn draw_titles(
    canvas: &Canvas<'_>,
    plots: &[[f64; 4]],
    x: &str,
    y: &str,
) -> Result<(), Error> {
    let (Some([left, upper, ..]), Some([_, _, right, lower])) = (plots.first(), plots.last())
    else {
        return Ok(());
    };
    let middle = (f64::midpoint(*left, *right), f64::midpoint(*upper, *lower));
    canvas.text(x, (middle.0, lower + 31.0), TEXT, Ink::TEXT, Align::Below)?;
    canvas.text(y, (12.0, middle.1), TEXT, Ink::TEXT, Align::Upward)
}
