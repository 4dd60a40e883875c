//! A chart of series: lines with marks, marks alone, or lines with a band around them, with a legend beside the plot.

use super::{
    PLOT, SIZE,
    canvas::{self, Align, Canvas, Ink},
    caption::{cut_to_width, draw_lines},
    log_scale::LogAxis,
    mark::draw_shape,
    scale::Axis,
};
use crate::{Error, table::decimal};

const MARK: f64 = 5.0;
const LEGEND_TEXT: f64 = 12.0;
const LEGEND_STEP: f64 = 20.0;
/// Entries of the legend that the picture has room for.
const MOST_ENTRIES: usize = 22;

/// Okabe and Ito's colors, which the color-blind tell apart, without the yellow that white paper swallows.
const CATEGORIES: [[u8; 3]; 7] = [
    [0x00, 0x72, 0xb2],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0xd5, 0x5e, 0x00],
    [0x7f, 0x7f, 0x7f],
];

/// The color of the series at `idx`; they come again after seven.
pub(super) fn category(idx: usize) -> Ink {
    Ink::rgb(CATEGORIES[idx % CATEGORIES.len()])
}

pub(super) struct Chart<'a> {
    pub(super) title: String,
    pub(super) subtitle: &'a [String; 2],
    pub(super) x: Dimension,
    pub(super) y: Dimension,
    pub(super) style: Style,
    pub(super) series: Vec<Series>,
}

/// What an axis says and how it goes.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    pub(super) label: String,
    /// The base of a logarithmic axis; others are linear from 0.
    pub(super) log: Option<f64>,
    /// What the axis reaches at least to.
    pub(super) reach: f64,
}

impl Dimension {
    pub(super) fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: None, reach: 0.0 }
    }

    pub(super) fn log(label: impl Into<String>, base: f64) -> Self {
        Self { label: label.into(), log: Some(base), reach: 0.0 }
    }

    pub(super) fn percent(label: impl Into<String>) -> Self {
        // A tick more than the axis's own room above.
        Self { label: label.into(), log: None, reach: 96.0 }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    Marks,
    LinesWithMarks,
    Lines,
    /// Lines, and what lies between the low and the high of each point shaded.
    Bands,
}

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    /// Which decides the shape of its marks.
    pub(super) method: String,
    /// In the order in which the line goes.
    pub(super) points: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

enum Scale {
    Linear(Axis),
    Log(LogAxis),
}

impl Scale {
    fn new(dimension: &Dimension, values: &[f64], from: f64, to: f64, steps: u32) -> Self {
        if let Some(base) = dimension.log {
            return Self::Log(LogAxis::new(values, base, from..to, steps as usize));
        }
        let most = values.iter().copied().fold(dimension.reach, f64::max);
        Self::Linear(Axis::new(most, from..to, steps))
    }

    fn position(&self, value: f64) -> f64 {
        match self {
            Self::Linear(axis) => axis.position(value),
            Self::Log(axis) => axis.position(value),
        }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(axis) => {
                axis.ticks().map(|tick| (tick, decimal(tick, axis.digits()))).collect()
            }
            Self::Log(axis) => axis
                .ticks()
                .iter()
                .map(|&tick| {
                    let digits = if tick >= 1.0 { 0 } else { -tick.log10().floor() as usize };
                    (tick, decimal(tick, digits))
                })
                .collect(),
        }
    }
}

/// The chart as an SVG file; the caller has seen to it that there is a point.
pub(super) fn draw(chart: &Chart<'_>) -> Result<String, Error> {
    let all = || chart.series.iter().flat_map(|series| &series.points);
    let [left, upper, right, lower] = PLOT;
    let xs: Vec<f64> = all().map(|place| place.x).collect();
    let ys: Vec<f64> = all().flat_map(|place| [place.y, place.high]).collect();
    let x = Scale::new(&chart.x, &xs, left, right, 8);
    let y = Scale::new(&chart.y, &ys, lower, upper, 6);
    canvas::svg(SIZE, |canvas| {
        draw_lines(canvas, &chart.title, chart.subtitle)?;
        draw_axes(canvas, chart, &x, &y)?;
        for (idx, series) in chart.series.iter().enumerate() {
            draw_series(canvas, chart.style, series, category(idx), &x, &y)?;
        }
        draw_legend(canvas, chart)
    })
}

fn draw_axes(canvas: &Canvas<'_>, chart: &Chart<'_>, x: &Scale, y: &Scale) -> Result<(), Error> {
    let [left, upper, right, lower] = PLOT;
    for (tick, text) in x.ticks() {
        let at = x.position(tick);
        canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
        canvas.text(&text, (at, lower + 10.0), 13.0, Ink::TEXT, Align::Below)?;
    }
    for (tick, text) in y.ticks() {
        let at = y.position(tick);
        canvas.line(&[(left, at), (right, at)], Ink::GRID, 1.0)?;
        canvas.text(&text, (left - 9.0, at), 13.0, Ink::TEXT, Align::Right)?;
    }
    canvas.line(&[(left, upper), (left, lower), (right, lower)], Ink::GRAY, 1.5)?;
    let middle = (f64::midpoint(left, right), f64::midpoint(upper, lower));
    canvas.text(&chart.x.label, (middle.0, lower + 36.0), 15.0, Ink::TEXT, Align::Below)?;
    canvas.text(&chart.y.label, (16.0, middle.1), 15.0, Ink::TEXT, Align::Upward)
}

fn draw_series(
    canvas: &Canvas<'_>,
    style: Style,
    series: &Series,
    color: Ink,
    x: &Scale,
    y: &Scale,
) -> Result<(), Error> {
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
        canvas.line(&line, color, 2.0)?;
    }
    if matches!(style, Style::Marks | Style::LinesWithMarks) {
        for &place in &line {
            draw_shape(canvas, &series.method, place, MARK, color)?;
        }
    }
    Ok(())
}

fn draw_legend(canvas: &Canvas<'_>, chart: &Chart<'_>) -> Result<(), Error> {
    let left = PLOT[2] + 16.0;
    let widest = SIZE.0 - left - 24.0;
    for (idx, series) in chart.series.iter().take(MOST_ENTRIES).enumerate() {
        let y = PLOT[1] + 8.0 + LEGEND_STEP * idx as f64;
        let color = category(idx);
        if chart.style == Style::Marks {
            draw_shape(canvas, &series.method, (left, y), MARK, color)?;
        } else {
            canvas.line(&[(left - 8.0, y), (left + 8.0, y)], color, 2.0)?;
            if chart.style == Style::LinesWithMarks {
                draw_shape(canvas, &series.method, (left, y), MARK - 1.0, color)?;
            }
        }
        let text = cut_to_width(&series.name, LEGEND_TEXT, widest);
        canvas.text(&text, (left + 14.0, y), LEGEND_TEXT, Ink::TEXT, Align::Left)?;
    }
    if chart.series.len() > MOST_ENTRIES {
        let rest = format!("and {} more", chart.series.len() - MOST_ENTRIES);
        let y = PLOT[1] + 8.0 + LEGEND_STEP * MOST_ENTRIES as f64;
        canvas.text(&rest, (left + 14.0, y), LEGEND_TEXT, Ink::GRAY, Align::Left)?;
    }
    Ok(())
}
