//! Checksums of samples: those of our loader, and whether a reader's are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::ensure;
use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use pipeline::Pipeline;

use crate::bench::{FieldData, Point};

/// The checksums of samples, by their numbers: one for each array.
pub(crate) type Checksums = BTreeMap<u64, Vec<u32>>;

/// The samples of the first batches of `point`, as our loader delivers them over its epochs.
pub(crate) fn batches(
    data: &FieldData,
    point: &Point,
    n_batches: u64,
) -> anyhow::Result<Vec<Vec<u64>>> {
    let n_samples = data.samples(point)?.n_samples();
    ensure!(
        0 < point.batch && point.batch <= n_samples,
        "{n_samples} samples do not fill a batch of {}",
        point.batch
    );
    let spec = point.spec();
    let lanes = spec.batches(spec.default_lanes());
    let mut batches = Vec::new();
    for epoch in 0..n_batches.div_ceil(n_samples / point.batch) {
        let plan = spec.plan(n_samples).dealt_epoch(epoch, &lanes)?;
        let blocks = plan.map(|block| block.delivered_rows());
        batches.extend(blocks.filter(|rows| rows.len() as u64 == point.batch));
    }
    batches.truncate(n_batches as usize);
    Ok(batches)
}

/// Reads the first batches of `point` with our loader; returns the checksums of their samples.
pub(crate) fn ours(data: &FieldData, point: &Point, n_batches: u64) -> anyhow::Result<Checksums> {
    let variables = data.arrays.iter().map(|name| Variable::new(name).as_f32());
    let spec = SampleSpec { threads: point.threads, ..SampleSpec::new(variables) };
    let samples = Arc::new(ArraySamples::open(data.storage()?, &spec)?);
    let pipeline = Pipeline::new(samples, point.spec(), ArrayBatch::n_samples)?;
    let mut found = Checksums::new();
    let mut n_left = n_batches;
    for epoch in pipeline.epochs(0..point.epochs) {
        for batch in epoch?.take(n_left as usize) {
            found.extend(of_batch(&batch?));
            n_left -= 1;
        }
        if n_left == 0 {
            break;
        }
    }
    Ok(found)
}

/// Computes the checksums of a batch's samples.
fn of_batch(batch: &ArrayBatch) -> Checksums {
    let mut found = Checksums::new();
    let n_samples = batch.n_samples().max(1);
    for values in batch.variables() {
        let sample_bytes = (values.bytes().len() / n_samples).max(1);
        for (sample, bytes) in batch.samples().iter().zip(values.bytes().chunks(sample_bytes)) {
            found.entry(*sample).or_default().push(crc32fast::hash(bytes));
        }
    }
    found
}

/// Says how `theirs` differ from `ours`; `None` if all samples are there and equal.
pub(crate) fn difference(
    ours: &Checksums,
    theirs: &Checksums,
    arrays: &[String],
) -> Option<String> {
    for (sample, expected) in ours {
        let Some(found) = theirs.get(sample) else {
            return Some(format!("it does not deliver sample {sample}"));
        };
        if found.len() != expected.len() {
            return Some(format!("it delivers {} arrays of sample {sample}", found.len()));
        }
        let differs = |((_, one), other): &((&String, &u32), &u32)| one != other;
        if let Some(((array, expected), found)) =
            arrays.iter().zip(expected).zip(found).find(differs)
        {
            return Some(format!(
                "it delivers other values of {array} in sample {sample}: their crc32 is \
                 {found:08x}, ours {expected:08x}"
            ));
        }
    }
    let extra = theirs.keys().find(|sample| !ours.contains_key(sample));
    extra.map(|sample| format!("it delivers sample {sample}, which was not asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_named() {
        let arrays = ["inputs".to_owned(), "targets".to_owned()];
        let ours = Checksums::from([(3, vec![1, 2]), (5, vec![3, 4])]);
        assert_eq!(difference(&ours, &ours.clone(), &arrays), None);
        for (theirs, part) in [
            (vec![(3, vec![1, 2])], "does not deliver sample 5"),
            (vec![(3, vec![1]), (5, vec![3, 4])], "1 arrays of sample 3"),
            (
                vec![(3, vec![1, 2]), (5, vec![3, 10])],
                "targets in sample 5: their crc32 is 0000000a",
            ),
            (vec![(3, vec![1, 2]), (5, vec![3, 4]), (6, vec![])], "sample 6, which was not"),
        ] {
            let found = difference(&ours, &theirs.into_iter().collect(), &arrays).unwrap();
            assert!(found.contains(part), "{found}");
        }
    }
}
