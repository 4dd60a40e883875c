//! Parts that charts drawn with plotters share.

use plotters::prelude::*;

use crate::Error;

/// The error of a drawing, which plotters gives in many types.
pub fn drawing_failed(error: &dyn std::fmt::Display) -> Error {
    Error::Draw { message: error.to_string() }
}

/// Draws the names of a chart's series into its upper right corner.
///
/// # Errors
/// A name cannot be drawn.
pub fn draw_series_names<'a, 'b: 'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>,
) -> Result<(), Error>
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
        .map_err(|error| drawing_failed(&error))
}

/// The name of a stroke in a legend.
pub fn stroke_sample((x, y): (i32, i32), style: ShapeStyle) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 16, y)], style)
}
