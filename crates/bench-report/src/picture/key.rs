//! The legend under the plots of a comparison. Entries stand beside each other, each as wide as its
//! words, as many per line as fit.

use std::ops::Range;

use super::{
    Placed,
    canvas::{Align, Canvas, Ink, WIDER_FONT, text_width, wrap},
    labels::Frame,
    legend::spread_out,
    mark::{Encoding, category},
    shape::draw_shape,
};
use crate::{Error, table::grouped};

const TEXT: f64 = 13.0;
const LINE: f64 = 17.0;
/// Gap between two entries, and from the center of a mark to its words.
const GAP: f64 = 26.0;

/// The sign in front of an entry's words.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sign {
    /// No sign: a heading for the entries after it.
    Heading,
    /// The mark of the series at this position.
    Series(usize),
    /// A circle of this radius.
    Size(f64),
    /// The bars that span several epochs.
    Bars,
}

impl Sign {
    fn half_width(self) -> f64 {
        match self {
            Self::Heading => 0.0,
            Self::Series(_) | Self::Bars => 10.0,
            Self::Size(radius) => radius.max(8.0),
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
pub(super) struct Key {
    entries: Vec<Entry>,
}

impl Key {
    /// Lays out the legend for `placed`, within `across` and under `top`.
    pub(super) fn new(
        encoding: &Encoding,
        placed: &[Placed<'_>],
        across: Range<f64>,
        top: f64,
    ) -> Self {
        let mut series: Vec<usize> = placed.iter().map(|one| one.series).collect();
        series.sort_unstable();
        series.dedup();
        let mut loaders = vec![(Sign::Heading, encoding.heading.to_owned())];
        loaders.extend(series.iter().map(|&idx| (Sign::Series(idx), encoding.names[idx].clone())));
        let mut sizes = vec![(Sign::Heading, "rows per block".to_owned())];
        let rows = spread_out(&encoding.block_rows, 4).into_iter();
        sizes.extend(rows.map(|rows| (Sign::Size(encoding.radius(rows)), grouped(rows))));
        let epochs: Vec<usize> = placed.iter().map(|one| one.speed.n).collect();
        let [least, most] =
            [epochs.iter().min(), epochs.iter().max()].map(|n| n.copied().unwrap_or(0));
        if most > 1 {
            let epochs =
                if least == most { most.to_string() } else { format!("{least} to {most}") };
            sizes.push((Sign::Bars, format!("median, min to max of {epochs} epochs")));
        }
        let mut key = Self { entries: Vec::new() };
        let lower = key.lay(loaders, &across, top);
        key.lay(sizes, &across, lower + 6.0);
        key
    }

    /// Arranges entries in lines and returns the position below them.
    fn lay(&mut self, signs: Vec<(Sign, String)>, across: &Range<f64>, top: f64) -> f64 {
        let (mut x, mut upper, mut lower) = (across.start, top, top + LINE + 5.0);
        for (sign, words) in signs {
            let before = 2.0 * sign.half_width() + if sign == Sign::Heading { 0.0 } else { 7.0 };
            let room = (across.end - across.start - before) / WIDER_FONT;
            let lines = wrap(&words, TEXT, room);
            let widest = lines.iter().map(|line| text_width(line, TEXT)).fold(0.0, f64::max);
            let width = before + widest * WIDER_FONT;
            if x > across.start && x + width > across.end {
                (x, upper) = (across.start, lower);
            }
            let height = (LINE * lines.len() as f64).max(2.0 * sign.half_width()) + 5.0;
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

    pub(super) fn bottom(&self) -> f64 {
        self.entries.iter().map(|entry| entry.frame.lower).fold(0.0, f64::max)
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>, encoding: &Encoding) -> Result<(), Error> {
        for Entry { sign, lines, frame } in &self.entries {
            let y = frame.middle().1;
            let x = frame.left + sign.half_width();
            match *sign {
                Sign::Heading => {
                    canvas.heading(&lines.join(" "), (frame.left, y), TEXT, Align::Left)?;
                    continue;
                }
                Sign::Series(idx) => {
                    draw_shape(canvas, encoding.shape(idx), (x, y), 7.0, category(idx))?;
                }
                Sign::Size(radius) => {
                    let outline = Ink::TEXT.with_opacity(0.75);
                    canvas.circle((x, y), radius, Ink::PAPER, outline, 1.0)?;
                }
                Sign::Bars => {
                    canvas.line(&[(x, y - 10.0), (x, y + 10.0)], Ink::BAR, 1.5)?;
                    canvas.line(&[(x - 10.0, y), (x + 10.0, y)], Ink::BAR, 1.5)?;
                }
            }
            let first = y - LINE * (lines.len() as f64 - 1.0) / 2.0;
            for (idx, line) in lines.iter().enumerate() {
                let at = (x + sign.half_width() + 7.0, first + LINE * idx as f64);
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
