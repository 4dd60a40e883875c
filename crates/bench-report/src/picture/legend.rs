//! The legend beside the plot.

use super::{
    Placed, SIZE, Size,
    canvas::{self, Align, Canvas, Ink, WIDER_FONT, text_width, wrap},
    mark::{Encoding, draw_hole, viridis},
    shape::draw_shape,
};
use crate::{Error, table::grouped};

const LEFT: f64 = 832.0;
const TOP: f64 = 100.0;
const MARK_X: f64 = LEFT + 17.0;
const TEXT_X: f64 = LEFT + 44.0;
const BAR_HEIGHT: f64 = 132.0;
const STEPS: u32 = 64;
/// Smallest distance between two labels at the color bar.
const LABEL_HEIGHT: f64 = 17.0;

/// Largest width of a name; longer ones are wrapped.
const WIDEST: f64 = 240.0;
const LINE: f64 = 16.0;
const MARGIN: f64 = 18.0;

/// The size of a picture with room for the legend.
pub(super) fn size(encoding: &Encoding, placed: &[Placed<'_>]) -> Result<Size, Error> {
    let mut bottom = 0.0;
    canvas::svg(SIZE, |canvas| {
        bottom = draw(canvas, encoding, placed)?;
        Ok(())
    })?;
    let names = shown(encoding, placed).into_iter();
    let lines = names.flat_map(|(_, name)| wrap(name, 13.0, WIDEST));
    let widest = lines.map(|line| text_width(&line, 13.0)).fold(0.0, f64::max);
    let width = (TEXT_X + widest * WIDER_FONT + MARGIN).max(SIZE.width);
    Ok(Size { width, height: (bottom + MARGIN).max(SIZE.height) })
}

/// The series that have a mark.
fn shown<'e>(encoding: &'e Encoding, placed: &[Placed<'_>]) -> Vec<(usize, &'e String)> {
    let has_mark = |idx: usize| placed.iter().any(|one| one.series == idx);
    encoding.names.iter().enumerate().filter(|(idx, _)| has_mark(*idx)).collect()
}

/// Draws the legend and returns the position below it.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    encoding: &Encoding,
    placed: &[Placed<'_>],
) -> Result<f64, Error> {
    if placed.is_empty() {
        return Ok(TOP);
    }
    let y = draw_series(canvas, encoding, placed)?;
    let y = draw_sizes(canvas, encoding, y + 14.0)?;
    let y = draw_colors(canvas, encoding, y + 14.0)?;
    let most = placed.iter().map(|point| point.speed.n).max().unwrap_or(0);
    if most < 2 {
        return Ok(y);
    }
    canvas.line(&[(MARK_X, y + 10.0), (MARK_X, y + 30.0)], Ink::BAR, 1.5)?;
    canvas.line(&[(MARK_X - 10.0, y + 20.0), (MARK_X + 10.0, y + 20.0)], Ink::BAR, 1.5)?;
    let lines = ["min to max".to_owned(), format!("of {most} epochs")];
    for (line, down) in lines.iter().zip([13.0, 28.0]) {
        canvas.text(line, (TEXT_X - 12.0, y + down), 12.0, Ink::TEXT, Align::Left)?;
    }
    Ok(y + 34.0)
}

fn draw_series(
    canvas: &Canvas<'_>,
    encoding: &Encoding,
    placed: &[Placed<'_>],
) -> Result<f64, Error> {
    canvas.heading(encoding.heading, (LEFT, TOP), 13.0, Align::Left)?;
    let mut y = TOP + 24.0;
    for (idx, name) in shown(encoding, placed) {
        draw_shape(canvas, encoding.shape(idx), (MARK_X, y), 7.0, Ink::PAPER)?;
        let lines = wrap(name, 13.0, WIDEST);
        for (idx, line) in lines.iter().enumerate() {
            let at = (TEXT_X, y + LINE * idx as f64);
            canvas.text(line, at, 13.0, Ink::TEXT, Align::Left)?;
        }
        y += 23.0 + LINE * (lines.len() - 1) as f64;
    }
    if encoding.both_forms {
        canvas.circle((MARK_X, y), 7.0, Ink::GRID, Ink::TEXT.with_opacity(0.75), 1.0)?;
        draw_hole(canvas, (MARK_X, y), 7.0)?;
        canvas.text("sparse batches", (TEXT_X, y), 13.0, Ink::TEXT, Align::Left)?;
        y += 23.0;
    }
    Ok(y)
}

fn draw_sizes(canvas: &Canvas<'_>, encoding: &Encoding, top: f64) -> Result<f64, Error> {
    canvas.heading("rows per block", (LEFT, top), 13.0, Align::Left)?;
    let mut y = top + 9.0;
    for rows in spread_out(&encoding.block_rows, 4).into_iter().rev() {
        let radius = encoding.radius(rows);
        y += radius.max(10.0) + 1.0;
        canvas.circle((MARK_X, y), radius, Ink::PAPER, Ink::TEXT.with_opacity(0.75), 1.0)?;
        canvas.text(&grouped(rows), (TEXT_X, y), 13.0, Ink::TEXT, Align::Left)?;
        y += radius.max(10.0) + 1.0;
    }
    Ok(y)
}

fn draw_colors(canvas: &Canvas<'_>, encoding: &Encoding, top: f64) -> Result<f64, Error> {
    canvas.heading("chunks per block", (LEFT, top), 13.0, Align::Left)?;
    let (left, right) = (MARK_X - 9.0, MARK_X + 9.0);
    let y = top + 20.0;
    let (Some(&least), Some(&most)) = (encoding.chunks.first(), encoding.chunks.last()) else {
        return Ok(y);
    };
    if least == most {
        let corners = [(left, y), (right, y), (right, y + 16.0), (left, y + 16.0)];
        canvas.polygon(&corners, encoding.color(least), Ink::GRAY, 1.0)?;
        canvas.text(&grouped(least), (TEXT_X, y + 8.0), 13.0, Ink::TEXT, Align::Left)?;
        return Ok(y + 24.0);
    }
    let height = BAR_HEIGHT / f64::from(STEPS);
    for idx in 0..STEPS {
        // Each step overlaps the next, so that no seam shows.
        let upper = y + height * f64::from(idx);
        let lower = (upper + 2.0 * height).min(y + BAR_HEIGHT);
        let color = viridis(1.0 - (f64::from(idx) + 0.5) / f64::from(STEPS));
        let corners = [(left, upper), (right, upper), (right, lower), (left, lower)];
        canvas.polygon(&corners, color, color.with_opacity(0.0), 0.0)?;
    }
    let log = |chunks: u64| (chunks.max(1) as f64 / least.max(1) as f64).log2();
    let position = |chunks: u64| y + BAR_HEIGHT * (1.0 - log(chunks) / log(most));
    for chunks in far_apart(&encoding.chunks, position) {
        let at = position(chunks);
        canvas.line(&[(right, at), (right + 5.0, at)], Ink::GRAY, 1.0)?;
        canvas.text(&grouped(chunks), (TEXT_X - 8.0, at), 13.0, Ink::TEXT, Align::Left)?;
    }
    Ok(y + BAR_HEIGHT + 12.0)
}

/// The ascending `numbers` whose labels do not touch, including the minimum and the maximum.
fn far_apart(numbers: &[u64], position: impl Fn(u64) -> f64) -> Vec<u64> {
    let mut kept: Vec<u64> = Vec::new();
    for &number in numbers.iter().rev() {
        if kept.last().is_none_or(|&last| (position(last) - position(number)).abs() >= LABEL_HEIGHT)
        {
            kept.push(number);
        }
    }
    if let (Some(last), Some(&least)) = (kept.len().checked_sub(1), numbers.first())
        && last > 0
    {
        kept[last] = least;
    }
    kept
}

/// At most `most` of the ascending `numbers`, spread evenly by logarithm, including the first and
/// the last.
pub(super) fn spread_out(numbers: &[u64], most: usize) -> Vec<u64> {
    if numbers.len() <= most {
        return numbers.to_vec();
    }
    let log = |number: u64| (number.max(1) as f64).log2();
    let (first, last) = (log(numbers[0]), log(numbers[numbers.len() - 1]));
    let mut chosen: Vec<u64> = (0..most)
        .filter_map(|idx| {
            let aim = first + (last - first) * idx as f64 / (most - 1) as f64;
            numbers
                .iter()
                .copied()
                .min_by(|a, b| (log(*a) - aim).abs().total_cmp(&(log(*b) - aim).abs()))
        })
        .collect();
    chosen.dedup();
    chosen
}
