//! A generated data set appears whole or not at all, and does not depend on the threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cubes::generate::{CubeSpec, GenerateSpec, generate};
use cubes::{Error, Form, FormSpec};

use crate::{SMALL, assert_same, files, forms, write};

const FORMS: [Form; 4] = Form::ALL;

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let written = |n_threads: usize, seed| {
        let data = folder.path().join(format!("{n_threads}-{seed}"));
        let cubes = CubeSpec { seed, ..SMALL };
        let spec = GenerateSpec { cubes, forms: forms(&FORMS), n_threads, interrupted: None };
        let report = generate(&data, &spec, &mut |_| {}).unwrap();
        let n_bytes: usize = files(&data).values().map(Vec::len).sum();
        assert_eq!(report.n_bytes, n_bytes as u64);
        (data, report.precision)
    };
    let (one, precision) = written(1, 11);
    let (three, same_precision) = written(3, 11);
    assert_same(&one, &three);
    assert_eq!(precision, same_precision);
    // A list, and per image a segmentation, three files and three chunks; four files of metadata.
    assert_eq!(files(&one).len(), 1 + 5 * 7 + 4);
    let (other, _) = written(2, 12);
    let name = "raw16/P001_000001.blosc";
    assert!(fs::read(one.join(name)).unwrap() != fs::read(other.join(name)).unwrap());
}

#[test]
fn the_list_describes_images_and_forms() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data, FormSpec { level: 3, ..forms(&[Form::Raw16, Form::Dat]) }).unwrap();
    let text = fs::read(data.join("images.json")).unwrap();
    let list: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let expect = serde_json::json!({
        "version": 1,
        "shape": [18, 24, 20],
        "n_classes": 4,
        "classes": ["tissue_0", "tissue_1", "tissue_2", "tissue_3"],
        "images": [
            { "name": "P001_000001", "domain": "camera_a", "subject": "P001" },
            { "name": "P001_000002", "domain": "camera_a", "subject": "P001" },
            { "name": "P001_000003", "domain": "camera_a", "subject": "P001" },
            { "name": "P001_000004", "domain": "camera_a", "subject": "P001" },
            { "name": "P002_000005", "domain": "camera_b", "subject": "P002" },
        ],
        "forms": {
            "dat": { "normalization": "none", "codec": "none" },
            "raw16": { "normalization": "none", "codec": "blosc:3" },
        },
        "generator": { "name": "cubes generate", "seed": 11, "noise": CubeSpec::DEFAULT_NOISE },
    });
    assert_eq!(list, expect);
}

#[test]
fn progress_counts_all_images() {
    let folder = tempfile::tempdir().unwrap();
    let mut counts = Vec::new();
    let spec = GenerateSpec { cubes: SMALL, forms: forms(&[Form::Dat]), ..GenerateSpec::default() };
    generate(&folder.path().join("data"), &spec, &mut |n| counts.push(n)).unwrap();
    assert_eq!(counts, [1, 2, 3, 4, 5]);
}

#[test]
fn what_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("mine");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("notes"), "keep").unwrap();
    let error = write(&place, forms(&FORMS)).unwrap_err();
    assert!(error.to_string().contains("exists already") && !error.is_usage(), "{error}");
    let kept: Vec<PathBuf> = files(folder.path()).into_keys().collect();
    assert_eq!(kept, [PathBuf::from("mine/notes")]);
}

#[test]
fn wrong_settings_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for cubes in [
        CubeSpec { n_images: 0, ..SMALL },
        CubeSpec { shape: [18, 0, 20], ..SMALL },
        CubeSpec { shape: [16_384, 16_384, 100], ..SMALL },
        CubeSpec { n_classes: 256, ..SMALL },
        CubeSpec { n_domains: 27, ..SMALL },
        CubeSpec { noise: f64::NAN, ..SMALL },
    ] {
        let spec = GenerateSpec { cubes, ..GenerateSpec::default() };
        assert!(generate(&data, &spec, &mut |_| {}).unwrap_err().is_usage(), "{cubes:?}");
    }
    for forms in [forms(&[]), FormSpec { level: 10, ..forms(&FORMS) }] {
        assert!(write(&data, forms).unwrap_err().is_usage());
    }
    for place in ["s3://bucket/store", "/", ".."] {
        assert!(write(Path::new(place), forms(&FORMS)).unwrap_err().is_usage(), "{place}");
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    let folder = tempfile::tempdir().unwrap();
    let interrupted = Some(&INTERRUPTED);
    let spec = GenerateSpec { cubes: SMALL, forms: forms(&FORMS), n_threads: 2, interrupted };
    let progress = &mut |_| INTERRUPTED.store(true, Ordering::Relaxed);
    let error = generate(&folder.path().join("data"), &spec, progress).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_failed_write_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = GenerateSpec {
        cubes: SMALL,
        forms: forms(&[Form::Raw16]),
        n_threads: 1,
        interrupted: None,
    };
    // After the first image, a folder is in the way of a later file. No thread is more than an
    // image ahead.
    let name = "data.partial/experiment/raw16/P002_000005.blosc";
    let in_the_way = folder.path().join(name);
    let error = generate(&folder.path().join("data"), &spec, &mut |n_done| {
        if n_done == 1 {
            fs::create_dir(&in_the_way).unwrap();
        }
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
