//! Value filters compared with tiledbsoma: the same rows of an obs with a column of every kind, or
//! both an error.

use std::path::Path;

use serde_json::Value;
use soma_io::{DataFrame, Experiment, OpenOptions, ValueFilter};

use crate::filter_list::{SAME, TILEDBSOMA_FAILS, TILEDBSOMA_IS_WRONG};
use crate::filter_text::Draw;
use crate::python;

const N_DRAWN: u64 = 400;

/// tiledbsoma's result for a filter.
#[derive(Debug, PartialEq)]
enum Answer {
    Joinids(Vec<u64>),
    Error(String),
    Crash,
}

fn answer(value: &Value) -> Answer {
    if let Some(joinids) = value["joinids"].as_array() {
        Answer::Joinids(joinids.iter().map(|joinid| joinid.as_u64().unwrap()).collect())
    } else if let Some(error) = value["error"].as_str() {
        Answer::Error(error.to_owned())
    } else {
        Answer::Crash
    }
}

fn joinids(obs: &DataFrame, text: &str) -> Result<Vec<u64>, soma_io::Error> {
    obs.joinids(&ValueFilter::parse(text)?)
}

/// Runs all filters with tiledbsoma, on an obs made for it.
fn run(python: &Path, folder: &Path, filters: &[String]) -> (DataFrame, Vec<Answer>) {
    let (uri, list) = (folder.join("experiment"), folder.join("filters.json"));
    std::fs::write(&list, serde_json::to_string(filters).unwrap()).unwrap();
    let arguments = [uri.to_str().unwrap(), list.to_str().unwrap()];
    let found = python::run(python, "run_filters.py", &arguments);
    let obs = Experiment::open(arguments[0], &OpenOptions::default()).unwrap().obs().unwrap();
    (obs, found.as_array().unwrap().iter().map(answer).collect())
}

#[test]
fn tiledbsoma_gives_the_same_rows() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let filters: Vec<String> = SAME.iter().map(|text| (*text).to_owned()).collect();
    let (obs, answers) = run(&python, folder.path(), &filters);
    let mut different = Vec::new();
    let (mut n_rows, mut n_errors) = (0, 0);
    for (text, expected) in filters.iter().zip(&answers) {
        match (joinids(&obs, text), expected) {
            (Ok(found), Answer::Joinids(expected)) if found == *expected => n_rows += 1,
            (Err(_), Answer::Error(_)) => n_errors += 1,
            (found, expected) => different.push(format!("{text}\n  {found:?}\n  {expected:?}")),
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{n_rows} filters give the same rows, {n_errors} are refused by both");
    assert!(n_rows > 150 && n_errors > 90, "{n_rows} {n_errors}");
}

#[test]
fn where_tiledbsoma_is_wrong() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let filters: Vec<String> =
        TILEDBSOMA_IS_WRONG.iter().map(|(text, _)| (*text).to_owned()).collect();
    let (obs, answers) = run(&python, folder.path(), &filters);
    for ((text, reason), theirs) in TILEDBSOMA_IS_WRONG.iter().zip(&answers) {
        let Answer::Joinids(theirs) = theirs else { panic!("{text} ({reason}): {theirs:?}") };
        match joinids(&obs, text) {
            Ok(ours) => assert_ne!(ours, *theirs, "{text} ({reason})"),
            Err(error) => assert!(error.to_string().contains("character"), "{error}"),
        }
    }
}

#[test]
fn where_tiledbsoma_fails() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let filters: Vec<String> = TILEDBSOMA_FAILS
        .iter()
        .flat_map(|(text, _, same)| [(*text).to_owned(), (*same).to_owned()])
        .collect();
    let (obs, answers) = run(&python, folder.path(), &filters);
    for ((text, reason, _), answers) in TILEDBSOMA_FAILS.iter().zip(answers.chunks(2)) {
        assert!(!matches!(answers[0], Answer::Joinids(_)), "{text} ({reason})");
        let crashes = answers[0] == Answer::Crash;
        assert_eq!(crashes, reason.starts_with("crashes"), "{text} ({reason}): {:?}", answers[0]);
        assert_eq!(Answer::Joinids(joinids(&obs, text).unwrap()), answers[1], "{text} ({reason})");
    }
}

#[test]
fn tiledbsoma_gives_the_same_rows_for_drawn_filters() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let filters: Vec<String> = (0..N_DRAWN).map(|seed| Draw::new(seed).filter()).collect();
    let (obs, answers) = run(&python, folder.path(), &filters);
    let mut different = Vec::new();
    let (mut n_some, mut n_none, mut n_errors) = (0, 0, 0);
    for (text, expected) in filters.iter().zip(&answers) {
        match (joinids(&obs, text), expected) {
            (Ok(found), Answer::Joinids(expected)) if found == *expected => {
                *(if found.is_empty() { &mut n_none } else { &mut n_some }) += 1;
            }
            (Err(_), Answer::Error(_)) => n_errors += 1,
            (found, expected) => different.push(format!("{text}\n  {found:?}\n  {expected:?}")),
        }
    }
    assert!(different.is_empty(), "{} of {N_DRAWN}:\n{}", different.len(), different.join("\n"));
    println!("the same: {n_some} with rows, {n_none} without, {n_errors} errors");
    assert!(n_some > 150 && n_errors < N_DRAWN / 3, "{n_some} {n_none} {n_errors}");
}
