//! The picture of rows per second against peak memory, one mark per grid point, as SVG.
//!
//! Both axes are linear and begin at 0, so distances can be compared. A mark's shape is the method,
//! its area the rows of a block, its color the chunks of a block; thin bars span the smallest to
//! the largest epoch. Several loaders have their own picture (`comparison`). No fonts of the
//! machine are used, so the same records give the same bytes everywhere.

mod axes;
mod bars;
mod canvas;
mod caption;
mod chart;
mod comparison;
mod key;
mod labels;
mod legend;
mod log_scale;
mod mark;
mod named_point;
mod panel;
mod scale;
mod shape;
mod views;

use self::{
    canvas::{Align, Ink},
    mark::Encoding,
    panel::Panel,
    scale::{Dimension, Scale},
};
pub(crate) use self::{
    caption::subtitle,
    shape::{N_SHAPES, corners},
    views::{Picture, draw as draw_views, draw_ranks},
};
use crate::{
    Error, PointSummary, ReportOptions, Source, Spread,
    series::{NamedBy, SeriesNames},
};

/// Title of picture, page and README, unless the user gives one.
pub(crate) const TITLE: &str = "Samples per second against peak memory";
/// Width and height in picture units.
pub(crate) const SIZE: Size = Size { width: 1000.0, height: 600.0 };

/// Width and height of a picture, or of a part of it, in units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}
/// Left, top, right and bottom of the plot.
const PLOT: [f64; 4] = [86.0, 92.0, 806.0, 536.0];

/// Selects the figure that is the speed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Convention {
    /// The whole epoch, including the first batch, which absorbs the read of the first block.
    FirstBatchCounted,
    /// From the second batch on, like the original benchmark counted.
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
    /// Position of its series in the list of names.
    series: usize,
    gigabytes: Spread,
    speed: Spread,
}

/// Draws `points`, which summarize the epochs of `sources`, as an SVG file of 1000 by 600 units,
/// larger if the legend needs it.
pub(crate) fn draw(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
    convention: Convention,
) -> Result<String, Error> {
    let series = SeriesNames::from_points(points);
    let placed = place_all(points, &series, convention);
    let encoding = Encoding::from_placed(&series, &placed);
    if series.named_by == NamedBy::Loader && !placed.is_empty() {
        let input = comparison::ComparisonInput { sources, points, options, convention };
        return comparison::draw(&input, &encoding, &placed);
    }
    draw_grid((sources, points), options, convention, (&series, &encoding), &placed)
}

/// Draws one plot with the legend beside it.
fn draw_grid(
    (sources, points): (&[Source], &[PointSummary]),
    options: &ReportOptions,
    convention: Convention,
    (series, encoding): (&SeriesNames, &Encoding),
    placed: &[Placed<'_>],
) -> Result<String, Error> {
    let top = |figure: fn(&Placed<'_>) -> f64| placed.iter().map(figure).fold(0.0, f64::max);
    let [left, upper, right, lower] = PLOT;
    let [across, up] = [Dimension::linear(""), Dimension::linear("")];
    let panel = Panel {
        plot: PLOT,
        x: Scale::new(&across, &[top(|point| point.gigabytes.max)], left, right, 8),
        y: Scale::new(&up, &[top(|point| point.speed.max)], lower, upper, 6),
        labels_y: true,
    };
    // Methods are few and have well-known shapes; other names stand beside their marks.
    let names_marks = series.named_by != NamedBy::Method;
    canvas::svg(legend::size(encoding, placed)?, |canvas| {
        caption::draw(canvas, sources, points, options, convention)?;
        panel.draw_axes(canvas)?;
        let up = format!("samples/s, {}", convention.words());
        axes::draw_titles(canvas, "peak memory, GB", &up)?;
        let all: Vec<&Placed<'_>> = placed.iter().collect();
        let marks = panel.draw_marks(canvas, encoding, &all, encoding.both_forms)?;
        if names_marks && placed.len() <= panel::MAX_NAMED {
            labels::draw(canvas, &panel.labels(encoding, &marks))?;
        }
        if placed.is_empty() {
            let middle = (f64::midpoint(left, right), f64::midpoint(upper, lower));
            let words = "no epoch ended well: see the table";
            canvas.text(words, middle, 16.0, Ink::GRAY, Align::Center)?;
        }
        if let Some(marked) = &options.marked {
            caption::draw_arrow(canvas, marked, points, &marks)?;
        }
        legend::draw(canvas, encoding, placed).map(|_| ())
    })
}

/// The points that have both figures.
fn place_all<'a>(
    points: &'a [PointSummary],
    series: &SeriesNames,
    convention: Convention,
) -> Vec<Placed<'a>> {
    let place = |(idx, summary): (usize, &'a PointSummary)| {
        let speed = convention.speed(summary)?;
        let gigabytes = summary.max_mem?.scaled(1e-9);
        Some(Placed { summary, series: series.position(idx), gigabytes, speed })
    };
    points.iter().enumerate().filter_map(place).collect()
}

#[cfg(test)]
mod tests;
