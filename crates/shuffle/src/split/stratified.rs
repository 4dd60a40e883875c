//! Splits that give each label its share.

use super::parts::{Parts, Shares, WHOLE};
use super::rounding::round_lines;
use super::{Error, deal, empty_splits, finished};
use crate::RowSet;
use crate::labels::LabelNumbers;
use crate::random::{SplitDecision, split_generator};
use crate::stop::pieces;

/// Splits the rows `0..labels.len()` by `fractions`, and the rows of each label by the same
/// fractions.
///
/// `labels` has a code for each row, for instance of its cell type; any codes will do. Each split's
/// share of each label is rounded up or down, and so is its share of all rows, at random so that
/// every expectation is the exact share. A label with one row is in a test split of 0.1 for one
/// seed in ten.
///
/// # Errors
/// A fraction is outside 0 to 1; the fractions do not sum to 1; the rows do not fit into memory.
///
/// ```
/// use shuffle::split::stratified;
///
/// // Twenty rows of label 3, then ten of label 7.
/// let labels: Vec<u32> = (0..30).map(|row| if row < 20 { 3 } else { 7 }).collect();
/// let splits = stratified(&labels, &[0.8, 0.2], 42)?;
/// let of_label_7 = splits[1].iter().filter(|row| labels[*row as usize] == 7);
/// assert_eq!((splits[1].len(), of_label_7.count()), (6, 2));
/// # Ok::<(), shuffle::split::Error>(())
/// ```
pub fn stratified(labels: &[u32], fractions: &[f64], seed: u64) -> Result<Vec<RowSet>, Error> {
    let parts = Parts::new(fractions)?;
    let numbers = LabelNumbers::assign(labels)?;
    let mut label_rows = vec![0_u64; numbers.n_labels()];
    // Neighbouring rows often have the same label, so look up each run once.
    for piece in pieces(labels) {
        for run in piece?.chunk_by(|a, b| a == b) {
            label_rows[numbers.of_label(run[0])] += run.len() as u64;
        }
    }
    let mut places = sizes(&parts, &label_rows, seed);
    let mut splits = empty_splits(labels.len() as u64, parts.n_splits())?;
    let mut generator = split_generator(seed, SplitDecision::Rows);
    let mut row = 0;
    for piece in pieces(labels) {
        for run in piece?.chunk_by(|a, b| a == b) {
            let places = &mut places[numbers.of_label(run[0])];
            for _ in run {
                splits[deal(&mut generator, places)].add_row(row);
                row += 1;
            }
        }
    }
    Ok(finished(splits))
}

/// Rows of each label in each split.
fn sizes(parts: &Parts, label_rows: &[u64], seed: u64) -> Vec<Vec<u64>> {
    let shares: Vec<Shares> = label_rows.iter().map(|n_rows| parts.shares(*n_rows)).collect();
    // One more line makes the columns whole; its rounding decides whether a split's total is
    // rounded up or down.
    let mut missing = vec![0; parts.n_splits()];
    for shares in &shares {
        for (missing, remainder) in missing.iter_mut().zip(&shares.remainders) {
            *missing = (*missing + WHOLE - remainder) % WHOLE;
        }
    }
    let remainders = shares.iter().map(|shares| shares.remainders.clone());
    let mut generator = split_generator(seed, SplitDecision::Sizes);
    let rounded = round_lines(&mut generator, remainders.chain([missing]));
    let sizes = shares.into_iter().zip(rounded).map(|(shares, is_up)| {
        shares.rows.into_iter().zip(is_up).map(|(rows, is_up)| rows + u64::from(is_up)).collect()
    });
    sizes.collect()
}
