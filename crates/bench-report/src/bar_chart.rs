//! Bars in groups, with deviations, floors and published values.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::Error;
use crate::drawing::{draw_series_names, drawing_failed as failed, stroke_sample};
use crate::mean_std::MeanStd;

/// A chart of bars.
#[derive(Debug, Clone)]
pub struct BarChart {
    /// Title above the chart.
    pub title: String,
    /// Unit of the bars.
    pub y_name: &'static str,
    /// Lines below the chart.
    pub notes: Vec<String>,
    /// The bars.
    pub groups: Vec<BarGroup>,
}

/// Bars side by side.
#[derive(Debug, Clone)]
pub struct BarGroup {
    /// Name below the bars; a line for each part between `, `.
    pub name: String,
    /// The bars, from left to right.
    pub bars: Vec<Bar>,
}

/// A bar with the floors beside it.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Red, green and blue.
    pub color: [u8; 3],
    /// Whether it is filled with a light color and lines.
    pub is_hatched: bool,
    /// Its kind, for the legend: bars of the same name are of one kind.
    pub kind: BarKind,
    /// Height, and its deviation.
    pub value: MeanStd,
    /// What bounds it from below.
    pub floors: Vec<(Floor, f64)>,
    /// A published value, drawn as an outline.
    pub published: Option<f64>,
}

/// A kind of bars in the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct BarKind {
    /// Its name.
    pub name: String,
    /// Its color, if it has one; else bars of it are light or dark.
    pub color: Option<[u8; 3]>,
}

/// What bounds a bar from below: a line across it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Name in the legend.
    pub name: &'static str,
    /// Red, green and blue.
    pub color: [u8; 3],
}

impl Floor {
    fn style(self) -> ShapeStyle {
        rgb(self.color).stroke_width(3)
    }
}

fn rgb([red, green, blue]: [u8; 3]) -> RGBColor {
    RGBColor(red, green, blue)
}

/// Height of a chart, and width beside and of a group, in pixels.
const HEIGHT: u32 = 480;
const MARGIN_WIDTH: u32 = 280;
const GROUP_WIDTH: u32 = 120;
const LINE_HEIGHT: u32 = 16;
/// Shades of light and dark bars.
const LIGHT: f64 = 0.35;
const DARK: f64 = 0.8;
/// Pixels from one line of a hatch to the next.
const HATCH: f64 = 8.0;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws a chart of bars as SVG.
///
/// # Errors
/// [`Error::Draw`].
pub fn draw_bars(chart: &BarChart) -> Result<String, Error> {
    let n_notes = chart.notes.len() as u32;
    let width = (MARGIN_WIDTH + GROUP_WIDTH * chart.groups.len() as u32).max(640);
    let size = (width, HEIGHT + LINE_HEIGHT * n_notes);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        let (upper, lower) = root.split_vertically(HEIGHT);
        draw_chart(&upper, chart)?;
        for (note, row) in chart.notes.iter().zip(0..) {
            let style = ("sans-serif", 12).into_font().color(&BLACK.mix(0.7));
            let at = (12, row * LINE_HEIGHT as i32);
            lower.draw(&Text::new(note.as_str(), at, style)).map_err(|error| failed(&error))?;
        }
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(text)
}

fn draw_chart(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    chart: &BarChart,
) -> Result<(), Error> {
    let groups = &chart.groups;
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let tops = bars().flat_map(|bar| {
        let floors = bar.floors.iter().map(|floor| floor.1);
        floors.chain(bar.published).chain([bar.value.mean + bar.value.std.unwrap_or(0.0)])
    });
    let most = tops.filter(|top| top.is_finite()).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let n_groups = groups.len().max(1) as f64;
    // Room for the names beside the last group.
    let right = n_groups - 0.5 + f64::from(MARGIN_WIDTH - 80) / f64::from(GROUP_WIDTH);
    let mut context = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(56)
        .build_cartesian_2d(-0.5..right, 0.0..1.08 * most)
        .map_err(|error| failed(&error))?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(TRANSPARENT)
        .y_desc(chart.y_name)
        .y_label_formatter(&|at| if most < 2.0 { format!("{at:.2}") } else { format!("{at:.0}") })
        .draw()
        .map_err(|error| failed(&error))?;
    for (group, idx) in groups.iter().zip(0..) {
        draw_group(&mut context, group, f64::from(idx))?;
    }
    draw_legend(&mut context, chart)
}

/// Draws the bars of a group around its place on the axis, and its name below.
fn draw_group(chart: &mut Chart<'_, '_>, group: &BarGroup, place: f64) -> Result<(), Error> {
    let width = 0.8 / group.bars.len().max(1) as f64;
    for (bar, idx) in group.bars.iter().zip(0..) {
        let left = place - 0.4 + f64::from(idx) * width;
        draw_bar(chart, bar, (left, left + 0.9 * width))?;
    }
    let style = ("sans-serif", 13).into_font().color(&BLACK);
    let style = style.pos(plotters::style::text_anchor::Pos::new(
        plotters::style::text_anchor::HPos::Center,
        plotters::style::text_anchor::VPos::Top,
    ));
    for (line, row) in group.name.split(", ").zip(0..) {
        let text = EmptyElement::at((place, 0.0))
            + Text::new(line.to_owned(), (0, 6 + 13 * row), style.clone());
        chart.plotting_area().draw(&text).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn draw_bar(chart: &mut Chart<'_, '_>, bar: &Bar, (left, right): (f64, f64)) -> Result<(), Error> {
    let top = bar.value.mean;
    let corners = [(left, 0.0), (right, top)];
    let color = rgb(bar.color);
    let fill = color.mix(if bar.is_hatched { LIGHT } else { 1.0 });
    let area = chart.plotting_area().clone();
    let draw = |points: Vec<(f64, f64)>, style: ShapeStyle| {
        area.draw(&PathElement::new(points, style)).map_err(|error| failed(&error))
    };
    area.draw(&Rectangle::new(corners, fill.filled())).map_err(|error| failed(&error))?;
    if bar.is_hatched {
        for line in hatch(chart, corners) {
            draw(line.to_vec(), color.stroke_width(1))?;
        }
    }
    area.draw(&Rectangle::new(corners, color.stroke_width(1))).map_err(|error| failed(&error))?;
    if let Some(published) = bar.published {
        // The outline is wider than our bar, and not filled.
        let beyond = 0.06 * (right - left);
        let (from, to) = (left - beyond, right + beyond);
        let outline = vec![(from, 0.0), (from, published), (to, published), (to, 0.0)];
        draw(outline, BLACK.mix(0.45).stroke_width(1))?;
    }
    if let Some(std) = bar.value.std {
        let middle = f64::midpoint(left, right);
        let (low, high, cap) = ((top - std).max(0.0), top + std, 0.15 * (right - left));
        let style = BLACK.stroke_width(1);
        draw(vec![(middle, low), (middle, high)], style)?;
        for at in [low, high] {
            draw(vec![(middle - cap, at), (middle + cap, at)], style)?;
        }
    }
    for (floor, at) in &bar.floors {
        draw(vec![(left, *at), (right, *at)], floor.style())?;
    }
    Ok(())
}

/// Lines from lower left to upper right inside of a rectangle, `HATCH` pixels apart.
fn hatch(
    chart: &Chart<'_, '_>,
    [(left, bottom), (right, top)]: [(f64, f64); 2],
) -> Vec<[(f64, f64); 2]> {
    let (width, height) = chart.plotting_area().dim_in_pixel();
    let (x, y) = (chart.x_range(), chart.y_range());
    let x_pixel = (x.end - x.start) / f64::from(width.max(1));
    let y_pixel = (y.end - y.start) / f64::from(height.max(1));
    let (n_right, n_up) = ((right - left) / x_pixel, (top - bottom) / y_pixel);
    let mut lines = Vec::new();
    // In pixels from the lower left corner: the line along which `right - up` is `offset`.
    let mut offset = HATCH - n_up;
    while offset < n_right {
        let from = offset.max(0.0);
        let to = (offset + n_up).min(n_right);
        let at = |along: f64| (left + along * x_pixel, bottom + (along - offset) * y_pixel);
        if from < to {
            lines.push([at(from), at(to)]);
        }
        offset += HATCH;
    }
    lines
}

/// Names what the bars' fills, ticks and outlines mean, as far as the chart has them.
fn draw_legend<'a, 'b: 'a>(context: &mut Chart<'a, 'b>, chart: &BarChart) -> Result<(), Error> {
    let bars = || chart.groups.iter().flat_map(|group| &group.bars);
    let mut kinds: Vec<(&BarKind, f64)> = Vec::new();
    let mut floors: Vec<Floor> = Vec::new();
    for bar in bars() {
        if !kinds.iter().any(|(kind, _)| **kind == bar.kind) {
            kinds.push((&bar.kind, if bar.is_hatched { LIGHT } else { DARK }));
        }
        for (floor, _) in &bar.floors {
            if !floors.contains(floor) {
                floors.push(*floor);
            }
        }
    }
    let mut name = |label: String, style: ShapeStyle| {
        let nothing = std::iter::empty::<PathElement<(f64, f64)>>();
        let series = context.draw_series(nothing).map_err(|error| failed(&error))?;
        series.label(label).legend(move |at| stroke_sample(at, style));
        Ok::<(), Error>(())
    };
    for (kind, shade) in kinds {
        let color = kind.color.map_or_else(|| BLACK.mix(shade), |color| rgb(color).mix(1.0));
        name(kind.name.clone(), color.stroke_width(8))?;
    }
    for floor in floors {
        name(format!("floor: {}", floor.name), floor.style())?;
    }
    if bars().any(|bar| bar.published.is_some()) {
        name("outline: published".to_owned(), BLACK.mix(0.45).stroke_width(1))?;
    }
    draw_series_names(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> BarChart {
        let (disk, device) = (
            Floor { name: "disk", color: [0, 0, 0] },
            Floor { name: "device", color: [0xCC, 0, 0x66] },
        );
        let bar = |name: &str, is_hatched, mean: f64| Bar {
            color: [0xFF, 0, 0],
            is_hatched,
            kind: BarKind { name: name.to_owned(), color: None },
            value: MeanStd { mean, std: Some(0.5) },
            floors: vec![(disk, 0.8 * mean), (device, 2.0)],
            published: Some(1.5 * mean),
        };
        let group = |name: &str| BarGroup {
            name: name.to_owned(),
            bars: vec![bar("light: limited", true, 9.0), bar("dark: no limit", false, 5.0)],
        };
        BarChart {
            title: "duration of an epoch".to_owned(),
            y_name: "s",
            notes: vec!["a note".to_owned()],
            groups: vec![group("original"), group("+blosc, form raw16")],
        }
    }

    #[test]
    fn every_bar_floor_and_name_is_drawn() {
        let text = draw_bars(&chart()).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        // Each bar is a filled rectangle and its border.
        assert_eq!(text.matches("fill=\"#FF0000\"").count(), 4, "{text}");
        for part in [
            "original",
            "+blosc",
            "form raw16",
            "light: limited",
            "dark: no limit",
            "floor: disk",
            "floor: device",
            "outline: published",
            "a note",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("floor: decoder"));
        assert!(crate::to_png(&text).is_ok());
    }

    #[test]
    fn nothing_measured_is_an_empty_chart() {
        let chart = BarChart { groups: Vec::new(), ..chart() };
        assert!(draw_bars(&chart).unwrap().starts_with("<svg"));
    }
}
