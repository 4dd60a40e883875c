//! Rows selected by joinid and by filter, compared with the batch that was written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type};
use arrow_array::{ArrayRef, DictionaryArray, Int16Array, RecordBatch, StringArray};
use soma_io::{
    AxisQuery, ColumnKind, ColumnSpec, DataFrame, Experiment, ExperimentSpec, ExperimentWriter,
    Extent, Joinids, OpenOptions, ValueFilter, XLayout,
};

use crate::small::Small;

const N_OBS: u64 = 3_000;

fn written() -> (tempfile::TempDir, DataFrame, Small) {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    let small = Small::new(N_OBS, 40, 0);
    small.write(&uri).unwrap();
    let obs = Experiment::open(&uri, &OpenOptions::default()).unwrap().obs().unwrap();
    (folder, obs, small)
}

#[test]
fn a_query_gives_the_rows_that_are_in_both() {
    let (_folder, obs, small) = written();
    let every_third: Vec<u64> =
        (0..N_OBS).rev().filter(|joinid| joinid.is_multiple_of(3)).collect();
    let coordinates = [
        Joinids::All,
        Joinids::Range(17..900),
        Joinids::Range(5..5),
        Joinids::List(vec![]),
        Joinids::List(vec![2_999, 0, 1, 2]),
        // Too many to be read one by one.
        Joinids::List(every_third),
    ];
    let mut n_some = 0;
    for joinids in coordinates {
        for text in [None, Some("count > 100 and category == 'B cell'"), Some("soma_joinid < 0")] {
            let value_filter = text.map(|text| ValueFilter::parse(text).unwrap());
            let matches = value_filter.as_ref().map(|filter| filter.evaluate(&small.obs).unwrap());
            let expected: Vec<i64> = (0..N_OBS)
                .filter(|joinid| match &joinids {
                    Joinids::All => true,
                    Joinids::Range(range) => range.contains(joinid),
                    Joinids::List(list) => list.contains(joinid),
                })
                .filter(|joinid| matches.as_ref().is_none_or(|m| m.value(*joinid as usize)))
                .map(|joinid| joinid as i64)
                .collect();
            n_some += usize::from(!expected.is_empty());
            let query = AxisQuery { joinids: joinids.clone(), value_filter };
            let batch = obs.query(Some(&["text", "soma_joinid", "text"]), &query).unwrap();
            let found = batch.column(1).as_primitive::<Int64Type>().values();
            assert_eq!(found.as_ref(), expected, "{query:?}");
            let names: Vec<_> =
                batch.schema_ref().fields().iter().map(|f| f.name().clone()).collect();
            assert_eq!(names, ["text", "soma_joinid"]);
            let texts = small.obs.column_by_name("text").unwrap().as_string::<i64>();
            let of_rows = batch.column(0).as_string::<i64>();
            for (row, joinid) in expected.iter().enumerate() {
                assert_eq!(of_rows.value(row), texts.value(*joinid as usize));
            }
            assert_eq!(obs.query(None, &query).unwrap().num_rows(), expected.len());
            // Even without columns the result has the number of rows.
            assert_eq!(obs.query(Some(&[]), &query).unwrap().num_rows(), expected.len());
        }
    }
    assert_eq!(n_some, 7, "the short list has no B cells");
}

#[test]
fn categories_are_there_whatever_rows_are() {
    let (_folder, obs, _) = written();
    let categories = |text: &str| {
        let batch = obs.query(Some(&["category"]), &AxisQuery::filter(text).unwrap()).unwrap();
        let categories = Arc::clone(batch.column(0).as_any_dictionary().values());
        (batch.num_rows(), categories)
    };
    let ((all, of_all), (none, of_none)) =
        (categories("soma_joinid >= 0"), categories("soma_joinid < 0"));
    assert_eq!((all, none), (N_OBS as usize, 0));
    assert!(!of_all.is_empty());
    assert_eq!(&of_none, &of_all);
}

#[test]
fn rows_that_are_not_there_are_an_error() {
    let (_folder, obs, _) = written();
    let refused = |query: AxisQuery| obs.query(Some(&["count"]), &query).unwrap_err().to_string();
    for (query, expected) in [
        (AxisQuery::list([4, 7, 4]), "joinid 4 occurs twice"),
        (AxisQuery::list([4, u64::MAX]), "belongs to no row"),
        (AxisQuery::list([4, N_OBS]), "3000"),
        (AxisQuery::range(0..N_OBS + 1), "3000"),
        (AxisQuery::filter("nope == 1").unwrap(), "nope"),
    ] {
        let message = refused(query);
        assert!(message.contains(expected), "{message}");
    }
    let message = obs.query(Some(&["nope"]), &AxisQuery::default()).unwrap_err().to_string();
    assert!(message.contains("nope") && message.contains("count_or_none"), "{message}");
}

/// More rows than one batch of a read.
#[test]
fn rows_of_several_batches_are_those_of_the_formulas() {
    const N: u64 = 1_400_000;
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("many").to_str().unwrap().to_owned();
    let classes: Vec<String> = (0..300).map(|class| format!("class {class}")).collect();
    let class = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let spec = ExperimentSpec {
        n_obs: N,
        n_var: 1,
        obs: vec![ColumnSpec {
            nullable: true,
            ..ColumnSpec::new(
                "kind",
                ColumnKind::Categorical { values: classes.clone(), ordered: false },
            )
        }],
        var: vec![ColumnSpec::new("name", ColumnKind::Text)],
        measurement: "RNA".to_owned(),
        layers: vec![],
        extent: Extent::default(),
        x_layout: XLayout::census(1),
        fragment_rows: None,
        consolidate: false,
        config: soma_io::Config::new(),
    };
    let mut writer = ExperimentWriter::create(&uri, spec).unwrap();
    let categories = Arc::new(StringArray::from(classes));
    let key = |row: u64| (row % 7 != 3).then(|| (class(row) % 300) as i16);
    for first in (0..N).step_by(200_000) {
        let codes: Int16Array = (first..first + 200_000).map(key).collect();
        let rows = DictionaryArray::try_new(codes, Arc::clone(&categories) as _).unwrap();
        let rows =
            RecordBatch::try_from_iter_with_nullable([("kind", Arc::new(rows) as ArrayRef, true)]);
        writer.write_obs(&rows.unwrap()).unwrap();
    }
    let names = Arc::new(StringArray::from(vec!["gene"])) as ArrayRef;
    writer.write_var(&RecordBatch::try_from_iter([("name", names)]).unwrap()).unwrap();
    writer.finish().unwrap();

    // Batches are larger with more threads.
    let config =
        [("sm.compute_concurrency_level".to_owned(), "2".to_owned())].into_iter().collect();
    let options = OpenOptions { config, ..OpenOptions::default() };
    let obs = Experiment::open(&uri, &options).unwrap().obs().unwrap();
    let filter = "kind in ['class 5', 'class 260'] and soma_joinid >= 100000";
    let list: Vec<u64> = (0..N).filter(|row| row % 5 == 0).collect();
    for (query, is_wanted) in [
        (AxisQuery::default(), (|_, _| true) as fn(u64, Option<i16>) -> bool),
        (AxisQuery::filter(filter).unwrap(), |row, key| {
            row >= 100_000 && matches!(key, Some(5 | 260))
        }),
        (AxisQuery::list(list), |row, _| row % 5 == 0),
    ] {
        let expected: Vec<u64> = (0..N).filter(|row| is_wanted(*row, key(*row))).collect();
        let (mut joinids, mut n_batches) = (Vec::new(), 0);
        let selected = obs.select(Some(&["kind"]), &query, &mut |batch| {
            joinids.extend_from_slice(batch);
            n_batches += 1;
        });
        let selected = selected.unwrap();
        assert_eq!(joinids, expected);
        assert!(n_batches > 1, "a single batch");
        let found = selected.column(0).as_dictionary::<Int16Type>().keys();
        assert!(found.iter().eq(expected.iter().map(|row| key(*row))));
        assert_eq!(obs.query(Some(&["kind"]), &query).unwrap(), selected);
    }
    // Joinids far apart are in different batches, and each must be there.
    let two = obs.query(Some(&[]), &AxisQuery::list([N - 1, 3])).unwrap();
    assert_eq!(two.num_rows(), 2);
}
