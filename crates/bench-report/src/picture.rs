//! The picture: rows a second against peak memory, one mark a grid point, as SVG for a page or a talk.
//!
//! Both axes are linear and begin at 0, so that distances are honest. The mark's shape says the method, its area the
//! rows of a block, its color the chunks of a block; thin bars reach from the smallest to the largest epoch. No font
//! of this machine is asked for, so the same records give the same bytes anywhere.

mod bars;
mod canvas;
mod caption;
mod chart;
mod legend;
mod log_scale;
mod mark;
mod scale;
mod views;

use self::{
    canvas::{Align, Canvas, Ink},
    mark::{Encoding, Mark},
    scale::Axis,
};
pub(crate) use self::{
    caption::subtitle,
    views::{Picture, draw as draw_views},
};
use crate::{Error, PointSummary, ReportOptions, Source, Spread, table::decimal};

/// What picture, page and README are called without a title of the user's.
pub(crate) const TITLE: &str = "Samples per second against peak memory";
/// Width and height in picture units.
pub(crate) const SIZE: (f64, f64) = (1000.0, 600.0);
/// Left, top, right and bottom of the plot.
const PLOT: [f64; 4] = [78.0, 92.0, 806.0, 536.0];

/// Which figure is the speed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Convention {
    /// The whole epoch: the first batch, in which the first block is read, counts.
    FirstBatchCounted,
    /// As the original benchmark counted: from the second batch on.
    FirstBatchLeftOut,
}

impl Convention {
    fn speed(self, point: &PointSummary) -> Option<Spread> {
        match self {
            Self::FirstBatchCounted => point.samples_per_sec,
            Self::FirstBatchLeftOut => point.samples_per_sec_after_first,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::FirstBatchCounted => "first batch counted",
            Self::FirstBatchLeftOut => "first batch left out",
        }
    }
}

/// A point that has both figures.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    summary: &'a PointSummary,
    gigabytes: Spread,
    speed: Spread,
}

/// The picture of `points`, which sum up the epochs of `sources`, as an SVG file of 1000 by 600.
pub(crate) fn draw(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
    convention: Convention,
) -> Result<String, Error> {
    let placed: Vec<Placed<'_>> =
        points.iter().filter_map(|summary| place(summary, convention)).collect();
    let top = |figure: fn(&Placed<'_>) -> f64| placed.iter().map(figure).fold(0.0, f64::max);
    let [left, upper, right, lower] = PLOT;
    let x = Axis::new(top(|point| point.gigabytes.max), left..right, 8);
    let y = Axis::new(top(|point| point.speed.max), lower..upper, 6);
    let encoding = Encoding::of(placed.iter().map(|point| point.summary));

    canvas::svg(SIZE, |canvas| {
        caption::draw(canvas, sources, points, options, convention)?;
        draw_axes(canvas, &x, &y, convention)?;
        let mut marks: Vec<Mark<'_>> =
            placed.iter().map(|point| encoding.mark(point, &x, &y)).collect();
        // Small ones last, so that a large one hides none.
        marks.sort_by(|a, b| b.radius.total_cmp(&a.radius));
        for (mark, point) in marks.iter().map(|mark| (mark, mark.point)) {
            draw_bars(canvas, point, mark, &x, &y)?;
        }
        for mark in &marks {
            encoding.draw(canvas, mark)?;
        }
        if placed.is_empty() {
            let middle = (f64::midpoint(left, right), f64::midpoint(upper, lower));
            canvas.text(
                "no epoch ended well: see the table",
                middle,
                16.0,
                Ink::GRAY,
                Align::Center,
            )?;
        }
        if let Some(marked) = &options.marked {
            caption::draw_arrow(canvas, marked, points, &marks)?;
        }
        legend::draw(canvas, &encoding, &placed)
    })
}

fn place(summary: &PointSummary, convention: Convention) -> Option<Placed<'_>> {
    let speed = convention.speed(summary)?;
    let bytes = summary.max_mem?;
    Some(Placed { summary, gigabytes: bytes.scaled(1e-9), speed })
}

fn draw_axes(canvas: &Canvas<'_>, x: &Axis, y: &Axis, convention: Convention) -> Result<(), Error> {
    let [left, upper, right, lower] = PLOT;
    for tick in x.ticks() {
        let at = x.position(tick);
        canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
        canvas.text(
            &decimal(tick, x.digits()),
            (at, lower + 10.0),
            13.0,
            Ink::TEXT,
            Align::Below,
        )?;
    }
    for tick in y.ticks() {
        let at = y.position(tick);
        canvas.line(&[(left, at), (right, at)], Ink::GRID, 1.0)?;
        canvas.text(&decimal(tick, y.digits()), (left - 9.0, at), 13.0, Ink::TEXT, Align::Right)?;
    }
    canvas.line(&[(left, upper), (left, lower), (right, lower)], Ink::GRAY, 1.5)?;
    let middle = f64::midpoint(left, right);
    canvas.text("peak memory, GB", (middle, lower + 36.0), 15.0, Ink::TEXT, Align::Below)?;
    let title = format!("samples/s, {}", convention.words());
    canvas.text(&title, (16.0, f64::midpoint(upper, lower)), 15.0, Ink::TEXT, Align::Upward)
}

/// Thin bars from the smallest to the largest, where they are longer than the mark is wide.
fn draw_bars(
    canvas: &Canvas<'_>,
    point: &Placed<'_>,
    mark: &Mark<'_>,
    x: &Axis,
    y: &Axis,
) -> Result<(), Error> {
    let (at_x, at_y) = mark.at;
    if point.speed.n > 1 {
        canvas.line(
            &[(at_x, y.position(point.speed.min)), (at_x, y.position(point.speed.max))],
            Ink::BAR,
            1.5,
        )?;
    }
    if point.gigabytes.n > 1 {
        let ends = [point.gigabytes.min, point.gigabytes.max].map(|end| (x.position(end), at_y));
        canvas.line(&ends, Ink::BAR, 1.5)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
