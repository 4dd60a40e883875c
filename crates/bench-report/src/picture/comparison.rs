//! Speed against memory of several loaders: one plot per form of batches, with shared axes, and a
//! legend under them. Both shape and color encode the loader, so it is recognizable without color,
//! too; its name stands beside its marks if there is room.
//!
//! An axis is logarithmic if the largest value is so much larger than the smallest that small ones
//! could not be distinguished from 0 or each other.

use super::{
    Convention, PLOT, Placed, SIZE, Size,
    canvas::{self, Align, Ink},
    caption,
    key::Key,
    labels,
    mark::Encoding,
    panel::{MAX_NAMED, Panel},
    scale::{Dimension, Scale},
};
use crate::{Error, PointSummary, ReportOptions, Source, table::grouped};

/// An axis is logarithmic from this ratio of largest to smallest value on.
const LOGARITHMIC_FROM: f64 = 30.0;
/// Largest number of plots in a row.
const MAX_PANELS: usize = 4;
/// Smallest width of a plot, and the gap between two.
const NARROWEST: f64 = 410.0;
const GAP: f64 = 40.0;
const RIGHT_MARGIN: f64 = 26.0;

/// Measurements and options for the caption of the picture.
#[derive(Clone, Copy)]
pub(super) struct ComparisonInput<'a> {
    pub(super) sources: &'a [Source],
    pub(super) points: &'a [PointSummary],
    pub(super) options: &'a ReportOptions,
    pub(super) convention: Convention,
}

/// The points of one plot.
struct Group<'a> {
    title: String,
    placed: Vec<&'a Placed<'a>>,
}

pub(super) fn draw(
    input: &ComparisonInput<'_>,
    encoding: &Encoding,
    placed: &[Placed<'_>],
) -> Result<String, Error> {
    let groups = groups(placed);
    let n = groups.len() as f64;
    let width = (PLOT[0] + n * NARROWEST + (n - 1.0) * GAP + RIGHT_MARGIN).max(SIZE.width);
    let key = Key::new(encoding, placed, PLOT[0]..width - RIGHT_MARGIN, PLOT[3] + 66.0);
    let upper = if groups.len() > 1 { PLOT[1] + 22.0 } else { PLOT[1] };
    let each = (width - PLOT[0] - RIGHT_MARGIN - (n - 1.0) * GAP) / n;
    let [across, up] = dimensions(placed, input.convention);
    let panel = |idx: usize| {
        let left = PLOT[0] + (each + GAP) * idx as f64;
        let plot = [left, upper, left + each, PLOT[3]];
        let steps = if groups.len() > 1 { 5 } else { 8 };
        Panel {
            x: Scale::new(
                &across,
                &both_ends(placed, |one| one.gigabytes),
                left,
                left + each,
                steps,
            ),
            y: Scale::new(&up, &both_ends(placed, |one| one.speed), PLOT[3], upper, 6),
            plot,
            labels_y: idx == 0,
        }
    };
    canvas::svg(Size { width, height: key.bottom() + 14.0 }, |canvas| {
        caption::draw(canvas, input.sources, input.points, input.options, input.convention)?;
        for (idx, group) in groups.iter().enumerate() {
            let panel = panel(idx);
            panel.draw_axes(canvas)?;
            if groups.len() > 1 {
                canvas.heading(&group.title, (panel.plot[0], upper - 15.0), 14.0, Align::Left)?;
            }
            let marks = panel.draw_marks(canvas, encoding, &group.placed, false)?;
            if group.placed.len() <= MAX_NAMED {
                labels::draw(canvas, &panel.labels(encoding, &marks))?;
            }
        }
        let middle = f64::midpoint(PLOT[0], width - RIGHT_MARGIN);
        canvas.text(&across.label, (middle, PLOT[3] + 32.0), 15.0, Ink::TEXT, Align::Below)?;
        let middle = f64::midpoint(upper, PLOT[3]);
        canvas.text(&up.label, (9.0, middle), 15.0, Ink::TEXT, Align::Upward)?;
        key.draw(canvas, encoding)
    })
}

/// One plot per form and number of genes, or per form alone if that would be too many.
fn groups<'a>(placed: &'a [Placed<'a>]) -> Vec<Group<'a>> {
    let mut genes: Vec<u64> = placed.iter().map(|one| one.summary.data.n_cols).collect();
    genes.sort_unstable();
    genes.dedup();
    let by_genes = by_title(placed, |one| {
        let form = form_title(&one.summary.point.form);
        match genes.as_slice() {
            [_] => form,
            _ => format!("{form}, {} genes", grouped(one.summary.data.n_cols)),
        }
    });
    if by_genes.len() <= MAX_PANELS {
        return by_genes;
    }
    by_title(placed, |one| form_title(&one.summary.point.form))
}

fn by_title<'a>(placed: &'a [Placed<'a>], title: impl Fn(&Placed<'_>) -> String) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for one in placed {
        let title = title(one);
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.placed.push(one),
            None => groups.push(Group { title, placed: vec![one] }),
        }
    }
    // Dense batches come first.
    groups.sort_by_key(|group| {
        let first = group.placed[0].summary;
        (first.point.form != "dense", first.point.form.clone(), first.data.n_cols)
    });
    groups
}

fn form_title(form: &str) -> String {
    match form {
        "csr" | "coo" => format!("{} batches", form.to_uppercase()),
        _ => format!("{form} batches"),
    }
}

/// The minimum and the maximum of a figure.
fn both_ends(placed: &[Placed<'_>], figure: fn(&Placed<'_>) -> crate::Spread) -> [f64; 2] {
    let all = || placed.iter().map(figure);
    let least = all().map(|spread| spread.min).fold(f64::INFINITY, f64::min);
    [least, all().map(|spread| spread.max).fold(0.0, f64::max)]
}

fn dimensions(placed: &[Placed<'_>], convention: Convention) -> [Dimension; 2] {
    let dimension = |label: String, [least, most]: [f64; 2]| {
        if least > 0.0 && most / least >= LOGARITHMIC_FROM {
            Dimension::log(format!("{label} (logarithmic)"), 10.0)
        } else {
            Dimension::linear(label)
        }
    };
    [
        dimension("peak memory, GB".to_owned(), both_ends(placed, |one| one.gigabytes)),
        dimension(format!("samples/s, {}", convention.words()), both_ends(placed, |one| one.speed)),
    ]
}

#[cfg(test)]
mod tests;
