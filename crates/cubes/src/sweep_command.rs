//! The command `sweep`: htc's benchmark as a grid.

use std::ffi::OsString;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context as _;
use bench_run::{UsageError, print_line};
use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use images::Form;

use crate::bench::{
    Augment, BatchElement, Consumer, Copies, CubeLabel, CubeWork, Cubes, DataFlags, Floor,
    LimitFlags, Memory, Mode, Point, Release, Settings, Strategy,
};
use crate::device::{DeviceSpec, TorchProcessor, TorchSpec, torch};
use crate::published::STEP_MILLIS;
use crate::sweep_report::{LEGEND, Report};

/// Flags of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    data: DataFlags,
    /// Strategies to begin with, each with all settings of the one before and one change: original,
    /// blosc, fp16, gpu-aug, ring-buffer, event-ring
    #[arg(
        long,
        value_name = "STRATEGIES",
        value_delimiter = ',',
        hide_possible_values = true,
        default_value = "original,blosc,fp16,gpu-aug,ring-buffer,event-ring"
    )]
    strategies: Vec<Strategy>,
    #[command(flatten)]
    changes: Changes,
    /// Cubes of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Neighbouring cubes that are read together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    chunk: u64,
    /// Chunks that are in memory, and shuffled, together [default: those of a batch]; others need
    /// --memory collated or pooled
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    chunks_per_block: Option<u64>,
    /// Measure the entropy of this label within batches: subject, domain, or position (64 equal
    /// parts of the list)
    #[arg(long, value_name = "LABEL", hide_possible_values = true)]
    entropy_of: Option<CubeLabel>,
    /// Shuffle the cubes; else they come in the order of the list, as in htc's benchmark
    #[arg(long)]
    shuffled: bool,
    /// Epochs of a repetition
    #[arg(short = 'E', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// First epochs of a repetition that are not timed
    #[arg(long, value_name = "N", default_value_t = 2)]
    warmup: u64,
    /// Repetitions with seeds of their own, in rounds over all points, each in a new process
    #[arg(long, alias = "repeat", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    repetitions: u64,
    /// Batches after which an epoch is cut off; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    max_batches: u64,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    device: DeviceFlags,
    /// Do not measure the floors: a plain read of the files, a decoder alone, training steps alone
    #[arg(long)]
    no_floors: bool,
    /// Draw htc's published figures behind ours
    #[arg(long)]
    published: bool,
}

/// Settings that differ from the strategies': lists of values, each of which is measured.
#[derive(Debug, Default, Args)]
struct Changes {
    /// Forms of the files: dat, raw32, raw16, zarr
    #[arg(long, value_name = "FORMS", value_delimiter = ',')]
    form: Vec<Form>,
    /// Place of augmentation: none, cpu, device
    #[arg(long, value_name = "PLACES", value_delimiter = ',', hide_possible_values = true)]
    augment: Vec<Augment>,
    /// Memory of batches: collated, ring, pooled
    #[arg(long, value_name = "KINDS", value_delimiter = ',', hide_possible_values = true)]
    memory: Vec<Memory>,
    /// When a batch's memory is free: sync (after all work of the device), event (after its copy)
    #[arg(long, value_name = "WHEN", value_delimiter = ',', hide_possible_values = true)]
    release: Vec<Release>,
    /// Copies to the device: in-order (after the compute before), beside (beside it)
    #[arg(long, value_name = "ORDER", value_delimiter = ',', hide_possible_values = true)]
    copies: Vec<Copies>,
    /// Whether the next epoch is read ahead over the end of one: true, false
    #[arg(long, value_name = "BOOL", value_delimiter = ',', hide_possible_values = true)]
    gapless: Vec<bool>,
    /// How threads share batches: single (one each), collaborative (all the same one)
    #[arg(long, value_name = "MODES", value_delimiter = ',', hide_possible_values = true)]
    mode: Vec<Mode>,
    /// Threads that load
    #[arg(short = 'w', long, value_name = "N", value_delimiter = ',')]
    workers: Vec<usize>,
    /// Threads of one batch; 0 as the mode says
    #[arg(short = 't', long, value_name = "N", value_delimiter = ',')]
    threads: Vec<usize>,
    /// Batches that each worker may load ahead
    #[arg(long, value_name = "N", value_delimiter = ',')]
    prefetch: Vec<usize>,
    /// Slots of the ring; 0 for as many as the other settings need
    #[arg(long, value_name = "N", value_delimiter = ',')]
    slots: Vec<usize>,
    /// Elements of cubes in a batch: stored, f16, f32
    #[arg(long, value_name = "TYPES", value_delimiter = ',', hide_possible_values = true)]
    element: Vec<BatchElement>,
}

/// A strategy with changes, and its name.
type NamedSettings = (Strategy, String, Settings);

impl Changes {
    /// All combinations of the changes, over the strategies. A setting with several values is part
    /// of the name.
    fn named_settings(&self, strategies: &[Strategy]) -> Vec<NamedSettings> {
        let start = strategies.iter().map(|of| (*of, of.label(), of.settings())).collect();
        let named = varied(start, &self.form, "form", |of, value| of.form = value);
        let named = varied_named(named, &self.augment, "augment", |of, value| of.augment = value);
        let named = varied_named(named, &self.memory, "memory", |of, value| of.memory = value);
        let named = varied_named(named, &self.release, "release", |of, value| of.release = value);
        let named = varied_named(named, &self.copies, "copies", |of, value| of.copies = value);
        let named = varied(named, &self.gapless, "gapless", |of, value| of.gapless = value);
        let named = varied_named(named, &self.mode, "mode", |of, value| of.mode = value);
        let named = varied(named, &self.workers, "workers", |of, value| of.workers = value);
        let named = varied(named, &self.threads, "threads", |of, value| of.threads = value);
        let named = varied(named, &self.prefetch, "prefetch", |of, value| of.prefetch = value);
        let named = varied(named, &self.slots, "slots", |of, value| of.slots = value);
        varied_named(named, &self.element, "element", |of, value| of.element = value)
    }
}

fn varied<T: Copy + ToString>(
    named: Vec<NamedSettings>,
    values: &[T],
    name: &str,
    set: impl Fn(&mut Settings, T),
) -> Vec<NamedSettings> {
    let shown = |value: &T| value.to_string();
    varied_as(named, values, (name, &shown), set)
}

fn varied_named<T: Copy + ValueEnum>(
    named: Vec<NamedSettings>,
    values: &[T],
    name: &str,
    set: impl Fn(&mut Settings, T),
) -> Vec<NamedSettings> {
    let shown = |value: &T| {
        let value = value.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    varied_as(named, values, (name, &shown), set)
}

fn varied_as<T: Copy>(
    named: Vec<NamedSettings>,
    values: &[T],
    (name, shown): (&str, &dyn Fn(&T) -> String),
    set: impl Fn(&mut Settings, T),
) -> Vec<NamedSettings> {
    if values.is_empty() {
        return named;
    }
    let mut all = Vec::with_capacity(named.len() * values.len());
    for (strategy, label, settings) in named {
        for value in values {
            let mut settings = settings;
            set(&mut settings, *value);
            let label = match values.len() {
                1 => label.clone(),
                _ => format!("{label}, {name} {}", shown(value)),
            };
            all.push((strategy, label, settings));
        }
    }
    all
}

/// Flags of the device that takes batches.
#[derive(Debug, Args)]
struct DeviceFlags {
    /// What takes the batches: none drops them at once; stand-in takes the time of a training step;
    /// cuda (or cuda:1 and so on) trains a small U-Net on a GPU, cpu on the processor
    #[arg(long, value_name = "KIND", default_value = "stand-in")]
    consumer: ConsumerKind,
    /// Features of the U-Net at the full resolution
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    model_width: u16,
    /// Milliseconds of the stand-in for a training step on 6 cubes; fewer or more take their part
    #[arg(long, value_name = "MS", default_value_t = STEP_MILLIS, value_parser = millis)]
    step_ms: f64,
    /// Bytes that the stand-in copies in a second
    #[arg(long, value_name = "SIZE", default_value = "25GB")]
    copy_rate: ByteSize,
}

/// What takes the batches, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConsumerKind {
    None,
    StandIn,
    Torch(TorchProcessor),
}

impl FromStr for ConsumerKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "stand-in" => Ok(Self::StandIn),
            None if text == "cpu" => Ok(Self::Torch(TorchProcessor::Cpu)),
            None if text == "cuda" => Ok(Self::Torch(TorchProcessor::Cuda(0))),
            Some(("cuda", idx)) => {
                let idx = idx.parse().map_err(|_| format!("{idx:?} is not the number of a GPU"))?;
                Ok(Self::Torch(TorchProcessor::Cuda(idx)))
            }
            _ => Err("expected none, stand-in, cpu, cuda, or cuda:1 and so on".to_owned()),
        }
    }
}

/// Cubes of the batch whose step the published time is of.
const STEP_CUBES: u64 = 6;

fn millis(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    // Longer than an hour is surely a typo.
    let is_valid = (0.0..=3_600_000.0).contains(&value);
    if is_valid { Ok(value) } else { Err("expected 0 to 3600000 milliseconds".to_owned()) }
}

impl DeviceFlags {
    /// The consumer of a point.
    fn consumer(&self, settings: &Settings) -> Consumer {
        match self.consumer {
            ConsumerKind::None => Consumer::None,
            ConsumerKind::StandIn => Consumer::StandIn(DeviceSpec {
                step_millis: self.step_ms,
                full_batch: STEP_CUBES,
                copy_rate: self.copy_rate.as_u64(),
                copies_beside: settings.copies == Copies::Beside,
            }),
            ConsumerKind::Torch(processor) => Consumer::Torch(self.torch(processor)),
        }
    }

    fn torch(&self, processor: TorchProcessor) -> TorchSpec {
        TorchSpec { processor, width: self.model_width.into() }
    }

    /// Checks that there is such a consumer, and that it does what `copies` asks for.
    fn check(&self, copies: &[Copies]) -> anyhow::Result<()> {
        let ConsumerKind::Torch(processor) = self.consumer else { return Ok(()) };
        if copies.contains(&Copies::Beside) {
            let text = format!(
                "--copies beside needs streams, which torch's binding for Rust does not have: \
                 --consumer {processor} copies in order"
            );
            return Err(UsageError::new(text).into());
        }
        torch::check(&self.torch(processor))
    }
}

impl SweepArgs {
    /// All points, for these limits.
    fn points(&self, limits: &[Option<bench_run::IoLimit>]) -> Vec<Point> {
        let mut points = Vec::new();
        for (strategy, label, settings) in self.changes.named_settings(&self.strategies) {
            for io_limit in limits {
                points.push(Point {
                    strategy,
                    label: label.clone(),
                    settings,
                    batch: self.batch,
                    chunk: self.chunk,
                    chunks_per_block: self.chunks_per_block,
                    shuffled: self.shuffled,
                    seed: self.data.seed,
                    epochs: self.epochs,
                    max_batches: (0 < self.max_batches).then_some(self.max_batches),
                    cold: self.data.cold(),
                    io_limit: io_limit.clone(),
                    consumer: self.device.consumer(&settings),
                    entropy_of: self.entropy_of,
                });
            }
        }
        points
    }

    /// The floors beside the points: the decoder of each form, a plain read if a point has no
    /// limit, and the steps of a training.
    fn floors(&self, points: &[Point]) -> Vec<Floor> {
        if self.no_floors {
            return Vec::new();
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut floors = Vec::new();
        for point in points {
            let form = point.settings.form;
            let read = Floor::PlainRead { form, threads, cold: self.data.cold() };
            let decode = Floor::Decode { form };
            let read = point.io_limit.is_none().then_some(read);
            let decode = form.file_format().is_some().then_some(decode);
            for floor in [read, decode].into_iter().flatten() {
                if !floors.contains(&floor) {
                    floors.push(floor);
                }
            }
            let is_new =
                |steps: &Floor| !floors.iter().any(|of| steps.is_measured_by(&of.recorded("")));
            floors.extend(Floor::steps_of(point).filter(is_new));
        }
        floors
    }
}

/// Measures the grid, prints a table and draws the figures.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if args.epochs <= args.warmup {
        let text = format!("{} epochs leave none to time after {}", args.epochs, args.warmup);
        return Err(UsageError::new(text).into());
    }
    args.device.check(&args.changes.copies)?;
    let limits = args.limits.enforce(&args.data.data().folder)?;
    let points = args.points(&limits.limits);
    let floors = args.floors(&points);
    let n_runs = floors.len() as u64 + points.len() as u64 * args.repetitions;
    let forms: Vec<Form> = points.iter().map(|point| point.settings.form).collect();
    let cubes = Cubes::open(&args.data)?;
    let mut measuring = cubes.begin(&args.data, &forms, (n_runs, "runs"), arguments)?;
    let floors: Vec<CubeWork> = floors.into_iter().map(CubeWork::Floor).collect();
    for floor in &floors {
        if measuring.measure(&cubes, floor, (None, 0))?.is_break() {
            break;
        }
    }
    measuring.measure_rounds(&points, args.repetitions, |point, round| {
        let seed = point.seed.wrapping_add(round);
        (&cubes, CubeWork::Load(Box::new(Point { seed, ..point.clone() })))
    })?;
    measuring.session.display.finish();
    let report = Report::new((&measuring, &cubes), &points, args.warmup, args.published);
    print_line!("{}\n{LEGEND}.", report.table());
    for path in report.write().context("cannot write the report")? {
        print_line!("{}", path.display());
    }
    Ok(measuring.verdict_unless(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_combined_and_named_if_there_are_several() {
        let changes = Changes {
            form: vec![Form::Zarr],
            workers: vec![1, 4],
            mode: vec![Mode::Single, Mode::Collaborative],
            ..Changes::default()
        };
        let all = changes.named_settings(&[Strategy::RingBuffer, Strategy::EventRing]);
        assert_eq!(all.len(), 8);
        assert!(all.iter().all(|of| of.2.form == Form::Zarr));
        let labels: Vec<&str> = all.iter().map(|of| of.1.as_str()).collect();
        assert_eq!(labels[0], "+ring-buffer, mode single, workers 1");
        assert_eq!(labels[7], "+event-ring, mode collaborative, workers 4");
        assert_eq!((all[7].2.mode, all[7].2.workers), (Mode::Collaborative, 4));
        let plain = Changes::default().named_settings(&Strategy::ALL);
        assert!(plain.iter().all(|(strategy, label, settings)| {
            *label == strategy.label() && *settings == strategy.settings()
        }));
    }

    fn flags(consumer: &str) -> DeviceFlags {
        let (consumer, step_ms) = (consumer.parse().unwrap(), STEP_MILLIS);
        DeviceFlags { consumer, model_width: 4, step_ms, copy_rate: ByteSize::gb(25) }
    }

    #[test]
    fn consumers_are_understood() {
        let settings = Strategy::EventRing.settings();
        let consumer = |name: &str| flags(name).consumer(&settings);
        assert!(matches!(consumer("stand-in"), Consumer::StandIn(spec) if spec.copies_beside));
        assert_eq!(consumer("none"), Consumer::None);
        let torch = |processor| Consumer::Torch(TorchSpec { processor, width: 4 });
        assert_eq!(consumer("cpu"), torch(TorchProcessor::Cpu));
        assert_eq!(consumer("cuda"), torch(TorchProcessor::Cuda(0)));
        assert_eq!(consumer("cuda:3"), torch(TorchProcessor::Cuda(3)));
        for bad in ["", "gpu", "cuda:", "cuda:x", "cpu:0"] {
            bad.parse::<ConsumerKind>().unwrap_err();
        }
        assert_eq!(millis("183"), Ok(183.0));
        for bad in ["-1", "x", "NaN", "1e9"] {
            assert!(millis(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_torch_cannot_do_is_refused() {
        assert!(flags("stand-in").check(&[Copies::Beside]).is_ok());
        let refused = flags("cpu").check(&[Copies::InOrder, Copies::Beside]).unwrap_err();
        assert!(refused.is::<UsageError>() && refused.to_string().contains("in order"));
    }
}
