//! The picture: loss by step, one panel per order, all with the same scale.

use plotters::prelude::*;

use crate::Failure;
use crate::arguments::RowOrder;
use crate::report::{Finished, by_order};

/// Size of a panel in pixels.
const WIDTH: u32 = 380;
const HEIGHT: u32 = 340;
const TEXT: RGBColor = RGBColor(0x1f, 0x24, 0x2b);
const GRID: RGBColor = RGBColor(0xe4, 0xe7, 0xeb);
/// Color of the first seed; the others are drawn thinner, under it.
const LINE: RGBColor = RGBColor(0x1f, 0x5f, 0xa8);

/// Draws an SVG file with the losses of all runs.
pub(crate) fn draw(finished: &[Finished]) -> Result<String, Failure> {
    let groups = by_order(finished);
    let losses = || finished.iter().flat_map(|run| &run.outcome.losses);
    let top = losses().copied().filter(|loss| loss.is_finite()).fold(0.1, f32::max) * 1.05;
    let n_steps = finished.iter().map(|run| run.outcome.losses.len()).max().unwrap_or(0).max(2);
    let mut text = String::new();
    {
        let size = (WIDTH * groups.len().max(1) as u32, HEIGHT);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        for (panel, (order, runs)) in
            area.split_evenly((1, groups.len().max(1))).iter().zip(&groups)
        {
            let mut chart = ChartBuilder::on(panel)
                .margin(12)
                .caption(title(*order), ("sans-serif", 17, &TEXT))
                .x_label_area_size(38)
                .y_label_area_size(46)
                .build_cartesian_2d(0..n_steps - 1, 0.0..top)?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(GRID)
                .axis_style(TEXT)
                .label_style(("sans-serif", 13, &TEXT))
                .x_labels(6)
                .y_labels(6)
                .x_desc("step")
                .y_desc("loss")
                .draw()?;
            // The first seed last, on top.
            for (idx, run) in runs.iter().enumerate().rev() {
                let opacity = if idx == 0 { 1.0 } else { 0.3 };
                let points = run.outcome.losses.iter().copied().enumerate();
                chart.draw_series(LineSeries::new(points, LINE.mix(opacity).stroke_width(1)))?;
            }
        }
        area.present()?;
    }
    Ok(text)
}

fn title(order: RowOrder) -> &'static str {
    match order {
        RowOrder::InOrder => "in order",
        RowOrder::Chunks => "chunks, shuffled in blocks",
        RowOrder::Full => "full shuffle",
    }
}
