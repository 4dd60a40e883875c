//! Utilisation over the progress of an epoch: a line with a band for each strategy.

use bench_report::{draw_series_names, drawing_failed as failed, stroke_sample};
use plotters::prelude::*;

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

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 460);

/// Draws the curves as SVG, in percent over percent.
pub(crate) fn draw_curves(title: &str, curves: &[NamedCurve]) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(56)
            // Room for the names.
            .build_cartesian_2d(0.0..130.0, 0.0..105.0)
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("progress of the epoch, %")
            .y_desc("utilisation, %")
            .x_label_formatter(&|at: &f64| {
                if *at <= 100.0 { format!("{at:.0}") } else { String::new() }
            })
            .y_label_formatter(&|at: &f64| format!("{at:.0}"))
            .draw()
            .map_err(|error| failed(&error))?;
        for NamedCurve { name, color, curve } in curves {
            let [red, green, blue] = *color;
            let color = RGBColor(red, green, blue);
            let band = band(curve);
            chart
                .draw_series([Polygon::new(band, color.mix(0.2).filled())])
                .map_err(|error| failed(&error))?;
            let line = along(curve).map(|(x, mean, _)| (x, mean));
            chart
                .draw_series(LineSeries::new(line, color.stroke_width(2)))
                .map_err(|error| failed(&error))?
                .label(name)
                .legend(move |at| stroke_sample(at, color.stroke_width(2)));
        }
        draw_series_names(&mut chart)?;
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(text)
}

/// Progress, mean and deviation in percent.
fn along(curve: &Curve) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    let last = curve.mean.len().saturating_sub(1).max(1) as f64;
    let points = curve.mean.iter().zip(&curve.std).enumerate();
    points.map(move |(idx, (mean, std))| (100.0 * idx as f64 / last, 100.0 * mean, 100.0 * std))
}

/// The outline of the band: along its upper edge, and back along the lower.
fn band(curve: &Curve) -> Vec<(f64, f64)> {
    let mut outline: Vec<(f64, f64)> =
        along(curve).map(|(x, mean, std)| (x, (mean + std).min(105.0))).collect();
    let lower: Vec<(f64, f64)> =
        along(curve).map(|(x, mean, std)| (x, (mean - std).max(0.0))).collect();
    outline.extend(lower.into_iter().rev());
    outline
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
        let text = draw_curves("use", &[named("original"), named("+codec")]).unwrap();
        assert_eq!(text.matches("<polygon").count(), 2, "{text}");
        // Two lines, and their samples beside the names.
        assert_eq!(text.matches("stroke=\"#0000FF\"").count(), 4, "{text}");
        assert!(text.contains("original") && text.contains("+codec"));
        assert!(draw_curves("none", &[]).unwrap().starts_with("<svg"));
        let outline = band(&curve);
        assert_eq!((outline.len(), outline[0], outline[5]), (6, (0.0, 0.0), (0.0, 0.0)));
        assert!((outline[2].1 - 110.0).abs() < 5.1 && outline[2].1 <= 105.0);
    }
}
