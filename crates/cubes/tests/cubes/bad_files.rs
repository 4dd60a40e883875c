//! Files that cannot be used end a conversion with their names, or are skipped and counted.

use std::fs;
use std::path::{Path, PathBuf};

use cubes::Form;
use cubes::preprocess::{PreprocessReport, PreprocessSpec, preprocess};

use crate::{convert, forms, write};

const BAD: &str = "P001_000003";

/// Writes a data set with a file that is damaged by `damage`.
fn damaged(folder: &Path, file: &str, damage: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let data = folder.join("data");
    write(&data, forms(&[Form::Dat])).unwrap();
    let path = data.join(file);
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    data
}

/// The chain of an error's messages.
fn messages(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn skipping(data: &Path, these: &[Form]) -> PreprocessReport {
    let spec = PreprocessSpec { forms: forms(these), skip_bad: true, ..PreprocessSpec::default() };
    preprocess(data, &spec, &mut |_| {}, &mut |_| {}).unwrap()
}

#[track_caller]
fn check(file: &str, expect: &str, damage: impl FnOnce(&mut Vec<u8>)) {
    let folder = tempfile::tempdir().unwrap();
    let data = damaged(folder.path(), file, damage);
    let these = [Form::Raw16, Form::Zarr];
    let error = messages(&convert(&data, forms(&these)).unwrap_err());
    assert!(error.contains(file) && error.contains(expect), "{error}");

    let report = skipping(&data, &these);
    assert_eq!(report.n_written + report.n_kept, 4);
    assert_eq!(report.skipped.len(), 1);
    let error = messages(&report.skipped[0]);
    assert!(error.contains(file) && error.contains(expect), "{error}");
    assert!(data.join("raw16/P001_000004.blosc").is_file());
    assert!(!data.join("raw16").join(format!("{BAD}.blosc")).exists());
    assert!(!data.join("cubes.zarr/features/c/2").exists());
}

#[test]
fn damaged_cubes_are_named() {
    let file = "dat/P001_000003_SpecCube.dat";
    check(file, "", |bytes| bytes.truncate(1_000));
    check(file, "", |bytes| bytes.truncate(5));
    check(file, "", Vec::clear);
    check(file, "", |bytes| bytes.push(0));
    check(file, "shape is [24, 18, 20]; expected [18, 24, 20]", |bytes| {
        bytes[3] = 18;
        bytes[7] = 24;
    });
    check(file, "exceeds 16 bits", |bytes| bytes[12..16].copy_from_slice(&1e6_f32.to_be_bytes()));
}

#[test]
fn damaged_segmentations_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("segmentations/{BAD}.blosc");
    let data = damaged(folder.path(), &file, |bytes| bytes.truncate(40));
    let error = messages(&convert(&data, forms(&[Form::Zarr])).unwrap_err());
    assert!(error.contains(&file), "{error}");
    // Other forms have no labels.
    assert_eq!(convert(&data, forms(&[Form::Raw16])).unwrap().n_written, 5);
    assert_eq!(skipping(&data, &[Form::Zarr]).skipped.len(), 1);
}

#[test]
fn missing_cubes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("{BAD}_SpecCube.dat");
    let data = damaged(folder.path(), &format!("dat/{file}"), |_| {});
    fs::remove_file(data.join("dat").join(&file)).unwrap();
    let error = messages(&convert(&data, forms(&[Form::Raw32])).unwrap_err());
    assert!(error.contains(&file), "{error}");
    assert_eq!(skipping(&data, &[Form::Raw32]).skipped.len(), 1);
}

#[test]
fn without_cubes_there_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for data in [folder.path().to_owned(), folder.path().join("absent")] {
        let error = messages(&convert(&data, forms(&[Form::Raw16])).unwrap_err());
        assert!(error.contains(&data.display().to_string()), "{error}");
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    // The first good cube has the shape of the data set; with a bad one before, if it is skipped.
    let data = damaged(folder.path(), "dat/P001_000001_SpecCube.dat", |bytes| bytes.truncate(9));
    fs::remove_file(data.join("images.json")).unwrap();
    let error = messages(&convert(&data, forms(&[Form::Raw16])).unwrap_err());
    assert!(error.contains("P001_000001_SpecCube.dat"), "{error}");
    assert_eq!(skipping(&data, &[Form::Raw16]).skipped.len(), 1);
}
