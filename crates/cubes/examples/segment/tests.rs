//! The whole program on a small data set.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use cubes::generate::{CubeSpec, GenerateSpec, generate};
use cubes::{Form, FormSpec};
use tempfile::TempDir;

use crate::arguments::Arguments;
use crate::train::Scores;
use crate::{data::Data, run};

/// A folder with a data set in it.
fn data_set(n_images: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cubes = CubeSpec { n_images, shape: [24, 32, 12], n_classes: 4, ..CubeSpec::default() };
    let forms = FormSpec { forms: vec![Form::Raw16], ..FormSpec::default() };
    let spec = GenerateSpec { cubes, forms, ..GenerateSpec::default() };
    generate(&folder.path().join("cubes"), &spec, &mut |_| ()).unwrap();
    folder
}

fn arguments(folder: &Path, more: &[&str]) -> Arguments {
    let (data, out) = (folder.join("cubes"), folder.join("out"));
    let [data, out] = [&data, &out].map(|path| path.to_str().unwrap());
    let small = ["segment", data, "--out", out, "--device", "cpu", "--threads", "1"];
    Arguments::try_parse_from(small.into_iter().chain(more.iter().copied())).unwrap()
}

fn train(folder: &Path, more: &[&str]) -> (Scores, Vec<String>) {
    let mut lines = Vec::new();
    let scores = run(&arguments(folder, more), &mut |line| lines.push(line.to_owned())).unwrap();
    (scores, lines)
}

#[test]
fn it_learns_the_classes() {
    let folder = data_set(24);
    let (scores, lines) = train(folder.path(), &["--epochs", "12", "--batch", "2"]);
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    let quarter = scores.losses.len() / 4;
    let (first, last) = (&scores.losses[..quarter], &scores.losses[3 * quarter..]);
    assert!(mean(last) < 0.7 * mean(first), "{lines:#?}");
    assert_eq!(scores.accuracy.len(), 13);
    assert!(scores.accuracy[12] > scores.most_frequent + 0.2, "{lines:#?}");

    let out = folder.path().join("out");
    let png = fs::read(out.join("segments.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"), "{} bytes", png.len());
    let csv = fs::read_to_string(out.join("scores.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 1 + 13 + scores.losses.len());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "nothing else is left there");
}

#[test]
fn a_seed_decides_the_scores() {
    let folder = data_set(12);
    let short = |seed: &str| train(folder.path(), &["--epochs", "2", "--seed", seed]).0;
    let first = short("7");
    assert_eq!(first, short("7"));
    assert_ne!(first, short("8"));
}

#[test]
fn no_subject_is_in_both_parts() {
    let folder = data_set(16);
    let data = Data::open(&arguments(folder.path(), &[]), torch_feed::tch::Device::Cpu).unwrap();
    let subjects = |loader: &torch_feed::ArrayTensorLoader<images::ImageSamples>| {
        let images = loader.pipeline().source().data().images().to_vec();
        images.into_iter().map(|image| image.subject).collect::<Vec<String>>()
    };
    let (training, held_out) = (subjects(&data.training), subjects(&data.held_out));
    assert_eq!(training.len() + held_out.len(), 16);
    assert!(training.iter().all(|subject| !held_out.contains(subject)), "{training:?}");
}

#[test]
fn what_does_not_fit_is_named() {
    let refused = |folder: &Path, more: &[&str]| {
        run(&arguments(folder, more), &mut |_| ()).unwrap_err().to_string()
    };
    let folder = data_set(8);
    let message = refused(&folder.path().join("nowhere"), &[]);
    assert!(message.contains("cargo xtask cubes generate"), "{message}");
    let message = refused(folder.path(), &["--form", "dat"]);
    assert!(message.contains("dat"), "{message}");
    let message = refused(folder.path(), &["--device", "cuda:99"]);
    assert!(message.contains("cuda:99"), "{message}");
    for wrong in ["--epochs 0", "--batch 0", "--form png", "--device gpu", "--seed x"] {
        let words = ["segment", "x"].into_iter().chain(wrong.split(' '));
        assert!(Arguments::try_parse_from(words).is_err(), "{wrong}");
    }
}
