//! The command `tune`: settings for an amount of memory and a randomness of batches.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use bench_report::HostInfo;
use bench_run::{Program, UsageError, quoted};
use clap::Args;
use serde_json::{Value, json};
use tune::{Facts, RunSettings, Surveyed, Tunable, TuneFlags, Wanted};

use crate::bench::{DataFlags, FarFlags, FieldLabel, Fields, Point, Strategy};

/// Flags of `tune`.
#[derive(Debug, Args)]
#[command(after_help = tune::HELP)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    data: DataFlags,
    #[command(flatten)]
    far: FarFlags,
    #[command(flatten)]
    tune: TuneFlags,
    /// Label whose entropy within batches is the measure of randomness: time (64 equal parts of the
    /// samples) or month
    #[arg(long, value_name = "LABEL", default_value = "time", hide_possible_values = true)]
    label: FieldLabel,
    /// Samples of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Threads of one read
    #[arg(short = 't', long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

impl TuneArgs {
    /// The label that is measured, if any.
    fn label(&self) -> Option<FieldLabel> {
        (self.tune.entropy != Wanted::Nothing).then_some(self.label)
    }

    fn survey(&self, fields: &Fields, point: &Point) -> anyhow::Result<Surveyed> {
        let samples = fields.data.samples_in(&fields.data.storage()?, point)?;
        let (n_rows, batch_rows) = (samples.n_samples(), self.batch);
        if n_rows < batch_rows {
            let text = format!("{n_rows} samples do not fill a batch of {batch_rows}");
            return Err(UsageError::new(text).into());
        }
        let codes = self.label().map(|label| label.codes(&samples)).transpose();
        let codes = codes.map_err(|error| {
            anyhow!("{error}; --label time is of any store, --entropy none does without")
        })?;
        let facts = Facts::with_parts(n_rows, batch_rows, samples.sample_bytes());
        Surveyed::new(facts, codes.as_ref(), self.tune.memory.as_u64(), self.data.seed)
    }
}

/// Proposes settings, verifies them, and prints both.
pub(crate) fn run(args: &TuneArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let host = HostInfo::gather();
    // The server ends with the measurement.
    let (_link, far) = args.far.begin(args.data.uri.full(), &host)?;
    let point = Point {
        batch: args.batch,
        threads: args.threads.max(1),
        workers: 1,
        seed: args.data.seed,
        label: args.label(),
        ..Point::default()
    };
    let fields = args.data.open(far, &point)?;
    let surveyed = args.survey(&fields, &point)?;
    let measuring = args.data.begin(&fields, (0, "runs"), host, arguments)?;
    tune::run(TunedFields { args, fields, point }, &surveyed, measuring, &args.tune)
}

/// Fields for which settings are proposed.
struct TunedFields<'a> {
    args: &'a TuneArgs,
    fields: Fields,
    /// What all points have in common.
    point: Point,
}

impl Tunable for TunedFields<'_> {
    type Samples = Fields;

    fn samples(&self) -> &Fields {
        &self.fields
    }

    fn point(&self, run: &RunSettings) -> Point {
        Point {
            chunk: run.spec.chunk_rows,
            chunks_per_block: Some(run.spec.chunks_per_block),
            queue: run.prefetch_blocks as usize,
            max_batches: run.max_batches,
            ..self.point.clone()
        }
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        self.fields.data.folders()
    }

    fn fixed(&self) -> Vec<(&'static str, Value)> {
        vec![("threads", json!(self.point.threads))]
    }

    fn written(&self, settings: &RunSettings) -> Vec<(&'static str, String)> {
        vec![("command", self.command(settings)), ("python", self.python(settings))]
    }
}

impl TunedFields<'_> {
    /// The command that sweeps a proposal alone.
    fn command(&self, settings: &RunSettings) -> String {
        let Point { batch, threads, seed, .. } = self.point;
        let RunSettings { spec, prefetch_blocks, .. } = settings;
        let (name, uri) = (Program::called_for("fields"), self.args.data.uri.to_string());
        let mut words = vec![format!("{name} sweep {}", quoted(&uri))];
        let mut flag = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
        flag("--arrays", &self.args.data.arrays.join(","));
        flag("--strategies", Strategy::Stacked.name());
        flag("-B", &batch.to_string());
        flag("-t", &threads.to_string());
        flag("--chunk", &spec.chunk_rows.to_string());
        flag("--chunks-per-block", &spec.chunks_per_block.to_string());
        flag("-w", "1");
        flag("--queue", &prefetch_blocks.to_string());
        flag("--seed", &seed.to_string());
        if let Some(label) = self.point.label {
            flag("--entropy-of", label.name());
        }
        self.args.far.typed().iter().for_each(|(name, value)| flag(name, value));
        words.join(" ")
    }

    /// The data set in Python.
    fn python(&self, settings: &RunSettings) -> String {
        let Point { batch, threads, seed, .. } = self.point;
        let spec = settings.spec;
        let eager = if settings.prefetch_blocks == 0 { ", use_eager_fetch=False" } else { "" };
        format!(
            "FieldDataset({:?}, {:?}, batch_size={batch}, io_batch_size={}, shuffle_chunk_size={}, \
             seed={seed}{eager}, threads={threads})",
            self.args.data.uri.to_string(),
            self.args.data.arrays,
            spec.block_rows(),
            spec.chunk_rows,
        )
    }
}
