//! Speed against memory of several loaders: one plot per form of batches, with shared axes. Both
//! shape and color encode the loader, so it is recognizable without color, too; its name stands
//! beside its marks if there is room.
//!
//! An axis is logarithmic if the largest value is so much larger than the smallest that small ones
//! could not be distinguished from 0 or each other.

use super::{Convention, Placed, scale::Dimension};
use crate::{Spread, table::grouped};

/// An axis is logarithmic from this ratio of largest to smallest value on.
const LOGARITHMIC_FROM: f64 = 30.0;
/// Largest number of plots.
const MAX_PANELS: usize = 4;

/// The points of one plot.
pub(super) struct Group<'a> {
    pub(super) title: String,
    pub(super) placed: Vec<&'a Placed<'a>>,
}

/// One plot per form and number of genes, or per form alone if that would be too many.
pub(super) fn groups<'a>(placed: &'a [Placed<'a>]) -> Vec<Group<'a>> {
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

/// The form in words.
pub(crate) fn form_title(form: &str) -> String {
    match form {
        "csr" | "coo" => format!("{} batches", form.to_uppercase()),
        _ => format!("{form} batches"),
    }
}

/// The minimum and the maximum of a figure.
pub(super) fn both_ends(placed: &[Placed<'_>], figure: fn(&Placed<'_>) -> Spread) -> [f64; 2] {
    let all = || placed.iter().map(figure);
    let least = all().map(|spread| spread.min).fold(f64::INFINITY, f64::min);
    [least, all().map(|spread| spread.max).fold(0.0, f64::max)]
}

/// The axes of a comparison.
pub(super) fn dimensions(placed: &[Placed<'_>], convention: Convention) -> [Dimension; 2] {
    let dimension = |label: String, [least, most]: [f64; 2]| {
        if least > 0.0 && most / least >= LOGARITHMIC_FROM {
            Dimension::log(format!("{label} (logarithmic)"), 10.0)
        } else {
            Dimension::linear(label)
        }
    };
    let [across, up] = linear_dimensions(convention);
    [
        dimension(across.label, both_ends(placed, |one| one.gigabytes)),
        dimension(up.label, both_ends(placed, |one| one.speed)),
    ]
}

/// The axes from 0 on.
pub(super) fn linear_dimensions(convention: Convention) -> [Dimension; 2] {
    let up = format!("samples/s, {}", convention.words());
    [Dimension::linear("peak memory, GB"), Dimension::linear(up)]
}

#[cfg(test)]
mod tests;
