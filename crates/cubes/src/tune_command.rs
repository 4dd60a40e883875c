//! The command `tune`: settings for an amount of memory and a randomness of batches.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use bench_run::{Program, UsageError, quoted};
use clap::Args;
use images::{Form, ImageSamples};
use serde_json::{Value, json};
use tune::{Facts, RunSettings, Surveyed, Tunable, TuneFlags, Wanted};

use crate::bench::{
    Augment, CubeLabel, CubeWork, Cubes, DataFlags, Memory, Point, Settings, Strategy,
    plain_memory, value_name,
};

/// Flags of `tune`.
#[derive(Debug, Args)]
#[command(after_help = tune::HELP)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    data: DataFlags,
    #[command(flatten)]
    tune: TuneFlags,
    /// Label whose entropy within batches is the measure of randomness: subject, domain, or
    /// position (64 equal parts of the list)
    #[arg(long, value_name = "LABEL", default_value = "subject", hide_possible_values = true)]
    label: CubeLabel,
    /// Form of the files: dat, raw32, raw16, zarr [default: the only one there is]
    #[arg(long, value_name = "FORM")]
    form: Option<Form>,
    /// Cubes of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Threads of one block
    #[arg(short = 't', long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

impl TuneArgs {
    /// What all points have in common.
    fn point(&self, form: Form) -> Point {
        let strategy = Strategy::Original;
        let settings = Settings {
            form,
            augment: Augment::None,
            memory: Memory::Pooled,
            workers: 1,
            threads: self.threads.max(1),
            ..strategy.settings()
        };
        Point {
            batch: self.batch,
            shuffled: true,
            seed: self.data.seed,
            cold: self.data.cold(),
            entropy_of: (self.tune.entropy != Wanted::Nothing).then_some(self.label),
            ..Point::new(strategy, strategy.label(), settings)
        }
    }

    /// The form asked for, or the only one there is.
    fn form(&self, forms: &[Form]) -> anyhow::Result<Form> {
        match (self.form, forms) {
            (Some(form), _) => Ok(form),
            (None, [form]) => Ok(*form),
            (None, _) => {
                let names: Vec<&str> = forms.iter().map(|form| form.name()).collect();
                let text = format!("the cubes have the forms {}: give --form", names.join(", "));
                Err(UsageError::new(text).into())
            }
        }
    }

    fn survey(&self, samples: &ImageSamples, point: &Point) -> anyhow::Result<Surveyed> {
        let codes = point.entropy_of.map(|label| label.codes(samples.data())).transpose();
        let codes = codes.map_err(|error| {
            anyhow!("{error}; --label names another, --entropy none does without")
        })?;
        // A batch that is a block takes its memory; others are copied.
        let facts = Facts::with_parts(samples.n_samples(), self.batch, samples.sample_bytes());
        Surveyed::new(facts, codes.as_ref(), self.tune.memory.as_u64(), self.data.seed)
    }
}

/// Proposes settings, verifies them, and prints both.
pub(crate) fn run(args: &TuneArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let cubes = Cubes::open(&args.data)?;
    let set = cubes.data.open(None, false)?;
    let form = args.form(&set.forms()?)?;
    let point = args.point(form);
    let samples = ImageSamples::open(&set, &point.image_spec(plain_memory()))?;
    let surveyed = args.survey(&samples, &point)?;
    let measuring = cubes.begin(&args.data, &[form], (0, "runs"), arguments)?;
    tune::run(TunedCubes { args, cubes, point }, &surveyed, measuring, &args.tune)
}

/// Cubes for which settings are proposed.
struct TunedCubes<'a> {
    args: &'a TuneArgs,
    cubes: Cubes,
    /// What all points have in common.
    point: Point,
}

impl Tunable for TunedCubes<'_> {
    type Samples = Cubes;

    fn samples(&self) -> &Cubes {
        &self.cubes
    }

    fn point(&self, run: &RunSettings) -> CubeWork {
        // The batch in use counts as one of those that are loaded ahead.
        let prefetch = run.prefetch_blocks as usize + 1;
        CubeWork::Load(Box::new(Point {
            settings: Settings { prefetch, ..self.point.settings },
            chunk: run.spec.chunk_rows,
            chunks_per_block: Some(run.spec.chunks_per_block),
            max_batches: run.max_batches,
            ..self.point.clone()
        }))
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        Some(self.cubes.data.folders(self.point.settings.form))
    }

    fn fixed(&self) -> Vec<(&'static str, Value)> {
        vec![("threads", json!(self.point.settings.threads))]
    }

    fn written(&self, settings: &RunSettings) -> Vec<(&'static str, String)> {
        vec![("command", self.command(settings)), ("python", self.python(settings))]
    }
}

impl TunedCubes<'_> {
    /// The command that sweeps a proposal alone.
    fn command(&self, settings: &RunSettings) -> String {
        let Point { strategy, settings: of_point, batch, seed, cold, entropy_of, .. } = &self.point;
        let RunSettings { spec, prefetch_blocks, .. } = settings;
        let (name, data) = (Program::called_for("cubes"), self.args.data.data.to_string_lossy());
        let mut words = vec![format!("{name} sweep {} --shuffled --no-floors", quoted(&data))];
        let mut flag = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
        flag("--strategies", strategy.name());
        flag("--form", of_point.form.name());
        flag("--augment", &value_name(&of_point.augment));
        flag("--memory", &value_name(&of_point.memory));
        flag("-w", &of_point.workers.to_string());
        flag("-t", &of_point.threads.to_string());
        flag("--prefetch", &(prefetch_blocks + 1).to_string());
        flag("-B", &batch.to_string());
        flag("--chunk", &spec.chunk_rows.to_string());
        flag("--chunks-per-block", &spec.chunks_per_block.to_string());
        flag("--seed", &seed.to_string());
        if let Some(label) = entropy_of {
            flag("--entropy-of", &label.name());
        }
        flag("--consumer", "none");
        match cold {
            Some(how) => flag("--cold", &value_name(how)),
            None => words.push("--warm".to_owned()),
        }
        words.push("-E 1 --warmup 0 --repetitions 1".to_owned());
        words.join(" ")
    }

    /// The data set in Python.
    fn python(&self, settings: &RunSettings) -> String {
        let Point { settings: of_point, batch, seed, .. } = &self.point;
        let spec = settings.spec;
        let eager = if settings.prefetch_blocks == 0 { ", use_eager_fetch=False" } else { "" };
        format!(
            "ImageDataset({:?}, batch_size={batch}, io_batch_size={}, shuffle_chunk_size={}, \
             seed={seed}{eager}, stored={:?}, threads={})",
            self.args.data.data.to_string_lossy(),
            spec.block_rows(),
            spec.chunk_rows,
            of_point.form.name(),
            of_point.threads,
        )
    }
}
