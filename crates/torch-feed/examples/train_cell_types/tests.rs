//! The whole program on a small experiment.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use clap::Parser as _;
use example_data::{GenerateSpec, generate};
use tch::Device;
use tempfile::TempDir;

use crate::arguments::{Arguments, RowOrder};
use crate::data::Labeled;
use crate::run::{Outcome, Run};
use crate::{report, train_all};

/// A folder with an experiment in it.
fn experiment() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let spec = GenerateSpec { n_cells: 2000, n_genes: 1000, seed: 5, ..GenerateSpec::default() };
    generate(&path.to_string_lossy(), &spec, &mut |_| ()).unwrap();
    folder
}

/// Arguments for two epochs of 17 batches, over blocks smaller than the data, on the CPU, with
/// `more` arguments.
fn arguments(folder: &Path, more: &[&str]) -> Arguments {
    let experiment = folder.join("experiment");
    let first = ["train_cell_types", experiment.to_str().unwrap()];
    let small =
        "--seeds 3 --batch-rows 96 --epochs 2 --chunk-rows 16 --chunks-per-block 20 --device cpu";
    let out = folder.join("out");
    let out = ["--out", out.to_str().unwrap()];
    let all = first.into_iter().chain(small.split(' ')).chain(out).chain(more.iter().copied());
    Arguments::try_parse_from(all).unwrap()
}

/// Trains one run, and stops it after `last_step` steps unless it has ended before.
fn train(arguments: &Arguments, order: RowOrder, last_step: u64) -> Option<Outcome> {
    let data = Labeled::open(arguments).unwrap();
    let run = Run { data: &data, arguments, order, seed: 3, device: Device::Cpu };
    let stop =
        |step| if step < last_step { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    run.train(&mut { stop }).unwrap()
}

/// Losses as bits.
fn bits(outcome: &Outcome) -> Vec<u32> {
    outcome.losses.iter().map(|loss| loss.to_bits()).collect()
}

#[test]
fn it_learns_and_shows_what_the_order_does() {
    let folder = experiment();
    let arguments = arguments(folder.path(), &["--learning-rate", "0.01"]);
    let mut message = Vec::new();
    let finished = train_all(&arguments, &mut |line| message.push(line.to_owned())).unwrap();
    assert_eq!((finished.len(), message.len()), (3, 4), "{message:?}");
    assert!(message[0].starts_with("2000 cells x 1000 genes"), "{message:?}");
    for run in &finished {
        assert_eq!(run.outcome.losses.len(), 34);
        assert_eq!(run.outcome.n_rows, 2 * 1600);
    }
    let [in_order, chunks, full] = [0, 1, 2].map(|idx| &finished[idx].outcome);
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
    for shuffled in [chunks, full] {
        let (first, last) = (mean(&shuffled.losses[..5]), mean(&shuffled.losses[29..]));
        assert!(last < 0.6 * first, "from {first} to {last}");
        // Always guessing the most frequent of about ninety types scores 0.003.
        assert!(shuffled.macro_f1 > 0.1, "macro-F1 {}", shuffled.macro_f1);
        assert!(in_order.macro_f1 < shuffled.macro_f1, "{message:?}");
        assert!(
            report::unsteadiness(&shuffled.losses) < report::unsteadiness(&in_order.losses),
            "{}",
            report::table(&finished)
        );
    }

    report::write(&arguments.out, &finished).unwrap();
    let csv = fs::read_to_string(arguments.out.join("losses.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 * 34);
    assert_eq!(csv.lines().nth(1).unwrap(), format!("in-order,3,0,{}", in_order.losses[0]));
    let svg = fs::read_to_string(arguments.out.join("loss.svg")).unwrap();
    for part in ["in order", "chunks, shuffled in blocks", "full shuffle", "</svg>"] {
        assert!(svg.contains(part), "{part}");
    }
    assert_eq!(report::table(&finished).lines().count(), 5);
}

#[test]
fn a_run_that_was_stopped_goes_on_to_the_same_losses() {
    let folder = experiment();
    let whole = arguments(folder.path(), &[]);
    let checkpoints = folder.path().join("checkpoints");
    let in_folder = ["--checkpoint", checkpoints.to_str().unwrap(), "--checkpoint-every", "5"];
    let from_start = arguments(folder.path(), &in_folder);
    let resumed = arguments(folder.path(), &[&in_folder[..], &["--resume"]].concat());
    for order in [RowOrder::InOrder, RowOrder::Chunks, RowOrder::Full] {
        let expected = train(&whole, order, u64::MAX).unwrap();
        // Stops before the first checkpoint, between two, at one, at an epoch's end, and in the
        // second epoch. Each time the steps since the last checkpoint are lost.
        assert!(train(&from_start, order, 3).is_none());
        for last_step in [8, 15, 17, 29] {
            assert!(train(&resumed, order, last_step).is_none(), "{order:?} {last_step}");
        }
        let found = train(&resumed, order, u64::MAX).unwrap();
        assert_eq!(bits(&found), bits(&expected), "{order:?}");
        assert_eq!((found.macro_f1, found.accuracy), (expected.macro_f1, expected.accuracy));
        // The last stop was at step 29, the last checkpoint at 25: 9 batches remain, one of them
        // short.
        assert_eq!(found.n_rows, 8 * 96 + 64, "{order:?}");

        let again = train(&resumed, order, u64::MAX).unwrap();
        assert_eq!((again.n_rows, bits(&again)), (0, bits(&expected)), "it had ended");
    }
    assert_eq!(fs::read_dir(&checkpoints).unwrap().count(), 3, "one file for each run");
}

#[test]
fn where_batches_are_made_dense_does_not_matter() {
    let folder = experiment();
    let [here, there] =
        [&[][..], &["--densify-on-device"]].map(|more| arguments(folder.path(), more));
    let [here, there] =
        [here, there].map(|arguments| train(&arguments, RowOrder::Chunks, u64::MAX));
    let (here, there) = (here.unwrap(), there.unwrap());
    assert_eq!((bits(&here), here.macro_f1), (bits(&there), there.macro_f1));
}

#[test]
fn more_epochs_are_the_same_run_for_longer() {
    let folder = experiment();
    let checkpoints = folder.path().join("checkpoints");
    let resumed = ["--resume", "--checkpoint", checkpoints.to_str().unwrap(), "--epochs", "3"];
    let first = arguments(folder.path(), &resumed[1..3]);
    let order = RowOrder::Chunks;
    train(&first, order, u64::MAX).unwrap();
    let longer = train(&arguments(folder.path(), &resumed), order, u64::MAX).unwrap();
    let expected = train(&arguments(folder.path(), &["--epochs", "3"]), order, u64::MAX).unwrap();
    assert_eq!((longer.n_rows, bits(&longer)), (1600, bits(&expected)));
}

#[test]
fn a_checkpoint_that_does_not_fit_is_refused() {
    let folder = experiment();
    let checkpoints = folder.path().join("checkpoints");
    let in_folder = ["--resume", "--checkpoint", checkpoints.to_str().unwrap()];
    let fitting = arguments(folder.path(), &in_folder);
    train(&fitting, RowOrder::Full, u64::MAX).unwrap();
    let refused = |more: &[&str]| {
        let arguments = arguments(folder.path(), &[&in_folder[..], more].concat());
        let data = Labeled::open(&arguments).unwrap();
        let run = Run {
            data: &data,
            arguments: &arguments,
            order: RowOrder::Full,
            seed: 3,
            device: Device::Cpu,
        };
        run.train(&mut |_| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    for other in [["--batch-rows", "95"], ["--learning-rate", "0.5"], ["--held-out", "0.3"]] {
        let message = refused(&other);
        assert!(
            message.contains("full-seed3.safetensors") && message.contains("another run"),
            "{message}"
        );
    }

    // The leftover of an interrupted write is ignored.
    let path = checkpoints.join("full-seed3.safetensors");
    fs::write(path.with_extension("partial"), "half").unwrap();
    assert_eq!(train(&fitting, RowOrder::Full, u64::MAX).unwrap().n_rows, 0);

    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let message = refused(&[]);
    assert!(message.contains("cannot resume from the checkpoint"), "{message}");
}

#[test]
fn the_command_line_is_checked() {
    let parse = |more: &str| {
        Arguments::try_parse_from(
            ["train_cell_types", "x"].into_iter().chain(more.split_whitespace()),
        )
    };
    assert!(parse("--resume").is_err(), "from where?");
    assert!(parse("--checkpoint-every 0").is_err());
    assert!(parse("--device gpu").is_err());
    assert_eq!(parse("--device cpu").unwrap().device.find().unwrap(), Device::Cpu);
    let message = parse("--device cuda:99").unwrap().device.find().unwrap_err().to_string();
    assert!(message.contains("cuda:99") && message.contains("the CPU"), "{message}");
    assert_eq!(parse("").unwrap().device.find().unwrap(), Device::cuda_if_available());

    let nowhere = parse("").unwrap();
    let message = Labeled::open(&nowhere).unwrap_err().to_string();
    assert!(message.contains("cargo xtask generate x"), "{message}");
}

#[test]
fn a_steady_loss_is_steady() {
    let falling: Vec<f32> = (0..100).map(|step| 5.0 - 0.01 * step as f32).collect();
    let jumping: Vec<f32> = (0..100).map(|step| if step % 7 == 0 { 5.0 } else { 1.0 }).collect();
    assert!(report::unsteadiness(&falling) < 0.01);
    assert!((report::unsteadiness(&jumping) - 4.0 * 15.0 / 100.0).abs() < 1e-6);
    assert_eq!(report::unsteadiness(&[]), 0.0);
}
