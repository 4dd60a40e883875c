//! A point of the grid: what batches have, who reads and takes them, and in which order.

use std::fmt;
use std::sync::Arc;

use bench_report::GridPoint;
use bench_run::engine_point;
use clap::ValueEnum;
use pipeline::PipelineSpec;
use sequences::{SequenceSamples, SequenceSpec, SequenceStore, WindowSpec};
use serde::{Deserialize, Serialize};
use shuffle::{AliasTable, Order, Remainder};

use super::label::SequenceLabel;
use crate::kmer_flags::Words;

/// What a batch has of each sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// Its letters.
    Letters,
    /// Its words.
    Tokens,
    /// Each word with its context and noise.
    Windows,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Letters => "letters",
            Self::Tokens => "tokens",
            Self::Windows => "windows",
        }
    }
}

/// What is made of letters.
pub(crate) const TRANSFORM: &str = "transform";

/// What takes the batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Consumer {
    /// Nothing: batches are dropped at once.
    None,
}

/// A point of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) form: Form,
    pub(crate) words: Words,
    /// Words of context at each side of a target, of windows.
    pub(crate) context: usize,
    /// Words of noise for each target, of windows.
    pub(crate) n_noise: usize,
    /// Threads that read and tokenise; 0 lets the consumer read.
    pub(crate) workers: usize,
    /// Sequences of a batch.
    pub(crate) batch: u64,
    /// Consecutive sequences that are read together.
    pub(crate) chunk: u64,
    pub(crate) chunks_per_block: u64,
    /// Blocks read ahead; `None` for as many as there are workers.
    pub(crate) prefetch_blocks: Option<usize>,
    pub(crate) shuffled: bool,
    /// Seed of the order and of noise.
    pub(crate) seed: u64,
    pub(crate) epochs: u64,
    pub(crate) max_batches: Option<u64>,
    pub(crate) consumer: Consumer,
    /// The label whose entropy in batches is measured.
    pub(crate) label: Option<SequenceLabel>,
}

impl Point {
    /// The engine's settings.
    pub(crate) fn pipeline_spec(&self) -> PipelineSpec {
        PipelineSpec {
            chunk_rows: self.chunk,
            chunks_per_block: self.chunks_per_block,
            order: if self.shuffled { Order::Shuffled } else { Order::InOrder },
            seed: self.seed,
            batch_rows: self.batch,
            remainder: Remainder::Short,
            // Each worker has a block while another is cut into batches.
            prefetch_blocks: self.prefetch_blocks.unwrap_or(self.workers),
            read_threads: self.workers,
            // The consumer need not wait for the thread that makes batches to wake.
            prefetch_batches: 4,
            ..PipelineSpec::default()
        }
    }

    /// The source over a store. Counts its words first, if batches need them.
    pub(crate) fn samples(
        &self,
        store: Arc<dyn SequenceStore>,
    ) -> Result<SequenceSamples, sequences::Error> {
        let spec = match self.form {
            Form::Letters => SequenceSpec { letters: true, ..SequenceSpec::default() },
            Form::Tokens | Form::Windows => {
                let tokenizer = self.words.tokenizer(&*store, self.workers.max(1))?;
                let windows = match self.form {
                    Form::Windows => {
                        let counts = tokenizer.vocabulary().counts();
                        let noise = Arc::new(AliasTable::new(counts, AliasTable::NOISE)?);
                        let (context, n_noise) = (self.context, self.n_noise);
                        Some(WindowSpec { context, n_noise, noise, seed: self.seed })
                    }
                    Form::Letters | Form::Tokens => None,
                };
                SequenceSpec { tokenizer: Some(tokenizer), windows, ..SequenceSpec::default() }
            }
        };
        SequenceSamples::new(store, spec)
    }

    /// The settings for a record.
    pub(crate) fn recorded(&self, cache: &str) -> GridPoint {
        let engine = engine_point(&self.pipeline_spec());
        let transform = match self.form {
            Form::Letters => None,
            Form::Tokens => Some(self.words.describe()),
            Form::Windows => Some(format!(
                "{} context {} noise {}",
                self.words.describe(),
                self.context,
                self.n_noise
            )),
        };
        GridPoint {
            workload: Some("sequences".to_owned()),
            chunk_method: self.form.name().to_owned(),
            form: self.form.name().to_owned(),
            reader: "sequences".to_owned(),
            max_batches: self.max_batches,
            consumer: match self.consumer {
                Consumer::None => None,
            },
            cache: cache.to_owned(),
            settings: engine.settings.with("stored_form", "files").with_some(TRANSFORM, transform),
            ..engine
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, workers, batch, .. } = self;
        write!(f, "{}, {workers} workers, batches of {batch}", form.name())
    }
}
