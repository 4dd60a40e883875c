//! A point of the grid: how samples are read, in which order, and who takes the batches.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use bench_report::GridPoint;
use bench_run::engine_point;
use pipeline::PipelineSpec;
use serde::{Deserialize, Serialize};
use shuffle::{Order, Remainder};

use super::label::FieldLabel;

/// How a batch is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Strategy {
    /// One read for all samples of a batch.
    Stacked,
    /// One read for each sample.
    PerSample,
    /// The files of the samples, read into a buffer that is used again, not decoded: what the
    /// storage allows.
    PlainRead,
}

impl Strategy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stacked => "stacked",
            Self::PerSample => "per-sample",
            Self::PlainRead => "plain-read",
        }
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Stacked, Self::PerSample, Self::PlainRead];
        all.into_iter()
            .find(|strategy| strategy.name() == text)
            .ok_or_else(|| "expected stacked, per-sample or plain-read".to_owned())
    }
}

/// The part of the samples that a row is about: [`TRAINING`] or [`VALIDATION`]; all without it.
pub(crate) const PART: &str = "part";
/// Threads of one read.
pub(crate) const THREADS: &str = "n_threads";

/// The part of the samples that the first loader reads if a second one reads the rest.
const TRAINING: &str = "training";
/// The part that the second loader reads.
pub(crate) const VALIDATION: &str = "validation";

/// A point of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) strategy: Strategy,
    /// Samples of a batch.
    pub(crate) batch: u64,
    /// Neighbouring samples that are read together.
    pub(crate) chunk: u64,
    /// Chunks that are in memory, and shuffled, together; `None` if a block is a batch.
    pub(crate) chunks_per_block: Option<u64>,
    /// Threads of one read.
    pub(crate) threads: usize,
    /// Batches read at the same time; 0 if the consumer reads each itself.
    pub(crate) workers: usize,
    /// Finished batches that may wait, beside those that the workers hold.
    pub(crate) queue: usize,
    /// Milliseconds that the consumer sleeps on each batch.
    pub(crate) consumer_millis: f64,
    /// Seconds to wait before the first batch is asked for, so that the queue can fill.
    pub(crate) fill_secs: f64,
    pub(crate) max_batches: Option<u64>,
    pub(crate) epochs: u64,
    /// Whether all epochs make one record, which `max_batches` cuts off, instead of one each.
    pub(crate) together: bool,
    /// The last samples, which a second loader reads after each epoch; 0 if the loader reads all.
    pub(crate) validation: u64,
    pub(crate) seed: u64,
    /// The label whose entropy in batches is measured.
    pub(crate) label: Option<FieldLabel>,
}

impl Default for Point {
    /// One epoch of single samples, each of which the consumer reads itself.
    fn default() -> Self {
        Self {
            strategy: Strategy::Stacked,
            batch: 1,
            chunk: 1,
            chunks_per_block: None,
            threads: 1,
            workers: 0,
            queue: 0,
            consumer_millis: 0.0,
            fill_secs: 0.0,
            max_batches: None,
            epochs: 1,
            together: false,
            validation: 0,
            seed: 0,
            label: None,
        }
    }
}

impl Point {
    /// The number of records that it makes.
    pub(crate) fn n_records(&self) -> usize {
        self.spans().len() * if self.validation > 0 { 2 } else { 1 }
    }

    /// The epochs of each record of the first loader.
    pub(crate) fn spans(&self) -> Vec<Range<u64>> {
        if self.together {
            return std::iter::once(0..self.epochs).collect();
        }
        (0..self.epochs).map(|epoch| epoch..epoch + 1).collect()
    }

    /// The engine's settings: each worker holds a block beside the queue's.
    pub(crate) fn spec(&self) -> PipelineSpec {
        PipelineSpec {
            chunk_rows: self.chunk,
            chunks_per_block: self
                .chunks_per_block
                .unwrap_or_else(|| self.batch.div_ceil(self.chunk)),
            order: Order::Shuffled,
            seed: self.seed,
            batch_rows: self.batch,
            remainder: Remainder::Drop,
            prefetch_blocks: (self.queue + self.workers).saturating_sub(1),
            read_threads: self.workers,
            prefetch_batches: 0,
            ..PipelineSpec::default()
        }
    }

    /// The settings for a record.
    pub(crate) fn recorded(&self, cache: &str) -> GridPoint {
        let engine = engine_point(&self.spec());
        let settings = engine.settings.with(THREADS, self.threads);
        GridPoint {
            workload: Some("fields".to_owned()),
            chunk_method: self.strategy.name().to_owned(),
            form: "dense".to_owned(),
            reader: "arrays".to_owned(),
            max_batches: self.max_batches,
            consumer: (self.consumer_millis > 0.0)
                .then(|| format!("fixed:{}", self.consumer_millis)),
            cache: cache.to_owned(),
            settings: settings.with_some(PART, (self.validation > 0).then_some(TRAINING)),
            ..engine
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { strategy, batch, threads, workers, queue, .. } = self;
        write!(
            f,
            "{} batch {batch}, {threads} threads, {workers} workers, queue {queue}",
            strategy.name()
        )
    }
}
