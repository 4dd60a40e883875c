//! The picture: errors by epoch, with persistence as a line.

use bench_report::to_png;
use plotters::prelude::*;

use crate::Failure;
use crate::train::Errors;

const SIZE: (u32, u32) = (640, 400);
const TEXT: RGBColor = RGBColor(0x1f, 0x24, 0x2b);
const GRID: RGBColor = RGBColor(0xe4, 0xe7, 0xeb);
const MODEL: RGBColor = RGBColor(0x1f, 0x5f, 0xa8);
const PERSISTENCE: RGBColor = RGBColor(0xb5, 0x4a, 0x1f);

/// Draws a PNG file with the errors of a run.
pub(crate) fn draw(errors: &Errors) -> Result<Vec<u8>, Failure> {
    let Errors { held_out, persistence, .. } = errors;
    let n_epochs = held_out.len().saturating_sub(1).max(1) as f64;
    let top = held_out.iter().copied().filter(|error| error.is_finite());
    let top = top.fold(*persistence, f64::max).max(f64::MIN_POSITIVE) * 1.15;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(14)
            .caption("Forecast of the next step", ("sans-serif", 18, &TEXT))
            .x_label_area_size(40)
            .y_label_area_size(58)
            .build_cartesian_2d(0.0..n_epochs, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(TEXT)
            .label_style(("sans-serif", 13, &TEXT))
            .x_labels(11)
            .x_label_formatter(&|epoch| format!("{epoch}"))
            .y_label_formatter(&|error| format!("{error:.2}"))
            .x_desc("epochs")
            .y_desc("RMSE (standard deviations)")
            .draw()?;
        let line = |style: ShapeStyle| {
            move |(x, y): (i32, i32)| PathElement::new([(x, y), (x + 18, y)], style)
        };
        let persistent = [(0.0, *persistence), (n_epochs, *persistence)];
        let style = PERSISTENCE.stroke_width(2);
        chart
            .draw_series(DashedLineSeries::new(persistent, 7, 4, style))?
            .label("persistence, held out")
            .legend(line(style));
        // Above the top, a step is not drawn.
        let steps = errors.training.iter().enumerate();
        let steps = steps.map(|(step, error)| (errors.at(step), *error));
        let style = MODEL.mix(0.35).stroke_width(1);
        chart
            .draw_series(LineSeries::new(steps.filter(|(_, error)| *error < top), style))?
            .label("model, training batches")
            .legend(line(style));
        let epochs = || held_out.iter().enumerate().map(|(epoch, error)| (epoch as f64, *error));
        let style = MODEL.stroke_width(2);
        chart
            .draw_series(LineSeries::new(epochs(), style))?
            .label("model, held out")
            .legend(line(style));
        chart.draw_series(epochs().map(|at| Circle::new(at, 3, MODEL.filled())))?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::MiddleRight)
            .label_font(("sans-serif", 13, &TEXT))
            .background_style(WHITE)
            .border_style(GRID)
            .draw()?;
        area.present()?;
    }
    Ok(to_png(&svg)?)
}
