//! Sequences written from the definitions, gene by gene.

use std::collections::HashMap;

use tokens::Vocabulary;

/// Tokens of the genes of a row by descending `value / total * target_sum / median`, then by
/// column.
pub(crate) fn ranked(
    row: &[(u32, f32)],
    genes: &[String],
    vocabulary: &Vocabulary,
    medians: &HashMap<String, f64>,
    (total, target_sum): (f64, f64),
) -> Vec<u32> {
    let mut results = Vec::new();
    for (column, value) in row {
        let name = &genes[*column as usize];
        if let (Some(id), Some(median), true) =
            (vocabulary.id(name), medians.get(name), *value != 0.0)
        {
            results.push((-(f64::from(*value) / total * target_sum / median), *column, id));
        }
    }
    results.sort_by(|one, other| one.partial_cmp(other).unwrap());
    results.into_iter().map(|(.., id)| id).collect()
}

/// Borders of bins: the quantiles of values at `n_bins - 1` equal steps from 0 to 1.
pub(crate) fn borders(values: &[f32], n_bins: usize) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let last = (sorted.len() - 1) as f64;
    let quantile = |idx: usize| -> f64 {
        let share = if n_bins == 2 { 0.0 } else { idx as f64 * (1.0 / (n_bins - 2) as f64) };
        let at = if n_bins > 2 && idx == n_bins - 2 { last } else { share * last };
        let low = sorted[at.floor() as usize];
        let high = sorted[at.ceil().min(last) as usize];
        let share = at - at.floor();
        let step = f64::from(high - low);
        if share < 0.5 {
            f64::from(low) + step * share
        } else {
            f64::from(high) - step * (1.0 - share)
        }
    };
    (0..n_bins - 1).map(quantile).collect()
}

/// The lowest and the highest bin that a value may have.
pub(crate) fn bin_range(value: f32, borders: &[f64]) -> (usize, usize) {
    let value = f64::from(value);
    let n_below = borders.iter().filter(|border| **border < value).count();
    let n_up_to = borders.iter().filter(|border| **border <= value).count();
    ((n_below + 1).min(n_up_to), n_up_to)
}
