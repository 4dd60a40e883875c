//! The pictures, as SVG. The first is that of rows per second against peak memory, one mark per
//! grid point.
//!
//! Its axes are linear and begin at 0, so distances can be compared. A mark's shape is the method,
//! its area the rows of a block, its color the chunks of a block; thin bars span the smallest to
//! the largest epoch. Several loaders have one plot per form of batches (`comparison`).
//!
//! The title of a picture says in words what its rows show. A picture is so narrow for its letters
//! that they are legible 400 pixels wide; plots stand above each other, the legend under them. No
//! fonts of the machine are used, so the same records give the same bytes everywhere.

mod axes;
mod bars;
pub(crate) mod canvas;
mod caption;
mod chart;
mod comparison;
mod headline;
pub(crate) mod key;
mod labels;
mod legend;
mod log_scale;
mod mark;
mod named_point;
mod panel;
pub(crate) mod scale;
mod shape;
mod views;

use self::{
    axes::{BELOW, draw_titles},
    canvas::{Align, Ink},
    comparison::Group,
    key::Key,
    mark::Encoding,
    panel::Panel,
    scale::Scale,
};
pub(crate) use self::{
    caption::{Caption, subtitle},
    comparison::form_title,
    named_point::{NamedPoint, name_points},
    shape::{N_SHAPES, corners},
    views::{Picture, draw as draw_views, draw_ranks},
};
pub use self::{
    chart::{LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines},
    scale::Dimension,
};
use crate::{
    Error, PointSummary, ReportOptions, Source, Spread,
    series::{NamedBy, SeriesNames},
};

/// Title of the README, unless the user gives one.
pub(crate) const TITLE: &str = "Samples per second against peak memory";
/// Width of all pictures in picture units.
pub(crate) const WIDTH: f64 = 640.0;
/// Height of letters. If the picture is shown 400 pixels wide, they are 8.75 pixels high.
pub(crate) const TEXT: f64 = 14.0;
/// Free space around the words.
pub(crate) const MARGIN: f64 = 16.0;
/// Left and right end of plots.
pub(crate) const ACROSS: [f64; 2] = [92.0, WIDTH - 36.0];

/// Width and height of a picture, or of a part of it, in units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Left, top, right and bottom of `n` plots above each other, from `top` on, with room for the
/// titles of plots if they have any.
fn stack(n: usize, top: f64, has_titles: bool) -> Vec<[f64; 4]> {
    let height = match n {
        0 | 1 => 330.0,
        2 => 230.0,
        3 => 180.0,
        _ => 140.0,
    };
    let title = if has_titles { 26.0 } else { 0.0 };
    let place = |idx: usize| {
        let upper = top + title + (height + 14.0 + title) * idx as f64;
        [ACROSS[0], upper, ACROSS[1], upper + height]
    };
    (0..n.max(1)).map(place).collect()
}

/// Largest number of steps on the y axis of a plot.
fn steps_of([_, upper, _, lower]: [f64; 4]) -> u32 {
    (((lower - upper) / 55.0) as u32).max(3)
}

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

/// Draws `points`, which summarize the epochs of `sources`, as an SVG file.
pub(crate) fn draw(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
    convention: Convention,
) -> Result<String, Error> {
    let series = SeriesNames::from_points(points);
    let placed = place_all(points, &series, convention);
    let encoding = Encoding::from_placed(&series, &placed);
    let by_loader = series.named_by == NamedBy::Loader && !placed.is_empty();
    let (groups, [across, up]) = if by_loader {
        (comparison::groups(&placed), comparison::dimensions(&placed, convention))
    } else {
        let all = Group { title: String::new(), placed: placed.iter().collect() };
        (vec![all], comparison::linear_dimensions(convention))
    };
    let title = headline::speed_against_memory(&groups, &encoding, by_loader);
    let title = match &options.title {
        Some(given) => format!("{given}: {title}"),
        None => title,
    };
    let caption = Caption::new(&title, &subtitle(sources, points));
    let has_titles = groups.len() > 1;
    let plots = stack(groups.len(), caption.bottom(), has_titles);
    let lower = plots.last().map_or(0.0, |plot| plot[3]);
    let key = Key::new(legend::rows(&encoding, &placed), MARGIN..ACROSS[1], lower + BELOW);
    let both_ends = |figure: fn(&Placed<'_>) -> Spread| comparison::both_ends(&placed, figure);
    let (xs, ys) = (both_ends(|one| one.gigabytes), both_ends(|one| one.speed));
    // Methods are few and have well-known shapes; other names stand beside their marks.
    let names_marks = series.named_by != NamedBy::Method;
    canvas::svg(Size { width: WIDTH, height: key.bottom() + MARGIN }, |canvas| {
        caption.draw(canvas)?;
        for (idx, (group, plot)) in groups.iter().zip(&plots).enumerate() {
            let [left, upper, right, lower] = *plot;
            let panel = Panel {
                plot: *plot,
                x: Scale::new(&across, &xs, left, right, 6),
                y: Scale::new(&up, &ys, lower, upper, steps_of(*plot)),
                labels_x: idx + 1 == groups.len(),
            };
            panel.draw_axes(canvas)?;
            if has_titles {
                canvas.heading(&group.title, (left, upper - 14.0), TEXT, Align::Left)?;
            }
            let marks_sparse = encoding.both_forms && !by_loader;
            let marks = panel.draw_marks(canvas, &encoding, &group.placed, marks_sparse)?;
            if names_marks && group.placed.len() <= panel::MAX_NAMED {
                labels::draw(canvas, &panel.labels(&encoding, &marks))?;
            }
            if group.placed.is_empty() {
                let middle = (f64::midpoint(left, right), f64::midpoint(upper, lower));
                let words = "no epoch ended well: see the table";
                canvas.text(words, middle, TEXT, Ink::GRAY, Align::Center)?;
            }
            if let Some(marked) = options.marked.as_ref().filter(|_| !by_loader) {
                caption::draw_arrow(canvas, marked, points, &marks, *plot)?;
            }
        }
        draw_titles(canvas, &plots, &across.label, &up.label)?;
        key.draw(canvas)
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
