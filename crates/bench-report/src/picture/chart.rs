//! A chart of series: lines with marks, marks alone, or lines with a shaded band; the legend is
//! beside the plot.

use super::{
    PLOT, SIZE, Size,
    axes::{draw_axes, draw_titles},
    canvas::{self, Align, Canvas, Ink, WIDER_FONT, text_width, wrap},
    caption::draw_lines,
    mark::{N_COLORS, category},
    scale::{Dimension, Scale},
    shape::{N_SHAPES, draw_shape},
};
use crate::Error;

const MARK: f64 = 5.0;
const LEGEND_TEXT: f64 = 12.0;
const LEGEND_STEP: f64 = 20.0;
/// Line height of a name in the legend, and its largest width.
const LEGEND_LINE: f64 = 14.0;
const LEGEND_WIDEST: f64 = 260.0;
const LEGEND_LEFT: f64 = PLOT[2] + 20.0;
/// Largest number of legend entries; further series are in the table only.
const MAX_ENTRIES: usize = 28;
/// Strokes and gaps of the lines; a new pattern each time that the colors repeat.
const DASHES: [&[f64]; 4] = [&[], &[9.0, 4.0], &[2.5, 3.5], &[12.0, 4.0, 2.5, 4.0]];
/// Dashes of the reference lines at values of x.
const LINE_DASH: &[f64] = &[4.0, 4.0];

pub(super) struct Chart<'a> {
    pub(super) title: String,
    pub(super) subtitle: &'a [String; 2],
    pub(super) x: Dimension,
    pub(super) y: Dimension,
    pub(super) style: Style,
    pub(super) series: Vec<Series>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    Marks,
    LinesWithMarks,
    Lines,
    /// Lines, with the range between the low and the high of each point shaded.
    Bands,
}

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// Shape of its marks, unless there are few enough series for each to have its own.
    pub(super) shape: usize,
    /// Points in the order of the line.
    pub(super) points: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Draws the chart as an SVG file. It must have at least one point.
pub(super) fn draw(chart: &Chart<'_>) -> Result<String, Error> {
    let all = || chart.series.iter().flat_map(|series| &series.points);
    let [left, upper, right, lower] = PLOT;
    let lines = chart.x.lines.iter().map(|(at, _)| *at);
    let xs: Vec<f64> = all().map(|place| place.x).chain(lines).collect();
    let ys: Vec<f64> = all().flat_map(|place| [place.y, place.high]).collect();
    let x = Scale::new(&chart.x, &xs, left, right, 8);
    let y = Scale::new(&chart.y, &ys, lower, upper, 6);
    let looks = looks(&chart.series);
    let entries: Vec<Vec<String>> = chart.series.iter().take(MAX_ENTRIES).map(entry).collect();
    canvas::svg(size(&entries), |canvas| {
        draw_lines(canvas, &chart.title, chart.subtitle)?;
        draw_axes(canvas, PLOT, &x, &y, true)?;
        draw_titles(canvas, &chart.x.label, &chart.y.label)?;
        draw_lines_of_x(canvas, chart, &x)?;
        for (series, look) in chart.series.iter().zip(&looks) {
            draw_series(canvas, (chart.style, series), look, &x, &y)?;
        }
        draw_legend(canvas, chart, &looks, &entries)
    })
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
pub(super) fn looks(series: &[Series]) -> Vec<Look> {
    let many = series.len() > N_COLORS;
    let look = |(idx, one): (usize, &Series)| Look {
        color: category(idx),
        shape: if many { idx % (2 * N_SHAPES) } else { one.shape },
        dash: DASHES[idx / N_COLORS % DASHES.len()],
    };
    series.iter().enumerate().map(look).collect()
}

fn entry(series: &Series) -> Vec<String> {
    wrap(&series.name, LEGEND_TEXT, LEGEND_WIDEST)
}

fn entry_height(lines: &[String]) -> f64 {
    LEGEND_STEP + LEGEND_LINE * (lines.len().max(1) - 1) as f64
}

/// The size of a picture with room for the legend.
pub(super) fn size(entries: &[Vec<String>]) -> Size {
    let lines = entries.iter().flatten();
    let widest = lines.map(|line| text_width(line, LEGEND_TEXT)).fold(0.0, f64::max);
    let height: f64 = entries.iter().map(|lines| entry_height(lines)).sum();
    let right = LEGEND_LEFT + 18.0 + widest * WIDER_FONT + 14.0;
    let height = (PLOT[1] + height + 2.0 * LEGEND_STEP).max(SIZE.height);
    Size { width: right.max(SIZE.width), height }
}

fn draw_lines_of_x(canvas: &Canvas<'_>, chart: &Chart<'_>, x: &Scale) -> Result<(), Error> {
    let [left, upper, _, lower] = PLOT;
    for (idx, (value, words)) in chart.x.lines.iter().enumerate() {
        let at = x.position(*value);
        canvas.dashed(&[(at, upper), (at, lower)], Ink::GRAY, 1.5, LINE_DASH)?;
        // Labels under each other, on the side that has room.
        let y = upper + 12.0 + 18.0 * idx as f64;
        let room = at - left > text_width(words, 13.0) * WIDER_FONT + 6.0;
        let (x, align) = if room { (at - 6.0, Align::Right) } else { (at + 6.0, Align::Left) };
        canvas.text(words, (x, y), 13.0, Ink::GRAY, align)?;
    }
    Ok(())
}

fn draw_series(
    canvas: &Canvas<'_>,
    (style, series): (Style, &Series),
    look: &Look,
    x: &Scale,
    y: &Scale,
) -> Result<(), Error> {
    let color = look.color;
    let at = |place: &Place| (x.position(place.x), y.position(place.y));
    let line: Vec<(f64, f64)> = series.points.iter().map(at).collect();
    if style == Style::Bands {
        let edge = |bound: fn(&Place) -> f64| -> Vec<(f64, f64)> {
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
    if style != Style::Marks && line.len() > 1 {
        canvas.dashed(&line, color, 2.0, look.dash)?;
    }
    if matches!(style, Style::Marks | Style::LinesWithMarks) {
        for &place in &line {
            draw_shape(canvas, look.shape, place, MARK, color)?;
        }
    }
    Ok(())
}

fn draw_legend(
    canvas: &Canvas<'_>,
    chart: &Chart<'_>,
    looks: &[Look],
    entries: &[Vec<String>],
) -> Result<(), Error> {
    let left = LEGEND_LEFT;
    let mut y = PLOT[1] + 8.0;
    for (lines, look) in entries.iter().zip(looks) {
        if chart.style == Style::Marks {
            draw_shape(canvas, look.shape, (left, y), MARK, look.color)?;
        } else {
            // Long enough to show a dash.
            canvas.dashed(&[(left - 12.0, y), (left + 12.0, y)], look.color, 2.0, look.dash)?;
            if chart.style == Style::LinesWithMarks {
                draw_shape(canvas, look.shape, (left, y), MARK - 1.0, look.color)?;
            }
        }
        for (idx, line) in lines.iter().enumerate() {
            let at = (left + 18.0, y + LEGEND_LINE * idx as f64);
            canvas.text(line, at, LEGEND_TEXT, Ink::TEXT, Align::Left)?;
        }
        y += entry_height(lines);
    }
    if chart.series.len() > MAX_ENTRIES {
        let rest = format!("and {} more", chart.series.len() - MAX_ENTRIES);
        canvas.text(&rest, (left + 18.0, y), LEGEND_TEXT, Ink::GRAY, Align::Left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
