//! Checksums of the samples of our loader.

use anyhow::{Context as _, bail};
use arrays::ElementType;
use bench_run::Checksums;
use images::{ImageBatch, KeyValues};

use crate::bench::{CubeData, Point, pipeline, plain_memory};

/// The arrays of a sample, in the order of their checksums.
pub(crate) const KEYS: [&str; 3] = ["features", "labels", "valid_pixels"];

/// Reads the first epoch of `point` with our loader, until `n_samples` have come; returns the
/// checksums of its samples, as a reader in Python delivers them.
pub(crate) fn ours(data: &CubeData, point: &Point, n_samples: usize) -> anyhow::Result<Checksums> {
    let pipeline = pipeline(data, point, (None, plain_memory()))?;
    let mut found = Checksums::new();
    for batch in pipeline.epoch(0)? {
        found.extend(of_batch(&batch?)?);
        if n_samples <= found.len() {
            break;
        }
    }
    Ok(found)
}

/// The checksums of a batch's samples.
fn of_batch(batch: &ImageBatch) -> anyhow::Result<Checksums> {
    let mut found = Checksums::new();
    for name in KEYS {
        let key = batch.key(name).with_context(|| format!("our batches have no {name}"))?;
        let sample_bytes = (key.bytes().len() / batch.n_samples().max(1)).max(1);
        for (sample, bytes) in batch.samples().iter().zip(key.bytes().chunks(sample_bytes)) {
            let crc32 = crc32fast::hash(&as_in_python(&key, bytes)?);
            found.entry(*sample).or_default().push(crc32);
        }
    }
    Ok(found)
}

/// The bytes of an array as a reader in Python has it: labels are i64 there.
fn as_in_python(key: &KeyValues<'_>, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    if key.name() != "labels" {
        return Ok(bytes.to_vec());
    }
    match key.element() {
        ElementType::U8 => {
            Ok(bytes.iter().flat_map(|class| i64::from(*class).to_ne_bytes()).collect())
        }
        ElementType::I64 => Ok(bytes.to_vec()),
        element => bail!("labels of {element:?} cannot be compared with those of Python"),
    }
}
