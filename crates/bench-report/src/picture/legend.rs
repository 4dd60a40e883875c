//! What the marks of speed against memory mean.

use super::{
    Placed,
    canvas::Ink,
    key::Sign,
    mark::{Encoding, category},
};
use crate::table::grouped;

/// Largest number of sizes and of colors that are shown.
const MOST: usize = 5;

/// The rows of the legend for `placed`.
pub(super) fn rows(encoding: &Encoding, placed: &[Placed<'_>]) -> Vec<Vec<(Sign, String)>> {
    if placed.is_empty() {
        return Vec::new();
    }
    let heading = |words: &str| (Sign::Heading, words.to_owned());
    let mut series = vec![heading(encoding.heading)];
    let has_mark = |idx: usize| placed.iter().any(|one| one.series == idx);
    for (idx, name) in encoding.names.iter().enumerate().filter(|(idx, _)| has_mark(*idx)) {
        let fill = if encoding.colored_by_series { category(idx) } else { Ink::PAPER };
        series.push((Sign::Mark { shape: encoding.shape(idx), fill }, name.clone()));
    }
    if encoding.both_forms && !encoding.colored_by_series {
        series.push((Sign::Hole, "sparse batches".to_owned()));
    }
    let mut sizes = vec![heading("rows per block")];
    let rows = spread_out(&encoding.block_rows, MOST).into_iter();
    sizes.extend(rows.map(|rows| (Sign::Size(encoding.radius(rows)), grouped(rows))));
    let mut colors = Vec::new();
    if !encoding.colored_by_series {
        colors.push(heading("chunks per block"));
        let chunks = spread_out(&encoding.chunks, MOST).into_iter();
        colors.extend(chunks.map(|n| (Sign::Swatch(encoding.color(n)), grouped(n))));
    }
    let epochs = || placed.iter().map(|one| one.speed.n);
    let [least, most] = [epochs().min(), epochs().max()].map(|n| n.unwrap_or(0));
    let mut bars = Vec::new();
    if most > 1 {
        let epochs = if least == most { most.to_string() } else { format!("{least} to {most}") };
        bars.push((Sign::Bars, format!("median, min to max of {epochs} epochs")));
    }
    vec![series, sizes, colors, bars]
}

/// At most `most` of the ascending `numbers`, spread evenly by logarithm, including the first and
/// the last.
fn spread_out(numbers: &[u64], most: usize) -> Vec<u64> {
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
