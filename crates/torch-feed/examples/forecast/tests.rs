//! The whole program on a small store.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use fields::generate::{FieldSpec, GenerateSpec, generate};
use tempfile::TempDir;

use crate::arguments::Arguments;
use crate::train::Errors;
use crate::{data::Data, run};

/// A folder with a store in it.
fn store(n_samples: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fields = FieldSpec { n_samples, n_lat: 16, n_lon: 32, n_inputs: 6, n_targets: 4, seed: 1 };
    let spec = GenerateSpec { fields, ..GenerateSpec::default() };
    generate(&folder.path().join("weather"), &spec, &mut |_| ()).unwrap();
    folder
}

fn arguments(folder: &Path, more: &[&str]) -> Arguments {
    let (store, out) = (folder.join("weather"), folder.join("out"));
    let [store, out] = [&store, &out].map(|path| path.to_str().unwrap());
    let small = ["forecast", store, "--out", out, "--channels", "4", "--device", "cpu"];
    let all = small.into_iter().chain(["--threads", "1"]).chain(more.iter().copied());
    Arguments::try_parse_from(all).unwrap()
}

fn train(folder: &Path, more: &[&str]) -> (Errors, Vec<String>) {
    let mut lines = Vec::new();
    let errors = run(&arguments(folder, more), &mut |line| lines.push(line.to_owned())).unwrap();
    (errors, lines)
}

#[test]
fn it_learns_how_fields_move() {
    let folder = store(80);
    let (errors, lines) = train(folder.path(), &[]);
    // 79 samples look one step back: 16 are held out, 4 lie between.
    assert!(lines[0].ends_with("59 samples for training, the last 16 to test on"), "{lines:?}");
    assert_eq!((errors.training.len(), errors.held_out.len(), lines.len()), (80, 11, 13));
    // The untrained model predicts no change.
    assert!((errors.held_out[0] - errors.persistence).abs() < 1e-9 * errors.persistence);
    assert!(errors.held_out[10] < 0.5 * errors.persistence, "{lines:#?}");

    let out = folder.path().join("out");
    let png = fs::read(out.join("forecast.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 5000, "{} bytes", png.len());
    let csv = fs::read_to_string(out.join("errors.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 1 + 11 + 80);
    assert!(csv.contains(&format!("persistence,held out,,{}\n", errors.persistence)));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "nothing else is left there");
}

#[test]
fn a_seed_decides_the_errors() {
    let folder = store(40);
    let short = |seed: &str| train(folder.path(), &["--epochs", "2", "--seed", seed]).0;
    let first = short("7");
    assert_eq!(first, short("7"));
    assert_ne!(first, short("8"));
}

#[test]
fn parts_are_apart_in_time() {
    let folder = store(40);
    let data = Data::open(&arguments(folder.path(), &[]), tch::Device::Cpu).unwrap();
    let steps = |loader: &torch_feed::ArrayTensorLoader| {
        let samples = loader.pipeline().source();
        let batches = loader.epoch(0).unwrap().map(|batch| batch.unwrap().samples().to_vec());
        let mut steps: Vec<u64> = batches.flatten().map(|sample| samples.step(sample)).collect();
        steps.sort_unstable();
        steps
    };
    assert_eq!(steps(&data.training), (1..28).collect::<Vec<u64>>());
    assert_eq!(steps(&data.held_out), (32..40).collect::<Vec<u64>>());
}

#[test]
fn what_does_not_fit_is_named() {
    let refused = |folder: &Path, more: &[&str]| {
        run(&arguments(folder, more), &mut |_| ()).unwrap_err().to_string()
    };
    let folder = store(6);
    let message = refused(folder.path(), &[]);
    assert!(message.contains("5 samples cannot be split"), "{message}");
    let message = refused(folder.path(), &["--channels", "5"]);
    assert!(message.contains("target_channels") && message.contains("index 4"), "{message}");
    let message = refused(&folder.path().join("nowhere"), &[]);
    assert!(message.contains("cargo xtask fields generate"), "{message}");
    let message = refused(folder.path(), &["--device", "cuda:99"]);
    assert!(message.contains("cuda:99"), "{message}");
    for wrong in ["--epochs 0", "--batch 0", "--channels 0", "--device gpu", "--seed x"] {
        let words = ["forecast", "x"].into_iter().chain(wrong.split(' '));
        assert!(Arguments::try_parse_from(words).is_err(), "{wrong}");
    }
}
