//! Bars in groups: light and hatched with a read limit, dark without.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{draw_names, failed, stroke_sample};
use crate::statistics::MeanStd;

/// A chart of bars.
#[derive(Debug)]
pub(crate) struct BarChart {
    pub(crate) title: String,
    pub(crate) y_name: &'static str,
    /// What a published value is multiplied by, and other notes; lines below the chart.
    pub(crate) notes: Vec<String>,
    pub(crate) groups: Vec<BarGroup>,
}

/// The bars of one strategy.
#[derive(Debug)]
pub(crate) struct BarGroup {
    pub(crate) name: String,
    pub(crate) color: RGBColor,
    pub(crate) bars: Vec<Bar>,
}

/// A bar with the floors beside it.
#[derive(Debug)]
pub(crate) struct Bar {
    /// Name of the read limit; `None` without one.
    pub(crate) limit: Option<String>,
    pub(crate) value: MeanStd,
    pub(crate) floors: Vec<(Floor, f64)>,
    pub(crate) published: Option<f64>,
}

/// What bounds a bar from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Reading the files.
    Disk,
    /// Decoding them.
    Decoder,
    /// The compute of the device.
    Device,
}

impl Floor {
    pub(crate) const ALL: [Self; 3] = [Self::Disk, Self::Decoder, Self::Device];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Decoder => "decoder",
            Self::Device => "device",
        }
    }

    fn style(self) -> ShapeStyle {
        match self {
            Self::Disk => BLACK.stroke_width(3),
            Self::Decoder => RGBColor(0x00, 0x66, 0xCC).stroke_width(3),
            Self::Device => RGBColor(0xCC, 0x00, 0x66).stroke_width(3),
        }
    }
}

/// Height of a chart, and width beside and of a group, in pixels.
const HEIGHT: u32 = 480;
const MARGIN_WIDTH: u32 = 280;
const GROUP_WIDTH: u32 = 120;
const LINE_HEIGHT: u32 = 16;
/// Pixels from one line of a hatch to the next.
const HATCH: f64 = 8.0;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws the chart as SVG.
pub(crate) fn draw_bars(chart: &BarChart) -> anyhow::Result<String> {
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
) -> anyhow::Result<()> {
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
fn draw_group(chart: &mut Chart<'_, '_>, group: &BarGroup, place: f64) -> anyhow::Result<()> {
    let width = 0.8 / group.bars.len().max(1) as f64;
    for (bar, idx) in group.bars.iter().zip(0..) {
        let left = place - 0.4 + f64::from(idx) * width;
        draw_bar(chart, group, bar, (left, left + 0.9 * width))?;
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

fn draw_bar(
    chart: &mut Chart<'_, '_>,
    group: &BarGroup,
    bar: &Bar,
    (left, right): (f64, f64),
) -> anyhow::Result<()> {
    let top = bar.value.mean;
    let corners = [(left, 0.0), (right, top)];
    let fill = if bar.limit.is_some() { group.color.mix(0.35) } else { group.color.mix(1.0) };
    let area = chart.plotting_area().clone();
    let draw = |points: Vec<(f64, f64)>, style: ShapeStyle| {
        area.draw(&PathElement::new(points, style)).map_err(|error| failed(&error))
    };
    area.draw(&Rectangle::new(corners, fill.filled())).map_err(|error| failed(&error))?;
    if bar.limit.is_some() {
        for line in hatch(chart, corners) {
            draw(line.to_vec(), group.color.stroke_width(1))?;
        }
    }
    area.draw(&Rectangle::new(corners, group.color.stroke_width(1)))
        .map_err(|error| failed(&error))?;
    if let Some(published) = bar.published {
        // Wider than ours, and open.
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
fn draw_legend<'a, 'b: 'a>(context: &mut Chart<'a, 'b>, chart: &BarChart) -> anyhow::Result<()> {
    let bars = || chart.groups.iter().flat_map(|group| &group.bars);
    let mut limits: Vec<Option<&String>> = Vec::new();
    for limit in bars().map(|bar| bar.limit.as_ref()) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    let mut name = |label: String, style: ShapeStyle| {
        let nothing = std::iter::empty::<PathElement<(f64, f64)>>();
        let series = context.draw_series(nothing).map_err(|error| failed(&error))?;
        series.label(label).legend(move |at| stroke_sample(at, style));
        anyhow::Ok(())
    };
    for limit in limits {
        match limit {
            Some(limit) => {
                name(format!("light: reads limited, {limit}"), BLACK.mix(0.35).stroke_width(8))?;
            }
            None => name("dark: no limit".to_owned(), BLACK.mix(0.8).stroke_width(8))?,
        }
    }
    for floor in Floor::ALL {
        if bars().any(|bar| bar.floors.iter().any(|of| of.0 == floor)) {
            name(format!("floor: {}", floor.name()), floor.style())?;
        }
    }
    if bars().any(|bar| bar.published.is_some()) {
        name("outline: published".to_owned(), BLACK.mix(0.45).stroke_width(1))?;
    }
    draw_names(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> BarChart {
        let bar = |limit: Option<&str>, mean: f64| Bar {
            limit: limit.map(str::to_owned),
            value: MeanStd { mean, std: Some(0.5) },
            floors: vec![(Floor::Disk, 0.8 * mean), (Floor::Device, 2.0)],
            published: Some(1.5 * mean),
        };
        let group = |name: &str| BarGroup {
            name: name.to_owned(),
            color: RED,
            bars: vec![bar(Some("100.0 MB/s"), 9.0), bar(None, 5.0)],
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
            "light: reads limited, 100.0 MB/s",
            "dark: no limit",
            "floor: disk",
            "floor: device",
            "outline: published",
            "a note",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("floor: decoder"));
        assert!(bench_report::to_png(&text).is_ok());
    }

    #[test]
    fn nothing_measured_is_an_empty_chart() {
        let chart = BarChart { groups: Vec::new(), ..chart() };
        assert!(draw_bars(&chart).unwrap().starts_with("<svg"));
    }
}
