//! The picture: errors by epoch, with persistence as a line.

use bench_report::{
    Dimension, LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines, to_png,
};

use crate::Failure;
use crate::train::Errors;

const MODEL: [u8; 3] = [0x1f, 0x5f, 0xa8];
const TRAINING: [u8; 3] = [0xbc, 0xcf, 0xe5];
const PERSISTENCE: [u8; 3] = [0xb5, 0x4a, 0x1f];

/// Draws a PNG file with the errors of a run. The title says whether the model beats persistence.
pub(crate) fn draw(errors: &Errors) -> Result<Vec<u8>, Failure> {
    let Errors { held_out, persistence, .. } = errors;
    let n_epochs = held_out.len().saturating_sub(1).max(1) as f64;
    let top = held_out.iter().copied().filter(|error| error.is_finite());
    let top = top.fold(*persistence, f64::max) * 1.15;
    let persistent =
        vec![LinePoint::new(0.0, *persistence), LinePoint::new(n_epochs, *persistence)];
    // Above the top, a step is not drawn.
    let steps = errors.training.iter().enumerate().filter(|(_, error)| **error < top);
    let steps = steps.map(|(step, error)| LinePoint::new(errors.at(step), *error));
    let epochs = held_out.iter().enumerate().filter(|(_, error)| error.is_finite());
    let epochs = epochs.map(|(epoch, error)| LinePoint::new(epoch as f64, *error));
    let series = vec![
        LineSeries {
            color: Some(TRAINING),
            ..LineSeries::new("model, training batches", LineStyle::ThinLines, steps.collect())
        },
        LineSeries {
            color: Some(PERSISTENCE),
            is_dashed: true,
            ..LineSeries::new("persistence, held out", LineStyle::Lines, persistent)
        },
        LineSeries {
            color: Some(MODEL),
            ..LineSeries::new("model, held out", LineStyle::LinesWithMarks, epochs.collect())
        },
    ];
    let chart = LineChart {
        title: title(held_out, *persistence),
        notes: vec!["forecast of the next step".to_owned()],
        x: Dimension::linear("epochs"),
        y: Dimension::linear("RMSE, standard deviations"),
        panels: vec![LinePanel { title: String::new(), series }],
    };
    Ok(to_png(&draw_lines(&chart)?)?)
}

fn title(held_out: &[f64], persistence: f64) -> String {
    let last = held_out.last().copied().unwrap_or(f64::NAN);
    if last < persistence {
        let percent = 100.0 * (1.0 - last / persistence);
        format!(
            "The model's error is {percent:.0} % below persistence: RMSE {last:.3} against {persistence:.3}"
        )
    } else {
        format!("The model does not beat persistence: RMSE {last:.3} against {persistence:.3}")
    }
}
