//! Coordinates of batches: those that xarray wrote, those that lack, and damaged ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, CoordinateValues, Coordinates, Error, Indices, SampleSpec, Selection,
    Variable,
};
use pipeline::Pipeline;

use crate::{chain, in_order, open_with};

fn data(store: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(store)
}

fn batches(samples: ArraySamples) -> Vec<ArrayBatch> {
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    pipeline.epoch(0).unwrap().map(Result::unwrap).collect()
}

/// The batches of a variable named `x`.
fn batches_of(folder: &Path, variable: Variable) -> Vec<ArrayBatch> {
    batches(open_with(folder, &SampleSpec::new([variable.named("x")])).unwrap())
}

fn coordinates<'a>(batch: &'a ArrayBatch, dimension: &str) -> &'a Coordinates {
    batch.variable("x").unwrap().coordinates(dimension).unwrap()
}

fn integers(coordinates: &Coordinates) -> &[i64] {
    coordinates.integers().unwrap()
}

#[test]
fn batches_have_the_coordinates_that_xarray_wrote() {
    for store in ["xarray-v2", "xarray-v3"] {
        let found = batches_of(&data(store), Variable::new("t").steps([0, 2]));
        let lat = coordinates(&found[0], "lat");
        assert_eq!(lat.floats().unwrap(), [-60.0, -20.0, 20.0, 60.0], "{store}");
        assert_eq!((lat.len(), lat.dimension(), lat.is_empty()), (4, "lat", false));
        let lon = coordinates(&found[0], "lon");
        assert_eq!(lon.floats().unwrap(), [0.0, 72.0, 144.0, 216.0, 288.0], "{store}");
        assert!(found[0].variable("x").unwrap().coordinates("time").is_none());
        assert!(found[0].variable("x").unwrap().coordinates("depth").is_none());

        // Six steps make four samples, in batches of three.
        let times: Vec<Coordinates> = found
            .iter()
            .map(|batch| batch.variable("x").unwrap().sample_coordinates().unwrap())
            .collect();
        assert_eq!(integers(&times[0]), [0, 12, 6, 18, 12, 24], "{store}");
        assert_eq!(integers(&times[1]), [18, 30], "{store}");
        assert_eq!(times[0].attribute("units"), Some("hours since 2026-01-01 00:00:00"));
        assert_eq!(times[0].attribute("calendar"), Some("proleptic_gregorian"));
        assert!(!times[0].attributes().contains_key("_ARRAY_DIMENSIONS"), "{store}");
        // All batches share them.
        assert!(std::ptr::eq(lat, coordinates(&found[1], "lat")));
    }
}

#[test]
fn coordinates_are_cut_to_the_selection() {
    for store in ["xarray-v2", "xarray-v3"] {
        let variable = Variable::new("u")
            .select("lat", Indices::Range(1..3))
            .select("lon", Indices::List(vec![0, 2, 4]));
        let spec = SampleSpec { start: Some(1), stride: 2, ..SampleSpec::new([variable]) };
        let found = batches(open_with(&data(store), &spec).unwrap());
        let values = found[0].variable("u").unwrap();
        assert_eq!(values.coordinates("lat").unwrap().floats().unwrap(), [-20.0, 20.0]);
        assert_eq!(values.coordinates("lon").unwrap().floats().unwrap(), [0.0, 144.0, 288.0]);
        assert_eq!(integers(&values.sample_coordinates().unwrap()), [6, 18, 30]);
    }
}

#[test]
fn strings_and_packed_numbers_are_coordinates_and_can_be_selected() {
    for store in ["labels-v2", "labels-v3"] {
        let folder = data(store);
        assert_eq!(open_labels(&folder).unwrap().skipped_coordinates(), [], "{store}");
        let found = batches_of(&folder, Variable::new("weather/t"));
        let channels = coordinates(&found[0], "channel");
        assert_eq!(channels.strings().unwrap(), ["t2m", "u10", "v10", "précipitation"], "{store}");
        assert_eq!(channels.attribute("long_name"), Some("name of the channel"));
        assert_eq!(coordinates(&found[0], "member").strings().unwrap(), ["control", "first"]);
        let levels = coordinates(&found[0], "level");
        assert_eq!(*levels.values(), CoordinateValues::Floats(vec![1000.0, 850.0, 500.5]));
        let times = found[0].variable("x").unwrap().sample_coordinates().unwrap();
        assert_eq!(integers(&times), [0, 6, 12], "{store}");

        let variable = Variable::new("weather/t")
            .select("channel", ["u10", "précipitation"])
            .select("level", Selection::labels([850.0]))
            .select("member", Indices::Range(1..2));
        let found = batches_of(&folder, variable);
        let values = found[0].variable("x").unwrap();
        assert_eq!(values.shape(), [3, 2, 1, 1]);
        assert_eq!(values.values::<f64>().unwrap()[..4], [9.0, 21.0, 33.0, 45.0], "{store}");
        assert_eq!(coordinates(&found[0], "channel").strings().unwrap(), ["u10", "précipitation"]);
        assert_eq!(coordinates(&found[0], "level").floats().unwrap(), [850.0]);
    }
}

#[test]
fn labels_come_in_the_order_in_which_they_are_given() {
    let channels = ["v10", "t2m", "v10"];
    let variable = Variable::new("weather/t").select("channel", channels);
    let found = batches_of(&data("labels-v3"), variable);
    assert_eq!(coordinates(&found[0], "channel").strings().unwrap(), channels);
}

#[test]
fn labels_that_cannot_be_selected_are_named() {
    let refused = |folder: &str, variable: Variable, words: &[&str]| {
        let error = open_with(&data(folder), &SampleSpec::new([variable])).unwrap_err();
        assert!(matches!(error, Error::Select { .. }), "{error}");
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let t = || Variable::new("weather/t");
    refused("labels-v3", t().select("channel", ["q"]), &["\"q\"", "\"t2m\", \"u10\""]);
    refused(
        "labels-v3",
        t().select("channel", Selection::labels([1])),
        &["no coordinate equals 1"],
    );
    refused("labels-v3", t().select("channel", Vec::<String>::new()), &["no index"]);
    refused("labels-v3", t().select("time", ["t2m"]), &["stride"]);
    refused("v3-zstd", Variable::new("").select(1, ["t2m"]), &["no coordinates"]);
}

#[test]
fn a_store_without_coordinates_has_none() {
    for store in ["v2-blosc", "v3-zstd"] {
        let folder = data("");
        let found = batches_of(&folder, Variable::new(store));
        let values = found[0].variable("x").unwrap();
        assert!(values.coordinates("").is_none() && values.sample_coordinates().is_none());
    }
    // Not asked for, unless a selection needs them.
    let variables = [
        Variable::new("weather/t").named("all"),
        Variable::new("weather/t").named("some").select("channel", ["t2m"]),
    ];
    let spec = SampleSpec { coordinates: false, ..SampleSpec::new(variables) };
    let found = batches(open_with(&data("labels-v3"), &spec).unwrap());
    let [all, some] = ["all", "some"].map(|name| found[0].variable(name).unwrap());
    assert!(all.coordinates("channel").is_none() && all.sample_coordinates().is_none());
    assert_eq!(some.coordinates("channel").unwrap().strings().unwrap(), ["t2m"]);
}

/// A copy of `labels-v3`, to be changed.
fn copy() -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
            if from.is_dir() {
                copy(&from, &to.join(name));
            } else {
                fs::copy(&from, to.join(name)).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&data("labels-v3"), folder.path());
    folder
}

fn change_metadata(file: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let mut metadata = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    change(&mut metadata);
    fs::write(file, metadata.to_string()).unwrap();
}

fn open_labels(folder: &Path) -> Result<ArraySamples, Error> {
    open_with(folder, &SampleSpec::new([Variable::new("weather/t").named("x")]))
}

#[test]
fn damaged_coordinates_are_named() {
    for (file, bytes) in [
        ("level/c/0", b"damaged".as_slice()),
        ("time/c/1", b""),
        ("channel/c/0", b"damaged"),
        ("member/c/0", b"damaged"),
        ("level/zarr.json", b"{"),
    ] {
        let folder = copy();
        let path = folder.path().join("weather").join(file);
        assert!(path.is_file(), "{file}");
        fs::write(&path, bytes).unwrap();
        let error = open_labels(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Coordinates { .. }), "{file}: {error}");
        let text = chain(&error);
        let array = format!("weather/{}", file.split('/').next().unwrap());
        assert!(text.contains(&array) && text.contains("SampleSpec::coordinates"), "{text}");

        let spec = SampleSpec::new([Variable::new("weather/t").named("x")]);
        open_with(folder.path(), &SampleSpec { coordinates: false, ..spec }).unwrap();
    }
}

#[test]
fn coordinates_of_another_length_are_an_error() {
    let folder = copy();
    change_metadata(&folder.path().join("weather/level/zarr.json"), |metadata| {
        metadata["shape"] = serde_json::json!([2]);
    });
    let text = chain(&open_labels(folder.path()).unwrap_err());
    assert!(text.contains("weather/level") && text.contains("2 values"), "{text}");
}

#[test]
fn a_chunk_of_coordinates_that_is_not_stored_reads_as_the_fill_value() {
    let folder = copy();
    fs::remove_file(folder.path().join("weather/time/c/0")).unwrap();
    let found = batches(open_labels(folder.path()).unwrap());
    let times = found[0].variable("x").unwrap().sample_coordinates().unwrap();
    assert_eq!(integers(&times), [0, 0, 12]);
}

#[test]
fn arrays_that_are_no_coordinates_are_skipped_with_the_reason() {
    let changes: [(&str, serde_json::Value, &str); 4] = [
        ("dimension_names", serde_json::json!(["height"]), "dimension height"),
        ("data_type", serde_json::json!("complex64"), "not supported"),
        ("shape", serde_json::json!([1_u64 << 40]), "values, more than"),
        ("codecs", serde_json::json!([{"name": "unknown"}]), "not supported"),
    ];
    for (key, value, word) in changes {
        let folder = copy();
        change_metadata(&folder.path().join("weather/level/zarr.json"), |metadata| {
            metadata[key] = value;
        });
        let samples = open_labels(folder.path()).unwrap();
        let [skipped] = samples.skipped_coordinates() else { panic!("{key}") };
        let text = skipped.to_string();
        assert!(text.contains("weather/level") && text.contains(word), "{text}");
        let found = batches(samples);
        assert!(found[0].variable("x").unwrap().coordinates("level").is_none());

        let selected = Variable::new("weather/t").select("level", Selection::labels([850.0]));
        let text = open_with(folder.path(), &SampleSpec::new([selected])).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    }
    // A group with the dimension's name is no array.
    let folder = copy();
    let level = folder.path().join("weather/level");
    fs::write(level.join("zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#).unwrap();
    assert!(open_labels(folder.path()).unwrap().skipped_coordinates().is_empty());
}

#[test]
fn the_fingerprint_does_not_depend_on_coordinates() {
    use pipeline::Source as _;
    let spec = SampleSpec::new([Variable::new("weather/t").select("channel", ["t2m", "u10"])]);
    let by_index = Variable::new("weather/t").select("channel", Indices::List(vec![0, 1]));
    let without = SampleSpec { coordinates: false, ..SampleSpec::new([by_index]) };
    let [one, other] = [spec, without].map(|spec| open_with(&data("labels-v3"), &spec).unwrap());
    assert_eq!(one.fingerprint(), other.fingerprint());
}
