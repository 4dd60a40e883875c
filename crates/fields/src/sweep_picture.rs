//! The picture of a sweep: megabytes a second over threads, a panel for each batch size, with the
//! published figures as dashed lines.

use anyhow::{Context as _, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::published::READING;

/// A way of reading batches of one size.
pub(crate) struct RateLine {
    pub(crate) name: String,
    pub(crate) batch: u64,
    /// Threads, and megabytes a second.
    pub(crate) rates: Vec<(u64, f64)>,
}

/// Width and height of a panel in pixels.
const PANEL: (u32, u32) = (620, 400);

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the lines as SVG.
pub(crate) fn draw(lines: &[RateLine]) -> anyhow::Result<String> {
    let mut text = String::new();
    draw_into(&mut text, lines).context("cannot draw the rates")?;
    Ok(text)
}

fn draw_into(text: &mut String, lines: &[RateLine]) -> anyhow::Result<()> {
    let mut batches: Vec<u64> = lines.iter().map(|line| line.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let size = (PANEL.0 * batches.len().max(1) as u32, PANEL.1);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE).map_err(|error| anyhow!("{error}"))?;
    for (panel, batch) in root.split_evenly((1, batches.len().max(1))).iter().zip(&batches) {
        let these: Vec<&RateLine> = lines.iter().filter(|line| line.batch == *batch).collect();
        draw_panel(panel, *batch, &these)?;
    }
    root.present().map_err(|error| anyhow!("{error}"))
}

/// Draws the lines of one batch size.
fn draw_panel(panel: &Panel<'_>, batch: u64, lines: &[&RateLine]) -> anyhow::Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let published = || READING.iter().filter(|line| line.batch == batch);
    let measured = lines.iter().flat_map(|line| line.rates.iter().copied());
    let all: Vec<(u64, f64)> =
        measured.chain(published().flat_map(|line| line.rates().collect::<Vec<_>>())).collect();
    let most_threads = all.iter().map(|(threads, _)| *threads).max().unwrap_or(1).max(2);
    let most = all.iter().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(panel)
        .caption(format!("batches of {batch}"), ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(54)
        .build_cartesian_2d((1_f64..most_threads as f64).log_scale().base(2.0), 0.0..1.45 * most)
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("threads")
        .y_desc("MB/s")
        .x_label_formatter(&|at| format!("{at:.0}"))
        .y_label_formatter(&|at| format!("{at:.0}"))
        .draw()
        .map_err(|error| failed(&error))?;
    for (idx, line) in lines.iter().enumerate() {
        let color = Palette99::pick(idx).to_rgba();
        let points: Vec<(f64, f64)> =
            line.rates.iter().map(|(threads, rate)| (*threads as f64, *rate)).collect();
        let series = LineSeries::new(points, color.stroke_width(2)).point_size(3);
        chart
            .draw_series(series)
            .map_err(|error| failed(&error))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2)));
    }
    for (idx, line) in published().enumerate() {
        let color = BLACK.mix(if idx == 0 { 0.7 } else { 0.35 });
        let points: Vec<(f64, f64)> =
            line.rates().map(|(threads, rate)| (threads as f64, rate)).collect();
        chart
            .draw_series(DashedLineSeries::new(points, 5, 4, color.stroke_width(2)))
            .map_err(|error| failed(&error))?
            .label(format!("published: {}", line.name))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 5, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_has_the_measured_and_the_published_lines_of_its_batch_size() {
        let line = |batch| RateLine {
            name: "stacked".to_owned(),
            batch,
            rates: vec![(1, 900.0), (2, 1500.0)],
        };
        let text = draw(&[line(4), line(16), line(64)]).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for (name, n) in [("batches of 4", 1), ("stacked", 3), ("published: one dask call", 2)] {
            assert!(n <= text.matches(name).count(), "{name}");
        }
        assert!(!draw(&[line(8)]).unwrap().contains("published"));
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(draw(&[]).unwrap().starts_with("<svg"));
    }
}
