//! What is read natively equals what libtiledb reads: groups, schemas, categories, rows, counts.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use soma_io::{
    AxisQuery, ColumnSpec, Config, DataFrame, Error, Experiment, Extent, OpenOptions, ReaderChoice,
    RowRanges,
};

use crate::python;
use crate::small::Small;

/// Everything about a data frame, except its rows.
#[derive(Debug, PartialEq)]
struct FrameFacts {
    schema: arrow_schema::SchemaRef,
    specs: Vec<ColumnSpec>,
    bounds: Option<(u64, u64)>,
    n_rows: u64,
}

fn facts(frame: &DataFrame) -> FrameFacts {
    FrameFacts {
        schema: std::sync::Arc::clone(frame.schema()),
        specs: frame.column_specs().unwrap(),
        bounds: frame.joinid_bounds().unwrap(),
        n_rows: frame.n_rows().unwrap(),
    }
}

/// Everything about the layers of a measurement, except their values: name, shape, type, number of
/// values, and bounds.
fn layers(experiment: &Experiment, name: &str) -> Vec<String> {
    let measurement = experiment.measurement(name).unwrap();
    let describe = |layer: String| {
        let x = measurement.x(&layer).unwrap();
        let (nnz, bounds) = (x.nnz().unwrap(), x.non_empty_domain().unwrap());
        format!("{layer} {:?} {:?} {nnz} {bounds:?}", x.shape(), x.data_type().unwrap())
    };
    measurement.layers().unwrap().into_iter().map(describe).collect()
}

fn open(path: &Path, timestamp: Option<u64>, reader: ReaderChoice) -> Experiment {
    let config = Config::from([("sm.compute_concurrency_level".into(), "2".into())]);
    let options = OpenOptions { config, timestamp, reader };
    Experiment::open(path.to_str().unwrap(), &options).unwrap()
}

/// Compares all rows, and those of some ranges and columns.
#[track_caller]
fn check_frame(native: &DataFrame, libtiledb: &DataFrame) {
    assert_eq!(native.why_not_native(), None);
    assert!(libtiledb.why_not_native().is_some());
    let found = facts(native);
    assert_eq!(found, facts(libtiledb));
    let all = native.read(None, None).unwrap();
    assert_same(&all, &libtiledb.read(None, None).unwrap());
    assert_eq!(all.num_rows() as u64, found.n_rows);
    let joinids = all.column(0).as_primitive::<Int64Type>().values();
    let Some(last) = joinids.last().map(|last| *last as u64) else { return };
    let mut ranges = vec![last..last + 1];
    if last > 20 {
        ranges.splice(0..0, [0..last / 7 + 1, last / 3 + 2..last / 2 + 2]);
    }
    let rows = RowRanges::new(ranges).unwrap();
    let names: Vec<&str> =
        found.schema.fields().iter().rev().step_by(2).map(|field| field.name().as_str()).collect();
    for columns in [None, Some(names.as_slice()), Some(&["soma_joinid"]), Some(&[])] {
        let part = native.read(columns, Some(&rows)).unwrap();
        assert_same(&part, &libtiledb.read(columns, Some(&rows)).unwrap());
    }
    let some: Vec<u64> = (0..=last).filter(|joinid| joinid % 7 == 3).collect();
    let query = AxisQuery::list(some);
    match (native.query(None, &query), libtiledb.query(None, &query)) {
        (Ok(part), Ok(expected)) => assert_same(&part, &expected),
        (found, expected) => {
            assert_eq!(found.unwrap_err().to_string(), expected.unwrap_err().to_string());
        }
    }
}

#[track_caller]
fn assert_same(found: &RecordBatch, expected: &RecordBatch) {
    assert_eq!(found.schema(), expected.schema());
    for (idx, field) in expected.schema().fields().iter().enumerate() {
        assert_eq!(found.column(idx), expected.column(idx), "column {}", field.name());
    }
    assert_eq!(found.num_rows(), expected.num_rows());
}

#[track_caller]
pub(crate) fn check(path: &Path, timestamp: Option<u64>) {
    let native = open(path, timestamp, ReaderChoice::Native);
    let libtiledb = open(path, timestamp, ReaderChoice::Libtiledb);
    let measurements = native.measurements().unwrap();
    assert_eq!(measurements, libtiledb.measurements().unwrap());
    check_frame(&native.obs().unwrap(), &libtiledb.obs().unwrap());
    for name in &measurements {
        let var = |experiment: &Experiment| experiment.measurement(name).unwrap().var().unwrap();
        check_frame(&var(&native), &var(&libtiledb));
        assert_eq!(layers(&native, name), layers(&libtiledb, name));
    }
}

#[test]
fn written_here() {
    let folder = tempfile::tempdir().unwrap();
    for (name, extent, n_obs) in
        [("current", Extent::CurrentDomain, 3_000), ("fixed", Extent::FixedDomain, 1)]
    {
        let mut small = Small::new(n_obs, 70, 3);
        small.spec.extent = extent;
        let path = folder.path().join(name);
        small.write(path.to_str().unwrap()).unwrap();
        check(&path, None);
    }
}

#[test]
fn written_by_tiledbsoma_with_columns_of_every_type() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let holds = python::run(&python, "write_experiment.py", &[path.to_str().unwrap()]);
    for timestamp in [None, holds["between"].as_u64()] {
        check(&path, timestamp);
    }
}

#[test]
fn changed_by_tiledbsoma_again_and_again() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    let changes = python::run(&python, "evolve_experiment.py", &[path.to_str().unwrap()]);
    let moments: Vec<u64> = changes["moments"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .collect();
    assert_eq!(moments.len(), 8);
    let times = || std::iter::once(None).chain(moments.iter().copied().map(Some));
    times().for_each(|timestamp| check(&path, timestamp));
    // Merged fragments keep the time of each cell. Before its last change a column had another type
    // than in the merged fragment, which only libtiledb reads.
    let times = || std::iter::once(None).chain(moments[6..].iter().copied().map(Some));
    let merged = [("sm.consolidation.with_timestamps", "true".to_owned())];
    let context = tiledb::Context::new(&Config::new()).unwrap().with(&merged).unwrap();
    let uri = path.join("obs");
    tiledb::Array::consolidate(&context, uri.to_str().unwrap()).unwrap();
    times().for_each(|timestamp| check(&path, timestamp));
    tiledb::Array::vacuum(&context, uri.to_str().unwrap()).unwrap();
    times().for_each(|timestamp| check(&path, timestamp));
}

#[test]
fn real_spots() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/visium-2898x19465/soma");
    check(&folder, None);
}

#[test]
fn what_is_missing_is_the_same_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("experiment");
    Small::new(50, 20, 3).write(path.to_str().unwrap()).unwrap();
    std::fs::write(folder.path().join("file"), "no experiment").unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for name in ["absent", "file", "folder", "experiment/obs", "experiment/ms", "experiment/ms/RNA"]
    {
        let path = folder.path().join(name);
        let errors = [ReaderChoice::Native, ReaderChoice::Libtiledb].map(|reader| {
            let options = OpenOptions { reader, ..OpenOptions::default() };
            Experiment::open(path.to_str().unwrap(), &options).unwrap_err()
        });
        assert!(
            matches!(errors, [Error::Missing { .. } | Error::NotA { .. }, _]),
            "{name}: {errors:?}"
        );
        assert_eq!(errors[0].to_string(), errors[1].to_string(), "{name}");
    }
}
