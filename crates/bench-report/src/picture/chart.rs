//! A chart of series: lines with marks, marks alone, or lines with a shaded band, in one plot or in
//! several above each other with shared axes.

use super::{
    ACROSS, BELOW, Caption, Key, MARGIN, Size, TEXT, WIDTH,
    axes::{draw_axes, draw_titles},
    canvas::{self, Align, Canvas, Ink, WIDER_FONT, text_width},
    key::Sign,
    mark::{N_COLORS, category},
    scale::{Dimension, Scale},
    shape::{N_SHAPES, draw_shape},
    stack, steps_of,
};
use crate::Error;

const MARK: f64 = 5.0;
/// Largest number of legend entries; further series are in the table only.
const MAX_ENTRIES: usize = 28;
/// Strokes and gaps of the lines; a new pattern each time that the colors repeat.
const DASHES: [&[f64]; 4] = [&[], &[9.0, 4.0], &[2.5, 3.5], &[12.0, 4.0, 2.5, 4.0]];
/// Dashes of the reference lines at values of x.
const LINE_DASH: &[f64] = &[4.0, 4.0];

/// A chart of lines and marks.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// What the chart shows, in words.
    pub title: String,
    /// Lines under the title.
    pub notes: Vec<String>,
    /// Name and unit of the axis across.
    pub x: Dimension,
    /// Name and unit of the axis upward.
    pub y: Dimension,
    /// The plots, one above the other.
    pub panels: Vec<LinePanel>,
}

/// One plot of a chart.
#[derive(Clone, Debug)]
pub struct LinePanel {
    /// Its title; empty if it is the only one.
    pub title: String,
    /// Its series. Those of one name look alike in all plots, and the legend names them once.
    pub series: Vec<LineSeries>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LineStyle {
    /// Marks alone.
    Marks,
    /// A line with a mark at each point.
    LinesWithMarks,
    /// A line.
    Lines,
    /// A thin line.
    ThinLines,
    /// A line, with the range between the low and the high of each point shaded.
    Bands,
}

/// The points of a line.
#[derive(Clone, Debug)]
pub struct LineSeries {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: LineStyle,
    /// Number of the shape of its marks, unless there are so many series that each has another.
    pub shape: usize,
    /// Red, green and blue, if it has a color of its own.
    pub color: Option<[u8; 3]>,
    /// Whether its line is dashed in any case.
    pub is_dashed: bool,
    /// Points in the order of the line.
    pub points: Vec<LinePoint>,
}

impl LineSeries {
    /// A series with the next color and circles as marks.
    pub fn new(name: impl Into<String>, style: LineStyle, points: Vec<LinePoint>) -> Self {
        Self { name: name.into(), style, shape: 0, color: None, is_dashed: false, points }
    }
}

/// A point of a series, with the range of its y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinePoint {
    /// Position across.
    pub x: f64,
    /// Position upward.
    pub y: f64,
    /// Lowest y.
    pub low: f64,
    /// Highest y.
    pub high: f64,
}

impl LinePoint {
    /// A point without a range.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: y, high: y }
    }
}

/// Draws the chart as an SVG file.
///
/// # Errors
/// [`Error::Draw`].
pub fn draw_lines(chart: &LineChart) -> Result<String, Error> {
    let series = || chart.panels.iter().flat_map(|panel| &panel.series);
    let all = || series().flat_map(|one| &one.points);
    let lines = chart.x.lines.iter().map(|(at, _)| *at);
    let xs: Vec<f64> = all().map(|place| place.x).chain(lines).collect();
    let ys: Vec<f64> = all().flat_map(|place| [place.y, place.high]).collect();
    let named = distinct(series());
    let looks = looks(&named);
    let caption = Caption::new(&chart.title, &chart.notes);
    let has_titles = chart.panels.iter().any(|panel| !panel.title.is_empty());
    let plots = stack(chart.panels.len(), caption.bottom(), has_titles);
    let lower = plots.last().map_or(0.0, |plot| plot[3]);
    let key = Key::new(vec![entries(&named, &looks)], MARGIN..ACROSS[1], lower + BELOW);
    canvas::svg(Size { width: WIDTH, height: key.bottom() + MARGIN }, |canvas| {
        caption.draw(canvas)?;
        for (idx, (panel, plot)) in chart.panels.iter().zip(&plots).enumerate() {
            let [left, upper, right, lower] = *plot;
            let x = Scale::new(&chart.x, &xs, left, right, 7);
            let y = Scale::new(&chart.y, &ys, lower, upper, steps_of(*plot));
            draw_axes(canvas, *plot, &x, &y, idx + 1 == plots.len())?;
            canvas.heading(&panel.title, (left, upper - 14.0), TEXT, Align::Left)?;
            draw_lines_of_x(canvas, chart, &x, *plot)?;
            for one in &panel.series {
                let place = named.iter().position(|known| known.name == one.name);
                if let Some(look) = place.and_then(|place| looks.get(place)) {
                    let shape = if named.len() > N_COLORS { look.shape } else { one.shape };
                    draw_series(canvas, one, &Look { shape, ..*look }, &x, &y)?;
                }
            }
        }
        draw_titles(canvas, &plots, &chart.x.label, &chart.y.label)?;
        key.draw(canvas)
    })
}

/// The first series of each name.
fn distinct<'a>(series: impl Iterator<Item = &'a LineSeries>) -> Vec<&'a LineSeries> {
    let mut named: Vec<&LineSeries> = Vec::new();
    for one in series {
        if !named.iter().any(|known| known.name == one.name) {
            named.push(one);
        }
    }
    named
}

/// Color, shape and dashes that distinguish a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    color: Ink,
    shape: usize,
    dash: &'static [f64],
}

/// Looks for all series. No two have the same color and shape, nor the same color and dashes, up to
/// the number of combinations.
pub(super) fn looks(series: &[&LineSeries]) -> Vec<Look> {
    let many = series.len() > N_COLORS;
    let look = |(idx, one): (usize, &&LineSeries)| Look {
        color: one.color.map_or_else(|| category(idx), Ink::rgb),
        shape: if many { idx % (2 * N_SHAPES) } else { one.shape },
        dash: if one.is_dashed { DASHES[1] } else { DASHES[idx / N_COLORS % DASHES.len()] },
    };
    series.iter().enumerate().map(look).collect()
}

/// The legend.
fn entries(series: &[&LineSeries], looks: &[Look]) -> Vec<(Sign, String)> {
    let sign = |style: LineStyle, look: &Look| match style {
        LineStyle::Marks => Sign::Mark { shape: look.shape, fill: look.color },
        LineStyle::LinesWithMarks => {
            Sign::Stroke { ink: look.color, dash: look.dash, shape: Some(look.shape) }
        }
        LineStyle::Lines | LineStyle::ThinLines | LineStyle::Bands => {
            Sign::Stroke { ink: look.color, dash: look.dash, shape: None }
        }
    };
    let each = series.iter().zip(looks).take(MAX_ENTRIES);
    let mut entries: Vec<(Sign, String)> =
        each.map(|(one, look)| (sign(one.style, look), one.name.clone())).collect();
    if series.len() > MAX_ENTRIES {
        entries.push((Sign::Words, format!("and {} more", series.len() - MAX_ENTRIES)));
    }
    entries
}

fn draw_lines_of_x(
    canvas: &Canvas<'_>,
    chart: &LineChart,
    x: &Scale,
    [left, upper, _, lower]: [f64; 4],
) -> Result<(), Error> {
    for (idx, (value, words)) in chart.x.lines.iter().enumerate() {
        let at = x.position(*value);
        canvas.dashed(&[(at, upper), (at, lower)], Ink::GRAY, 1.5, LINE_DASH)?;
        // Labels under each other, on the side that has room.
        let y = upper + 12.0 + 18.0 * idx as f64;
        let room = at - left > text_width(words, TEXT) * WIDER_FONT + 6.0;
        let (x, align) = if room { (at - 6.0, Align::Right) } else { (at + 6.0, Align::Left) };
        canvas.text(words, (x, y), TEXT, Ink::GRAY, align)?;
    }
    Ok(())
}

fn draw_series(
    canvas: &Canvas<'_>,
    series: &LineSeries,
    look: &Look,
    x: &Scale,
    y: &Scale,
) -> Result<(), Error> {
    let (style, color) = (series.style, look.color);
    let at = |place: &LinePoint| (x.position(place.x), y.position(place.y));
    let line: Vec<(f64, f64)> = series.points.iter().map(at).collect();
    if style == LineStyle::Bands {
        let edge = |bound: fn(&LinePoint) -> f64| -> Vec<(f64, f64)> {
            let places = series.points.iter();
            places.map(|place| (x.position(place.x), y.position(bound(place)))).collect()
        };
        let mut around = edge(|place| place.low);
        around.extend(edge(|place| place.high).into_iter().rev());
        canvas.polygon(&around, color.with_opacity(0.18), color.with_opacity(0.0), 0.0)?;
    } else {
        for place in series.points.iter().filter(|place| place.low < place.high) {
            let across = x.position(place.x);
            let ends = [place.low, place.high].map(|end| (across, y.position(end)));
            canvas.line(&ends, Ink::BAR, 1.5)?;
        }
    }
    if style != LineStyle::Marks && line.len() > 1 {
        let width = if style == LineStyle::ThinLines { 1.0 } else { 2.0 };
        canvas.dashed(&line, color, width, look.dash)?;
    }
    if matches!(style, LineStyle::Marks | LineStyle::LinesWithMarks) {
        for &place in &line {
            draw_shape(canvas, look.shape, place, MARK, color)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
