//! The picture of a sweep: megabytes a second over threads, a plot for each batch size, with the
//! published figures as dashed lines.

use anyhow::Context as _;
use bench_report::{Dimension, LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines};

use bench_run::grouped;

use crate::published::READING;

/// A way of reading batches of one size.
pub(crate) struct RateLine {
    pub(crate) name: String,
    pub(crate) batch: u64,
    /// Threads, and megabytes a second.
    pub(crate) rates: Vec<(u64, f64)>,
}

/// Colors of the published lines.
const PUBLISHED: [[u8; 3]; 2] = [[0x5B, 0x65, 0x70], [0xA5, 0xAD, 0xB5]];

/// Draws the lines as SVG. The title names the fastest.
pub(crate) fn draw(lines: &[RateLine]) -> anyhow::Result<String> {
    let mut batches: Vec<u64> = lines.iter().map(|line| line.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let chart = LineChart {
        title: title(lines),
        notes: vec!["first epoch, the first batch included; higher is better".to_owned()],
        x: Dimension::log_of_values("threads of a read"),
        y: Dimension::linear("MB/s (10^6 bytes of samples)"),
        panels: batches.iter().map(|batch| panel(*batch, lines)).collect(),
    };
    draw_lines(&chart).context("cannot draw the rates")
}

fn title(lines: &[RateLine]) -> String {
    let all = lines.iter().flat_map(|line| line.rates.iter().map(move |rate| (line, *rate)));
    let fastest = all.max_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other));
    fastest.map_or_else(
        || "Reading fields: nothing was measured".to_owned(),
        |(line, (threads, rate))| {
            format!(
                "{} is fastest: {} MB/s in batches of {}, with {threads} {}",
                line.name,
                grouped(rate.round() as u64),
                line.batch,
                if threads == 1 { "thread" } else { "threads" },
            )
        },
    )
}

/// The lines of one batch size.
fn panel(batch: u64, lines: &[RateLine]) -> LinePanel {
    let points = |rates: &mut dyn Iterator<Item = (u64, f64)>| {
        rates.map(|(threads, rate)| LinePoint::new(threads as f64, rate)).collect()
    };
    let measured = lines.iter().filter(|line| line.batch == batch).map(|line| {
        let points = points(&mut line.rates.iter().copied());
        LineSeries::new(line.name.clone(), LineStyle::LinesWithMarks, points)
    });
    let published = READING.iter().filter(|line| line.batch == batch).enumerate();
    let published = published.map(|(idx, line)| LineSeries {
        color: PUBLISHED.get(idx).copied(),
        is_dashed: true,
        ..LineSeries::new(
            format!("published: {}", line.name),
            LineStyle::Lines,
            points(&mut line.rates()),
        )
    });
    LinePanel { title: format!("batches of {batch}"), series: measured.chain(published).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_has_the_measured_and_the_published_lines_of_its_batch_size() {
        let line = |batch: u64| RateLine {
            name: "stacked".to_owned(),
            batch,
            rates: vec![(1, 900.0), (2, 1500.0 + batch as f64)],
        };
        let lines = [line(4), line(16), line(64)];
        let text = draw(&lines).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for name in ["batches of 4", "stacked", "published: one dask call"] {
            assert!(text.contains(name), "{name}");
        }
        assert_eq!(
            title(&lines),
            "stacked is fastest: 1,564 MB/s in batches of 64, with 2 threads"
        );
        assert!(!draw(&[line(8)]).unwrap().contains("published"));
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(draw(&[]).unwrap().starts_with("<svg"));
    }
}
