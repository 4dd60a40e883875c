//! The picture of a sweep: megabytes a second over threads, a panel for each batch size, with the
//! published figures as dashed lines.

use anyhow::Context as _;
use bench_report::{draw_series_names, drawing_failed as failed};
use plotters::prelude::*;

use crate::panels::{Axes, Panel, begin_chart, draw_panels};
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

/// Draws the lines as SVG.
pub(crate) fn draw(lines: &[RateLine]) -> anyhow::Result<String> {
    let mut batches: Vec<u64> = lines.iter().map(|line| line.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let drawn = draw_panels(&batches, batches.len(), PANEL, |panel, batch| {
        let these: Vec<&RateLine> = lines.iter().filter(|line| line.batch == *batch).collect();
        draw_panel(panel, *batch, &these)
    });
    drawn.context("cannot draw the rates")
}

/// Draws the lines of one batch size.
fn draw_panel(panel: &Panel<'_>, batch: u64, lines: &[&RateLine]) -> anyhow::Result<()> {
    let published = || READING.iter().filter(|line| line.batch == batch);
    let measured = lines.iter().flat_map(|line| line.rates.iter().copied());
    let all: Vec<(u64, f64)> =
        measured.chain(published().flat_map(|line| line.rates().collect::<Vec<_>>())).collect();
    let most_threads = all.iter().map(|(threads, _)| *threads).max().unwrap_or(1).max(2);
    let most = all.iter().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let axes = Axes {
        x: ("threads", (1_f64..most_threads as f64).log_scale().base(2.0)),
        // Room for the names.
        y: ("MB/s", 0.0..1.45 * most),
    };
    let mut chart = begin_chart(panel, &format!("batches of {batch}"), axes)?;
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
    Ok(draw_series_names(&mut chart)?)
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
