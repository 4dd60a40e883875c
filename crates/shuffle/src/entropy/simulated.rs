//! The plan itself, run on labels.

use std::ops::Range;

use super::measured::{BatchEntropy, LabelEntropy};
use crate::{Error, PlanSpec};

/// The entropy of a label in the full batches of `epochs` of a plan, until about `most_rows` rows have come. Batches are cut across the
/// borders of blocks, as a loader cuts them; `codes` has the label of each row. None where there is no full batch.
///
/// # Errors
/// A plan that cannot be made; batches of no rows; labels that are not of the plan's rows; a code that is no class.
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
        // The rows of a block that wait for those of the next to fill a batch.
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
