//! Random experiments of tiledbsoma whose obs and var are indexed by other columns than
//! `soma_joinid` alone: rows, filters and selections are those of tiledbsoma, by both readers.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use serde_json::Value;
use soma_io::{
    AxisQuery, DataFrame, Error, Experiment, Joinids, OpenOptions, ReaderChoice, ValueFilter,
};
use tiledb::{Array, Attribute, Context, Datatype};

use crate::both_ways;
use crate::deleting;
use crate::described::{self, assert_same_frames};
use crate::python;

fn open(path: &Path, timestamp: Option<u64>, reader: ReaderChoice) -> Experiment {
    let options = OpenOptions { timestamp, reader, ..OpenOptions::default() };
    Experiment::open(path.to_str().unwrap(), &options).unwrap()
}

fn joinids(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

/// Compares rows that are selected by a filter on each column of numbers and texts, and by joinids,
/// with those of the whole.
fn check_queries(frame: &DataFrame, expected: &Value) {
    let columns = expected.as_array().unwrap();
    let all: Vec<i64> =
        columns[0]["values"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
    for column in columns {
        let values = column["values"].as_array().unwrap();
        let wanted = values[values.len() / 2].clone();
        let literal = match (&wanted, column["type"].as_str().unwrap()) {
            (Value::Number(number), kind) if kind.contains("int") => number.to_string(),
            (Value::String(text), "large_string") => format!("{text:?}"),
            _ => continue,
        };
        let name = column["name"].as_str().unwrap();
        let filter = ValueFilter::parse(&format!("{name} == {literal}")).unwrap();
        let query = AxisQuery { value_filter: Some(filter), ..AxisQuery::default() };
        let found = frame.query(Some(&["soma_joinid", name]), &query).unwrap();
        let matches = all.iter().zip(values).filter(|(_, value)| **value == wanted);
        let matches: Vec<i64> = matches.map(|(joinid, _)| *joinid).collect();
        assert_eq!(joinids(&found), matches, "{name} == {literal}");
    }
    let list: Vec<u64> = all.iter().step_by(7).map(|joinid| *joinid as u64).collect();
    let (first, last) = (list[3], list[list.len() - 2]);
    let listed = AxisQuery { joinids: Joinids::List(list.clone()), ..AxisQuery::default() };
    let found = joinids(&frame.query(None, &listed).unwrap());
    assert_eq!(found, list.iter().map(|joinid| *joinid as i64).collect::<Vec<_>>());
    let range = AxisQuery { joinids: Joinids::Range(first..last), ..AxisQuery::default() };
    let found = joinids(&frame.query(None, &range).unwrap());
    let within = all.iter().filter(|joinid| (first as i64..last as i64).contains(*joinid));
    assert_eq!(found, within.copied().collect::<Vec<_>>());
}

#[test]
fn frames_indexed_by_other_columns() {
    let Some(python) = python::interpreter() else { return };
    let n_seeds = std::env::var("SOMAFEED_RANDOM_INDEXED").ok().and_then(|n| n.parse().ok());
    for seed in 0..n_seeds.unwrap_or(2_u32) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("experiment");
        let scripts: [(&str, &[&str]); 1] = [("write_indexed_experiment.py", &[&seed.to_string()])];
        let mut holds = deleting::make(&python, &path, &scripts);
        for place in ["/earlier/obs", "/earlier/var", "/latest/obs", "/latest/var"] {
            // A joinid that is null is an error, so the column has none.
            holds.pointer_mut(place).unwrap()[0]["nullable"] = false.into();
        }
        let holds = holds;
        let check_all = || {
            for (timestamp, state) in [(None, "latest"), (holds["between"].as_u64(), "earlier")] {
                for reader in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
                    let experiment = open(&path, timestamp, reader);
                    assert_same_frames(&described::frames(&experiment), &holds[state]);
                    check_queries(&experiment.obs().unwrap(), &holds[state]["obs"]);
                }
                both_ways::check(&path, timestamp);
            }
        };
        check_all();
        // Merged fragments keep the time of each cell.
        let merged = [("sm.consolidation.with_timestamps", "true".to_owned())];
        let context = Context::new(&soma_io::Config::new()).unwrap().with(&merged).unwrap();
        for frame in ["obs", "ms/RNA/var"] {
            let uri = path.join(frame);
            Array::consolidate(&context, uri.to_str().unwrap()).unwrap();
            Array::vacuum(&context, uri.to_str().unwrap()).unwrap();
        }
        check_all();
    }
}

#[test]
fn rows_without_joinids_of_their_own_are_an_error() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let uri = path.to_str().unwrap();
    python::run(&python, "write_twice_numbered.py", &[uri]);
    for reader in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
        let obs = open(&path, None, reader).obs().unwrap();
        let error = obs.read(None, None).unwrap_err();
        assert!(matches!(error, Error::BrokenColumn { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("soma_joinid") && text.contains("have the joinid 4"), "{text}");
    }
    // A frame without the column is one that nobody numbered.
    let context = Context::new(&soma_io::Config::new()).unwrap();
    let obs = path.join("obs");
    let obs = obs.to_str().unwrap();
    let mut schema = Array::open(&context, obs, None).unwrap().schema().clone();
    let metadata = Array::open(&context, obs, None).unwrap().metadata().unwrap();
    std::fs::remove_dir_all(obs).unwrap();
    schema.attributes = vec![Attribute::new("number", Datatype::Int64)];
    Array::create(&context, obs, &schema).unwrap();
    let array = Array::open_for_writing(&context, obs, None).unwrap();
    for (key, value) in &metadata {
        array.put_metadata(key, value).unwrap();
    }
    array.close().unwrap();
    let text = open(&path, None, ReaderChoice::Native).obs().unwrap_err().to_string();
    assert!(text.contains("no column soma_joinid of 64-bit integers"), "{text}");
}
