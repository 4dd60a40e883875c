//! The picture of the queue experiment: queue depth over iterations, a line for each setting.

use anyhow::{Context as _, anyhow};
use plotters::prelude::*;

/// A measured queue.
pub(crate) struct QueueLine {
    pub(crate) name: String,
    /// Batches that were ready at each request.
    pub(crate) ready: Vec<f64>,
    /// The predicted first request without a ready batch.
    pub(crate) predicted: Option<f64>,
}

/// Width and height in pixels.
const SIZE: (u32, u32) = (1000, 600);

/// Draws the lines as SVG. The predicted drain of each is a triangle on the axis.
pub(crate) fn draw(lines: &[QueueLine]) -> anyhow::Result<String> {
    let mut text = String::new();
    draw_into(&mut text, lines).context("cannot draw the queues")?;
    Ok(text)
}

fn draw_into(text: &mut String, lines: &[QueueLine]) -> anyhow::Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let n = lines.iter().map(|line| line.ready.len()).max().unwrap_or(1) as f64;
    let most = lines.iter().flat_map(|line| &line.ready).fold(1.0_f64, |most, n| most.max(*n));
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|error| failed(&error))?;
    let mut chart = ChartBuilder::on(&root)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..n, 0.0..most + 0.5)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("iteration")
        .y_desc("batches ready when one is asked for")
        .draw()
        .map_err(|error| failed(&error))?;
    for (idx, line) in lines.iter().enumerate() {
        let color = Palette99::pick(idx).to_rgba();
        // Lines of whole numbers lie on one another: each is moved a little.
        let up = 0.02 * idx as f64;
        let points = line.ready.iter().enumerate().map(|(at, ready)| (at as f64, ready + up));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))
            .map_err(|error| failed(&error))?
            .label(line.name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        if let Some(predicted) = line.predicted.filter(|at| *at <= n) {
            let mark = TriangleMarker::new((predicted, 0.0), 7, color.filled());
            chart.draw_series([mark]).map_err(|error| failed(&error))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|error| failed(&error))?;
    root.present().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_name_and_its_prediction() {
        let line = |name: &str, predicted| QueueLine {
            name: name.to_owned(),
            ready: vec![2.0, 1.0, 0.0],
            predicted,
        };
        let text = draw(&[line("first", Some(1.5)), line("second", None)]).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for name in ["first", "second", "iteration"] {
            assert!(text.contains(name), "{name}");
        }
        assert_eq!(text.matches("<polygon").count(), 1);
    }
}
