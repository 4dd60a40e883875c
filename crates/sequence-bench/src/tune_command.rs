//! The command `tune`: settings for an amount of memory and a randomness of batches.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_report::HostInfo;
use bench_run::{Measuring, OutputFlags, Program, UsageError, grouped, quoted};
use clap::Args;
use pipeline::Source as _;
use serde_json::{Value, json};
use tune::{Facts, KnownMemory, RunSettings, Surveyed, Tunable, TuneFlags, Wanted};

use crate::bench::{Consumer, Form, Point, SequenceLabel, StoreData, open};
use crate::kmer_flags::KmerFlags;

/// Flags of `tune`.
#[derive(Debug, Args)]
#[command(after_help = tune::HELP)]
pub(crate) struct TuneArgs {
    /// The store, as `import` writes it
    store: PathBuf,
    #[command(flatten)]
    tune: TuneFlags,
    /// Label whose entropy within batches is the measure of randomness: position (64 equal parts of
    /// the store), or name: and a separator, for the name up to it, like name:_member_
    #[arg(long, value_name = "LABEL", default_value_t = SequenceLabel::Position)]
    label: SequenceLabel,
    /// What batches have of each sequence: letters, tokens (its words), windows (each word with its
    /// context and noise)
    #[arg(long, value_name = "FORM", hide_possible_values = true, default_value = "tokens")]
    form: Form,
    #[command(flatten)]
    words: KmerFlags,
    /// Words of context at each side of a target, of windows
    #[arg(long, value_name = "N", default_value_t = 3)]
    context: usize,
    /// Words of noise for each target, of windows
    #[arg(long, value_name = "N", default_value_t = 5)]
    noise: usize,
    /// Sequences of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Threads that read and tokenise
    #[arg(short = 't', long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Seed of the order and of noise
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    output: OutputFlags,
}

impl TuneArgs {
    /// What all points have in common.
    fn point(&self) -> Point {
        Point {
            form: self.form,
            words: self.words.words(),
            context: self.context,
            n_noise: self.noise,
            workers: self.threads.max(1),
            batch: self.batch,
            chunk: 1,
            chunks_per_block: self.batch,
            prefetch_blocks: None,
            shuffled: true,
            seed: self.seed,
            epochs: 1,
            max_batches: None,
            consumer: Consumer::None,
            label: (self.tune.entropy != Wanted::Nothing).then(|| self.label.clone()),
        }
    }

    fn survey(&self, data: &StoreData, point: &Point) -> anyhow::Result<Surveyed> {
        let store = open(&data.folder)?;
        let n_rows = data.summary.n_sequences;
        if n_rows == 0 {
            return Err(UsageError::new(format!("{} has no sequences", data.uri())).into());
        }
        let codes = point.label.as_ref().map(|label| label.codes(&*store)).transpose()?;
        let block = point.samples(store)?.need(n_rows, self.batch)?.block;
        let of_row = |n_bytes: u64| n_bytes as f64 / n_rows as f64;
        let memory = KnownMemory {
            row_bytes: of_row(block),
            // The letters that were read; what is made of them is fitted.
            least_row_bytes: of_row(data.summary.n_letters),
            batch_bytes: 0.0,
            n_batches: 1,
        };
        let facts = Facts {
            n_rows,
            batch_rows: self.batch,
            whole_batches: false,
            most_row_bytes: memory.row_bytes,
            memory,
        };
        Surveyed::new(facts, codes.as_ref(), self.tune.memory.as_u64(), self.seed)
    }
}

/// Proposes settings, verifies them, and prints both.
pub(crate) fn run(args: &TuneArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let (data, point) = (StoreData::open(&args.store)?, args.point());
    let surveyed = args.survey(&data, &point)?;
    let host = HostInfo::gather();
    let mut measuring = Measuring::begin(&args.output, (0, "runs"), &data.uri(), host, arguments)?;
    let session = &mut measuring.session;
    session.warm(Some(std::slice::from_ref(&data.folder)));
    let n_sequences = grouped(data.summary.n_sequences);
    session.display.line(&format!("{}: {n_sequences} sequences", data.name()));
    measuring.session.display.line(&format!("results: {}", measuring.folder().display()));
    tune::run(TunedSequences { args, data, point }, &surveyed, measuring, &args.tune)
}

/// Sequences for which settings are proposed.
struct TunedSequences<'a> {
    args: &'a TuneArgs,
    data: StoreData,
    /// What all points have in common.
    point: Point,
}

impl Tunable for TunedSequences<'_> {
    type Samples = StoreData;

    fn samples(&self) -> &StoreData {
        &self.data
    }

    fn point(&self, run: &RunSettings) -> Point {
        Point {
            chunk: run.spec.chunk_rows,
            chunks_per_block: run.spec.chunks_per_block,
            prefetch_blocks: Some(run.prefetch_blocks as usize),
            max_batches: run.max_batches,
            ..self.point.clone()
        }
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        Some(vec![self.data.folder.clone()])
    }

    fn fixed(&self) -> Vec<(&'static str, Value)> {
        vec![("threads", json!(self.point.workers))]
    }

    fn written(&self, settings: &RunSettings) -> Vec<(&'static str, String)> {
        vec![("command", self.command(settings)), ("python", self.python(settings))]
    }
}

impl TunedSequences<'_> {
    /// The command that sweeps a proposal alone.
    fn command(&self, settings: &RunSettings) -> String {
        let Point { form, workers, batch, seed, context, n_noise, .. } = &self.point;
        let RunSettings { spec, prefetch_blocks, .. } = settings;
        let (name, store) = (Program::called_for("sequences"), self.args.store.to_string_lossy());
        let mut words = vec![format!("{name} sweep {}", quoted(&store))];
        let mut flag = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
        flag("--form", form.name());
        if *form == Form::Windows {
            flag("--context", &context.to_string());
            flag("--noise", &n_noise.to_string());
        }
        if *form != Form::Letters {
            self.point.words.flags().iter().for_each(|(name, value)| flag(name, value));
        }
        flag("-w", &workers.to_string());
        flag("-B", &batch.to_string());
        flag("--chunk", &spec.chunk_rows.to_string());
        flag("--chunks-per-block", &spec.chunks_per_block.to_string());
        flag("--prefetch-blocks", &prefetch_blocks.to_string());
        flag("--seed", &seed.to_string());
        if let Some(label) = &self.point.label {
            flag("--entropy-of", &label.to_string());
        }
        words.push("-E 1 --warmup 0 --repetitions 1".to_owned());
        if *form != Form::Letters && self.point.words.folds_case() {
            words.push("--fold-case".to_owned());
        }
        words.join(" ")
    }

    /// The data set in Python.
    fn python(&self, settings: &RunSettings) -> String {
        let Point { form, workers, batch, seed, context, n_noise, words, .. } = &self.point;
        let spec = settings.spec;
        let made = match form {
            Form::Letters => String::new(),
            Form::Tokens => format!(", kmers={}", words.python()),
            Form::Windows => {
                let windows = format!("Windows(context={context}, n_noise={n_noise})");
                format!(", kmers={}, windows={windows}", words.python())
            }
        };
        let eager = if settings.prefetch_blocks == 0 { ", use_eager_fetch=False" } else { "" };
        format!(
            "SequenceDataset({:?}{made}, batch_size={batch}, io_batch_size={}, \
             shuffle_chunk_size={}, seed={seed}{eager}, threads={workers})",
            self.args.store.to_string_lossy(),
            spec.block_rows(),
            spec.chunk_rows,
        )
    }
}
