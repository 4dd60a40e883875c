//! Compares the loader with tiledbsoma's own query: cells, obs, var and values, in every form of
//! blocks and batches, with transforms compared to scanpy's.

mod answer;
mod compare;
#[expect(dead_code, reason = "another crate's tests need the rest of it")]
#[path = "../../../soma-io/tests/support/described.rs"]
mod described;
#[path = "../../../soma-io/tests/support/python.rs"]
mod python;
mod selection;

use std::path::{Path, PathBuf};

use loader::{Dataset, DatasetError, GeneJoin, ReaderChoice};
use soma_io::{Experiment, OpenOptions};

use answer::Answer;
use selection::Selection;

/// Runs each selection in tiledbsoma, then compares the loader's batches.
#[track_caller]
#[expect(clippy::print_stderr, reason = "reports the precision of the transforms")]
fn check(python: &Path, uri: &Path, selections: &[Selection]) -> Experiment {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("selections.json");
    let json: Vec<_> = selections.iter().map(Selection::json).collect();
    std::fs::write(&list, serde_json::to_string(&json).unwrap()).unwrap();
    let paths = [uri, &list, folder.path()].map(|path| path.to_str().unwrap());
    let answers = python::run(python, "query_experiment.py", &paths);
    let experiment = Experiment::open(paths[0], &OpenOptions::default()).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), selections.len());
    let mut n_unequal = 0;
    for (idx, selection) in selections.iter().enumerate() {
        let answer = Answer::read(
            &answers[idx],
            &folder.path().join(idx.to_string()),
            selection.transforms.len(),
        );
        for reader in [ReaderChoice::Auto, ReaderChoice::Libtiledb] {
            let dataset = Dataset::from_experiment(&experiment, &selection.spec(reader)).unwrap();
            n_unequal += compare::check(&dataset, selection, &answer, reader);
        }
    }
    eprintln!(
        "{} selections are the same; {n_unequal} transformed values differ in the last bit",
        selections.len()
    );
    experiment
}

#[test]
fn an_experiment_of_tiledbsomas_defaults() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment");
    let experiment = check(&python, &uri, &selection::of_defaults());
    what_is_not_there_is_refused(&experiment);
}

/// Names that the experiment lacks, and a dense layer with fewer rows than there are cells.
fn what_is_not_there_is_refused(experiment: &Experiment) {
    let spec = || selection::of_defaults()[0].spec(ReaderChoice::Auto);
    let mut dense = spec();
    dense.layer = Some("dense".into());
    let mut obs = spec();
    obs.obs_columns.push("age".into());
    let mut var = spec();
    var.var_columns.push("symbol".into());
    let mut totals = spec();
    totals.totals = Some("raw_sum".into());
    let mut texts = spec();
    texts.totals = Some("text".into());
    for (spec, expect) in [
        (dense, "but X has 700 rows"),
        (obs, "age"),
        (var, "symbol"),
        (totals, "raw_sum"),
        (texts, "totals are numbers"),
    ] {
        let error = Dataset::from_experiment(experiment, &spec).unwrap_err();
        assert!(causes(&error).contains(expect), "{}", causes(&error));
    }
    // The experiment twice, aligned by a column with repeated values.
    let twice = [(experiment, spec()), (experiment, spec())];
    let error = Dataset::from_experiments(&twice, "kind", GeneJoin::Union).unwrap_err();
    assert!(matches!(error, DatasetError::GeneTwice { .. }), "{error}");
}

/// An error's message with all its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn real_counts() {
    let Some(python) = python::interpreter() else { return };
    let real =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/visium-2898x19465/soma");
    check(&python, &real, &selection::of_visium());
}
