//! The legend under the plots. Entries stand beside each other, each as wide as its words, as many
//! per line as fit.

use std::ops::Range;

use super::{
    TEXT,
    canvas::{Align, Canvas, Ink, WIDER_FONT, text_width, wrap},
    labels::Frame,
    mark::draw_hole,
    shape::draw_shape,
};
use crate::Error;

const LINE: f64 = 18.0;
/// Gap between two entries.
const GAP: f64 = 20.0;
/// Radius of a mark.
const MARK: f64 = 7.0;

/// The sign in front of an entry's words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sign {
    /// No sign: a heading for the entries after it.
    Heading,
    /// The same, not bold.
    Words,
    /// A mark of this shape and color.
    Mark { shape: usize, fill: Ink },
    /// A mark with the hole of sparse batches.
    Hole,
    /// A circle of this radius.
    Size(f64),
    /// A rectangle of this color.
    Swatch(Ink),
    /// An empty rectangle.
    Outline,
    /// A line across, with the shape of its marks if it has any.
    Stroke { ink: Ink, dash: &'static [f64], shape: Option<usize> },
    /// A line across a bar.
    Tick(Ink),
    /// The bars that span several epochs.
    Bars,
}

impl Sign {
    fn half_width(self) -> f64 {
        match self {
            Self::Heading | Self::Words => 0.0,
            Self::Size(radius) => radius.max(8.0),
            Self::Stroke { .. } => 13.0,
            Self::Tick(_) => 4.0,
            _ => 10.0,
        }
    }

    fn draw(self, canvas: &Canvas<'_>, (x, y): (f64, f64)) -> Result<(), Error> {
        let outline = Ink::TEXT.with_opacity(0.75);
        let corners =
            [(x - 9.0, y - 7.0), (x + 9.0, y - 7.0), (x + 9.0, y + 7.0), (x - 9.0, y + 7.0)];
        match self {
            Self::Heading | Self::Words => Ok(()),
            Self::Mark { shape, fill } => draw_shape(canvas, shape, (x, y), MARK, fill),
            Self::Hole => {
                canvas.circle((x, y), MARK, Ink::GRID, outline, 1.0)?;
                draw_hole(canvas, (x, y), MARK)
            }
            Self::Size(radius) => canvas.circle((x, y), radius, Ink::PAPER, outline, 1.0),
            Self::Swatch(ink) => canvas.polygon(&corners, ink, Ink::PAPER, 0.5),
            Self::Outline => canvas.polygon(&corners, Ink::PAPER, Ink::GRAY, 1.5),
            Self::Stroke { ink, dash, shape } => {
                // Long enough to show a dash.
                canvas.dashed(&[(x - 13.0, y), (x + 13.0, y)], ink, 2.0, dash)?;
                shape.map_or(Ok(()), |shape| draw_shape(canvas, shape, (x, y), 4.5, ink))
            }
            Self::Tick(ink) => canvas.line(&[(x, y - 8.0), (x, y + 8.0)], ink, 3.0),
            Self::Bars => {
                canvas.line(&[(x, y - 10.0), (x, y + 10.0)], Ink::BAR, 1.5)?;
                canvas.line(&[(x - 10.0, y), (x + 10.0, y)], Ink::BAR, 1.5)
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    sign: Sign,
    lines: Vec<String>,
    /// Its area in the picture.
    frame: Frame,
}

/// The legend with all positions computed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    entries: Vec<Entry>,
    top: f64,
}

impl Key {
    /// Lays out `rows`, each from a line of its own on, within `across` and under `top`.
    pub(crate) fn new(rows: Vec<Vec<(Sign, String)>>, across: Range<f64>, top: f64) -> Self {
        let mut key = Self { entries: Vec::new(), top };
        let mut upper = top;
        for row in rows.into_iter().filter(|row| !row.is_empty()) {
            upper = key.lay(row, &across, upper) + 4.0;
        }
        key
    }

    /// Arranges entries in lines and returns the position below them.
    fn lay(&mut self, signs: Vec<(Sign, String)>, across: &Range<f64>, top: f64) -> f64 {
        let (mut x, mut upper, mut lower) = (across.start, top, top + LINE + 5.0);
        for (sign, words) in signs {
            let half = sign.half_width();
            let before = 2.0 * half + if half > 0.0 { 6.0 } else { 0.0 };
            let room = (across.end - across.start - before) / WIDER_FONT;
            let lines = wrap(&words, TEXT, room);
            let widest = lines.iter().map(|line| text_width(line, TEXT)).fold(0.0, f64::max);
            let width = before + widest * WIDER_FONT;
            if x > across.start && x + width > across.end {
                (x, upper) = (across.start, lower);
            }
            let height = (LINE * lines.len() as f64).max(2.0 * half.min(16.0)) + 5.0;
            lower = lower.max(upper + height);
            self.entries.push(Entry {
                sign,
                lines,
                frame: Frame { left: x, upper, right: x + width, lower: upper + height },
            });
            x += width + GAP;
        }
        // Center each sign in its line.
        let mut tallest: Vec<(f64, f64)> = Vec::new();
        for entry in &self.entries {
            match tallest.iter_mut().find(|(upper, _)| *upper == entry.frame.upper) {
                Some((_, lower)) => *lower = lower.max(entry.frame.lower),
                None => tallest.push((entry.frame.upper, entry.frame.lower)),
            }
        }
        for entry in &mut self.entries {
            if let Some((_, lower)) = tallest.iter().find(|(upper, _)| *upper == entry.frame.upper)
            {
                entry.frame.lower = *lower;
            }
        }
        lower
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.entries.iter().map(|entry| entry.frame.lower).fold(self.top, f64::max)
    }

    pub(crate) fn draw(&self, canvas: &Canvas<'_>) -> Result<(), Error> {
        for Entry { sign, lines, frame } in &self.entries {
            let y = frame.middle().1;
            if *sign == Sign::Heading {
                canvas.heading(&lines.join(" "), (frame.left, y), TEXT, Align::Left)?;
                continue;
            }
            let half = sign.half_width();
            let x = frame.left + half;
            sign.draw(canvas, (x, y))?;
            let words = if half > 0.0 { x + half + 6.0 } else { x };
            let first = y - LINE * (lines.len() as f64 - 1.0) / 2.0;
            for (idx, line) in lines.iter().enumerate() {
                let at = (words, first + LINE * idx as f64);
                canvas.text(line, at, TEXT, Ink::TEXT, Align::Left)?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn frames(&self) -> Vec<Frame> {
        self.entries.iter().map(|entry| entry.frame).collect()
    }
}
