//! Utilisation over the progress of an epoch: a line with a band for each strategy.

use bench_report::{Dimension, LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines};

use crate::curves::Curve;

/// A curve with its name.
#[derive(Debug)]
pub(crate) struct NamedCurve {
    pub(crate) name: String,
    /// Red, green and blue.
    pub(crate) color: [u8; 3],
    /// Shares, 0 to 1.
    pub(crate) curve: Curve,
}

impl NamedCurve {
    /// Mean over the epoch, in percent.
    fn percent(&self) -> f64 {
        let shares = &self.curve.mean;
        100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }
}

/// Draws the curves as SVG, in percent over percent. The title names the highest and the lowest.
pub(crate) fn draw_curves(subject: &str, curves: &[NamedCurve]) -> anyhow::Result<String> {
    let by = |sign: f64| {
        let better = move |one: &&NamedCurve| sign * one.percent();
        curves.iter().max_by(|one, other| better(one).total_cmp(&better(other)))
    };
    let title = match (by(1.0), by(-1.0)) {
        (Some(best), Some(worst)) => format!(
            "{} keeps the device busiest: {:.0} % of an epoch, {:.0} % by {}",
            best.name,
            best.percent(),
            worst.percent(),
            worst.name
        ),
        _ => subject.to_owned(),
    };
    let series = curves.iter().map(|NamedCurve { name, color, curve }| LineSeries {
        color: Some(*color),
        ..LineSeries::new(name.clone(), LineStyle::Bands, along(curve))
    });
    let chart = LineChart {
        title,
        notes: vec![subject.to_owned(), "shaded: ± standard deviation".to_owned()],
        x: Dimension::percent("progress of the epoch, %"),
        y: Dimension::percent("utilisation, % of the time"),
        panels: vec![LinePanel { title: String::new(), series: series.collect() }],
    };
    Ok(draw_lines(&chart)?)
}

/// Progress, and mean with its deviation, in percent.
fn along(curve: &Curve) -> Vec<LinePoint> {
    let last = curve.mean.len().saturating_sub(1).max(1) as f64;
    let points = curve.mean.iter().zip(&curve.std).enumerate();
    let point = |(idx, (mean, std)): (usize, (&f64, &f64))| LinePoint {
        x: 100.0 * idx as f64 / last,
        y: 100.0 * mean,
        low: (100.0 * (mean - std)).max(0.0),
        high: (100.0 * (mean + std)).min(100.0),
    };
    points.map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_has_a_line_and_a_band() {
        let curve = Curve { mean: vec![0.0, 0.5, 0.9], std: vec![0.0, 0.1, 0.2] };
        let named = |name: &str| NamedCurve {
            name: name.to_owned(),
            color: [0, 0, 0xFF],
            curve: curve.clone(),
        };
        let mut slow = named("original");
        slow.curve.mean = vec![0.0, 0.1, 0.2];
        let text = draw_curves("use", &[slow, named("+codec")]).unwrap();
        // Bands, and the lines with their samples in the legend.
        assert_eq!(text.matches("<polygon").count(), 2, "{text}");
        assert!(4 <= text.to_lowercase().matches("stroke=\"#0000ff\"").count(), "{text}");
        let words = text.replace('\n', " ");
        assert!(words.contains("+codec keeps the device busiest: 47 %"), "{text}");
        assert!(draw_curves("none", &[]).unwrap().starts_with("<svg"));
        let points = along(&curve);
        assert_eq!((points[0].x, points[2].x), (0.0, 100.0));
        assert_eq!((points[2].low.round(), points[2].high), (70.0, 100.0));
    }
}
