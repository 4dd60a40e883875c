//! Rows selected by joinid and by filter, compared with the batch that was written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use soma_io::{AxisQuery, DataFrame, Experiment, Joinids, OpenOptions, ValueFilter};

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
        let told = refused(query);
        assert!(told.contains(expected), "{told}");
    }
    let told = obs.query(Some(&["nope"]), &AxisQuery::default()).unwrap_err().to_string();
    assert!(told.contains("nope") && told.contains("count_or_none"), "{told}");
}
