//! Flags and steps of every command that measures feeding: the order of sequences, epochs, and
//! where results go.

use bench_report::EpochRecord;
use bench_run::{OutputFlags, UsageError};
use clap::Args;

use super::label::SequenceLabel;
use super::point::{Consumer, Form, Point};
use crate::kmer_flags::KmerFlags;

/// Flags of every command that measures feeding.
#[derive(Debug, Args)]
pub(crate) struct FeedFlags {
    #[command(flatten)]
    pub(crate) words: KmerFlags,
    /// Words of context at each side of a target, of windows
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) context: usize,
    /// Words of noise for each target, of windows
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) noise: usize,
    /// Consecutive sequences that are read together
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) chunk: u64,
    /// Chunks that are in memory, and shuffled, together
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) chunks_per_block: u64,
    /// Blocks read ahead [default: as many as workers]
    #[arg(long, value_name = "N")]
    pub(crate) prefetch_blocks: Option<usize>,
    /// Measure the entropy of this label within batches: position (64 equal parts of the store), or
    /// name: and a separator, for the name up to it, like name:_member_
    #[arg(long, value_name = "LABEL")]
    pub(crate) entropy_of: Option<SequenceLabel>,
    /// Deliver sequences in the order of the store; else they are shuffled
    #[arg(long)]
    pub(crate) in_order: bool,
    /// Seed of the order and of noise; each repetition has the next one
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Epochs of a repetition
    #[arg(short = 'E', long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: u64,
    /// First epochs of a repetition that are not timed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) warmup: u64,
    /// Repetitions with seeds of their own, in rounds over all points, each in a new process
    #[arg(long, alias = "repeat", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repetitions: u64,
    /// Batches after which an epoch is cut off; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub(crate) max_batches: u64,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

impl FeedFlags {
    /// Fails if no epoch is timed.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        if self.epochs <= self.warmup {
            let text = format!("{} epochs leave none to time after {}", self.epochs, self.warmup);
            return Err(UsageError::new(text));
        }
        Ok(())
    }

    /// A point with these settings.
    pub(crate) fn point(&self, form: Form, workers: usize, batch: u64) -> Point {
        Point {
            form,
            words: self.words.words(),
            context: self.context,
            n_noise: self.noise,
            workers,
            batch,
            chunk: self.chunk,
            chunks_per_block: self.chunks_per_block,
            prefetch_blocks: self.prefetch_blocks,
            shuffled: !self.in_order,
            seed: self.seed,
            epochs: self.epochs,
            max_batches: (0 < self.max_batches).then_some(self.max_batches),
            consumer: Consumer::None,
            label: self.entropy_of.clone(),
        }
    }

    /// Whether a record is of a timed epoch; failures are.
    pub(crate) fn is_timed(&self, record: &EpochRecord) -> bool {
        record.measured.epoch.is_none_or(|epoch| self.warmup <= epoch)
    }
}

/// Parses a number of workers that a reader needs.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| 0 < *n).ok_or_else(|| "expected 1 or more".to_owned())
}
