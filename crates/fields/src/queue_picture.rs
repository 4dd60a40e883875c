//! The picture of the queue experiment: queue depth over requests, a plot for each number of
//! workers, a line for each depth.

use anyhow::Context as _;
use bench_report::{Dimension, LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines};

/// A measured queue.
pub(crate) struct QueueLine {
    pub(crate) workers: u64,
    /// Places in the queue.
    pub(crate) queue: u64,
    /// Batches that were ready at each request.
    pub(crate) ready: Vec<f64>,
    /// The predicted first request without a ready batch.
    pub(crate) predicted: Option<f64>,
    /// The measured one.
    pub(crate) measured: Option<usize>,
}

/// Number of the shape of predictions, a triangle.
const TRIANGLE: usize = 2;

/// Draws the lines as SVG. The predicted drain of each is a triangle on the axis.
pub(crate) fn draw(lines: &[QueueLine]) -> anyhow::Result<String> {
    let mut workers: Vec<u64> = lines.iter().map(|line| line.workers).collect();
    workers.sort_unstable();
    workers.dedup();
    let has_predictions = lines.iter().any(|line| line.predicted.is_some());
    let note = "triangle: the predicted first request that finds the queue empty";
    let chart = LineChart {
        title: title(lines),
        notes: has_predictions.then(|| note.to_owned()).into_iter().collect(),
        x: Dimension::linear("request, counted from 0"),
        y: Dimension::linear("batches ready"),
        panels: workers.iter().map(|workers| panel(*workers, lines)).collect(),
    };
    draw_lines(&chart).context("cannot draw the queues")
}

/// Names the queue that lasts longest and the one that is empty first.
fn title(lines: &[QueueLine]) -> String {
    // A queue that is never empty lasts longest.
    let lasts = |line: &&QueueLine| line.measured.unwrap_or(usize::MAX);
    let describe = |line: &QueueLine| {
        let empty = line.measured.map_or_else(
            || "is never empty".to_owned(),
            |request| format!("is empty at request {request}"),
        );
        format!("a queue of {} with {} {empty}", line.queue, name(line.workers))
    };
    match (lines.iter().max_by_key(lasts), lines.iter().min_by_key(lasts)) {
        (Some(longest), Some(first)) if lasts(&first) < lasts(&longest) => {
            format!("Lasts longest: {}; first: {}", describe(longest), describe(first))
        }
        (Some(line), _) => format!("All alike: {}", describe(line)),
        _ => "Queues: nothing was measured".to_owned(),
    }
}

fn name(workers: u64) -> String {
    if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") }
}

/// The queues of one number of workers.
fn panel(workers: u64, lines: &[QueueLine]) -> LinePanel {
    let these = lines.iter().filter(|line| line.workers == workers).enumerate();
    let series = these.flat_map(|(idx, line)| {
        let name = format!("queue {}", line.queue);
        // Lines of whole numbers lie on one another: each is moved a little.
        let up = 0.05 * idx as f64;
        let points = line.ready.iter().enumerate();
        let points = points.map(|(at, ready)| LinePoint::new(at as f64, ready + up)).collect();
        let n = line.ready.len() as f64;
        let predicted = line.predicted.filter(|at| *at <= n).map(|at| LineSeries {
            shape: TRIANGLE,
            ..LineSeries::new(name.clone(), LineStyle::Marks, vec![LinePoint::new(at, 0.0)])
        });
        std::iter::once(LineSeries::new(name, LineStyle::Lines, points)).chain(predicted)
    });
    LinePanel { title: name(workers), series: series.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_panel_its_name_and_its_prediction() {
        let line = |workers, queue, predicted, measured| QueueLine {
            workers,
            queue,
            ready: vec![2.0, 1.0, 0.0],
            predicted,
            measured,
        };
        let lines =
            [line(1, 3, Some(1.5), Some(2)), line(1, 4, None, None), line(2, 3, None, Some(1))];
        let text = draw(&lines).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for name in ["1 worker", "2 workers", "queue 3", "queue 4"] {
            assert!(text.contains(&format!("\n{name}\n")), "{name}");
        }
        assert_eq!(text.matches("<polygon").count(), 1);
        assert_eq!(
            title(&lines),
            "Lasts longest: a queue of 4 with 1 worker is never empty; \
             first: a queue of 3 with 2 workers is empty at request 1"
        );
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        assert!(draw(&[]).unwrap().starts_with("<svg"));
    }
}
