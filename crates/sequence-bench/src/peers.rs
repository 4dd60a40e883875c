//! Other ways to feed the same sequences: a script feeds with each of them, in processes of its
//! own.
//!
//! A reader is measured only if it delivers the words that our loader delivers, which both sides
//! show as checksums of each sequence. Noise is random and not compared.

use std::path::PathBuf;
use std::sync::Arc;

use bench_run::{Checksums, delivered_rows};
use pipeline::Pipeline;
use sequences::{SequenceBatch, SequenceStore as _};
use serde::{Deserialize, Serialize};

use crate::bench::{Form, Point, StoreData, open};

/// The task of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReaderTask {
    /// The folder of the store.
    pub(crate) store: PathBuf,
    pub(crate) form: Form,
    /// The sequences of each epoch, in their order.
    pub(crate) epochs: Vec<Vec<u64>>,
    /// Sequences of a batch.
    pub(crate) batch: u64,
    /// Processes or, for some readers, threads.
    pub(crate) workers: usize,
    pub(crate) k: usize,
    pub(crate) stride: usize,
    pub(crate) n_frames: usize,
    pub(crate) padding: usize,
    pub(crate) context: usize,
    pub(crate) n_noise: usize,
    /// The words by their numbers.
    pub(crate) words: Vec<String>,
    /// How often each occurs.
    pub(crate) counts: Vec<u64>,
    /// How the order is drawn, for a reader that draws it itself.
    pub(crate) chunk: u64,
    pub(crate) chunks_per_block: u64,
    pub(crate) shuffled: bool,
    pub(crate) seed: u64,
    /// Whether to report checksums instead of times.
    pub(crate) check: bool,
}

impl ReaderTask {
    /// The task of feeding the epochs of `point`. Counts the store's words.
    pub(crate) fn new(data: &StoreData, point: &Point) -> anyhow::Result<Self> {
        let store = open(&data.folder)?;
        let words = point.words.count(&*store, point.workers)?;
        let numbers = 0..words.n_words() as u32;
        Ok(Self {
            store: data.folder.clone(),
            form: point.form,
            epochs: delivered_rows(
                &point.pipeline_spec(),
                store.summary().n_sequences,
                point.epochs,
                point.max_batches,
            )?,
            batch: point.batch,
            workers: point.workers,
            k: point.words.k,
            stride: point.words.stride,
            n_frames: point.words.n_frames,
            padding: point.words.padding,
            context: point.context,
            n_noise: point.n_noise,
            words: numbers.map(|word| words.word(word).unwrap_or_default()).collect(),
            counts: words.counts().to_vec(),
            chunk: point.chunk,
            chunks_per_block: point.chunks_per_block,
            shuffled: point.shuffled,
            seed: point.seed,
            check: false,
        })
    }

    /// The same with at most `n` sequences of each epoch.
    pub(crate) fn at_most(&self, n: usize) -> Self {
        let cut = |rows: &Vec<u64>| rows.iter().copied().take(n).collect();
        Self { epochs: self.epochs.iter().map(cut).collect(), ..self.clone() }
    }

    /// The first epoch's first `n` sequences, to be checked.
    pub(crate) fn checked(&self, n: usize) -> Self {
        let mut task = self.at_most(n);
        task.epochs.truncate(1);
        Self { check: true, ..task }
    }
}

/// The names of a sequence's checksums.
pub(crate) fn parts(form: Form) -> [&'static str; 2] {
    match form {
        Form::Windows => ["targets", "contexts"],
        Form::Letters | Form::Tokens => ["lengths of frames", "words"],
    }
}

/// Reads the first epoch of `point` with our loader; returns the checksums of these sequences,
/// which are among its first.
pub(crate) fn ours(data: &StoreData, point: &Point, rows: &[u64]) -> anyhow::Result<Checksums> {
    let samples = Arc::new(point.samples(open(&data.folder)?)?);
    let pipeline = Pipeline::new(samples, point.pipeline_spec(), SequenceBatch::n_sequences)?;
    let mut found = Checksums::new();
    for batch in pipeline.epoch(0)? {
        found.extend(of_batch(&batch?, point));
        if rows.len() <= found.len() {
            break;
        }
    }
    found.retain(|row, _| rows.contains(row));
    Ok(found)
}

/// The checksums of a batch's sequences.
fn of_batch(batch: &SequenceBatch, point: &Point) -> Vec<(u64, Vec<u32>)> {
    let rows = batch.rows().iter().copied();
    if let Some(windows) = batch.windows() {
        let ends = window_ends(batch.rows(), &windows.sequences);
        let of_row = |(row, (start, end)): (u64, (usize, usize))| {
            let width = 2 * point.context;
            let contexts = &windows.contexts[start * width..end * width];
            (row, vec![crc32(&windows.targets[start..end]), crc32(contexts)])
        };
        return rows.zip(ends).map(of_row).collect();
    }
    let of_row = |(idx, row)| {
        let lengths: Vec<u32> = batch.frames(idx).map(|words| words.len() as u32).collect();
        let words: Vec<u32> = batch.frames(idx).flatten().copied().collect();
        (row, vec![crc32(&lengths), crc32(&words)])
    };
    rows.enumerate().map(of_row).collect()
}

/// The first target and the end of the targets of each row, given the row of each target. A row may
/// have none.
fn window_ends(rows: &[u64], of_targets: &[u32]) -> Vec<(usize, usize)> {
    let mut start = 0;
    let of_row = |row: &u64| {
        let targets = of_targets[start..].iter();
        let n_targets = targets.take_while(|sequence| u64::from(**sequence) == *row).count();
        let from = start;
        start += n_targets;
        (from, start)
    };
    rows.iter().map(of_row).collect()
}

/// The checksum of numbers in little-endian order.
fn crc32(numbers: &[u32]) -> u32 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    crc32fast::hash(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_belong_to_their_rows() {
        let ends = window_ends(&[7, 5, 3, 9], &[7, 7, 3, 9]);
        assert_eq!(ends, [(0, 2), (2, 2), (2, 3), (3, 4)]);
        assert_eq!(crc32(&[]), 0);
        assert_eq!(crc32(&[1, 2]), crc32fast::hash(&[1, 0, 0, 0, 2, 0, 0, 0]));
    }
}
