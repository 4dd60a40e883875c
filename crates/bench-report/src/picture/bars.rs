//! The stages of the fastest points as stacked bars.

use super::{
    ACROSS, BELOW, Caption, Key, MARGIN, Size, TEXT, WIDTH,
    canvas::{self, Align, Ink, WIDER_FONT, rectangle, text_width},
    caption::cut_to_width,
    key::Sign,
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
/// Height of a bar with its name above it.
const STEP: f64 = 42.0;
const HALF: f64 = 8.0;

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
    let Some(fastest) = bars.first() else { return Ok(None) };
    let longest = bars.iter().map(|(_, stages)| stages.iter().sum()).fold(0.0, f64::max);
    let caption = Caption::new(&title(fastest), subtitle);
    let (left, right, upper) = (MARGIN + 8.0, ACROSS[1], caption.bottom());
    let lower = upper + STEP * bars.len() as f64 + 6.0;
    let x = Axis::new(longest, left..right, 7);
    let stages = STAGES.iter().zip(COLORS);
    let stages = stages.map(|(stage, color)| (Sign::Swatch(Ink::rgb(color)), (*stage).to_owned()));
    let key = Key::new(vec![stages.collect()], MARGIN..right, lower + BELOW);
    let svg = canvas::svg(Size { width: WIDTH, height: key.bottom() + MARGIN }, |canvas| {
        caption.draw(canvas)?;
        for tick in x.ticks() {
            let at = x.position(tick);
            canvas.line(&[(at, upper), (at, lower)], Ink::GRID, 1.0)?;
            let text = decimal(tick, x.digits());
            canvas.text(&text, (at, lower + 9.0), TEXT, Ink::TEXT, Align::Below)?;
        }
        for (idx, (name, stages)) in bars.iter().enumerate() {
            let top = upper + STEP * idx as f64;
            let name = cut_to_width(name, TEXT, (right - left) / WIDER_FONT);
            // Grid lines would run through the letters.
            let behind = rectangle(left + 1.0..left + text_width(&name, TEXT), top + 11.0, 8.0);
            canvas.polygon(&behind, Ink::PAPER, Ink::PAPER, 0.0)?;
            canvas.text(&name, (left + 2.0, top + 11.0), TEXT, Ink::TEXT, Align::Left)?;
            let mut before = 0.0;
            for (secs, color) in stages.iter().zip(COLORS).filter(|(secs, _)| **secs > 0.0) {
                let bar =
                    rectangle(x.position(before)..x.position(before + secs), top + 30.0, HALF);
                canvas.polygon(&bar, Ink::rgb(color), Ink::PAPER, 0.5)?;
                before += secs;
            }
        }
        canvas.line(&[(left, upper), (left, lower), (right, lower)], Ink::GRAY, 1.5)?;
        let words = "seconds of an epoch, each stage summed over its threads; stages overlap";
        let middle = f64::midpoint(left, right);
        canvas.text(words, (middle, lower + 31.0), TEXT, Ink::TEXT, Align::Below)?;
        key.draw(canvas)
    })?;
    Ok(Some(svg))
}

/// Names the stage on which the fastest point spends most time.
fn title((name, stages): &(String, Vec<f64>)) -> String {
    let longest = STAGES.iter().zip(stages).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((stage, secs)) = longest else { return "Where the time of an epoch goes".to_owned() };
    let all: f64 = stages.iter().sum();
    format!(
        "{name} is fastest; it spends most of its time on {stage}, {} of {} s",
        decimal(*secs, 2),
        decimal(all, 2)
    )
}
