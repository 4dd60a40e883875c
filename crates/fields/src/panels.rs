//! Pictures of several panels, each a chart with lines and their names.

use bench_report::drawing_failed as failed;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

/// The place of one panel in the picture.
pub(crate) type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws each of `contents` into a panel of `size` pixels, in rows of `n_columns`; returns the SVG.
pub(crate) fn draw_panels<T>(
    contents: &[T],
    n_columns: usize,
    size: (u32, u32),
    draw: impl Fn(&Panel<'_>, &T) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let n_columns = n_columns.clamp(1, contents.len().max(1));
    let n_rows = contents.len().div_ceil(n_columns).max(1);
    let size = (size.0 * n_columns as u32, size.1 * n_rows as u32);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        for (panel, content) in root.split_evenly((n_rows, n_columns)).iter().zip(contents) {
            draw(panel, content)?;
        }
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(text)
}

/// The names and ranges of a chart's axes.
pub(crate) struct Axes<X, Y> {
    pub(crate) x: (&'static str, X),
    pub(crate) y: (&'static str, Y),
}

/// A chart whose axes are numbers.
pub(crate) type Chart<'a, 'b, X, Y> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<<X as AsRangedCoord>::CoordDescType, <Y as AsRangedCoord>::CoordDescType>,
>;

/// Begins the chart of a panel, with whole numbers along the axes.
pub(crate) fn begin_chart<'a, 'b, X, Y>(
    panel: &'a Panel<'b>,
    caption: &str,
    axes: Axes<X, Y>,
) -> anyhow::Result<Chart<'a, 'b, X, Y>>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(panel)
        .caption(caption, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(54)
        .build_cartesian_2d(axes.x.1, axes.y.1)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(axes.x.0)
        .y_desc(axes.y.0)
        .x_label_formatter(&|at| format!("{at:.0}"))
        .y_label_formatter(&|at| format!("{at:.0}"))
        .draw()
        .map_err(|error| failed(&error))?;
    Ok(chart)
}
