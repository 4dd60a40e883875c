//! Drawing in fractional picture units, on an SVG backend that takes whole pixels only.

use plotters::{
    coord::Shift,
    prelude::{
        Circle, DrawingArea, IntoDrawingArea as _, PathElement, Polygon, RGBAColor, SVGBackend,
        Text,
    },
    style::{
        Color as _, FontTransform, IntoFont as _, RGBColor, ShapeStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::Size;
use crate::Error;

/// Backend pixels per picture unit; enough for small triangles to look even.
const FINE: f64 = 4.0;
/// The backend writes fonts smaller than requested by this factor.
const FONT_SHRINK: f64 = 1.24;

/// A color with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ink(RGBAColor);

impl Ink {
    pub(crate) const TEXT: Self = Self::rgb([0x1f, 0x24, 0x2b]);
    pub(crate) const GRAY: Self = Self::rgb([0x5b, 0x65, 0x70]);
    pub(crate) const GRID: Self = Self::rgb([0xe4, 0xe7, 0xeb]);
    pub(crate) const BAR: Self = Self::rgb([0x5b, 0x65, 0x70]).with_opacity(0.6);
    pub(crate) const ACCENT: Self = Self::rgb([0xb4, 0x23, 0x18]);
    pub(crate) const PAPER: Self = Self::rgb([0xff, 0xff, 0xff]);

    pub(crate) const fn rgb([red, green, blue]: [u8; 3]) -> Self {
        Self(RGBAColor(red, green, blue, 1.0))
    }

    pub(crate) const fn with_opacity(self, opacity: f64) -> Self {
        let RGBAColor(red, green, blue, _) = self.0;
        Self(RGBAColor(red, green, blue, opacity))
    }

    /// The color in the page's notation, without its opacity.
    #[cfg(test)]
    pub(crate) fn hex(self) -> String {
        let RGBAColor(red, green, blue, _) = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    fn style(self, width: f64) -> ShapeStyle {
        ShapeStyle { color: self.0, filled: false, stroke_width: (width * FINE).round() as u32 }
    }
}

/// Position of a text relative to its point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Align {
    /// To the right of the point.
    Left,
    /// To the left of the point.
    Right,
    /// Centered on the point.
    Center,
    /// Under the point, centered.
    Below,
    /// Centered on the point, rotated to be read upward.
    Upward,
}

/// The area of an SVG file.
pub(crate) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Draws an SVG file of `size` units on white.
pub(crate) fn svg(
    size: Size,
    paint: impl FnOnce(&Canvas<'_>) -> Result<(), Error>,
) -> Result<String, Error> {
    let [width, height] = [size.width, size.height].map(|length| (length * FINE) as u32);
    let mut text = String::new();
    let canvas =
        Canvas { area: SVGBackend::with_string(&mut text, (width, height)).into_drawing_area() };
    canvas.area.fill(&RGBColor(0xff, 0xff, 0xff)).map_err(failed)?;
    paint(&canvas)?;
    canvas.area.present().map_err(failed)?;
    drop(canvas);
    // Shown in units, with a view box in pixels.
    let in_pixels = format!("<svg width=\"{width}\" height=\"{height}\"");
    let in_units = format!("<svg width=\"{}\" height=\"{}\"", size.width, size.height);
    Ok(text.replacen(&in_pixels, &in_units, 1))
}

impl Canvas<'_> {
    /// Draws a line of `width` through `points`.
    pub(crate) fn line(&self, points: &[(f64, f64)], ink: Ink, width: f64) -> Result<(), Error> {
        self.area.draw(&PathElement::new(pixels(points), ink.style(width))).map_err(failed)
    }

    /// Draws a line of strokes and gaps with these lengths in turn; solid if there are none.
    pub(crate) fn dashed(
        &self,
        points: &[(f64, f64)],
        ink: Ink,
        width: f64,
        lengths: &[f64],
    ) -> Result<(), Error> {
        if lengths.is_empty() {
            return self.line(points, ink, width);
        }
        dashes(points, lengths).iter().try_for_each(|dash| self.line(dash, ink, width))
    }

    /// Draws a filled polygon with an outline.
    pub(crate) fn polygon(
        &self,
        corners: &[(f64, f64)],
        fill: Ink,
        outline: Ink,
        width: f64,
    ) -> Result<(), Error> {
        self.area.draw(&Polygon::new(pixels(corners), fill.0.filled())).map_err(failed)?;
        // Close the outline and repeat one side, so that the first corner is as sharp as the
        // others.
        let closed: Vec<_> = corners.iter().chain(corners.iter().take(2)).copied().collect();
        self.line(&closed, outline, width)
    }

    /// Draws a filled circle with an outline.
    pub(crate) fn circle(
        &self,
        at: (f64, f64),
        radius: f64,
        fill: Ink,
        outline: Ink,
        width: f64,
    ) -> Result<(), Error> {
        let size = (radius * FINE).round() as i32;
        self.area.draw(&Circle::new(pixel(at), size, fill.0.filled())).map_err(failed)?;
        self.area.draw(&Circle::new(pixel(at), size, outline.style(width))).map_err(failed)
    }

    /// Writes one line of text, `size` units high.
    pub(crate) fn text(
        &self,
        text: &str,
        at: (f64, f64),
        size: f64,
        ink: Ink,
        align: Align,
    ) -> Result<(), Error> {
        self.write(text, at, ("sans-serif", size * FINE * FONT_SHRINK).into_font(), ink, align)
    }

    /// Writes one line of bold text.
    pub(crate) fn heading(
        &self,
        text: &str,
        at: (f64, f64),
        size: f64,
        align: Align,
    ) -> Result<(), Error> {
        let font = ("sans-serif", size * FINE * FONT_SHRINK)
            .into_font()
            .style(plotters::style::FontStyle::Bold);
        self.write(text, at, font, Ink::TEXT, align)
    }

    fn write(
        &self,
        text: &str,
        at: (f64, f64),
        font: plotters::style::FontDesc<'_>,
        ink: Ink,
        align: Align,
    ) -> Result<(), Error> {
        let (horizontal, vertical) = match align {
            Align::Left => (HPos::Left, VPos::Center),
            Align::Right => (HPos::Right, VPos::Center),
            Align::Center | Align::Upward => (HPos::Center, VPos::Center),
            Align::Below => (HPos::Center, VPos::Top),
        };
        let font =
            if align == Align::Upward { font.transform(FontTransform::Rotate270) } else { font };
        let style = font.color(&ink.0).pos(Pos::new(horizontal, vertical));
        // XML cannot represent control characters, and a path may contain some.
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.area.draw(&Text::new(clean, pixel(at), style)).map_err(failed)
    }
}

/// Letters in a reader's font are up to this factor wider than [`text_width`] estimates.
pub(crate) const WIDER_FONT: f64 = 1.1;

/// Estimates the width of a text of `size`, from letter widths of common sans-serif fonts.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let width = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.29,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '/' | '-' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.87,
        'A'..='Z' => 0.69,
        _ if letter.is_ascii() => 0.58,
        _ => 0.8,
    };
    text.chars().map(width).sum::<f64>() * size
}

/// Wraps `text` into lines of at most `width`, between words, or within a word that is wider.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let fits = |line: &str| text_width(line, size) <= width;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().cloned().unwrap_or_default();
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if fits(&longer) || line.is_empty() {
            lines.pop();
            lines.push(longer);
        } else {
            lines.push(word.to_owned());
        }
        while let Some(line) = lines.pop_if(|line| !fits(line) && line.chars().count() > 1) {
            let n = line.chars().count();
            let keep = (1..n)
                .rev()
                .find(|&keep| fits(&line.chars().take(keep).collect::<String>()))
                .unwrap_or(1);
            lines.push(line.chars().take(keep).collect());
            lines.push(line.chars().skip(keep).collect());
        }
    }
    lines
}

/// The corners of a rectangle from left to right, around a middle.
pub(crate) fn rectangle(across: std::ops::Range<f64>, middle: f64, half: f64) -> [(f64, f64); 4] {
    let (upper, lower) = (middle - half, middle + half);
    [(across.start, upper), (across.end, upper), (across.end, lower), (across.start, lower)]
}

/// The strokes of a dashed line through `points`. `lengths` are strokes and gaps in turn, none of
/// them 0.
fn dashes(points: &[(f64, f64)], lengths: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let (mut strokes, mut stroke) = (Vec::new(), points.first().copied().into_iter().collect());
    let mut turn = 0;
    let mut left = lengths[0];
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let (run, rise) = (to.0 - from.0, to.1 - from.1);
            let rest = run.hypot(rise);
            if rest.is_nan() || rest < left {
                left -= rest;
                push_stroke(&mut stroke, to, turn);
                break;
            }
            from = (from.0 + run * left / rest, from.1 + rise * left / rest);
            push_stroke(&mut stroke, from, turn);
            if turn.is_multiple_of(2) {
                strokes.push(std::mem::take(&mut stroke));
            } else {
                stroke = vec![from];
            }
            turn += 1;
            left = lengths[turn % lengths.len()];
        }
    }
    strokes.push(stroke);
    strokes.retain(|stroke| stroke.len() > 1);
    strokes
}

/// Ends the current stroke; does nothing within a gap.
fn push_stroke(stroke: &mut Vec<(f64, f64)>, at: (f64, f64), turn: usize) {
    if turn.is_multiple_of(2) {
        stroke.push(at);
    }
}

fn pixel((x, y): (f64, f64)) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

fn pixels(points: &[(f64, f64)]) -> Vec<(i32, i32)> {
    points.iter().copied().map(pixel).collect()
}

fn failed(error: impl std::error::Error) -> Error {
    Error::Draw { message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dashed_line_has_its_gaps() {
        let strokes = dashes(&[(0.0, 0.0), (10.0, 0.0), (10.0, 8.0)], &[6.0, 2.0]);
        let expected = [
            vec![(0.0, 0.0), (6.0, 0.0)],
            vec![(8.0, 0.0), (10.0, 0.0), (10.0, 4.0)],
            vec![(10.0, 6.0), (10.0, 8.0)],
        ];
        assert_eq!(strokes, expected);
        assert!(dashes(&[], &[1.0]).is_empty() && dashes(&[(1.0, 1.0)], &[1.0]).is_empty());
    }

    #[test]
    fn lines_are_broken_between_words_first() {
        assert_eq!(wrap("annbatch documented", 13.0, 90.0), ["annbatch", "documented"]);
        assert_eq!(wrap("short", 13.0, 90.0), ["short"]);
        assert_eq!(wrap("", 13.0, 90.0), [""]);
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_lose_nothing(text in "[a-zM ]{0,60}", width in 12.0_f64..200.0) {
            let lines = wrap(&text, 13.0, width);
            for line in &lines {
                prop_assert!(text_width(line, 13.0) <= width, "{line:?}");
            }
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
