//! A store appears whole or not at all, and does not depend on the threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fields::Error;
use fields::generate::{Codec, FieldSpec, GenerateSpec, Layout, ZarrVersion, generate};

use crate::{SMALL, write};

/// The files below a folder, with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, bytes)| (name.join(below), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let v2 = Layout { zarr: ZarrVersion::V2, chunk_channels: Some(8), ..Layout::default() };
    let sharded = Layout { shard_samples: Some(2), codec: Codec::Zstd(1), ..Layout::default() };
    for (idx, layout) in [Layout::default(), v2, sharded].into_iter().enumerate() {
        let written = |n_threads| {
            let store = folder.path().join(format!("{idx}-{n_threads}"));
            let spec = GenerateSpec {
                fields: SMALL,
                layout: layout.clone(),
                n_threads,
                interrupted: None,
            };
            generate(&store, &spec, &mut |_| {}).unwrap();
            files(&store)
        };
        let alone = written(1);
        assert!(alone.len() > 10);
        assert!(alone == written(3), "{layout:?}");
    }
}

#[test]
fn samples_do_not_depend_on_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = |n_samples: u64| {
        let store = folder.path().join(n_samples.to_string());
        let fields = FieldSpec { n_samples, ..SMALL };
        generate(&store, &GenerateSpec { fields, ..GenerateSpec::default() }, &mut |_| {}).unwrap();
        fs::read(store.join("inputs/c/1/0/0/0")).unwrap()
    };
    assert!(chunk(2) == chunk(4));
}

#[test]
fn progress_counts_all_samples() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout { chunk_samples: 2, ..Layout::default() };
    let spec = GenerateSpec { fields: SMALL, layout, n_threads: 2, interrupted: None };
    let mut counts = Vec::new();
    generate(&folder.path().join("store"), &spec, &mut |n| counts.push(n)).unwrap();
    assert_eq!(counts.len(), 3);
    assert!(counts.is_sorted());
    assert_eq!(counts.last(), Some(&5));
}

#[test]
fn what_exists_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("mine");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("notes"), "keep").unwrap();
    let error = write(&place, Layout::default()).unwrap_err();
    assert!(error.to_string().contains("exists already") && !error.is_usage(), "{error}");

    // Neither is a folder with the temporary name whose owner is unknown.
    let unknown = folder.path().join("new.partial");
    fs::create_dir(&unknown).unwrap();
    fs::write(unknown.join("notes"), "keep").unwrap();
    write(&folder.path().join("new"), Layout::default()).unwrap_err();

    let kept: Vec<PathBuf> = files(folder.path()).into_keys().collect();
    assert_eq!(kept, [PathBuf::from("mine/notes"), PathBuf::from("new.partial/notes")]);
}

#[test]
fn wrong_settings_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let v2 = Layout { zarr: ZarrVersion::V2, shard_samples: Some(2), ..Layout::default() };
    assert!(write(&store, v2).unwrap_err().is_usage());
    let fields = FieldSpec { n_lon: 0, ..SMALL };
    let spec = GenerateSpec { fields, ..GenerateSpec::default() };
    assert!(generate(&store, &spec, &mut |_| {}).unwrap_err().is_usage());
    for place in ["s3://bucket/store", "/", ".."] {
        assert!(write(Path::new(place), Layout::default()).unwrap_err().is_usage(), "{place}");
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    let folder = tempfile::tempdir().unwrap();
    let spec =
        GenerateSpec { fields: SMALL, interrupted: Some(&INTERRUPTED), ..GenerateSpec::default() };
    let progress = &mut |_| INTERRUPTED.store(true, Ordering::Relaxed);
    let error = generate(&folder.path().join("store"), &spec, progress).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_failed_write_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let spec = GenerateSpec { fields: SMALL, n_threads: 1, ..GenerateSpec::default() };
    // After the first sample, a file is in the way of the folder of a later one. No thread is more
    // than a sample ahead.
    let in_the_way = folder.path().join("store.partial/experiment/inputs/c/4");
    let mut placed = false;
    let error = generate(&store, &spec, &mut |_| {
        if !placed {
            fs::write(&in_the_way, "").unwrap();
            placed = true;
        }
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains("chunk [4, 0, 0, 0] of inputs"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
