//! obs and var copied to another experiment: every column of every type, any rows.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use proptest::prelude::*;
use proptest::sample::subsequence;
use soma_io::{
    ColumnChoice, ColumnKind, ColumnSpec, Error, Experiment, ExperimentSpec, ExperimentWriter,
    Extent, FrameCopy, OpenOptions, RowRanges, XLayout,
};

use crate::described;
use crate::python;
use crate::small::Small;

fn open(path: &Path) -> Experiment {
    Experiment::open(path.to_str().unwrap(), &OpenOptions::default()).unwrap()
}

fn ranges(joinids: &[u64]) -> RowRanges {
    RowRanges::new(joinids.iter().map(|joinid| *joinid..*joinid + 1).collect()).unwrap()
}

fn all(n_rows: u64) -> RowRanges {
    RowRanges::new(vec![0..n_rows]).unwrap()
}

/// Writes an experiment without X whose obs and var are copies.
fn write(to: &Path, obs: &FrameCopy, obs_rows: &RowRanges, var: &FrameCopy, var_rows: &RowRanges) {
    let spec = ExperimentSpec {
        n_obs: obs_rows.n_rows(),
        n_var: var_rows.n_rows(),
        obs: obs.specs().to_vec(),
        var: var.specs().to_vec(),
        measurement: "RNA".into(),
        layers: Vec::new(),
        extent: Extent::CurrentDomain,
        x_layout: XLayout::census(3),
        fragment_rows: None,
        consolidate: false,
        config: soma_io::Config::new(),
    };
    let mut writer = ExperimentWriter::create(to.to_str().unwrap(), spec).unwrap();
    for part in FrameCopy::parts(obs_rows, 700) {
        writer.write_obs(&obs.read(&part).unwrap()).unwrap();
    }
    for part in FrameCopy::parts(var_rows, 1_000) {
        writer.write_var(&var.read(&part).unwrap()).unwrap();
    }
    writer.finish().unwrap();
}

fn copy(from: &Experiment, obs: &RowRanges, var: &RowRanges, to: &Path) {
    let whole = |frame| FrameCopy::new(frame, &ColumnChoice::All, None).unwrap();
    let frames = (from.obs().unwrap(), from.measurement("RNA").unwrap().var().unwrap());
    write(to, &whole(frames.0), obs, &whole(frames.1), var);
}

#[test]
fn tiledbsoma_reads_every_type_as_it_wrote_it() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let holds = python::run(&python, "write_experiment.py", &[from.to_str().unwrap()]);
    // Some rows of obs were never written; the new joinids have no gaps.
    let mut expected = holds["latest"].clone();
    let [obs, var] = ["obs", "var"].map(|frame| {
        let joinids = &mut expected[frame][0]["values"];
        let old: Vec<u64> = serde_json::from_value(joinids.clone()).unwrap();
        *joinids = (0..old.len()).collect();
        ranges(&old)
    });
    copy(&open(&from), &obs, &var, &to);
    let read = python::run(&python, "check_experiment.py", &[to.to_str().unwrap(), "--frames"]);
    described::assert_same_frames(&read, &expected);
}

const N_ROWS: u64 = 3_000;

/// An experiment with every kind of column, and the rows of its obs.
fn source() -> &'static (tempfile::TempDir, RecordBatch) {
    static SOURCE: OnceLock<(tempfile::TempDir, RecordBatch)> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let small = Small::new(N_ROWS, 900, 2);
        small.write(folder.path().join("from").to_str().unwrap()).unwrap();
        (folder, small.obs)
    })
}

fn obs_copy(joinid_column: Option<&str>) -> FrameCopy {
    let from = open(&source().0.path().join("from"));
    FrameCopy::new(from.obs().unwrap(), &ColumnChoice::All, joinid_column).unwrap()
}

fn take(rows: &RecordBatch, places: &[u64]) -> RecordBatch {
    arrow_select::take::take_record_batch(rows, &UInt64Array::from(places.to_vec())).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn rows_in_any_order_are_those_of_the_source(
        joinids in subsequence((0..N_ROWS).collect::<Vec<_>>(), 0..=N_ROWS as usize).prop_shuffle(),
    ) {
        let (_, obs) = source();
        let found = obs_copy(None).read_in_order(&joinids).unwrap();
        let expected = take(obs, &joinids);
        prop_assert_eq!(found.columns(), &expected.columns()[1..]);
    }

    #[test]
    fn parts_are_the_rows_and_none_is_large_or_wide(
        gaps in proptest::collection::vec((1_u64..40, 1_u64..30), 0..900),
        most_rows in 1_u64..500,
    ) {
        let mut at = 0;
        let rows = gaps.iter().map(|(gap, n)| { let start = at + gap; at = start + n; start..at }).collect();
        let rows = RowRanges::new(rows).unwrap();
        let parts: Vec<RowRanges> = FrameCopy::parts(&rows, most_rows).collect();
        prop_assert!(parts.iter().flat_map(RowRanges::iter).eq(rows.iter()));
        for part in &parts {
            prop_assert!((1..=most_rows).contains(&part.n_rows()));
            let span = part.ranges().last().unwrap().end - part.ranges()[0].start;
            prop_assert!(part.ranges().len() <= 256 || span <= most_rows);
        }
    }
}

#[test]
fn scattered_rows_are_written_with_their_old_joinids() {
    let (folder, obs) = source();
    let to = folder.path().join("scattered");
    // More ranges than are read one by one.
    let joinids: Vec<u64> = (0..N_ROWS).filter(|joinid| joinid % 3 != 1).collect();
    let from = open(&folder.path().join("from"));
    let var = from.measurement("RNA").unwrap().var().unwrap();
    let var = FrameCopy::new(var, &ColumnChoice::Only(vec!["count".into()]), None).unwrap();
    write(&to, &obs_copy(Some("old_joinid")), &ranges(&joinids), &var, &all(900));
    let written = open(&to);
    let found = written.obs().unwrap().read(None, None).unwrap();
    let expected = take(obs, &joinids);
    let n_columns = expected.num_columns();
    assert_eq!(found.num_columns(), n_columns + 1);
    assert_eq!(found.columns()[1..n_columns], expected.columns()[1..]);
    for (found, expected) in found.schema().fields().iter().zip(expected.schema().fields()).skip(1)
    {
        assert_eq!(found, expected);
    }
    let old = found.column_by_name("old_joinid").unwrap().as_primitive::<Int64Type>();
    assert!(old.values().iter().map(|joinid| *joinid as u64).eq(joinids));
    let var = written.measurement("RNA").unwrap().var().unwrap();
    assert_eq!(var.schema().fields().len(), 2);
}

#[test]
fn a_list_of_many_categories_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    // More bytes than libtiledb's default limit.
    let values: Vec<String> =
        (0..600_000).map(|idx| format!("a name of some length {idx}")).collect();
    let mut small = Small::new(500, 900, 2);
    let spec = &mut small.spec;
    spec.layers.clear();
    let kind = ColumnKind::Categorical { values: values.clone(), ordered: true };
    spec.obs = vec![ColumnSpec::new("name", kind)];
    let name_of = |row: usize| values[row * 1_100].as_str();
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(name_of)));
    let mut writer = ExperimentWriter::create(from.to_str().unwrap(), spec.clone()).unwrap();
    writer.write_obs(&RecordBatch::try_from_iter([("name", names)]).unwrap()).unwrap();
    writer
        .write_var(&small.var.project(&(1..small.var.num_columns()).collect::<Vec<_>>()).unwrap())
        .unwrap();
    writer.finish().unwrap();
    copy(&open(&from), &ranges(&[3, 77]), &all(900), &to);
    let found = open(&to).obs().unwrap().read(None, None).unwrap();
    let found = found.column(1).as_dictionary::<arrow_array::types::Int32Type>();
    assert_eq!(found.values().len(), values.len());
    let texts = arrow_cast::cast(found, &arrow_schema::DataType::Utf8).unwrap();
    assert!(texts.as_string::<i32>().iter().flatten().eq([name_of(3), name_of(77)]));
}

#[test]
fn what_cannot_be_taken_over_is_named() {
    let obs = || open(&source().0.path().join("from")).obs().unwrap();
    let named = ColumnChoice::Without(vec!["absent".into()]);
    let error = FrameCopy::new(obs(), &named, None).unwrap_err();
    assert!(matches!(&error, Error::NoColumn { name, .. } if name == "absent"), "{error}");
    let error = FrameCopy::new(obs(), &ColumnChoice::All, Some("count")).unwrap_err();
    assert!(error.to_string().contains("column count of"), "{error}");
    assert!(
        FrameCopy::new(obs(), &ColumnChoice::Without(vec!["count".into()]), Some("count")).is_ok()
    );
    let error = obs_copy(None).read_in_order(&[4, 5, 4]).unwrap_err();
    assert!(error.to_string().starts_with("joinid 4 occurs twice"), "{error}");
    let error = obs_copy(None).read_in_order(&[N_ROWS]).unwrap_err();
    assert!(matches!(error, Error::RowsOutside { .. }), "{error}");
}
