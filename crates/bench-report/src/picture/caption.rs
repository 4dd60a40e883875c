//! The words over the plot, and the arrow to the marked point.

use std::collections::BTreeSet;

use super::{
    MARGIN, Size, TEXT, WIDTH,
    canvas::{Align, Canvas, Ink, WIDER_FONT, text_width, wrap},
    mark::Mark,
};
use crate::{
    Error, MarkedPoint, PointSummary, Source,
    table::{decimal, grouped},
};

const TITLE: f64 = 18.0;
const TITLE_STEP: f64 = 23.0;
const LINE_STEP: f64 = 19.0;
/// Largest number of lines of the title, and of each line under it.
const MOST_TITLE_LINES: usize = 4;
const MOST_LINES: usize = 2;
/// Bold letters are up to this factor wider than estimated.
const BOLD: f64 = 1.15;

/// A title and lines under it, wrapped to the width of the picture.
pub(crate) struct Caption {
    title: Vec<String>,
    lines: Vec<String>,
}

impl Caption {
    pub(crate) fn new(title: &str, lines: &[String]) -> Self {
        let width = WIDTH - 2.0 * MARGIN;
        let wrapped =
            |line: &String| wrap_at_most(line, TEXT, width / WIDER_FONT, MOST_LINES).into_iter();
        Self {
            title: wrap_at_most(title, TITLE, width / BOLD, MOST_TITLE_LINES),
            lines: lines.iter().filter(|line| !line.is_empty()).flat_map(wrapped).collect(),
        }
    }

    /// The position below the last line.
    pub(crate) fn bottom(&self) -> f64 {
        let [title, lines] = [self.title.len(), self.lines.len()].map(|n| n as f64);
        MARGIN + TITLE_STEP * title + LINE_STEP * lines + 16.0
    }

    pub(crate) fn draw(&self, canvas: &Canvas<'_>) -> Result<(), Error> {
        let mut y = MARGIN + TITLE_STEP / 2.0;
        for line in &self.title {
            canvas.heading(line, (MARGIN, y), TITLE, Align::Left)?;
            y += TITLE_STEP;
        }
        for line in &self.lines {
            canvas.text(line, (MARGIN, y), TEXT, Ink::GRAY, Align::Left)?;
            y += LINE_STEP;
        }
        Ok(())
    }
}

/// Wraps `text` into at most `most` lines; the rest is cut off.
fn wrap_at_most(text: &str, size: f64, width: f64, most: usize) -> Vec<String> {
    let mut lines = wrap(text, size, width);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = cut_to_width(&format!("{last} …"), size, width);
        }
    }
    lines
}

/// Describes the machine, and in a second line the data, the batches and the failures.
pub(crate) fn subtitle(sources: &[Source], points: &[PointSummary]) -> [String; 2] {
    let machines = join_distinct(sources.iter().flat_map(|source| &source.records).map(|record| {
        record
            .host
            .gpu
            .as_ref()
            .map_or_else(|| record.host.host.clone(), |gpu| format!("{}, {gpu}", record.host.host))
    }));
    let data = data_line(points);
    let batches = join_distinct(points.iter().map(|summary| grouped(summary.point.batch_size)));
    let forms = join_distinct(points.iter().map(|summary| summary.point.form.clone()));
    let caches = join_distinct(points.iter().map(|summary| summary.point.cache.clone()));
    let failed = match points.iter().filter(|summary| summary.n_ok == 0).count() {
        0 => String::new(),
        n => format!(" · {n} of {} points failed", points.len()),
    };
    let second = format!("{data} · batches of {batches}, {forms} · {caches} page cache{failed}");
    [machines, second]
}

/// Describes the data like `x: 20,000 cells × 20,000 genes`, data sets of the same size together. A
/// relaid copy is left out if its source is listed.
fn data_line(points: &[PointSummary]) -> String {
    let is_copy = |point: &&PointSummary| point.data.layout.is_some();
    let all_copies = points.iter().all(|point| is_copy(&point));
    let mut sizes: Vec<(String, Vec<&str>)> = Vec::new();
    for point in points.iter().filter(|point| all_copies || !is_copy(point)) {
        let data = &point.data;
        let size = format!("{} cells × {} genes", grouped(data.total_rows), grouped(data.n_cols));
        match sizes.iter_mut().find(|(known, _)| *known == size) {
            Some((_, uris)) => uris.push(&data.uri),
            None => sizes.push((size, vec![&data.uri])),
        }
    }
    let names = sizes.into_iter().map(|(size, uris)| {
        let names = join_distinct(uris.into_iter().map(|uri| last_part(uri).to_owned()));
        format!("{names}: {size}")
    });
    join_distinct(names)
}

/// The distinct `texts` in order of appearance; beyond three, the number of the others.
fn join_distinct(texts: impl Iterator<Item = String>) -> String {
    let mut seen = BTreeSet::new();
    let different: Vec<String> =
        texts.filter(|text| !text.is_empty() && seen.insert(text.clone())).collect();
    match different.len() {
        0 => "unknown".to_owned(),
        1..=3 => different.join(" and "),
        n => format!("{} and {} more", different[..2].join(", "), n - 2),
    }
}

/// The last part of a path or URI.
fn last_part(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

pub(super) fn cut_to_width(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut cut: String = text.to_owned();
    while !cut.is_empty() && text_width(&cut, size) + size > width {
        cut.pop();
    }
    cut + "…"
}

/// Draws an arrow with a label to the marked point, placed where it covers the least. Draws nothing
/// if the point has no mark.
pub(super) fn draw_arrow(
    canvas: &Canvas<'_>,
    marked: &MarkedPoint,
    points: &[PointSummary],
    marks: &[Mark<'_>],
    plot: [f64; 4],
) -> Result<(), Error> {
    let Some(target) = marked.find(points) else {
        return Ok(());
    };
    let Some(mark) =
        marks.iter().find(|mark| std::ptr::eq(mark.point.summary, &raw const points[target]))
    else {
        return Ok(());
    };
    let speed = decimal(mark.point.speed.median, 0);
    let lines = [
        marked.label.clone(),
        format!("{speed}/s at {} GB", decimal(mark.point.gigabytes.median, 2)),
    ];
    let width = lines.iter().map(|line| text_width(line, TEXT)).fold(0.0, f64::max);
    let label = Size { width: width + 10.0, height: 2.0 * TEXT + 10.0 };
    let Some(middle) = best_place(mark, label, marks, plot) else {
        return Ok(());
    };
    draw_label(canvas, mark, middle, label, &lines)
}

/// The center for a label of this size that is farthest from the marks, inside the plot.
fn best_place(
    mark: &Mark<'_>,
    label: Size,
    marks: &[Mark<'_>],
    [left, upper, right, lower]: [f64; 4],
) -> Option<(f64, f64)> {
    let Size { width, height } = label;
    let places = (0..24).flat_map(|idx| {
        let angle = std::f64::consts::TAU * f64::from(idx) / 24.0;
        [60.0, 85.0, 115.0, 150.0].map(|distance| {
            (
                mark.at.0 + angle.cos() * (distance + width / 2.0),
                mark.at.1 + angle.sin() * distance,
                distance,
            )
        })
    });
    let inside = places.filter(|&(x, y, _)| {
        x - width / 2.0 > left + 4.0
            && x + width / 2.0 < right - 4.0
            && y - height / 2.0 > upper + 2.0
            && y + height / 2.0 < lower - 4.0
    });
    let room = |&(x, y, distance): &(f64, f64, f64)| {
        let clear = |other: &Mark<'_>| {
            let to_label = box_distance(other.at, (x, y), label) - other.radius;
            let to_line = if other.at == mark.at {
                f64::MAX
            } else {
                line_distance(other.at, mark.at, (x, y)) - other.radius
            };
            to_label.min(to_line)
        };
        // Beyond a clearance of 14 units, prefer positions near the mark.
        marks.iter().map(clear).fold(f64::MAX, f64::min).min(14.0) - distance * 0.03
    };
    inside.max_by(|a, b| room(a).total_cmp(&room(b))).map(|(x, y, _)| (x, y))
}

fn draw_label(
    canvas: &Canvas<'_>,
    mark: &Mark<'_>,
    (x, y): (f64, f64),
    label: Size,
    lines: &[String; 2],
) -> Result<(), Error> {
    let (half_width, half_height) = (label.width / 2.0, label.height / 2.0);
    // From the nearest edge of the label to just outside the mark.
    let start = (
        mark.at.0.clamp(x - half_width, x + half_width),
        mark.at.1.clamp(y - half_height, y + half_height),
    );
    let (run, rise) = (mark.at.0 - start.0, mark.at.1 - start.1);
    let length = run.hypot(rise).max(1.0);
    let (run, rise) = (run / length, rise / length);
    let gap = mark.radius * 1.3 + 3.0;
    let tip = (mark.at.0 - run * gap, mark.at.1 - rise * gap);
    let neck = (tip.0 - run * 9.0, tip.1 - rise * 9.0);
    canvas.line(&[start, neck], Ink::ACCENT, 1.5)?;
    let head =
        [tip, (neck.0 - rise * 4.0, neck.1 + run * 4.0), (neck.0 + rise * 4.0, neck.1 - run * 4.0)];
    canvas.polygon(&head, Ink::ACCENT, Ink::ACCENT, 0.5)?;
    let [left, right, upper, lower] =
        [x - half_width, x + half_width, y - half_height, y + half_height];
    let corners = [(left, upper), (right, upper), (right, lower), (left, lower)];
    canvas.polygon(&corners, Ink::PAPER.with_opacity(0.92), Ink::ACCENT, 1.0)?;
    canvas.text(&lines[0], (x, y - 8.5), TEXT, Ink::ACCENT, Align::Center)?;
    canvas.text(&lines[1], (x, y + 8.5), TEXT, Ink::TEXT, Align::Center)
}

/// Distance from a point to a box around `middle`.
fn box_distance(point: (f64, f64), middle: (f64, f64), size: Size) -> f64 {
    let outside = |along: f64, half: f64| (along.abs() - half).max(0.0);
    outside(point.0 - middle.0, size.width / 2.0)
        .hypot(outside(point.1 - middle.1, size.height / 2.0))
}

/// Distance from a point to the segment between two others.
fn line_distance(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (run, rise) = (to.0 - from.0, to.1 - from.1);
    let length_squared = (run * run + rise * rise).max(f64::MIN_POSITIVE);
    let share =
        (((point.0 - from.0) * run + (point.1 - from.1) * rise) / length_squared).clamp(0.0, 1.0);
    (point.0 - from.0 - share * run).hypot(point.1 - from.1 - share * rise)
}
