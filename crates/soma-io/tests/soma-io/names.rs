//! Which measurement and layer are meant if none is named.

use soma_io::{Error, Experiment, ExperimentWriter, OpenOptions};

use crate::small::Small;

/// An experiment with one measurement of this name, whose X has these layers.
fn experiment(folder: &tempfile::TempDir, measurement: &str, layers: &[&str]) -> Experiment {
    let uri = folder.path().join(format!("{measurement}-{}", layers.join("-")));
    let uri = uri.to_str().unwrap();
    let mut small = Small::new(8, 6, 2);
    measurement.clone_into(&mut small.spec.measurement);
    small.spec.layers = layers.iter().map(|layer| (*layer).to_owned()).collect();
    small.write(uri).unwrap();
    Experiment::open(uri, &OpenOptions::default()).unwrap()
}

#[test]
fn the_usual_layer_or_the_only_one_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    for (layers, expected) in [
        (&["raw"][..], "raw"),
        (&["counts"], "counts"),
        (&["counts", "data", "log"], "data"),
        (&["data", "raw"], "raw"),
    ] {
        for measurement in ["RNA", "ATAC"] {
            let experiment = experiment(&folder, measurement, layers);
            let names = experiment.names(None, None).unwrap();
            assert_eq!(names, (measurement.to_owned(), expected.to_owned()));
            let named = experiment.names(Some(measurement), Some("other")).unwrap();
            assert_eq!(named, (measurement.to_owned(), "other".to_owned()));
        }
    }
}

#[test]
fn several_layers_are_listed_with_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = experiment(&folder, "RNA", &["counts", "log"]);
    let error = experiment.names(None, None).unwrap_err();
    assert!(matches!(error, Error::Unnamed { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["ms/RNA", "\"raw\" or \"data\"", "counts, log", "--layer", "layer_name="] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn several_measurements_are_listed_with_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    for (first, expected) in [("RNA", Some("RNA")), ("ATAC", None)] {
        let uri = folder.path().join(first);
        let uri = uri.to_str().unwrap();
        let mut small = Small::new(8, 6, 2);
        small.spec.measurement = first.to_owned();
        let mut writer = ExperimentWriter::create(uri, small.spec.clone()).unwrap();
        small.write_rows(&mut writer).unwrap();
        let layers = ["counts".to_owned()];
        let other = writer.add_measurement("protein", 6, &small.spec.var, &layers).unwrap();
        other.write_var(&small.var).unwrap();
        let x = &small.x;
        other.write_x("counts", &x.row_offsets, &x.columns, &x.values).unwrap();
        writer.finish().unwrap();
        let experiment = Experiment::open(uri, &OpenOptions::default()).unwrap();
        let found = experiment.default_measurement();
        if let Some(expected) = expected {
            assert_eq!(found.unwrap(), expected);
        } else {
            let text = found.unwrap_err().to_string();
            for part in
                ["measurement \"RNA\"", "ATAC, protein", "--measurement", "measurement_name="]
            {
                assert!(text.contains(part), "{text}");
            }
        }
        let named = experiment.names(Some("protein"), None).unwrap();
        assert_eq!(named, ("protein".to_owned(), "counts".to_owned()));
    }
}
