//! Entropy measured by running the plan on labels.

use std::ops::Range;

use super::Error;
use super::measured::{BatchEntropy, LabelEntropy};
use crate::PlanSpec;

/// Measures the entropy of a label in the full batches of `epochs` of a plan.
///
/// Stops after about `most_rows` rows. `codes` has the label of each row. Batches run across the
/// borders of blocks, like a loader's. Returns `None` if there is no full batch.
///
/// # Errors
/// The plan is invalid; a batch has no rows; `codes` has another number of rows than the plan; a
/// code is not below `n_classes`.
pub fn simulate(
    spec: &PlanSpec,
    batch_rows: u64,
    codes: &[u32],
    n_classes: usize,
    epochs: Range<u64>,
    most_rows: u64,
) -> Result<Option<BatchEntropy>, Error> {
    if spec.n_rows != codes.len() as u64 {
        return Err(Error::LabelRows { n_rows: spec.n_rows, n_labels: codes.len() as u64 });
    }
    let mut meter = LabelEntropy::new(n_classes, batch_rows)?;
    let mut n_rows = 0;
    for epoch in epochs {
        // Rows of a block that wait for the next block to fill a batch.
        let mut waiting: Vec<u32> = Vec::new();
        for block in spec.epoch(epoch)? {
            if most_rows <= n_rows {
                return Ok(meter.batches());
            }
            n_rows += block.n_rows() as u64;
            waiting.extend(block.delivered_rows().iter().map(|row| codes[*row as usize]));
            let batches = waiting.chunks_exact(batch_rows as usize);
            let rest = batches.remainder().len();
            for batch in batches {
                meter.add(batch.iter().copied())?;
            }
            waiting.drain(..waiting.len() - rest);
        }
    }
    Ok(meter.batches())
}
