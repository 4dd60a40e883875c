//! The stages of the fastest points as stacked bars.

use super::{
    PLOT, SIZE,
    canvas::{self, Align, Ink, text_width},
    caption::{cut_to_width, draw_lines},
    named_point::NamedPoint,
    scale::Axis,
};
use crate::{Error, STAGES, table::decimal};

/// Largest number of bars in a picture.
pub(super) const MAX_BARS: usize = 14;
/// The same colors as on the page.
const COLORS: [[u8; 3]; STAGES.len()] = [
    [0x00, 0x72, 0xb2],
    [0x56, 0xb4, 0xe9],
    [0xf0, 0xe4, 0x42],
    [0x00, 0x9e, 0x73],
    [0xd5, 0x5e, 0x00],
    [0x99, 0x99, 0x99],
];
/// Range of the bars' left end; it depends on the width of the names.
const LEFT: std::ops::Range<f64> = 270.0..480.0;
const TEXT: f64 = 13.0;

/// Draws the bars; `None` if no point has timed stages.
pub(super) fn draw(
    points: &[&NamedPoint<'_>],
    subtitle: &[String; 2],
) -> Result<Option<String>, Error> {
    let bars: Vec<(String, Vec<f64>)> = points
        .iter()
        .filter(|point| point.summary.has_stages())
        .map(|point| {
            let secs = |wall: Option<crate::Spread>| wall.map_or(0.0, |spread| spread.median);
            let stages = point.summary.stages.iter().map(|stage| secs(stage.wall_secs));
            (point.name(), stages.collect())
        })
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    let longest = bars.iter().map(|(_, stages)| stages.iter().sum()).fold(0.0, f64::max);
    let widest = bars.iter().map(|(name, _)| text_width(name, TEXT)).fold(0.0, f64::max);
    let begin = (widest * 1.1 + 24.0).clamp(LEFT.start, LEFT.end);
    let [_, upper, right, lower] = PLOT;
    let (upper, x) = (upper + 26.0, Axis::new(longest, begin..right + 150.0, 7));
    let step = ((lower - upper) / bars.len() as f64).min(44.0);
    let half = step * 0.36;
    let svg = canvas::svg(SIZE, |canvas| {
        draw_lines(canvas, "Where the time of an epoch goes", subtitle)?;
        for tick in x.ticks() {
            let at = x.position(tick);
            canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
            let text = decimal(tick, x.digits());
            canvas.text(&text, (at, lower + 10.0), TEXT, Ink::TEXT, Align::Below)?;
        }
        let mut across = begin;
        for (stage, color) in STAGES.iter().zip(COLORS) {
            let square = rectangle(across..across + 14.0, upper - 19.0, 7.0);
            canvas.polygon(&square, Ink::rgb(color), Ink::PAPER, 0.5)?;
            canvas.text(stage, (across + 20.0, upper - 19.0), TEXT, Ink::TEXT, Align::Left)?;
            across += 90.0;
        }
        for (idx, (name, stages)) in bars.iter().enumerate() {
            let y = upper + step * (idx as f64 + 0.5);
            let name = cut_to_width(name, TEXT, begin - 20.0);
            canvas.text(&name, (begin - 9.0, y), TEXT, Ink::TEXT, Align::Right)?;
            let mut before = 0.0;
            for (secs, color) in stages.iter().zip(COLORS).filter(|(secs, _)| **secs > 0.0) {
                let ends = x.position(before)..x.position(before + secs);
                canvas.polygon(&rectangle(ends, y, half), Ink::rgb(color), Ink::PAPER, 0.5)?;
                before += secs;
            }
        }
        canvas.line(&[(begin, upper), (begin, lower), (right + 150.0, lower)], Ink::GRAY, 1.5)?;
        let words = "seconds of an epoch, each stage summed over its threads; stages overlap";
        let middle = f64::midpoint(begin, right + 150.0);
        canvas.text(words, (middle, lower + 36.0), 15.0, Ink::TEXT, Align::Below)
    })?;
    Ok(Some(svg))
}

fn rectangle(across: std::ops::Range<f64>, middle: f64, half: f64) -> [(f64, f64); 4] {
    let (upper, lower) = (middle - half, middle + half);
    [(across.start, upper), (across.end, upper), (across.end, lower), (across.start, lower)]
}
