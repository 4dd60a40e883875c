//! The picture: loss by step, one plot per order, all with the same scale.

use bench_report::{Dimension, LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines};

use crate::Failure;
use crate::arguments::RowOrder;
use crate::report::{Finished, by_order};

/// Color of the first seed, and that of the others, under it.
const FIRST: [u8; 3] = [0x1f, 0x5f, 0xa8];
const OTHERS: [u8; 3] = [0xbc, 0xcf, 0xe5];

/// Draws an SVG file with the losses of all runs. The title names the orders with the best and the
/// worst mean of macro-F1.
pub(crate) fn draw(finished: &[Finished]) -> Result<String, Failure> {
    let groups = by_order(finished);
    let panels = groups.iter().map(|(order, runs)| {
        // The first seed last, on top.
        let series = runs.iter().enumerate().rev().map(|(idx, run)| {
            let losses = run.outcome.losses.iter().enumerate();
            let losses = losses.filter(|(_, loss)| loss.is_finite());
            let points = losses.map(|(step, loss)| LinePoint::new(step as f64, f64::from(*loss)));
            let (name, color) =
                if idx == 0 { ("first seed", FIRST) } else { ("other seeds", OTHERS) };
            LineSeries {
                color: Some(color),
                ..LineSeries::new(name, LineStyle::ThinLines, points.collect())
            }
        });
        LinePanel { title: title(*order).to_owned(), series: series.collect() }
    });
    let chart = LineChart {
        title: headline(&groups),
        notes: vec!["loss of each training step, by the order of the cells".to_owned()],
        x: Dimension::linear("training step"),
        y: Dimension::linear("loss (cross entropy, nats)"),
        panels: panels.collect(),
    };
    Ok(draw_lines(&chart)?)
}

fn headline(groups: &[(RowOrder, Vec<&Finished>)]) -> String {
    let score = |runs: &[&Finished]| {
        runs.iter().map(|run| run.outcome.macro_f1).sum::<f64>() / runs.len().max(1) as f64
    };
    let mut scores: Vec<(&str, f64)> =
        groups.iter().map(|(order, runs)| (title(*order), score(runs))).collect();
    scores.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    match scores.as_slice() {
        [(best, most), .., (worst, least)] => {
            format!("{best} trains best: macro-F1 {most:.3}, {worst} {least:.3}")
        }
        [(only, score)] => format!("{only}: macro-F1 {score:.3}"),
        [] => "no run has finished".to_owned(),
    }
}

fn title(order: RowOrder) -> &'static str {
    match order {
        RowOrder::InOrder => "in order",
        RowOrder::Chunks => "chunks, shuffled in blocks",
        RowOrder::Full => "full shuffle",
    }
}
