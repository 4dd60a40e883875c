//! The joinids that a value filter selects from a written obs, compared with the batch that was
//! written.

use soma_io::{Error, Experiment, OpenOptions, ValueFilter};

use crate::small::Small;

#[test]
fn joinids_are_those_of_the_rows_that_match() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment");
    let uri = uri.to_str().unwrap();
    let small = Small::new(3_000, 40, 0);
    small.write(uri).unwrap();
    let obs = Experiment::open(uri, &OpenOptions::default()).unwrap().obs().unwrap();
    let mut n_some = 0;
    for text in [
        "soma_joinid >= 0",
        "soma_joinid < 0",
        "soma_joinid in [2999, 7, 3000]",
        "category == 'B cell'",
        "category not in ['Übergang', 'nope']",
        "ordered_category_or_none > 'B cell'",
        "ordered_category_or_none == None",
        "truth == True and truth_or_none != False",
        "100 < count_or_none <= 500 or share < 1e12",
        "share_or_none == 0.125",
        "text > 'xx' and not (text_or_none == None or count > 0)",
    ] {
        let filter = ValueFilter::parse(text).unwrap();
        let matches = filter.evaluate(&small.obs).unwrap();
        // The rows of the batch are numbered from 0, like the joinids.
        let expected: Vec<u64> = matches.values().set_indices().map(|row| row as u64).collect();
        assert_eq!(obs.joinids(&filter).unwrap(), expected, "{text}");
        n_some += usize::from(!expected.is_empty());
    }
    assert_eq!(n_some, 10, "one of the filters matches nothing, the others something");
    let joinids = |text: &str| obs.joinids(&ValueFilter::parse(text).unwrap());
    for (text, expected) in
        [("nope == 1 or truth == True", 1), ("truth == True and count == 'a'", 28)]
    {
        match joinids(text).unwrap_err() {
            Error::ValueFilter { position, .. } => assert_eq!(position, expected, "{text}"),
            other => panic!("{other}"),
        }
    }
}
