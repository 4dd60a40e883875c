//! The three figures of htc's benchmark: epoch durations, utilisation over an epoch, and mean
//! utilisation.

mod bar_chart;
mod curve_chart;

use anyhow::anyhow;
use plotters::prelude::*;

pub(crate) use bar_chart::{Bar, BarChart, BarGroup, Floor, draw_bars};
pub(crate) use curve_chart::{NamedCurve, draw_curves};

use crate::bench::Strategy;

/// The color of a strategy: htc's for its five, two more for ours.
pub(crate) fn color(strategy: Strategy) -> RGBColor {
    match strategy {
        Strategy::Original => RGBColor(0x7F, 0x7F, 0x7F),
        Strategy::Blosc => RGBColor(0xFF, 0x7F, 0x0E),
        Strategy::Fp16 => RGBColor(0x8C, 0x56, 0x4B),
        Strategy::GpuAug => RGBColor(0x94, 0x67, 0xBD),
        Strategy::RingBuffer => RGBColor(0x2C, 0xA0, 0x2C),
        Strategy::EventRing => RGBColor(0x1F, 0x77, 0xB4),
        Strategy::Codec => RGBColor(0xD6, 0x27, 0x28),
    }
}

/// The error of a drawing, which plotters gives in many types.
fn failed(error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the figure: {error}")
}

/// Draws the names of a chart's series.
fn draw_names<'a, 'b: 'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>,
) -> anyhow::Result<()>
where
    X: Ranged,
    Y: Ranged,
{
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|error| failed(&error))
}

/// The name of a stroke in a legend.
fn stroke_sample((x, y): (i32, i32), style: ShapeStyle) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 16, y)], style)
}
