//! `preprocess` writes what `generate` writes, does what is left to do, and removes nothing that it
//! has not written.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use cubes::preprocess::{PreprocessSpec, preprocess};
use cubes::{Error, Form, FormSpec, Normalization};

use crate::{assert_same, convert, files, forms, write};

const MADE: [Form; 3] = [Form::Raw32, Form::Raw16, Form::Zarr];
const ALL: [Form; 4] = Form::ALL;

#[test]
fn converted_cubes_equal_generated_ones() {
    let folder = tempfile::tempdir().unwrap();
    for normalization in [Normalization::None, Normalization::L1, Normalization::L2] {
        let path = |name| folder.path().join(format!("{name}-{normalization:?}"));
        let (converted, expect) = (path("converted"), path("expect"));
        let with = |these: &[Form]| FormSpec { normalization, ..forms(these) };
        write(&converted, with(&[Form::Dat])).unwrap();
        let report = convert(&converted, with(&MADE)).unwrap();
        let generated = write(&expect, with(&ALL)).unwrap();
        assert_same(&converted, &expect);
        assert_eq!(report.precision, generated.precision);
        assert_eq!([report.n_written, report.n_kept], [5, 0]);
        assert_eq!(report.bytes_in, 5 * (12 + 4 * 18 * 24 * 20));
        assert!(report.leftovers.is_empty() && report.skipped.is_empty());
    }
}

#[test]
fn a_repeated_run_writes_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data, forms(&ALL)).unwrap();
    let expect = files(&data);
    let report = convert(&data, forms(&MADE)).unwrap();
    assert_eq!((report.n_written, report.n_kept, report.bytes_in), (0, 5, 0));
    assert_eq!(report.precision, None);

    // As a killed run leaves it: some files are missing, and some were not finished.
    for name in ["raw32/P001_000001.blosc", "raw16/P001_000002.blosc"] {
        fs::remove_file(data.join(name)).unwrap();
    }
    fs::remove_file(data.join("cubes.zarr/labels/c/1/0/0")).unwrap();
    for form in ["raw16", "cubes.zarr"] {
        let unfinished = data.join(form).join("unfinished.partial");
        fs::create_dir_all(unfinished.join("experiment/below")).unwrap();
        fs::write(unfinished.join("experiment/P001_000002.blosc"), "half").unwrap();
        fs::write(unfinished.join("somafeed-unfinished"), marker(folder.path())).unwrap();
    }
    // Nothing of the user's is touched, whatever its name.
    let notes = ["raw16/P001_000002.blosc.partial", "raw16/notes", "unfinished"];
    for name in notes {
        fs::write(data.join(name), "mine").unwrap();
    }
    let error = convert(&data, forms(&MADE)).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    fs::remove_file(data.join("unfinished")).unwrap();
    let report = convert(&data, forms(&MADE)).unwrap();
    assert_eq!([report.n_written, report.n_kept], [2, 3]);
    assert_eq!(report.leftovers.len(), 2);
    for name in &notes[..2] {
        assert_eq!(fs::read(data.join(name)).unwrap(), b"mine");
        fs::remove_file(data.join(name)).unwrap();
    }
    assert!(files(&data) == expect);
    assert!(!data.join("raw16/unfinished.partial").exists());
}

/// The text in the marker of an unfinished run, copied from one that is at work.
fn marker(folder: &std::path::Path) -> Vec<u8> {
    let place = folder.join("claimed");
    let claim =
        storage::Destination::claim(place.to_str().unwrap(), storage::Existing::Keep, &[]).unwrap();
    let text = fs::read(folder.join("claimed.partial/somafeed-unfinished")).unwrap();
    drop(claim);
    text
}

#[test]
fn other_settings_do_not_mix_with_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data, forms(&[Form::Dat, Form::Raw16, Form::Zarr])).unwrap();
    let before = files(&data);
    let l1 = |these: &[Form]| FormSpec { normalization: Normalization::L1, ..forms(these) };
    let other_level = FormSpec { level: 2, ..forms(&[Form::Zarr]) };
    for other in [l1(&[Form::Raw32, Form::Raw16]), l1(&[Form::Zarr]), other_level] {
        let error = convert(&data, other).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("or remove that folder"), "{error}");
    }
    assert!(files(&data) == before);
    fs::remove_dir_all(data.join("raw16")).unwrap();
    convert(&data, l1(&[Form::Raw16])).unwrap();

    // Files of unknown settings are not mixed with ours either.
    fs::create_dir(data.join("raw32")).unwrap();
    fs::write(data.join("raw32/P001_000003.blosc"), "of htc").unwrap();
    let error = convert(&data, forms(&[Form::Raw32])).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("does not say"), "{error}");
    assert_eq!(fs::read(data.join("raw32/P001_000003.blosc")).unwrap(), b"of htc");
}

#[test]
fn files_below_any_folder_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, found) = (folder.path().join("data"), folder.path().join("found"));
    write(&data, forms(&[Form::Dat, Form::Raw16])).unwrap();
    for name in ["P001_000002", "P001_000001"] {
        let below = found.join("subjects").join(name);
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("notes.txt"), "").unwrap();
        let file = format!("{name}_SpecCube.dat");
        fs::copy(data.join("dat").join(&file), below.join(file)).unwrap();
    }
    let report = convert(&found, forms(&[Form::Raw16, Form::Zarr])).unwrap();
    assert_eq!(report.n_written, 2);
    let text = fs::read(found.join("images.json")).unwrap();
    let list: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(list["shape"], serde_json::json!([18, 24, 20]));
    let image = |name: &str| serde_json::json!({ "name": name, "domain": "", "subject": "" });
    assert_eq!(list["images"], serde_json::json!([image("P001_000001"), image("P001_000002")]));
    let read = |folder: &std::path::Path| fs::read(folder.join("raw16/P001_000002.blosc")).unwrap();
    assert!(read(&found) == read(&data));
    // No segmentation was found, so there are no labels.
    assert!(found.join("cubes.zarr/features/c/1/0/0/0").is_file());
    assert!(!found.join("cubes.zarr/labels").exists());
    assert_eq!(convert(&found, forms(&[Form::Raw16])).unwrap().n_kept, 2);

    let twice = found.join("P001_000001_SpecCube.dat");
    fs::write(&twice, "").unwrap();
    let error = convert(&found, forms(&[Form::Raw32])).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("have the same name"), "{cause}");
}

#[test]
fn an_interrupted_run_keeps_what_is_finished() {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data, forms(&[Form::Dat])).unwrap();
    let spec = PreprocessSpec {
        forms: forms(&[Form::Raw16]),
        n_threads: 1,
        interrupted: Some(&INTERRUPTED),
        ..PreprocessSpec::default()
    };
    let error = preprocess(&data, &spec, &mut |n_images| assert_eq!(n_images, 5), &mut |_| {
        INTERRUPTED.store(true, Ordering::Relaxed);
    });
    assert!(matches!(error, Err(Error::Interrupted)));
    let n_files = fs::read_dir(data.join("raw16")).unwrap().count();
    assert!((1..=2).contains(&n_files), "{n_files}");
    let report = convert(&data, forms(&[Form::Raw16])).unwrap();
    assert_eq!([report.n_kept, report.n_written], [n_files as u64, 5 - n_files as u64]);
}
