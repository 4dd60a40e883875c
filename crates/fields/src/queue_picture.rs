//! The picture of the queue experiment: queue depth over iterations, a panel for each number of
//! workers, a line for each depth.

use anyhow::Context as _;
use bench_report::{draw_series_names, drawing_failed as failed};
use plotters::prelude::*;

use crate::panels::{Axes, Panel, begin_chart, draw_panels};

/// A measured queue.
pub(crate) struct QueueLine {
    pub(crate) workers: u64,
    /// Places in the queue.
    pub(crate) queue: u64,
    /// Batches that were ready at each request.
    pub(crate) ready: Vec<f64>,
    /// The predicted first request without a ready batch.
    pub(crate) predicted: Option<f64>,
}

/// Width and height of a panel in pixels.
const PANEL: (u32, u32) = (560, 340);

/// Draws the lines as SVG. The predicted drain of each is a triangle on the axis.
pub(crate) fn draw(lines: &[QueueLine]) -> anyhow::Result<String> {
    let mut workers: Vec<u64> = lines.iter().map(|line| line.workers).collect();
    workers.sort_unstable();
    workers.dedup();
    let n = lines.iter().map(|line| line.ready.len()).max().unwrap_or(1) as f64;
    let most = lines.iter().flat_map(|line| &line.ready).fold(1.0_f64, |most, n| most.max(*n));
    let drawn = draw_panels(&workers, 2, PANEL, |panel, workers| {
        let these: Vec<&QueueLine> = lines.iter().filter(|line| line.workers == *workers).collect();
        draw_panel(panel, *workers, &these, (n, most))
    });
    drawn.context("cannot draw the queues")
}

/// Draws the queues of one number of workers; all panels have the same axes.
fn draw_panel(
    panel: &Panel<'_>,
    workers: u64,
    lines: &[&QueueLine],
    (n, most): (f64, f64),
) -> anyhow::Result<()> {
    let name = if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
    let axes = Axes { x: ("iteration", 0.0..n), y: ("batches ready", 0.0..most + 0.5) };
    let mut chart = begin_chart(panel, &name, axes)?;
    for (idx, line) in lines.iter().enumerate() {
        let color = Palette99::pick(idx).to_rgba();
        // Lines of whole numbers lie on one another: each is moved a little.
        let up = 0.05 * idx as f64;
        let points = line.ready.iter().enumerate().map(|(at, ready)| (at as f64, ready + up));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))
            .map_err(|error| failed(&error))?
            .label(format!("queue {}", line.queue))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2)));
        if let Some(predicted) = line.predicted.filter(|at| *at <= n) {
            let mark = TriangleMarker::new((predicted, 0.0), 6, color.filled());
            chart.draw_series([mark]).map_err(|error| failed(&error))?;
        }
    }
    Ok(draw_series_names(&mut chart)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_panel_its_name_and_its_prediction() {
        let line = |workers, queue, predicted| QueueLine {
            workers,
            queue,
            ready: vec![2.0, 1.0, 0.0],
            predicted,
        };
        let text = draw(&[line(1, 3, Some(1.5)), line(1, 4, None), line(2, 3, None)]).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for (name, n) in [("1 worker", 1), ("2 workers", 1), ("queue 3", 2), ("queue 4", 1)] {
            assert_eq!(text.matches(name).count(), n, "{name}");
        }
        assert_eq!(text.matches("<polygon").count(), 1);
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(draw(&[]).unwrap().starts_with("<svg"));
    }
}
