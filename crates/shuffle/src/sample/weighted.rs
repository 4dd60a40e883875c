//! Draws in proportion to weights.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::{Error, Replacement, reserved};
use crate::random::{SampleDecision, SampleSeed};
use crate::stop;

/// Checks weights and scales the largest to 1, so that neither their sum nor a quotient overflows.
pub(super) fn scaled(
    weights: &[f64],
    n_samples: u64,
    replacement: Replacement,
) -> Result<Arc<[f64]>, Error> {
    let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
    if let Some(row_idx) = stop::position(weights.iter(), |weight| !is_weight(weight))? {
        return Err(Error::Weight { row_idx, weight: weights[row_idx] });
    }
    let mut largest = 0.0;
    for piece in stop::pieces(weights) {
        largest = piece?.iter().copied().fold(largest, f64::max);
    }
    if n_samples > 0 && largest == 0.0 {
        return Err(Error::NoWeights { n_rows: weights.len() });
    }
    // The smallest weights would be scaled to 0, and their rows could never be drawn.
    let mut n_rows = 0;
    let scaled = stop::map(weights, |weight| {
        n_rows += u64::from(*weight > 0.0);
        if *weight > 0.0 { (weight / largest).max(f64::MIN_POSITIVE) } else { 0.0 }
    })?;
    if replacement == Replacement::Without && n_samples > n_rows {
        return Err(Error::TooManySamples { n_samples, n_rows });
    }
    Ok(scaled.into())
}

/// Draws independently; the rows ascend.
///
/// Sorts random places along the sum of the weights and walks through them beside the running sum.
pub(super) fn with_replacement(
    weights: &[f64],
    n_samples: usize,
    seed: SampleSeed,
) -> Result<Vec<u32>, Error> {
    let mut generator = seed.generator(SampleDecision::Draws);
    let mut draws: Vec<u64> = reserved(n_samples)?;
    // A sum of 53-bit numbers distinguishes no more than these 53 bits.
    for places in stop::ranges(n_samples as u64) {
        draws.extend(places?.map(|_| generator.next_u64() >> 11));
    }
    stop::sort(&mut draws)?;
    let mut total = 0.0;
    for piece in stop::pieces(weights) {
        total = piece?.iter().fold(total, |sum, weight| sum + weight);
    }
    let place = |draw: u64| draw as f64 * EPSILON * total;
    let mut rows: Vec<u32> = reserved(n_samples)?;
    let (mut sum, mut last) = (0.0, 0);
    for of_piece in stop::ranges(weights.len() as u64) {
        for row in of_piece?.filter(|row| weights[*row as usize] > 0.0) {
            sum += weights[row as usize];
            last = row as u32;
            while let Some(draw) = draws.get(rows.len())
                && place(*draw) < sum
            {
                rows.push(last);
            }
        }
        if rows.len() == n_samples {
            break;
        }
    }
    // Rounding may put a place past the last row.
    rows.resize(n_samples, last);
    Ok(rows)
}

/// Draws one row after another without replacement; the rows ascend.
///
/// Each row gets an exponentially distributed key with its weight as the rate; the rows with the
/// smallest keys are drawn. Efraimidis and Spirakis, "Weighted random sampling with a reservoir"
/// (2006).
pub(super) fn without_replacement(
    weights: &[f64],
    n_samples: usize,
    seed: SampleSeed,
) -> Result<Vec<u32>, Error> {
    let mut generator = seed.generator(SampleDecision::Keys);
    // Keeps at most about twice the wanted number of keys; larger ones cannot be among the
    // smallest.
    let n_kept = n_samples.saturating_mul(2).clamp(1024, weights.len().max(1024));
    let mut smallest: Vec<(f64, u32)> = reserved(n_kept)?;
    for of_piece in stop::ranges(weights.len() as u64) {
        for row in of_piece?.filter(|row| weights[*row as usize] > 0.0) {
            if smallest.len() == n_kept {
                keep_smallest(&mut smallest, n_samples);
            }
            let key = -libm::log(unit(&mut generator)) / weights[row as usize];
            smallest.push((key, row as u32));
        }
    }
    keep_smallest(&mut smallest, n_samples);
    let mut rows: Vec<u32> = smallest.into_iter().map(|(_, row)| row).collect();
    stop::sort(&mut rows)?;
    Ok(rows)
}

fn keep_smallest(keys: &mut Vec<(f64, u32)>, n: usize) {
    if n < keys.len() {
        // Equal keys are very unlikely; the row breaks the tie.
        keys.select_nth_unstable_by(n, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        keys.truncate(n);
    }
}

/// 2^-53.
const EPSILON: f64 = f64::EPSILON / 2.0;

/// A number strictly between 0 and 1, in the middle of one of 2^52 equal parts.
fn unit(generator: &mut ChaCha8Rng) -> f64 {
    let part = generator.next_u64() >> 12;
    (2 * part + 1) as f64 * EPSILON
}
